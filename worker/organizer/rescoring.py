"""Rescoring: apply changed tasks or a changed protocol by filling the missing cells of the submissions that count.

The cells are filled first, under their new keys, while the board still shows the old ones. Only when the row of every submission is
complete does the phase's record change, together with its answers and its board, in one transaction. An interrupted rescore continues
where it stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from scoring.errors import InfrastructureError, OrganizerError, ParticipantError
from scoring.printable import count_of, name_some
from worker.challenge.files import read_secret
from worker.challenge.setups import PhaseSetup, put_on_record, read_record
from worker.evalai import WINDOW
from worker.evaluation.corrections import correct_phase
from worker.evaluation.matrix import missing_tasks
from worker.evaluation.stored import FillRow, IncompleteRow, RowOverLimit
from worker.fairness import commitments
from worker.fairness.membership import taken_off
from worker.fairness.register import RegisterFold, register, submission_facts
from worker.organizer.refetching import fetch_again
from worker.organizer.session import OrganizerSession
from worker.runtime.child_acts import ChildAct, ChildRunner
from worker.runtime.files import RESCORING
from worker.state import COUNTED, Attempt, Outcome, State, SubmissionRow, Transaction

EVERY_S = 0.5  # between two checks of a child's limits


@dataclass(frozen=True, kw_only=True)
class RescorePlan:
    """What a rescore of one phase would do.

    Attributes:
        setup: The phase as its files are now.
        changed: Whether tasks or protocol differ from those of the scores so far.
        recorded: Whether the current record already matches the files.
        added: New or changed task identifiers.
        dropped: Removed task identifiers.
        missing: Rows to complete.
        rows: Number of contents.
    """

    setup: PhaseSetup
    changed: bool
    recorded: bool
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    missing: tuple[IncompleteRow, ...]
    rows: int


def make_plan(session: OrganizerSession, setup: PhaseSetup) -> RescorePlan:
    """Return what a rescore has to do, without doing it."""
    with session.store.read() as tx:
        record = tx.phase_record(setup.codename)
        setup = _as_recorded(tx, setup)
        rows = _rows(tx, setup)
        missing = _missing(session, tx, setup, rows)
    before = {} if record is None else record.tasks
    changed = record is not None and not setup.record.scores_as(record.protocol_hash, before)
    return RescorePlan(
        setup=setup,
        changed=changed,
        recorded=record is not None and setup.is_recorded(record),
        added=tuple(sorted(name for name, version in setup.tasks.items() if before.get(name) != version)),
        dropped=tuple(sorted(set(before) - set(setup.tasks))),
        missing=missing,
        rows=len(rows),
    )


def estimate(session: OrganizerSession, plan: RescorePlan) -> tuple[float, float] | None:
    """Estimate how many seconds scoring takes, and then posting the answers; None before anything was scored.

    The start of a process is measured, because the worker's own attempts may have used one that was ready.
    """
    phase = plan.setup.codename
    with session.store.read() as tx:
        per_fold = tx.seconds_per_fold(phase)
        ours = {row.pk for row in tx.submissions(phase=phase)}
        attempts_s = [
            (attempt.closed_at - attempt.opened_at).total_seconds()
            for attempt in tx.attempts()
            if attempt.submission in ours
            and (attempt.kind, attempt.outcome) == (Attempt.EVALUATE, Outcome.DONE)
            and attempt.closed_at is not None
        ]
    if per_fold is None:
        return None
    scoring_s = expected_s(
        plan,
        cell_s=per_fold * plan.setup.protocol.folds,
        attempt_s=median(attempts_s or [0.0]),
    )
    answers = sum(len(row.submissions) for row in plan.missing)
    minutes = answers // session.configuration.evalai.requests_per_minute
    return scoring_s, minutes * WINDOW.total_seconds()


def expected_s(plan: RescorePlan, *, cell_s: float, attempt_s: float) -> float:
    """Return how many seconds the missing cells take.

    Args:
        plan: The plan.
        cell_s: What a cell takes.
        attempt_s: What a whole attempt of the worker takes, with all tasks, the start of a process, and reading the file.
    """
    once_s = max(0.0, attempt_s - cell_s * len(plan.setup.tasks))
    return sum(once_s + cell_s * len(row.tasks) for row in plan.missing)


def _as_recorded(tx: Transaction, setup: PhaseSetup) -> PhaseSetup:
    """Return a phase as its files are, but with the recorded rules, which another command changes."""
    recorded = read_record(tx, setup.codename)
    if recorded is None:
        return setup
    return replace(setup, record=replace(setup.record, rules=recorded.rules))


def _rows(tx: Transaction, setup: PhaseSetup) -> dict[str, list[SubmissionRow]]:
    """Return the contents that were scored in a phase, with their submissions."""
    rows: dict[str, list[SubmissionRow]] = {}
    for row in tx.submissions(COUNTED | {State.SCORED}, phase=setup.codename):
        if row.content_hash is not None:
            rows.setdefault(row.content_hash, []).append(row)
    return rows


def _missing(
    session: OrganizerSession, tx: Transaction, setup: PhaseSetup, rows: dict[str, list[SubmissionRow]]
) -> tuple[IncompleteRow, ...]:
    found = []
    for content_hash, submissions in rows.items():
        tasks = missing_tasks(tx, content_hash, setup.protocol.hash, setup.tasks)
        if not tasks:
            continue
        stored = (row.file_hash for row in submissions if row.file_hash)
        file_hash = next((name for name in stored if session.files.find(name)), None)
        if file_hash is None and all(taken_off(submission_facts(row)) for row in submissions):
            continue  # off the board, so its cells are not needed
        found.append(
            IncompleteRow(
                content_hash=content_hash,
                submissions=tuple(submissions),
                tasks=tuple(tasks),
                file_hash=file_hash,
            )
        )
    return tuple(found)


def _lost(missing: tuple[IncompleteRow, ...]) -> tuple[SubmissionRow, ...]:
    """Return the submissions whose file is gone, without which their rows cannot be completed."""
    return tuple(submission for row in missing if row.file_hash is None for submission in row.submissions)


def _fetch_lost(
    session: OrganizerSession,
    setup: PhaseSetup,
    missing: tuple[IncompleteRow, ...],
    *,
    tell: Callable[[str], object],
) -> tuple[IncompleteRow, ...]:
    """Have missing files fetched again; return the rows that are still incomplete.

    Raises:
        OrganizerError: If a file cannot be fetched.
        InfrastructureError: If no worker leads, because only the leader may ask EvalAI.
    """
    if not (gone := _lost(missing)):
        return missing
    reasons = fetch_again(session, gone, tell=tell)
    with session.store.read() as tx:
        missing = _missing(session, tx, setup, _rows(tx, setup))
    if lost := _lost(missing):
        named = name_some(
            [f"{one.pk}: {reasons.get(one.pk, 'it has just gone')}" for one in lost], separator="; "
        )
        raise OrganizerError(
            f"The stored files of {count_of(len(lost), 'submission')} are missing and cannot be downloaded again ({named}).",
            cure="Restore the files from a backup, disqualify these submissions, or restore the old tasks. Nothing was changed.",
            code="rescore.files_gone",
        )
    return missing


def carry_out(
    session: OrganizerSession,
    plan: RescorePlan,
    *,
    reason: str = "",
    progress: Callable[[int, int], object] = lambda _, __: None,
    tell: Callable[[str], object] = print,
) -> int:
    """Fill the missing cells, then update answers and board; return how many answers changed.

    Args:
        session: The challenge.
        plan: The result of :func:`make_plan`.
        reason: Why, in public.
        progress: Called before each row with 0 and after it with 1, and with the total.
        tell: Called with a sentence about what the command waits for.

    Raises:
        OrganizerError: If a stored file is gone for good, or embeddings cannot be scored on the new tasks.
        InfrastructureError: If an evaluation died, or no worker leads that could fetch a file; the next run continues from there.
    """
    setup, missing, done = plan.setup, plan.missing, 0
    off_board: set[str] = set()  # contents off the board that cannot be scored on the new tasks
    while True:
        found = _fetch_lost(session, setup, missing, tell=tell)
        missing = tuple(row for row in found if row.content_hash not in off_board)
        for number, row in enumerate(missing):
            rows = done + len(missing) - number
            progress(0, rows)
            stood = any(taken_off(submission_facts(one)) is None for one in row.submissions)
            try:
                fill(session, setup, row)
            except ParticipantError as error:
                if stood:
                    raise _unscorable(row, error) from error
                off_board.add(row.content_hash)
            except RowOverLimit:
                if stood:
                    raise
                off_board.add(row.content_hash)
            done += 1
            progress(1, rows)
        with session.store.write() as tx:
            # A running daemon has continued to score on the old tasks meanwhile.
            found = _missing(session, tx, setup, _rows(tx, setup))
            missing = tuple(row for row in found if row.content_hash not in off_board)
            if not missing:
                changed = _take_up(session, tx, setup, reason)
                break
    return changed


def _unscorable(row: IncompleteRow, error: ParticipantError) -> OrganizerError:
    pk = ", ".join(str(submission.pk) for submission in row.submissions[:5])
    return OrganizerError(
        f"Submission {pk} cannot be scored on the new tasks: {error.sentence}",
        cure="Check the new tasks, or disqualify the submission. Nothing was changed.",
        code="rescore.unscorable",
    )


def fill(session: OrganizerSession, setup: PhaseSetup, row: IncompleteRow) -> None:
    """Score one content's missing cells in a child process, within the limits of `submission`.

    Raises:
        InfrastructureError: If the child died, or exceeded its time or memory limit.
        ParticipantError: If these embeddings cannot be scored on these tasks.
    """
    file = session.files.find(row.file_hash or "")
    if file is None:
        raise InfrastructureError(
            "A stored file disappeared while the command ran.",
            cure="Run the command again. The file is downloaded again from EvalAI.",
            code="rescore.files_gone",
        )
    act = FillRow(
        session.configuration,
        setup,
        row,
        file,
        folder=session.files.temporary(f"{RESCORING}{row.content_hash[:16]}"),
        worker=f"rescore by {session.actor}",
        scored_at=session.now,
    )
    perform(session, act)
    if act.error is not None:
        raise act.error


def perform(session: OrganizerSession, act: ChildAct[Any]) -> None:
    """Start an act's child, and wait for its end."""
    wake = threading.Event()
    runner = ChildRunner(session.store, wake=wake.set)
    try:
        runner.start(act, session.clock())
        while runner.acts:
            wake.clear()
            if not runner.look(session.clock()):
                wake.wait(timeout=EVERY_S)
    finally:
        runner.stop(session.clock())


def _take_up(session: OrganizerSession, tx: Transaction, setup: PhaseSetup, reason: str) -> int:
    """Record the phase as its files are, and put every changed answer into the outbox."""
    setup = _as_recorded(tx, setup)
    now = session.clock()  # not the command's start: boards were made from the old cells meanwhile
    before = tx.phase_record(setup.codename)
    renewed = before is None or not setup.record.scores_as(before.protocol_hash, before.tasks)
    register(tx, now)  # first, so that earlier changes do not get this reason
    put_on_record(tx, setup.record, files=setup.files, now=now)
    tx.request_publish()
    tx.forget_wanted(row.pk for row in tx.submissions(phase=setup.codename))
    register(tx, now, reason=reason)
    changed = correct_phase(tx, RegisterFold(), setup.codename, now=now)
    if renewed:
        told = f"tasks or protocol of {setup.codename} changed{f': {reason}' if reason else ''}"
        commitments.commit(tx, read_secret(session.configuration), [setup], reason=told, now=now)
    tx.log(
        "rescored",
        actor=session.actor,
        now=now,
        phase=setup.codename,
        before=None if before is None else before.tasks,
        after=dict(setup.tasks),
        answers_changed=changed,
        reason=reason,
    )
    return changed
