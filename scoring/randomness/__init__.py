"""Randomness: from the secret to seeds, from seeds to splits.

torch's random stream and the draws of whole folds (``fold_draws``) are compiled.
"""

from scoring.randomness.seeds import Splitter, fold_seeds, held_out, phase_key, secret_commitment

__all__ = [
    "Splitter",
    "fold_draws",
    "fold_seeds",
    "held_out",
    "phase_key",
    "secret_commitment",
]
