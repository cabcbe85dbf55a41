"""Stage 2, from links to files. It imports nothing itself, because its child process must not load what only the daemon needs."""

__all__ = ["download", "housekeeping", "stage", "uploads"]
