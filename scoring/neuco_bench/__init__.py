"""The standalone benchmark: it reads NeuCo-Bench's files and writes the same folders and scores.

Like NeuCo-Bench, it accepts embeddings with fewer dimensions, missing ids and values that are not numbers, with a warning. A challenge
refuses such files.
"""

__all__ = [
    "configuration",
    "expectations",
    "labels",
    "material",
    "plots",
    "reading",
    "results",
    "resuming",
    "run",
]
