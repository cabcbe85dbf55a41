"""The compiled kernel: preparation of rows, and training of linear probes (``train``) with SIMD lanes (``simd``).

Modules that compile something are imported where they are used, because importing numba takes a third of a second.
"""

from scoring.kernel.rows import (
    ALIGNMENT,
    LARGE_PAGE,
    NEUTRAL,
    Moments,
    aligned,
    column_sums,
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
    "column_sums",
    "gather",
    "moments",
    "reference_moments",
    "simd",
    "train",
]
