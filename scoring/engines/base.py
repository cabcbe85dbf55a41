"""The engine interface: what turns one row set into fold scores.

Small on purpose. A unit is self-contained (no secret, only seeds), so an engine may run it in this process, in another one or on
another machine, whole or cut into fold ranges, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.protocol import Recipe


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """A range of folds of all tasks on one row set.

    Attributes:
        rows: Standardized embeddings, float32, C-contiguous, n x N, in sorted id order.
        targets: Labels as trained on (min-max scaled for regression), float32, T x n.
        classification: T booleans; True scores F1 with BCE-with-logits, False scores R2 with MSE.
        split_seeds: uint32, one per fold.
        training_seeds: uint32, one per fold.
        recipe: Hyper-parameters.
    """

    rows: NDArray[np.float32]
    targets: NDArray[np.float32]
    classification: NDArray[np.bool_]
    split_seeds: NDArray[np.uint32]
    training_seeds: NDArray[np.uint32]
    recipe: Recipe


def require_linear(unit: Unit) -> None:
    """Refuse a unit of another probe.

    Raises:
        OrganizerError: If the recipe's probe is not linear.
    """
    if unit.recipe.probe != "linear":
        raise OrganizerError(
            f"This engine trains only linear probes, but scoring.probe is {unit.recipe.probe!r}.",
            cure="Set scoring.probe to linear.",
            code="engine.probe",
        )


def ignore(probes: int) -> None:
    """Take no notice of progress."""


def never() -> bool:
    """Never ask for a stop."""
    return False


class Engine(Interface):
    """Anything that can score units."""

    @property
    def name(self) -> str:
        """What the configuration and the scorecard call the engine."""
        ...

    def score(
        self, unit: Unit, *, progress: Callable[[int], None] = ignore, cancelled: Callable[[], bool] = never
    ) -> NDArray[np.float64]:
        """Return T x K held-out scores, each the best over the epochs; NaN where a fold failed.

        ``progress`` is called in the caller's thread with the number of probes (a fold of a task) finished since the last call;
        ``cancelled`` is asked there at least once a second, except by the plain loop, which asks after each epoch.

        Raises:
            Cancelled: If ``cancelled`` said so.
        """
        ...

    def score_all(
        self,
        units: Iterable[Unit],
        *,
        progress: Callable[[int], None] = ignore,
        cancelled: Callable[[], bool] = never,
    ) -> Iterator[NDArray[np.float64]]:
        """Yield what :meth:`score` returns for each of a submission's units, in their order.

        Units may be made as they are asked for. An engine of many machines begins with the next while the last folds of one are scored.
        """
        for unit in units:
            yield self.score(unit, progress=progress, cancelled=cancelled)
