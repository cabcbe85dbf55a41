"""NeuCo-Bench, standalone: the same files in, the same folders and numbers out.

Like NeuCo-Bench, it accepts narrow embeddings, missing ids and values that are not numbers, each with a warning. A challenge refuses such
files.
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
