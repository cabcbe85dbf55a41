"""The probes: each takes one task and returns the result of every fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from scoring.documents import checked
from scoring.engines import available_cores, ignore, train_in_order
from scoring.errors import needs_extra
from scoring.probes import PROBES
from scoring.randomness import Split, Splitter
from scoring.tasks import TaskType

TEST_SIZE = 0.1  # NeuCo-Bench's value, for every probe


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
        groups: int32 n, the number of each row's group; None if rows have no groups.
        label_low: The label of a regression that became 0; 0 if labels are not scaled.
        label_range: How much higher the label is that became 1; 1 if labels are not scaled.
    """

    name: str
    kind: TaskType
    rows: NDArray[np.float32]
    targets: NDArray[Any]
    classes: tuple[str, ...] = ()
    groups: NDArray[np.int32] | None = None
    label_low: float = 0.0
    label_range: float = 1.0

    @property
    def outputs(self) -> int:
        """How many numbers a probe predicts for a sample."""
        return len(self.classes) if self.kind.has_columns else 1

    @property
    def columns(self) -> NDArray[np.float64]:
        """The targets, n x C: the labels of a regression, or 0 and 1 for each class or label."""
        if self.kind is TaskType.MULTICLASS:
            return np.asarray(np.eye(self.outputs)[self.targets])
        return self.targets.astype(np.float64).reshape(len(self.targets), -1)

    def shaped(self, outputs: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return outputs as float64, n x C, or n if a sample has one."""
        return outputs.astype(np.float64).reshape((-1, self.outputs) if self.kind.has_columns else (-1,))


@dataclass(frozen=True, kw_only=True, eq=False)
class Fold(Split):
    """One random split, and its number."""

    number: int


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
        train_losses: The training loss after each epoch, if there are epochs and it was asked for.
        test_losses: The held-out loss, likewise.
    """

    score: float
    test: NDArray[np.int32]
    predictions: NDArray[np.float64]
    train: NDArray[np.int32]
    train_predictions: NDArray[np.float64]
    history: tuple[float, ...] = ()
    train_losses: tuple[float, ...] = ()
    test_losses: tuple[float, ...] = ()


class Probe(ABC):
    """A probe, which is made for one run.

    A subclass says how to fit one fold. It may carry a random stream from task to task, as NeuCo-Bench's does, so
    :meth:`train` is called once for each task, in the order of names, or once for all tasks with the same samples.

    Args:
        params: The configuration's ``probe_params``; None means the default of a parameter.
        seed: Seed of splits and training; NeuCo-Bench's is 42.
        threads: Number of folds trained at once; None takes all cores that this process may use.

    Raises:
        OrganizerError: If a parameter is unknown or wrong.

    Attributes:
        parameters: The model of the parameters.
        has_epochs: Whether it is trained in epochs, and so has losses.
        hidden: Widths of the layers between embedding and output; None if a prediction does not come from layers.
        shares_folds: Whether a fold of all tasks with the same samples is fitted at once.
        libraries: What it computes with, besides what every score needs.
        libraries_for_columns: What it needs besides for tasks of several classes or labels.
        stop: One byte that is 1 once results no longer matter.
    """

    parameters: ClassVar[type[BaseModel]]
    has_epochs: ClassVar[bool] = False
    hidden: tuple[int, ...] | None = None
    shares_folds: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ()
    libraries_for_columns: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: Mapping[str, Any], *, seed: int, threads: int | None) -> None:
        given = {key: value for key, value in params.items() if value is not None}
        self.params: Any = checked(self.parameters, given, place="probe_params", code="probe.bad_parameter")
        self.seed = seed
        self.threads = threads or available_cores()
        self.stop = np.zeros(1, dtype=np.uint8)

    @abstractmethod
    def fitter(
        self, tasks: Sequence[ProbeInput], folds: int, *, details: bool
    ) -> AbstractContextManager[Callable[[Fold], list[FoldResult]]]:
        """Enter with a function that fits one fold of each task, which is called from several threads; leave when all are fitted.

        Args:
            tasks: One task, or several with the same rows if the probe ``shares_folds``.
            folds: Number K of folds.
            details: Whether losses and predictions on the training part are wanted, for plots.
        """

    @abstractmethod
    def hyperparameters(self, folds: Sequence[FoldResult]) -> Mapping[str, object]:
        """Return the values that the probes were trained with, for the report."""

    def computed_with(self, kinds: Iterable[TaskType]) -> list[str]:
        """Return the libraries that it computes with on tasks of these types, besides :data:`scoring.scorecard.ALWAYS`."""
        has_columns = any(kind.has_columns for kind in kinds)
        return sorted({*self.libraries, *(self.libraries_for_columns if has_columns else ())})

    def refit(self, data: ProbeInput) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Fit all samples, and return weight and bias of each layer; of probes without layers, nothing."""
        return []

    def train(
        self,
        *tasks: ProbeInput,
        folds: int,
        details: bool = False,
        progress: Callable[[int], None] = ignore,
    ) -> list[list[FoldResult]]:
        """Train and score each task on K random splits; ``progress`` is called with the number of folds finished since its last call."""
        with self.fitter(tasks, folds, details=details) as fit:
            results = train_in_order(
                fit,
                splits(tasks[0], folds, self.seed),
                threads=self.threads,
                stop=self.stop,
                finished=lambda done: progress(len(done)),
            )
        return [list(folds_of_task) for folds_of_task in zip(*results, strict=True)]


def probe_class(name: str) -> type[Probe]:
    """Return the class of a probe by its name in :data:`scoring.probes.PROBES`.

    Raises:
        OrganizerError: If its library is missing.
    """
    with needs_extra("research", f"The probe {name}"):
        return cast("type[Probe]", resolve_name(PROBES[name]))


def make_probe(name: str, params: Mapping[str, Any], *, seed: int = 42, threads: int | None = None) -> Probe:
    """Make a probe by its name, see :class:`Probe`.

    Raises:
        OrganizerError: If its library is missing, or it refuses its parameters.
    """
    return probe_class(name)(params, seed=seed, threads=threads)


def splits(data: ProbeInput, folds: int, seed: int) -> Iterator[Fold]:
    """Yield the splits of a task; without groups, those of ``ShuffleSplit(folds, test_size=0.1, random_state=seed)``."""
    splitter = Splitter(len(data.rows), TEST_SIZE, data.groups)
    for number, split in enumerate(splitter.splits(seed, folds)):
        yield Fold(number=number, order=split.order, tested=split.tested)
