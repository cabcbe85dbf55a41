"""The plain loop: the protocol as a readable PyTorch program.

It is the reference: the tests hold the other engines to its fold scores, and anyone who has the revealed seeds can check a score with it.

Random numbers are drawn in this order for one fold of one task (paper Section 3.2, A.1). NeuCo-Bench's loop with ``DataLoader`` and
``SubsetRandomSampler`` consumes torch's stream in exactly this way:

1. ``torch.manual_seed(training_seed)``
2. ``torch.nn.Linear(N, 1)``: N draws for the weights, one for the bias.
3. In each epoch, before training: one int64 (the seed that a DataLoader draws for its workers, unused), then ``randperm`` of the training
   part; before validation the same again for the test part, whose order does not matter.

All tasks on a row set start from the same training seed, so they share initial weights and orders. torch is imported inside the functions,
because the usual engine works without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scoring.engines.base import Engine, Unit, ignore, never
from scoring.errors import Cancelled
from scoring.metrics import f1, r2
from scoring.protocol import Recipe
from scoring.randomness import Splitter, held_out

if TYPE_CHECKING:
    import torch


class PlainEngine(Engine):
    """Score units with :func:`train_probe`, one fold after the other."""

    name = "plain"

    def score(
        self, unit: Unit, *, progress: Callable[[int], None] = ignore, cancelled: Callable[[], bool] = never
    ) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`."""
        import torch

        scores = np.full((len(unit.targets), len(unit.split_seeds)), np.nan)
        splitter = Splitter()
        rows = torch.from_numpy(np.ascontiguousarray(unit.rows))
        for fold, (split_seed, training_seed) in enumerate(
            zip(unit.split_seeds, unit.training_seeds, strict=True)
        ):
            split = torch.from_numpy(splitter.permutation(int(split_seed), len(rows)).astype(np.int64))
            tested = held_out(len(rows), unit.recipe.test_size)
            for task, labels in enumerate(unit.targets):
                torch.manual_seed(int(training_seed))
                scores[task, fold] = train_probe(
                    rows,
                    torch.from_numpy(labels),
                    train=split[tested:],
                    test=split[:tested],
                    classification=bool(unit.classification[task]),
                    recipe=unit.recipe,
                    cancelled=cancelled,
                )
                progress(1)
        return scores


def train_probe(
    rows: torch.Tensor,
    labels: torch.Tensor,
    *,
    train: torch.Tensor,
    test: torch.Tensor,
    classification: bool,
    recipe: Recipe,
    cancelled: Callable[[], bool] = never,
) -> float:
    """Train one linear probe from torch's current random state and return its best held-out score.

    Args:
        rows: float32, n x N.
        labels: float32, n.
        train: Row numbers of the training part.
        test: Row numbers of the test part.
        classification: True trains with BCE-with-logits and scores F1; False trains with MSE and scores R2.
        recipe: Hyper-parameters; the rest of AdamW's are torch's defaults (betas 0.9 and 0.999, eps 1e-8, weight decay 0.01).
        cancelled: Asked after each epoch.

    Returns:
        The best of the finite scores, NaN if there is none.

    Raises:
        Cancelled: If ``cancelled`` said so.
    """
    import torch

    probe = torch.nn.Linear(rows.shape[1], 1)
    optimizer = torch.optim.AdamW(probe.parameters(), lr=recipe.learning_rate)
    loss_function = torch.nn.BCEWithLogitsLoss() if classification else torch.nn.MSELoss()
    metric = f1 if classification else r2
    best = float("-inf")
    for _ in range(recipe.epochs):
        for batch in torch.split(_shuffled(train), recipe.batch_size):
            optimizer.zero_grad()
            loss = loss_function(probe(rows[batch]).view(-1), labels[batch])
            loss.backward()
            optimizer.step()
        order = _shuffled(test)
        with torch.no_grad():
            predictions = probe(rows[order]).view(-1)
        score = metric(predictions.numpy(), labels[order].numpy())
        if score > best:  # noqa: PLR1730 - a comparison shows that NaN never wins
            best = score
        if cancelled():
            raise Cancelled()
    return best if best > float("-inf") else float("nan")


def _shuffled(part: torch.Tensor) -> torch.Tensor:
    import torch

    torch.empty((), dtype=torch.int64).random_()  # the DataLoader's base seed
    return part[torch.randperm(len(part))]
