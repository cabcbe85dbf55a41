"""The register: every fact that decides a board becomes a committed event when it is first seen and whenever it changes.

A board is made from the facts of one moment, which are registered in the same transaction. So every board can be recomputed from the
events, and if an entry was dropped, hidden or removed, the register shows when.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from scoring.documents import canonical
from worker.challenge.setups import intact_record
from worker.fairness import events
from worker.fairness.documents import NONCE_BYTES, digest
from worker.fairness.events import (
    ChallengeEvent,
    Event,
    PhaseEvent,
    PhaseFacts,
    ScoreEvent,
    SubmissionEvent,
    SubmissionFacts,
    TeamEvent,
)
from worker.fairness.membership import ShownValue
from worker.fairness.replay import ChallengeReplay
from worker.state import COUNTED, CellRow, State, SubmissionRow, Transaction

MANY = 100  # submissions
ENTRY_BYTES = 16  # of a submission's pseudonym, which is random because numbers could be guessed
LATEST = datetime.max.replace(tzinfo=UTC)
"""A moment after all events."""


class RegisterReplay:
    """The replay of everything that is registered; only new events are read again."""

    def __init__(self) -> None:
        self._replay = ChallengeReplay()
        self._last: tuple[int, str] | None = None

    def at(self, tx: Transaction) -> ChallengeReplay:
        """Return the replay of all events that a transaction sees."""
        if self._last is not None and tx.event_commitment(self._last[0]) != self._last[1]:
            # A transaction was rolled back.
            self._replay, self._last = ChallengeReplay(), None
        for row in tx.events(after=self._last[0] if self._last else 0):
            self._replay.take(events.parse(row.fields))
            self._last = row.id, row.commitment
        return self._replay


def replay_of(tx: Transaction, rows: Collection[SubmissionRow]) -> ChallengeReplay:
    """Return what follows from the events about the teams of these submissions; for many submissions, from all events.

    Places, scores and answers of these teams follow from it, because none depends on the events about another team.
    """
    if len(rows) > MANY:
        return RegisterReplay().at(tx)
    teams = {row.team_key for row in rows}
    subjects = [subject_of(row) for team in teams for row in tx.submissions(team=team)]
    found = tx.events_about(
        subjects,
        kinds=(events.SUBMISSION, events.SCORE),
        besides=(events.PHASE, events.TEAM, events.CHALLENGE),
    )
    return ChallengeReplay(events.parse(row.fields) for row in found)


def withholds(tx: Transaction, phase: str) -> bool:
    """Return whether a phase withholds its values now."""
    decisions = tx.events(phase, kind=events.PHASE)
    return ChallengeReplay(events.parse(row.fields) for row in decisions)[phase].withholds(LATEST)


def register(tx: Transaction, now: datetime, *, reason: str = "") -> datetime:
    """Register what has changed since the last call.

    Args:
        tx: The transaction that changed it, or that reads it for a board.
        now: The time.
        reason: Why, in the words of the person who decided it. All events registered by this call get it, so earlier changes must be
            registered before the decision.

    Returns:
        The time of the new events, which is later than that of all earlier ones, and which a board made from these facts carries.
    """
    at = tx.attestation_time(now)
    _register_phases(tx, at, reason)
    _register_submissions(tx, at, reason)
    return at


def register_score(
    tx: Transaction,
    replay: RegisterReplay,
    row: SubmissionRow,
    *,
    protocol: str,
    cells: Sequence[CellRow],
    now: datetime,
) -> tuple[ShownValue, str, str]:
    """Register a submission's scores; return the value that its participant is shown, the nonce, and the commitment.

    Args:
        tx: The transaction that stores the answer.
        replay: Everything that is registered, from which the value follows.
        row: The submission.
        protocol: Hash of the protocol.
        cells: Its cells, one for each task.
        now: The time.
    """
    at = tx.attestation_time(now)
    event = ScoreEvent(
        kind="score",
        phase=row.phase or "",
        at=at,
        entry=_register_submission(tx, row, at),
        submission=row.pk,
        team_key=row.team_key,
        public_at_first=row.public_at_first,
        own=row.own,
        content=cells[0].content_hash,
        protocol=protocol,
        cells={
            cell.task: events.Cell(
                version=cell.version,
                row_set=cell.row_set,
                test_parts=tuple(cell.test_parts),
                folds=cell.folds,
            )
            for cell in cells
        },
        q_mean=None,
        counts=None,
    )
    value = replay.at(tx)[event.phase].shown_value(event, at)
    event = event.model_copy(update={"q_mean": value.value, "counts": value.counts})
    return value, *_add(tx, subject_of(row), event, "")


def note(tx: Transaction, what: str, text: str, *, now: datetime) -> None:
    """Register an event of the whole challenge, see :class:`worker.fairness.events.ChallengeEvent`."""
    event = ChallengeEvent.model_validate(
        {
            "kind": events.CHALLENGE,
            "phase": None,
            "at": tx.attestation_time(now),
            "what": what,
            "text": text,
        }
    )
    _add(tx, "challenge", event, "")


def register_team(tx: Transaction, team_key: int, *, disqualified: bool, reason: str, now: datetime) -> None:
    """Register that a team is disqualified from now on, or no longer is."""
    event = TeamEvent(
        kind="team",
        phase=None,
        at=tx.attestation_time(now),
        team_key=team_key,
        disqualified=disqualified,
        reason=reason,
    )
    _add(tx, f"team {team_key}", event, "")


def disqualified_teams(tx: Transaction) -> dict[int, str]:
    """Return the teams that are disqualified now: EvalAI's number of the team to the reason."""
    newest = {row.fields["team_key"]: row.fields for row in tx.events(kind=events.TEAM)}
    return {team: fields["reason"] for team, fields in newest.items() if fields["disqualified"]}


def _register_phases(tx: Transaction, at: datetime, reason: str) -> None:
    for name in tx.phases():
        row, record = tx.phase_record(name), intact_record(tx, name)
        if row is None or record is None:
            continue
        facts = PhaseFacts(
            record=row.record,
            protocol=row.protocol_hash,
            epsilon=record.protocol.recipe.epsilon,
            tasks=dict(row.tasks),
            rules=record.rules,
            closed_at=row.closed_at,
        )
        subject, hashed = f"phase {name}", _hashed(facts)
        latest = tx.latest_event(events.PHASE, subject)
        if latest is None or latest.facts != hashed:
            event = PhaseEvent(kind="phase", phase=name, at=at, reason=reason, **dict(facts))
            _add(tx, subject, event, hashed)


def _register_submissions(tx: Transaction, at: datetime, reason: str) -> None:
    for row in tx.unregistered():
        arrived = row.file_hash is not None or tx.latest_event(events.SUBMISSION, subject_of(row)) is not None
        if row.phase is not None and arrived:  # a submission whose file never arrived is not registered
            _register_submission(tx, row, at, reason)
    tx.registered()


def _register_submission(tx: Transaction, row: SubmissionRow, at: datetime, reason: str = "") -> str:
    """Register a submission's facts, if they have changed; return its pseudonym."""
    newest = tx.latest_event(events.SUBMISSION, subject_of(row))
    facts = submission_facts(row)
    entry = secrets.token_hex(ENTRY_BYTES)
    if newest is not None:
        before, entry = SubmissionEvent.model_validate(newest.fields), str(newest.fields["entry"])
        # A stored file may be missing until it is fetched again; the submission still refers to that file.
        kept = {"file": facts.file or before.file, "content": facts.content or before.content}
        facts = facts.model_copy(update=kept)
        if newest.facts == _hashed(facts):
            return entry
    event = SubmissionEvent(
        kind="submission", phase=row.phase or "", at=at, entry=entry, reason=reason, **dict(facts)
    )
    _add(tx, subject_of(row), event, _hashed(facts))
    return entry


def submission_facts(row: SubmissionRow) -> SubmissionFacts:
    """Return what decides, besides its scores, whether and how a submission is on a board."""
    return SubmissionFacts(
        submission=row.pk,
        team_key=row.team_key,
        team=row.team,
        method=row.method,
        project_url=row.project_url,
        publication_url=row.publication_url,
        submitted_at=row.submitted_at,
        file=row.file_hash,
        content=row.content_hash,
        public_at_first=row.public_at_first,
        public=row.public,
        own=row.own,
        answered=row.state in COUNTED | {State.SCORED} and row.posted is not None,
        refused=row.state in (State.REJECTED, State.FAILED),
        removed=row.excluded,
        superseded_by=row.superseded_by,
    )


def _add(tx: Transaction, subject: str, event: Event, facts: str) -> tuple[str, str]:
    fields, nonce = event.to_json(), secrets.token_bytes(NONCE_BYTES)
    commitment = events.commitment_of(fields, nonce)
    tx.add_event(subject=subject, facts=facts, fields=fields, nonce=nonce.hex(), commitment=commitment)
    return nonce.hex(), commitment


def _hashed(facts: SubmissionFacts | PhaseFacts) -> str:
    return digest("facts", canonical(facts.to_json()))


def subject_of(row: SubmissionRow) -> str:
    """Return the name of a submission in the register."""
    return f"submission {row.pk}"
