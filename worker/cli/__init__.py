"""The command line: one module per command, with its arguments and its words.

What a command does lies in other rooms, and is imported when it runs.
"""

from __future__ import annotations

from worker.cli.application import app, guarded, main

__all__ = ["app", "guarded", "main"]
