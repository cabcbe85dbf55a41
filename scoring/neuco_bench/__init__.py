"""NeuCo-Bench, standalone: the same files in, the same folders and numbers out.

What is lenient here (paddings, gaps, what is no number) is NeuCo-Bench's documented behaviour, comes with a warning, and exists nowhere
else: a challenge refuses such files.
"""

__all__ = [
    "ceilings",
    "charts",
    "configuration",
    "expectations",
    "labels",
    "plots",
    "reading",
    "results",
    "run",
    "sizes",
    "stored",
]
