"""Reading of submitted files: the only code that touches what participants send. It runs in the limited child."""

from scoring.reading.submission import read_submission

__all__ = ["read_submission"]
