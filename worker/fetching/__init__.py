"""Stage 2, from links to files. It imports nothing by itself: its child must not load what the daemon needs."""

__all__ = ["download", "fair_queue", "housekeeping", "stage", "uploads"]
