"""External effects: acts, and the runners that perform them outside the main loop.

It imports nothing itself, because a child process must not load what only the daemon needs.
"""

__all__ = ["acts", "child", "child_acts", "http", "storage"]
