"""Senders: whether a submission was sent by the team that it names. Its author and its number may show that it was not.

The listing of its phase shows both. When in doubt, the organizer is told, and the submission is scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from scoring.printable import name_some, printable
from worker.evalai import Author, Numbered, contradiction, could_be_of
from worker.intake import holds
from worker.state import UNSCORED, SubmissionRow, Transaction

UNUSUAL = "facts.sender_unusual"


def check(tx: Transaction, row: SubmissionRow, listed: Mapping[int, Author], *, now: datetime) -> None:
    """Hold a submission whose number contradicts its team, and tell what is unusual about its author or its number.

    Args:
        tx: An open write transaction.
        row: The submission, looked up for the first time.
        listed: The newest submissions to its phase, and this one.
        now: The time.
    """
    before = [other for other in tx.submissions(team=row.team_key) if other.pk < row.pk]
    rows = tx.get_many(listed)
    numbered = {pk: one for pk, seen in rows.items() if (one := _numbered(seen, listed[pk])) is not None}
    new, others = numbered.get(row.pk), numbered.values()
    doubts = []
    if before and not row.own and row.created_by not in {other.created_by for other in before}:
        doubts.append("its author has not sent anything for this team before")
    if new is not None and not row.is_rerun:
        used, origins = contradiction(new, others), could_be_of(new, others)
        if used is not None and row.state in UNSCORED and (origins or new.number == 1):
            teams = {other.team_key: other.team for other in rows.values() if other.team_key in origins}
            holds.hold(
                tx, row, holds.ask(row, _sentence(row, new, used, teams.values()), holds.NUMBER_USED), now=now
            )
            return
        if used is not None or _follows_nothing(row, new.number, before, listed):
            doubts.append(f"its number in the phase, {new.number}, does not follow the team's earlier ones")
    if doubts:
        text = (
            f"Submission {row.pk} of team {printable(row.team or '')!r} may not be this team's: {', and '.join(doubts)}. It is scored"
            f" like any other. Only if the team did not send it, run `neuco-worker challenge disqualify {row.pk}` with the reason."
        )
        tx.raise_alert(f"sender:{row.pk}", UNUSUAL, text, now=now, happened=True)


def _sentence(row: SubmissionRow, new: Numbered, used: Numbered, origins: Iterable[str | None]) -> str:
    names = name_some([f"team {printable(name or '')!r}" for name in origins], separator=" or ")
    return (
        f"Submission {row.pk} names team {printable(row.team or '')!r}, but was probably sent by {names or 'a team that had sent nothing'}:"
        f" it has the number {new.number} in its phase, and the earlier submission {used.pk} of the team that it names has {used.number}."
    )


def _numbered(row: SubmissionRow, author: Author) -> Numbered | None:
    """Return a submission with its number, if EvalAI tells it."""
    if author.number is None or author.made_at is None:
        return None
    stayed = not row.moved and author.team == row.team
    return Numbered(
        pk=row.pk,
        team=row.team_key,
        team_now=row.team_key if stayed else None,
        number=author.number,
        made_at=author.made_at,
    )


def _follows_nothing(
    row: SubmissionRow, number: int, before: Iterable[SubmissionRow], listed: Mapping[int, Author]
) -> bool:
    """Return whether no submission of the team has the number before, as far as EvalAI lists them all."""
    own = {other.pk for other in before if other.phase_pk == row.phase_pk}
    numbers = {author.number for pk, author in listed.items() if pk in own or author.team == row.team}
    return number > 1 and own <= listed.keys() and number - 1 not in numbers
