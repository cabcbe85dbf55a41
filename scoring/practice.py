"""A protocol for tasks of one's own, with splits that are nobody's secret."""

from __future__ import annotations

from scoring.inputs.embeddings import Embeddings
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.randomness import phase_key, secret_commitment

SECRET = bytes(32)


def practice_protocol(
    embeddings: Embeddings,
    *,
    folds: int = 40,
    recipe: Recipe | None = None,
    phase: str = "practice",
    secret: bytes = SECRET,
) -> tuple[Protocol, bytes]:
    """Return the protocol of a challenge, and the key that its splits follow from.

    Everybody who uses the same ids, phase and secret has the same splits, so that scores can be compared, also in pairs of folds.

    Args:
        embeddings: What is to be scored; ids and dimension come from it.
        folds: Number K of random splits.
        recipe: The hyper-parameters; None for those of the 2025 challenge.
        phase: Part of what the splits follow from.
        secret: The other part; zeros unless you want splits of your own.
    """
    key = phase_key(secret, phase)
    protocol = Protocol(
        phase=phase,
        folds=folds,
        embedding_dim=embeddings.matrix.shape[1],
        ids_hash=ids_hash(embeddings.ids),
        secret_commitment=secret_commitment(key),
        recipe=recipe or Recipe(),
    )
    return protocol, key
