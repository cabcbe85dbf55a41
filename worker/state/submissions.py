"""Submissions and their states; no other module changes a state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

import sqlalchemy as sa

from worker.state.rows import SubmissionRow
from worker.state.schema import QUERIES, Tables, alerts, submissions
from worker.state.states import ACTIVE, ANSWERED, DECIDED, TRANSITIONS, UNFINISHED, State

STEPS = ("elsewhere", "evaluate", "fetch", "hold", "post", "read", "running", "set-back")
"""What comes before the number in the keys of alerts that end with their submission."""
_DISPUTED = submissions.c.hold.like("facts.%")  # as SubmissionRow.disputed
_BY_PK = sa.select(submissions).where(submissions.c.pk.in_(sa.bindparam("pks", expanding=True)))
_LAST_SUBMITTED_AT = sa.select(sa.func.max(submissions.c.submitted_at))
_TEAM_NAMES = (
    sa.select(submissions.c.team_key, submissions.c.team).where(submissions.c.team.is_not(None)).distinct()
)
_AUTHORS_UNKNOWN = (
    sa.select(submissions)
    .where(
        sa.or_(submissions.c.by_host.is_(None), submissions.c.by_member.is_(None)),
        sa.or_(submissions.c.hold.is_(None), ~_DISPUTED),
        submissions.c.created_by.is_not(None),
        submissions.c.phase.is_not(None),
        submissions.c.read_at.is_not(None),
        submissions.c.state.not_in([State.REJECTED, State.FAILED, State.CANCELLED, State.SUPERSEDED]),
    )
    .order_by(submissions.c.pk)
)

_UNREGISTERED = (
    sa.select(submissions)
    .where(submissions.c.unregistered)
    .order_by(submissions.c.submitted_at.nulls_first(), submissions.c.pk)
)
_ALL_REGISTERED = submissions.update().where(submissions.c.unregistered).values(unregistered=False)


@lru_cache(maxsize=QUERIES)
def _selected(
    states: tuple[State, ...] | None,
    phase: str | None,
    team: int | None,
    *,
    unread: bool,
) -> sa.Select[Any]:
    query = sa.select(submissions).order_by(submissions.c.submitted_at.nulls_first(), submissions.c.pk)
    if states is not None:
        query = query.where(submissions.c.state.in_(states))
    if unread:
        query = query.where(submissions.c.read_at.is_(None))
    given = {"phase": phase, "team_key": team}
    return query.filter_by(**{name: value for name, value in given.items() if value is not None})


class Submissions(Tables):
    """Methods for submissions."""

    def add(self, pk: int, *, now: datetime) -> SubmissionRow:
        """Store a submission, unless it is known; return it."""
        row = self.get(pk)
        if row is not None:
            return row
        self._connection.execute(
            submissions.insert().values(pk=pk, state=State.RECEIVED, first_seen_at=now, decided_at=now)
        )
        self.moves.append(f"new>{State.RECEIVED}")
        return self.known(pk)

    def get(self, pk: int) -> SubmissionRow | None:
        """Return one submission, None if it was never stored."""
        return self.get_many([pk]).get(pk)

    def known(self, pk: int) -> SubmissionRow:
        """Return a submission that was stored; none is ever removed."""
        return self.get_many([pk])[pk]

    def submissions(
        self,
        states: Iterable[State] | None = None,
        *,
        phase: str | None = None,
        team: int | None = None,
        unread: bool = False,
    ) -> list[SubmissionRow]:
        """Return submissions, oldest first.

        Args:
            states: Only those in these states.
            phase: Only those of this phase.
            team: Only those of the team with this number.
            unread: Only those whose facts are missing.
        """
        chosen = None if states is None else tuple(states)
        narrowed = (phase, team) != (None, None)
        if self._reads_only and not narrowed and chosen is not None and UNFINISHED.issuperset(chosen):
            rows = (row for row in self._unfinished if row.state in chosen)
            return [row for row in rows if row.read_at is None or not unread]
        return self._all(SubmissionRow, _selected(chosen, phase, team, unread=unread))

    @cached_property
    def _unfinished(self) -> list[SubmissionRow]:
        """The unfinished submissions, read once: each stage of the worker asks for some of them, and there are few."""
        return self._all(SubmissionRow, _selected(tuple(UNFINISHED), None, None, unread=False))

    def answers(self, states: Collection[State], *, phase: str) -> dict[int, str]:
        """Return the answers of a phase's submissions in these states, by pk; whole rows of thousands of submissions would take longer."""
        query = sa.select(submissions.c.pk, submissions.c.answer).where(
            submissions.c.state.in_(states), submissions.c.phase == phase, submissions.c.answer.is_not(None)
        )
        return {row.pk: row.answer for row in self._connection.execute(query)}

    def numbers(self, states: Collection[State]) -> set[int]:
        """Return the submissions in these states by number; whole rows of thousands of submissions would take longer."""
        query = sa.select(submissions.c.pk).where(submissions.c.state.in_(states))
        return set(self._connection.execute(query).scalars())

    def last_submitted_at(self) -> datetime | None:
        """Return when the latest of all submissions was sent, by EvalAI's clock."""
        last: datetime | None = self._connection.execute(_LAST_SUBMITTED_AT).scalar()
        return last

    def get_many(self, pks: Collection[int]) -> dict[int, SubmissionRow]:
        """Return the given submissions by pk, if we know them."""
        return {row.pk: row for row in self._all(SubmissionRow, _BY_PK, pks=pks)}

    def move(self, pk: int, source: State, target: State, **values: Any) -> bool:
        """Move a submission from one state to another, if it is still in the first.

        A move clears the back-off and the hold, because their cause is over; only the start of its scoring does not show that. A dispute
        goes on until the submission is answered, because no step of ours settles it, and no cancellation that may be undone. The alerts
        about its steps end with the submission, too.

        Raises:
            ValueError: If the table of transitions does not contain the step, which is a defect.
        """
        if target not in TRANSITIONS[source]:
            raise ValueError(f"no transition {source} -> {target}")
        goes_on = sa.false() if target in ANSWERED else _DISPUTED
        held = {name: sa.case((goes_on, submissions.c[name]), else_=None) for name in ("hold", "hold_reason")}
        tries = {} if target is State.SCORING else {"tries": 0}
        result = self._connection.execute(
            submissions.update()
            .where(submissions.c.pk == pk, submissions.c.state == source)
            .values({"not_before": None, "sent_at": None, **tries, **held, **values, "state": target})
        )
        if result.rowcount != 1:
            return False
        if target not in ACTIVE and target is not State.UPLOADING:
            keys = [f"{step}:{pk}" for step in STEPS]
            self._connection.execute(alerts.delete().where(alerts.c.key.in_(keys)))
        self.moves.append(f"{source}>{target}")
        return True

    def note(self, pk: int, **values: Any) -> None:
        """Record facts of a submission that are not its state."""
        self._connection.execute(submissions.update().where(submissions.c.pk == pk).values(values))

    def unregistered(self) -> list[SubmissionRow]:
        """Return the submissions that have changed since :meth:`registered` was called, the oldest first."""
        return self._all(SubmissionRow, _UNREGISTERED)

    def registered(self) -> None:
        """Record that the register has everything about all submissions."""
        self._connection.execute(_ALL_REGISTERED)

    def authors_unknown(self) -> list[SubmissionRow]:
        """Return submissions, oldest first, of whose author it is unknown whether the author is a host, or belongs to the team.

        One that must first be read again, that is refused, or that has ended unanswered, is left out.
        """
        return self._all(SubmissionRow, _AUTHORS_UNKNOWN)

    def team_names(self) -> dict[int, str]:
        """Return the names of the teams that have sent something, by number."""
        return {row.team_key: row.team for row in self._connection.execute(_TEAM_NAMES)}

    def name_team(self, team_key: int, name: str) -> bool:
        """Record a team's name with all its submissions; return whether it is a new name."""
        renamed = sa.and_(submissions.c.team_key == team_key, submissions.c.team.is_distinct_from(name))
        return self._connection.execute(submissions.update().where(renamed).values(team=name)).rowcount > 0

    def seen(self, addresses: Mapping[int, str | None], *, asked_at: datetime) -> None:
        """Record that submissions were unchanged: when EvalAI was asked, and the current addresses of their files."""
        if not addresses:
            return
        self._connection.execute(
            submissions.update()
            .where(submissions.c.pk == sa.bindparam("which"))
            .values(
                input_file=sa.bindparam("address"),
                read_at=sa.bindparam("moment"),
                unregistered=submissions.c.unregistered,  # neither of them is registered
            ),
            [{"which": pk, "address": address, "moment": asked_at} for pk, address in addresses.items()],
        )

    def release(self, pk: int | None = None) -> None:
        """End the wait of a submission, or of all, for a retry; an answer that was never sent keeps its moment on the answer grid."""
        unsent = submissions.c.state.in_(DECIDED) & submissions.c.sent_at.is_(None)
        self._connection.execute(
            submissions.update()
            .where(submissions.c.pk == pk if pk is not None else sa.true(), submissions.c.tries > 0, ~unsent)
            .values(not_before=None)
        )

    def counts(self) -> dict[str, int]:
        """Return how many submissions are in each state."""
        query = sa.select(submissions.c.state, sa.func.count()).group_by(submissions.c.state)
        return {row[0]: row[1] for row in self._connection.execute(query)}
