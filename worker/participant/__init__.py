"""What participants run on their own machines: the check of a submission, the template, and the look at a challenge.

Nothing else of the worker is imported here, of leaderboard only what reads git, and of scoring only what reads tables, because
``config/participant`` installs nothing else.
"""

__all__ = ["challenge", "commands", "process"]
