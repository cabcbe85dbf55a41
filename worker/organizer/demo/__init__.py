"""The demo: a whole hidden-task challenge on one machine, with real data and the real worker."""

__all__ = ["data", "files", "place", "runner", "screen", "story"]
