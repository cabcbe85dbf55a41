"""What participants run on their own machine: the check of a submission, its corrections, and the table to begin with.

Nothing else of the worker is imported here, and of scoring only what reads tables: ``config/participant`` installs this room alone.
"""

__all__ = ["application", "challenge", "layout", "template", "validate"]
