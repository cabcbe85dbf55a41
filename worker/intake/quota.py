"""How many submissions of a team were answered, compared with EvalAI's limits.

EvalAI gives a submission's share back when its row is set to `cancelled`, which its team can do after the answer. So answers are counted
here. More than EvalAI allows are told, and nothing is refused: what a team can learn from many answers is bounded by the phase's rules.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scoring.printable import printable
from worker.state import AT_EVALAI, COUNTED, SubmissionRow, Transaction

CODE = "submission.quota"
SPANS = (
    ("per_day", "%Y-%m-%d", "on {}", "a day"),
    ("per_month", "%Y-%m", "in {}", "a month"),
    ("in_all", "", "", "in all"),
)
"""EvalAI's limits: the name of each, its span of time in UTC, and words for it."""


def tell(tx: Transaction, row: SubmissionRow, *, now: datetime) -> None:
    """Raise an alert if a team has got more answers than EvalAI allows, once this submission is answered; files with faults are free."""
    limits: dict[str, Any] = tx.document(AT_EVALAI).get(row.phase or "", {})
    if not limits or row.own or row.submitted_at is None:
        return
    answered = [
        other.submitted_at
        for other in tx.submissions(COUNTED, phase=row.phase, team=row.team_key)
        if other.submitted_at is not None
    ]
    found = []
    for name, span, when, each in SPANS:
        this = row.submitted_at.strftime(span)
        number = sum(moment.strftime(span) == this for moment in answered)
        if name in limits and number > limits[name]:
            found.append(
                f"{number} {when.format(this)}".strip() + f", where EvalAI allows {limits[name]} {each}"
            )
    if found:
        text = (
            f"Team {printable(row.team or '')!r} (number {row.team_key}) got more answers in phase {row.phase} than EvalAI's limits allow:"
            f" {'; '.join(found)}. EvalAI gives back the share of a submission that is set to cancelled. All these answers count. Ask the"
            " team, unless a host ran submissions again or lowered the limit."
        )
        tx.raise_alert(f"quota:{row.phase}:{row.team_key}", CODE, text, now=now, happened=True)
