"""Tell whether a linear probe trains for enough steps: with too few, it learns nothing, even from good embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from scoring.printable import count_of
from scoring.randomness import held_out

LEAST_MOVE = 2.0
"""How many times its random initial size a weight must be able to move.

The weights of a linear probe on d values begin at random within 1/√d of zero, and a step of AdamW moves a weight by at most about the
learning rate. So after n steps a weight can have moved n · learning rate · √d times its initial size.

The threshold was measured on the demo's task `digit` on 23 November 2026: raw pixels (d = 64) and 1,024 random features of them, 200 and
800 samples, learning rates 0.001 to 0.01, 6 to 1,920 steps, 20 folds. Where weights could move less than their initial size, R² was
at most 0.06, although these embeddings reached 0.47 to 0.78 with enough steps. At the default learning rate, R² had about half of that (45
to 62 %) when weights could move 1.9 times their initial size.
"""
LEAST_MOVE_OF_CLASSES = 0.5
"""The same for the greatest of several outputs, which is right much earlier.

Measured on the digits and on the example in ``config/researcher`` on 30 November 2026: where weights could move a quarter of their initial
size, macro F1 was 0.33 to 0.42, although these embeddings reached 0.81 and 0.99; with half of it, it was 0.45 to 0.77. Several labels were
like two classes.
"""


@dataclass(frozen=True, kw_only=True)
class TrainingLength:
    """How long one fold of a task trains.

    Attributes:
        is_enough: Whether it has the steps that a weight needs to forget its random initial value, so that the score says something about
            the embeddings.
        epochs: Epochs with at least these steps.
        reason: Steps that are trained and needed, in words.
    """

    is_enough: bool
    epochs: int
    reason: str


def training_length(
    samples: int,
    dim: int,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    test_size: float,
    least_move: float = LEAST_MOVE,
) -> TrainingLength:
    """Return the length of training on a task with so many samples and dimensions."""
    batches = ceil((samples - held_out(samples, test_size)) / batch_size)
    needed = ceil(least_move / (learning_rate * dim**0.5))
    steps = batches * epochs
    return TrainingLength(
        is_enough=steps >= needed,
        epochs=ceil(needed / batches),
        reason=f"{count_of(steps, 'step')} in each fold, but at least {needed:,} are needed with the learning rate {learning_rate:g}"
        f" and {count_of(dim, 'value')} per embedding",
    )
