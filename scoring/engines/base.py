"""The engine interface: an engine turns one row set into fold scores.

A unit is self-contained and holds seeds, not the secret, so an engine may run it in this process, in another one or on another machine,
whole or cut into fold ranges, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from scoring.protocol import Recipe
from scoring.randomness import Split, Splitter

TOLERANCE = 2e-5
"""Largest difference between a fold's scores by two engines or on two kinds of processors, relative to max(1, |score|). F1 may differ by
one more count for each sample whose logit is so close to the threshold that rounding decides its class."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """A range of folds of all tasks on one row set.

    Attributes:
        rows: Standardized embeddings, float32, C-contiguous, n x N, sorted by id.
        targets: Labels for training (min-max scaled for regression), float32, T x n.
        classification: T booleans; True scores F1 with BCE-with-logits, False scores R2 with MSE.
        split_seeds: uint32, one per fold.
        training_seeds: uint32, one per fold.
        recipe: Hyper-parameters.
        groups: int32 n, the number of each row's group; None if rows have no groups.
    """

    rows: NDArray[np.float32]
    targets: NDArray[np.float32]
    classification: NDArray[np.bool_]
    split_seeds: NDArray[np.uint32]
    training_seeds: NDArray[np.uint32]
    recipe: Recipe
    groups: NDArray[np.int32] | None = None

    def splits(self) -> Iterator[Split]:
        """Draw the split of each fold; with groups, the sizes of test parts differ."""
        splitter = Splitter(len(self.rows), self.recipe.test_size, self.groups)
        return (splitter.split(seed) for seed in self.split_seeds.tolist())


def ignore(probes: int) -> None:
    """Ignore progress."""


class Engine(Interface):
    """The interface of all engines.

    Attributes:
        libraries: What it computes with, besides :data:`scoring.scorecard.ALWAYS`.
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The engine's name in the configuration and the scorecard."""
        ...

    def score(self, unit: Unit, *, progress: Callable[[int], None] = ignore) -> NDArray[np.float64]:
        """Return T x K held-out scores, each the best over the epochs; NaN where a fold failed.

        ``progress`` is called in the caller's thread, with the number of probes (a fold of a task) finished since the last call.
        """
        ...

    def score_all(
        self,
        units: Iterable[Unit],
        *,
        progress: Callable[[int], None] = ignore,
    ) -> Iterator[NDArray[np.float64]]:
        """Yield what :meth:`score` returns for each of a submission's units, in their order.

        ``units`` may be a generator. An engine of many machines takes all units at once.
        """
        for unit in units:
            yield self.score(unit, progress=progress)
