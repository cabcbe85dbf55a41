"""Small units of work for engine tests."""

from __future__ import annotations

import numpy as np

from scoring.engines import Unit
from scoring.protocol import Recipe


def make_unit(
    *,
    samples: int,
    dim: int,
    types: str = "rc",
    folds: int = 3,
    recipe: Recipe | None = None,
    groups: int = 0,
    seed: int = 0,
) -> Unit:
    """Make a unit whose tasks can partly be learned.

    Args:
        samples: Rows n.
        dim: Dimension N.
        types: One letter per task, r for regression, c for classification.
        folds: Number K of folds.
        recipe: Hyper-parameters; three epochs by default.
        groups: Number of groups of rows, of different sizes; 0 for none.
        seed: Seed of rows and labels.
    """
    generator = np.random.RandomState(seed)
    rows = generator.standard_normal((samples, dim)).astype(np.float32)
    targets = np.empty((len(types), samples), dtype=np.float32)
    for task, kind in enumerate(types):
        signal = rows @ generator.standard_normal(dim) / np.sqrt(dim) + 0.3 * generator.standard_normal(
            samples
        )
        scaled = (signal - signal.min()) / (signal.max() - signal.min())
        targets[task] = scaled if kind == "r" else signal > 0
    return Unit(
        rows=rows,
        targets=targets,
        classification=np.array([kind == "c" for kind in types]),
        split_seeds=generator.randint(0, 2**32, size=folds, dtype=np.uint32),
        training_seeds=generator.randint(0, 2**32, size=folds, dtype=np.uint32),
        recipe=recipe or Recipe(epochs=3),
        groups=np.arange(samples, dtype=np.int32) ** 2 % samples % groups if groups else None,
    )


def part(unit: Unit, *, tasks: list[int] | None = None, folds: slice = slice(None)) -> Unit:
    """Cut a unit down to some of its tasks, in any order, and a range of its folds."""
    chosen = list(range(len(unit.targets))) if tasks is None else tasks
    return Unit(
        rows=unit.rows,
        targets=unit.targets[chosen],
        classification=unit.classification[chosen],
        split_seeds=unit.split_seeds[folds],
        training_seeds=unit.training_seeds[folds],
        recipe=unit.recipe,
        groups=unit.groups,
    )
