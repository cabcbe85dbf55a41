"""Randomness: from the secret to seeds, from seeds to splits, and torch's random stream, compiled (``torch_stream``)."""

from scoring.randomness.seeds import fold_seeds, phase_key, secret_commitment
from scoring.randomness.splits import Splitter, held_out

__all__ = ["Splitter", "fold_seeds", "held_out", "phase_key", "secret_commitment", "torch_stream"]
