"""Stage 3, from files to score cells. It imports nothing itself, because its child process must not load what only the daemon needs."""

__all__ = [
    "act",
    "evaluate_child",
    "outcomes",
    "stage",
    "stored",
]
