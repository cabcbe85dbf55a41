"""What participants run on their own machines: the check of a submission, and the template.

Nothing else of the worker is imported here, and of scoring only what reads tables, because ``config/participant`` installs this package
alone.
"""

__all__ = ["challenge", "commands"]
