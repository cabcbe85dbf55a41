"""Randomness: from the secret to seeds, from seeds to splits.

torch's random stream and the draws of whole folds (``fold_draws``) are compiled.
"""

from scoring.randomness.seeds import (
    Split,
    Splitter,
    fold_seeds,
    group_numbers,
    held_out,
    never_tested,
    phase_key,
    secret_commitment,
    test_parts,
)

__all__ = [
    "Split",
    "Splitter",
    "fold_draws",
    "fold_seeds",
    "group_numbers",
    "held_out",
    "never_tested",
    "phase_key",
    "secret_commitment",
    "test_parts",
]
