"""The score values that the submissions of a phase are shown, by the phase's rules and the registered facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scoring.quality import shown
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import read_record
from worker.fairness import events
from worker.fairness.ladder import AFTER_THE_CLOSE, Rung, ShownValue, climbs, ladders
from worker.fairness.register import stands_on, subject_of, submission_facts
from worker.state import SubmissionRow, Transaction

UNPLACED = 2**62  # a submission that is being scored for the first time comes after all others


def shown_values(tx: Transaction, record: PhaseRecord, q_means: Mapping[int, float]) -> dict[int, ShownValue]:
    """Return the value that each submission is shown.

    Args:
        tx: A transaction in which everything that decides the ladders is registered.
        record: The phase's record.
        q_means: Submission to unrounded mean Q, for all submissions whose values are needed.
    """
    rules = record.rules
    if withholds(tx, record.codename):
        return dict.fromkeys(q_means, ShownValue(value=None))
    found = {
        pk: ShownValue(value=shown(q_mean, rules.decimals, rules.ladder_step))
        for pk, q_mean in q_means.items()
    }
    found |= dict.fromkeys(_after_the_close(tx, record.codename, q_means), AFTER_THE_CLOSE)
    if rules.ladder_step is None:
        return found
    placed = list(_placed(tx, record, q_means))
    answered = [one.rung for one in placed if one.answered]
    climbed = ladders(answered, rules)
    for one in placed:
        if not one.answered:  # no other answer may depend on it, because it may never be answered
            own = [rung for rung in answered if rung.team == one.rung.team]
            climbed[one.rung.submission] = ladders([*own, one.rung], rules)[one.rung.submission]
    return {pk: plain if plain == AFTER_THE_CLOSE else climbed.get(pk, plain) for pk, plain in found.items()}


def _after_the_close(tx: Transaction, phase: str, submissions: Iterable[int]) -> list[int]:
    """Return the submissions whose first score came after the phase was closed, if it is closed now."""
    row = tx.phase_record(phase)
    if row is None or row.frozen_at is None:
        return []
    scored = {pk: tx.first_event_at(events.SCORE, f"submission {pk}") for pk in submissions}
    return [pk for pk, at in scored.items() if at is None or at > row.frozen_at]


def counting(tx: Transaction, record: PhaseRecord) -> frozenset[int] | None:
    """Return the submissions that count on a ladder of the phase; None if its rules have no ladder."""
    if record.rules.ladder_step is None:
        return None
    rungs = (one.rung for one in _placed(tx, record, {}) if one.answered)
    return frozenset(pk for pk, one in ladders(rungs, record.rules).items() if one.counts)


def withholds(tx: Transaction, phase: str) -> bool:
    """Return whether a phase withholds its values, which it may do until it is closed for the first time."""
    record = read_record(tx, phase)
    return record is not None and record.rules.shown == "at_end" and tx.fact(_shown_fact(phase)) is None


def show_values(tx: Transaction, phase: str) -> None:
    """Record that a phase's values are shown from now on, which cannot be undone."""
    tx.set_fact(_shown_fact(phase), "1")


def _shown_fact(phase: str) -> str:
    return f"values shown:{phase}"


@dataclass(frozen=True, kw_only=True)
class _Placed:
    rung: Rung
    answered: bool


def _placed(tx: Transaction, record: PhaseRecord, q_means: Mapping[int, float]) -> Iterator[_Placed]:
    """Yield all submissions on the ladders of the phase."""
    places, newest = tx.first_events(events.SCORE, record.codename), tx.latest_facts(events.SCORE)
    for row in tx.submissions(phase=record.codename):
        answered, content = row.posted is not None and row.scored_at is not None, row.content_hash
        if content is None or row.team_key is None or not climbs(submission_facts(row)):
            continue
        if not answered and row.pk not in q_means:
            continue
        is_current = newest.get(subject_of(row)) == stands_on(content, record.protocol.hash, record.versions)
        rung = Rung(
            submission=row.pk,
            team=(row.team_key, bool(row.public_at_first)),
            content=content,
            place=places.get(subject_of(row), UNPLACED),
            q_mean=q_means.get(row.pk, row.q_mean if is_current else None),
        )
        yield _Placed(rung=rung, answered=answered)


def in_order(tx: Transaction, phase: str, rows: list[SubmissionRow]) -> list[SubmissionRow]:
    """Sort submissions by their places on the ladders, because each registered value depends on those before it.

    A content has the place of the first file that had it, even if that file gets no more answers.
    """
    places = tx.first_events(events.SCORE, phase)
    firsts: dict[tuple[object, ...], int] = {}
    for row in tx.submissions(phase=phase):
        place = places.get(subject_of(row), UNPLACED)
        firsts[_rung_of(row)] = min(place, firsts.get(_rung_of(row), UNPLACED))
    return sorted(
        rows, key=lambda row: (firsts[_rung_of(row)], places.get(subject_of(row), UNPLACED), row.pk)
    )


def _rung_of(row: SubmissionRow) -> tuple[object, ...]:
    return row.team_key, bool(row.public_at_first), row.content_hash
