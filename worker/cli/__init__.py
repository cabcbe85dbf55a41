"""The command line: one module per command, with its arguments and its output.

The work of a command is in other packages, which are imported when it runs.
"""

from __future__ import annotations

from worker.cli.application import guarded, main, program

__all__ = ["guarded", "main", "program"]
