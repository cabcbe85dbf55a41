"""Answers: what a participant is shown, and when, and its correction where scores or rules have changed.

Everything that leaves the worker is built here, from an allow-list: the rounded mean Q, notes about the participant's own file, or the
faults of that file. Answers leave on a grid of times, because EvalAI shows `execution_time` to the second, and the duration of scoring
would reveal the number of tasks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from leaderboard import PhaseRules, Selection
from scoring.errors import MESSAGE_LIMIT, ParticipantError
from scoring.metrics import mean_quality
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import intact_record
from worker.challenge.signing import Signer
from worker.fairness import receipts
from worker.fairness.membership import AFTER_THE_CLOSE, ShownValue
from worker.fairness.register import LATEST, RegisterReplay, register_score
from worker.fairness.replay import PhaseReplay
from worker.state import COUNTED, DECIDED, LONGEST_WAIT, State, SubmissionRow, Transaction

PRIVATE = "This submission is private, so it is on no board."
SELECTS = {
    Selection.LAST: "The board shows your team's last scored public submission.",
    Selection.LADDER: "This submission is not compared with others of its team.",  # taken off, or the organizers'
    Selection.BEST: "The board shows your team's public submission with the highest mean Q.",
}
"""What decides which submission of a team is on the board."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is posted to EvalAI: stored first, so that it can be posted again byte for byte.

    Attributes:
        status: ``"finished"`` or ``"failed"``.
        stdout: JSON document of a finished answer, otherwise empty.
        stderr: Faults of a failed answer, otherwise empty.
        value: Mean Q that a finished answer shows; None while values are withheld.
        counts: Whether a finished answer beat its team's best value so far, if the Ladder selects; False after the phase was closed.
        code: Code of a failed answer's first fault.
    """

    status: str
    stdout: str = ""
    stderr: str = ""
    value: float | None = None
    counts: bool | None = None
    code: str = ""

    @property
    def tells(self) -> tuple[float | None, bool | None]:
        """What it says of the score: the value, and whether it counts."""
        return self.value, self.counts

    def to_json(self) -> str:
        """Write it for the database."""
        return json.dumps(self.__dict__, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """Read what :meth:`to_json` wrote."""
        return cls(**json.loads(text))


def finished(
    score: ShownValue,
    *,
    rules: PhaseRules,
    public: bool,
    board: str | None,
    notes: tuple[str, ...],
    zarr_suffix_removed: bool,
    receipt: Mapping[str, Any] | None = None,
) -> Answer:
    """Answer a scored submission.

    Args:
        score: The value that is shown, and whether it counts, by the phase's rules.
        rules: The phase's rules.
        public: Whether the submission is.
        board: The address of the board; None if a browser cannot open it.
        notes: About the participant's own file.
        zarr_suffix_removed: Whether ids had such a suffix.
        receipt: What lets the participant prove later what was scored, see :mod:`worker.fairness.receipts`.
    """
    document: dict[str, object] = {
        "status": "completed",
        **_score(score, rules, public=public),
        **({"board": board} if board else {}),
        "more_than_allowed_probes_failed": False,
        "zarr_suffix_removed": zarr_suffix_removed,
        "notes": list(notes),
    }
    if receipt is not None:
        document["receipt"] = dict(receipt)
    return Answer(status="finished", stdout=json.dumps(document), value=score.value, counts=score.counts)


def _score(score: ShownValue, rules: PhaseRules, *, public: bool) -> dict[str, object]:
    """Return the part of the answer about the score, with a line on why the submission is not on the board, or which one is."""
    step = rules.ladder_step
    if score == AFTER_THE_CLOSE:
        explanation = "This phase was closed before your file was scored. The submission does not count, and no value is shown."
        return {"counts": False, "explanation": explanation}
    if score.value is None:
        private = "" if public else f" {PRIVATE}"
        return {
            "explanation": f"Your file was scored. You will see the value when the organizers close this phase.{private}"
        }
    if score.counts is None or step is None:
        return {"q_mean": score.value, "explanation": SELECTS[rules.selection] if public else PRIVATE}
    if score.counts:
        explanation = "Your team's next submissions with the same visibility (public or private) are compared with this one."
    else:
        explanation = (
            f"This submission does not count: its mean Q, before rounding, is not more than {step:g} above q_mean, which is the value shown"
            " for an earlier submission of your team."
        )
    if not public:
        explanation = f"{PRIVATE} {explanation}"
    return {"q_mean": score.value, "rounded_to": step, "counts": score.counts, "explanation": explanation}


def failed(error: ParticipantError) -> Answer:
    """Answer a submission whose file is wrong with the list of its faults."""
    return Answer(status="failed", stderr=error.message[:MESSAGE_LIMIT], code=error.code)


def release_at(now: datetime, *, running_at: datetime | None, grid_s: float) -> datetime:
    """Return when an answer that is ready now may leave: at the next multiple of the grid after ``running``."""
    if grid_s <= 0 or running_at is None:
        return now
    elapsed = max(0.0, (now - running_at).total_seconds())
    return running_at + timedelta(seconds=grid_s * max(1, math.ceil(elapsed / grid_s)))


def waits(row: SubmissionRow, now: datetime, *, grid: timedelta) -> bool:
    """Return whether it is too early for an answer; a moment later than back-off and grid allow means that the clock was set back."""
    return now < row.due_at <= now + LONGEST_WAIT + grid


def unreleased(tx: Transaction, now: datetime, *, grid: timedelta) -> frozenset[int]:
    """Return the teams (by key) with an answer that is ready and waits for its moment."""
    waiting = [row for row in tx.submissions(DECIDED) if waits(row, now, grid=grid)]
    return frozenset(row.team_key for row in waiting if row.team_key is not None)


def register_row(
    tx: Transaction,
    key: Signer,
    replay: RegisterReplay,
    row: SubmissionRow,
    record: PhaseRecord,
    *,
    now: datetime,
) -> tuple[float, ShownValue, dict[str, Any]] | None:
    """Register a submission's score.

    Args:
        tx: The transaction that stores the answer.
        key: Signs the receipt.
        replay: Everything that is registered.
        row: The submission; its content is known.
        record: The record of the phase on which it was scored.
        now: The time.

    Returns:
        Unrounded mean Q, the value that its participant is shown, and the receipt. None if a cell is missing, because an unscored task must
        not count as a value.
    """
    protocol = record.protocol.hash
    cells = tx.row(row.content_hash or "", protocol, record.versions)
    values = [cell.q for cell in cells if cell.q is not None]
    if len(values) < len(record.versions):
        return None
    value, nonce, commitment = register_score(tx, replay, row, protocol=protocol, cells=cells, now=now)
    receipt = receipts.issue(tx, key, submission=row.pk, score=value, nonce=nonce, commitment=commitment)
    return mean_quality(values), value, receipt


AT_ONCE = 100  # corrections in one publish cycle; the others follow when these are posted


def correct_phase(
    tx: Transaction,
    key: Signer,
    replay: RegisterReplay,
    phase: str,
    *,
    now: datetime,
    most: int | None = None,
) -> int:
    """Give every submission of a phase the answer that follows from the register; return how many answers changed.

    Taking a submission off the board, or putting it back, changes which later ones count. Without a ladder in the rules, answers lose what
    an earlier ladder said. When a board is closed, it and its answers stay, except for values that were withheld. A submission without a
    score on the present tasks gets one if its cells are there, as after a rescore.

    Args:
        tx: A transaction in which everything that decides the answers is registered.
        key: Signs the receipts.
        replay: Everything that is registered.
        phase: Codename.
        now: The time.
        most: Largest number of answers to change; None for all.
    """
    record, row, changed = intact_record(tx, phase), tx.phase_record(phase), 0
    if record is None or row is None:
        return 0
    registered = replay.at(tx)[phase]
    told = tx.answers(COUNTED | {State.SCORED}, phase=phase)
    in_order = sorted(told)
    if record.rules.ladder_step is not None:  # each registered value depends on those before it
        in_order.sort(key=lambda pk: registered.place(registered.entry_of(pk)))
    for pk in in_order:
        if changed == most:
            break
        before = Answer.from_json(told[pk])
        if _stays(registered, pk, before, record, closed=row.closed_at is not None):
            continue
        submission = tx.known(pk)
        score = register_row(tx, key, replay, submission, record, now=now)
        if score is None:
            continue
        q_mean, value, receipt = score
        if before.tells == (value.value, value.counts):
            tx.note(submission.pk, q_mean=q_mean)
            continue
        changed += 1
        _answer_again(tx, submission, _with_score(before, submission, value, record, receipt), q_mean, now)
    return changed


def _stays(replay: PhaseReplay, pk: int, answer: Answer, record: PhaseRecord, *, closed: bool) -> bool:
    """Return whether an answer is the one that follows from the register, or stays as it is whatever follows."""
    entry = replay.entry_of(pk)
    score = None if entry is None else replay.score(entry, LATEST)
    if score is None:
        return entry is None
    if answer.value is not None and (closed or (record.rules.ladder_step is None and answer.counts is None)):
        return True
    shown = replay.shown_value(score, LATEST)
    return answer.tells == (shown.value, shown.counts)


def _answer_again(tx: Transaction, row: SubmissionRow, answer: Answer, q_mean: float, now: datetime) -> None:
    values = {"answer": answer.to_json(), "q_mean": q_mean}
    # One that is run again at EvalAI stays as it is until its re-run is answered.
    if row.state is State.SCORED or row.superseded_by is not None:
        tx.note(row.pk, **values)
    else:
        tx.move(row.pk, row.state, State.SCORED, decided_at=now, **values)


def _with_score(
    before: Answer, row: SubmissionRow, value: ShownValue, record: PhaseRecord, receipt: Mapping[str, Any]
) -> Answer:
    """Return an answer with another score and receipt, but the same notes."""
    document = json.loads(before.stdout)
    return finished(
        value,
        rules=record.rules,
        public=bool(row.public),
        board=document.get("board"),
        notes=tuple(document.get("notes", ())),
        zarr_suffix_removed=bool(document.get("zarr_suffix_removed")),
        receipt=receipt,
    )
