"""Intake: store what EvalAI's messages and listings say, and send EvalAI the answers.

The stage (:class:`Intake`) decides which call comes next. Each call is an act with its own class. What EvalAI says of a submission
decides how its row changes.
"""

from worker.intake.stage import Intake

__all__ = ["Intake", "changes", "hosts", "phases", "queue", "reading", "session", "waiting"]
