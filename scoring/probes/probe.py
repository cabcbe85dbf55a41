"""The probe interface: a probe takes one task and returns the result of every fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from scoring.engines import available_cores, ignore
from scoring.errors import OrganizerError
from scoring.randomness import held_out

TEST_SIZE = 0.1  # NeuCo-Bench's value, for every probe
PARAMETERS = ("batch_size", "epochs", "learning_rate", "device")
EPOCHS = 10  # NeuCo-Bench's default; challenges and the paper use 20


class TaskKind(StrEnum):
    """What a probe predicts; the value is the part after ``__`` in the name of a label file."""

    REGRESSION = "regr"  # a number, scored by R2
    BINARY = "cls"  # one of two classes, scored by F1
    MULTICLASS = "multiclass"  # one of several classes, scored by macro F1
    MULTILABEL = "multilabel"  # any number of several labels, scored by macro F1


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeInput:
    """One task, ready to train on.

    Attributes:
        name: Task identifier.
        kind: What is predicted.
        rows: float32, n x N, standardized.
        targets: float32 n for regression (normalized, if so configured) and binary classification (0 and 1), int64 n (class numbers) for
            several classes, float32 n x C (0 and 1) for several labels.
        classes: Names of the C classes or labels; empty for a regression.
    """

    name: str
    kind: TaskKind
    rows: NDArray[np.float32]
    targets: NDArray[Any]
    classes: tuple[str, ...] = ()

    @property
    def outputs(self) -> int:
        """How many numbers a probe predicts for a sample."""
        return len(self.classes) if self.has_columns else 1

    @property
    def has_columns(self) -> bool:
        """Whether the predictions are a matrix, with a column for each class or label."""
        return self.kind in {TaskKind.MULTICLASS, TaskKind.MULTILABEL}


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldResult:
    """The result of one fold.

    Attributes:
        score: The held-out metric, NaN if the fold failed.
        test: Row numbers of the test part.
        predictions: Outputs of the probe's best state (numbers or logits) on the test part, float64, n_test or n_test x C.
        train: Row numbers of the training part; empty if details were not asked for.
        train_predictions: The same for the training part.
        history: The metric after each epoch, or for each setting that was tried.
        train_losses: The training loss of the same states, if asked for.
        test_losses: The held-out loss of the same states, if asked for.
    """

    score: float
    test: NDArray[np.int32]
    predictions: NDArray[np.float64]
    train: NDArray[np.int32]
    train_predictions: NDArray[np.float64]
    history: tuple[float, ...] = ()
    train_losses: tuple[float, ...] = ()
    test_losses: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Training:
    """The result of training on one task.

    Attributes:
        folds: K results.
        hyperparameters: The values that the probes were trained with, for the report.
        axis: Name of the histories' axis.
    """

    folds: Sequence[FoldResult]
    hyperparameters: Mapping[str, object]
    axis: str = "Epoch"


class Probe(Interface):
    """The interface of a probe, which is made for one run.

    A probe may carry a random stream from task to task, as NeuCo-Bench's does, so :meth:`train` is called once for each task, in the order
    of names.
    """

    @property
    def name(self) -> str:
        """The probe's name in the configuration."""
        ...

    def train(
        self,
        data: ProbeInput,
        *,
        folds: int,
        details: bool = False,
        progress: Callable[[int], None] = ignore,
    ) -> Training:
        """Train and score on K random splits.

        Args:
            data: The task.
            folds: Number K of folds.
            details: Whether losses and predictions on the training part are wanted, for plots.
            progress: Called with the number of folds finished since the last call.

        Raises:
            OrganizerError: If the probe does not support this kind of task.
        """
        ...

    def parameters(self, dim: int, outputs: int) -> int | None:
        """Count the trained parameters; None if their number depends on the data."""
        ...

    def multiply_accumulates(self, dim: int, outputs: int) -> int | None:
        """Count the multiply-accumulate operations of one prediction; None if their number depends on the data."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """The arguments that every probe is made with.

    Attributes:
        params: The configuration's ``probe_params``.
        seed: Seed of splits and training; NeuCo-Bench's is 42.
        threads: Number of folds trained at once; None takes all cores that this process may use.
    """

    params: Mapping[str, Any]
    seed: int = 42
    threads: int | None = None

    @property
    def workers(self) -> int:
        """How many folds are trained at once."""
        return self.threads or available_cores()


def shuffle_splits(rows: int, folds: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Yield the splits of ``ShuffleSplit(folds, test_size=0.1, random_state=seed)``: permutations whose first tenth is the test part."""
    generator = np.random.RandomState(seed)
    for _ in range(folds):
        yield generator.permutation(rows).astype(np.int32)


def parted(split: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the training part and the test part of a split."""
    tested = held_out(len(split), TEST_SIZE)
    return split[tested:], split[:tested]


def checked_parameters(params: Mapping[str, Any], probe: str, known: Sequence[str]) -> dict[str, object]:
    """Return the parameters, if all their names are known.

    Raises:
        OrganizerError: If one is unknown.
    """
    from difflib import get_close_matches

    for name in params:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            raise OrganizerError(
                f"The probe {probe} has no parameter {name!r}.",
                cure=f"Did you mean {near[0]}?" if near else f"It has: {', '.join(known)}.",
                code="probe.unknown_parameter",
            )
    return dict(params)


def number(
    params: Mapping[str, Any], key: str, default: float, *, low: float = 0.0, whole: bool = False
) -> float:
    """Return a parameter that must be a number above ``low``.

    A text that is a number is accepted, because YAML reads ``1e-3``, as NeuCo-Bench's users write it, as text.

    Raises:
        OrganizerError: If it is not such a number.
    """
    value = params.get(key, default)
    try:
        result = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = float("nan")
    if not low < result < float("inf") or (whole and result != int(result)):
        kind = "a whole number" if whole else "a number"
        raise OrganizerError(
            f"probe_params.{key} is {value!r}, not {kind} above {low:g}.",
            cure="Correct it in the configuration.",
            code="probe.bad_parameter",
        )
    return result


@dataclass(frozen=True, kw_only=True)
class TrainingParameters:
    """Hyper-parameters of training by gradient steps."""

    epochs: int
    batch_size: int
    learning_rate: float

    @classmethod
    def from_params(cls, params: dict[str, object]) -> TrainingParameters:
        """Read the parameters from the configuration's ``probe_params``, with NeuCo-Bench's defaults.

        Raises:
            OrganizerError: If one is not a positive number.
        """
        return cls(
            epochs=int(number(params, "epochs", EPOCHS, whole=True)),
            batch_size=int(number(params, "batch_size", 64, whole=True)),
            learning_rate=number(params, "learning_rate", 0.001),
        )
