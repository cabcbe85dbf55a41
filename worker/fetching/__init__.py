"""Stage 2, from links to files."""

__all__ = ["download", "housekeeping", "stage", "uploads"]
