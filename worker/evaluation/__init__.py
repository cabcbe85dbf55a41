"""Stage 3, from files to score cells. It imports nothing by itself: its child must not load what the daemon needs."""

__all__ = [
    "act",
    "answers",
    "corrections",
    "evaluate_child",
    "filling",
    "keeping",
    "matrix",
    "stage",
    "told",
]
