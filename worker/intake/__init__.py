"""Intake: EvalAI's messages and listings become rows, and what is owed to EvalAI is sent.

The stage (:class:`Intake`) decides which call is next; each call is an act that reads in one piece; the facts decide what a row becomes.
"""

from worker.intake.stage import Intake

__all__ = ["Intake", "hosts"]
