"""Corrections: answers follow the scores and the rules; an answer that would be different now is posted again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from worker.challenge.records import PhaseRecord
from worker.challenge.setups import read_record
from worker.evaluation.answers import Answer, finished
from worker.evaluation.matrix import give_receipt
from worker.evaluation.shown_values import in_order, shown_values, withholds
from worker.fairness import events
from worker.fairness.ladder import ShownValue, climbs
from worker.fairness.register import stands_on, subject_of, submission_facts
from worker.state import COUNTED, OutboxKind, State, SubmissionRow, Transaction

AT_ONCE = 100  # corrections in one publish cycle; the others follow when these are posted


def correct(
    tx: Transaction,
    record: PhaseRecord,
    q_means: Mapping[int, float],
    *,
    renewed: bool,
    now: datetime,
    most: int | None = None,
) -> int:
    """Give every submission the answer that follows from its score; return how many answers changed.

    Args:
        tx: A transaction in which everything that decides the answers is registered.
        record: The phase's record.
        q_means: Submission to unrounded mean Q, for those that have an answer.
        renewed: Whether all were scored on other tasks or by another protocol than before, so that each gets a new receipt.
        now: The time.
        most: Largest number of answers to change; None for all.
    """
    tells, changed = shown_values(tx, record, q_means), 0
    rows = [
        row for row in tx.submissions(COUNTED | {State.SCORED}, phase=record.codename) if row.pk in q_means
    ]
    for row in in_order(tx, record.codename, rows):
        if changed == most:
            break
        q_mean, tell, before = q_means[row.pk], tells[row.pk], Answer.from_json(row.answer or "{}")
        if record.rules.ladder_step is not None and _is_off(row):
            tell = ShownValue(value=before.value, counts=before.counts)
        same = before.tells == (tell.value, tell.counts)
        if same and q_mean == row.q_mean and not renewed:
            continue
        receipt = give_receipt(tx, row, record, tell, now=now)
        if same:
            tx.note(row.pk, q_mean=q_mean)
            continue
        changed += 1
        _answer_again(tx, row, _with_score(before, tell, record, receipt), q_mean, now)
    return changed


def correct_phase(tx: Transaction, phase: str, *, now: datetime) -> None:
    """Update a phase's answers after a change of its ladders, or show the values that were withheld until it was closed.

    Taking a submission off the board, or putting it back, changes which later ones count. Without a ladder in the rules, answers lose what
    an earlier ladder said. When a board is closed, it and its answers stay, except for values that were withheld.
    """
    row, record = tx.phase_record(phase), read_record(tx, phase)
    if row is None or record is None or withholds(tx, phase):
        return
    closed, newest = row.frozen_at is not None, tx.latest_facts(events.SCORE)
    q_means = {
        row.pk: row.q_mean
        for row in tx.submissions(COUNTED | {State.SCORED}, phase=phase)
        if row.q_mean is not None
        and row.answer is not None
        and _may_be_wrong(Answer.from_json(row.answer), record, closed=closed)
        and newest.get(subject_of(row)) == stands_on(row.content_hash, record.protocol.hash, record.versions)
    }
    if q_means:
        correct(tx, record, q_means, renewed=False, now=now, most=AT_ONCE)


def _may_be_wrong(answer: Answer, record: PhaseRecord, *, closed: bool) -> bool:
    """Return whether an answer may differ from the current scores and rules."""
    value, counts = answer.tells
    return value is None or (not closed and (record.rules.ladder_step is not None or counts is not None))


def _is_off(row: SubmissionRow) -> bool:
    """Return whether the organizers took a participant's submission off the board; its answer then stays as it was."""
    return not climbs(submission_facts(row)) and not (row.own or row.baseline)


def _answer_again(tx: Transaction, row: SubmissionRow, answer: Answer, q_mean: float, now: datetime) -> None:
    values = {"answer": answer.to_json(), "q_mean": q_mean}
    # EvalAI takes no answer for it; it stays as it is until its re-run is answered.
    rerun = row.deleted or row.remote_status == "cancelled"
    if row.state is State.SCORED or rerun:
        tx.note(row.pk, **values)
    elif tx.move(row.pk, row.state, State.SCORED, **values):
        tx.owe(OutboxKind.POST, row.pk, now=now)


def _with_score(before: Answer, tell: ShownValue, record: PhaseRecord, receipt: Mapping[str, Any]) -> Answer:
    """Return an answer with another score and receipt, but the same notes."""
    document = json.loads(before.stdout)
    return finished(
        tell,
        step=record.rules.ladder_step,
        notes=tuple(document.get("notes", ())),
        zarr_suffix_removed=bool(document.get("zarr_suffix_removed")),
        receipt=receipt,
    )
