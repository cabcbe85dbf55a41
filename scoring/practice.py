"""A protocol for your own tasks, with splits that are not secret."""

from __future__ import annotations

from scoring.inputs.embeddings import Embeddings
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.randomness import phase_key, secret_commitment

SECRET, PHASE = bytes(32), "practice"


def practice_protocol(
    embeddings: Embeddings,
    *,
    folds: int = 40,
    recipe: Recipe | None = None,
) -> tuple[Protocol, bytes]:
    """Return the protocol of a challenge, and the key that its splits are derived from.

    The same ids always give the same splits, so scores can be compared, also fold by fold.

    Args:
        embeddings: The embeddings to score; ids and dimension are taken from them.
        folds: Number K of random splits.
        recipe: The hyper-parameters; None for those of the 2025 challenge.
    """
    key = phase_key(SECRET, PHASE)
    protocol = Protocol(
        phase=PHASE,
        folds=folds,
        embedding_dim=embeddings.matrix.shape[1],
        ids_hash=ids_hash(embeddings.ids),
        secret_commitment=secret_commitment(key),
        recipe=recipe or Recipe(),
    )
    return protocol, key
