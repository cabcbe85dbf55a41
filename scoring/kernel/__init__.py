"""The compiled kernel: rows as it likes them, and the training of linear probes (``train``), written in lanes (``simd``).

The modules that compile something are imported where they are used: numba costs a third of a second.
"""

from scoring.kernel.rows import (
    ALIGNMENT,
    LARGE_PAGE,
    NEUTRAL,
    Moments,
    aligned,
    gather,
    moments,
    reference_moments,
)

__all__ = [
    "ALIGNMENT",
    "LARGE_PAGE",
    "NEUTRAL",
    "Moments",
    "aligned",
    "gather",
    "moments",
    "reference_moments",
    "simd",
    "train",
]
