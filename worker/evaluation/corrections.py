"""Corrections: answers follow the scores and the rules; an answer that would be different now is posted again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from worker.challenge.records import PhaseRecord
from worker.challenge.setups import read_record
from worker.evaluation.answers import Answer, finished
from worker.evaluation.matrix import give_receipt, row_mean_q
from worker.fairness.fold import PhaseFold
from worker.fairness.ladder import ShownValue
from worker.fairness.register import LATEST, RegisterFold
from worker.state import COUNTED, OutboxKind, State, SubmissionRow, Transaction

AT_ONCE = 100  # corrections in one publish cycle; the others follow when these are posted


def correct_phase(
    tx: Transaction, fold: RegisterFold, phase: str, *, now: datetime, most: int | None = None
) -> int:
    """Give every submission of a phase the answer that follows from the register; return how many answers changed.

    Taking a submission off the board, or putting it back, changes which later ones count. Without a ladder in the rules, answers lose what
    an earlier ladder said. When a board is closed, it and its answers stay, except for values that were withheld. A submission without a
    score on the present tasks gets one if its cells are there, as after a rescore.

    Args:
        tx: A transaction in which everything that decides the answers is registered.
        fold: Everything that is registered.
        phase: Codename.
        now: The time.
        most: Largest number of answers to change; None for all.
    """
    record, row, changed = read_record(tx, phase), tx.phase_record(phase), 0
    if record is None or row is None:
        return 0
    registered = fold.at(tx).phase(phase)
    rows = [row for row in tx.submissions(COUNTED | {State.SCORED}, phase=phase) if row.answer is not None]
    # in the order of their places on the ladders, because each registered value depends on those before it
    for submission in sorted(rows, key=lambda row: (registered.place(registered.entry_of(row.pk)), row.pk)):
        if changed == most:
            break
        before = Answer.from_json(submission.answer or "")
        if _stays(registered, submission, before, record, closed=row.frozen_at is not None):
            continue
        q_mean = row_mean_q(tx, submission.content_hash or "", record.protocol.hash, record.versions)
        if q_mean is None:
            continue
        value, receipt = give_receipt(tx, fold, submission, record, now=now)
        if before.tells == (value.value, value.counts):
            tx.note(submission.pk, q_mean=q_mean)
            continue
        changed += 1
        _answer_again(tx, submission, _with_score(before, value, record, receipt), q_mean, now)
    return changed


def _stays(fold: PhaseFold, row: SubmissionRow, answer: Answer, record: PhaseRecord, *, closed: bool) -> bool:
    """Return whether an answer is the one that follows from the register, or stays as it is whatever follows."""
    entry = fold.entry_of(row.pk)
    score = None if entry is None else fold.score(entry, LATEST)
    if score is None:
        return entry is None
    value, counts = answer.tells
    if value is not None and (closed or (record.rules.ladder_step is None and counts is None)):
        return True
    shown = fold.shown_value(score, LATEST)
    return answer.tells == (shown.value, shown.counts)


def _answer_again(tx: Transaction, row: SubmissionRow, answer: Answer, q_mean: float, now: datetime) -> None:
    values = {"answer": answer.to_json(), "q_mean": q_mean}
    # EvalAI takes no answer for it; it stays as it is until its re-run is answered.
    rerun = row.deleted or row.remote_status == "cancelled"
    if row.state is State.SCORED or rerun:
        tx.note(row.pk, **values)
    elif tx.move(row.pk, row.state, State.SCORED, **values):
        tx.owe(OutboxKind.POST, row.pk, now=now)


def _with_score(before: Answer, value: ShownValue, record: PhaseRecord, receipt: Mapping[str, Any]) -> Answer:
    """Return an answer with another score and receipt, but the same notes."""
    document = json.loads(before.stdout)
    return finished(
        value,
        step=record.rules.ladder_step,
        notes=tuple(document.get("notes", ())),
        zarr_suffix_removed=bool(document.get("zarr_suffix_removed")),
        receipt=receipt,
    )
