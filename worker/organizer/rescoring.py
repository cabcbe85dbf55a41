"""Rescoring: apply changed tasks or a changed protocol by filling the missing cells of the submissions that count.

The cells are filled first, under their new keys, while the board still shows the old ones. Only when the row of every submission is
complete does the phase's record change, together with its answers and its board, in one transaction. An interrupted rescore continues
where it stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from scoring.errors import OrganizerError, ParticipantError
from scoring.printable import count_of, name_some
from worker.answers.answers import correct_phase
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import PhaseSetup, put_on_record, read_secret, recorded
from worker.challenge.signing import signer
from worker.evaluation.stored import FillRow
from worker.fairness import commitments
from worker.fairness.register import RegisterReplay, disqualified_teams
from worker.organizer.decisions import decided
from worker.organizer.session import OrganizerSession
from worker.runtime.child_acts import ChildAct, ChildRunner, OverLimit
from worker.state import COUNTED, Outcome, State, SubmissionRow, Transaction

EVERY_S = 0.5  # between two checks of a child's limits


@dataclass(frozen=True, kw_only=True)
class IncompleteRow:
    """A content that lacks cells for some tasks.

    Attributes:
        content_hash: Hash of the embeddings.
        submissions: The submissions with this content.
        tasks: Tasks without a cell.
        files: The stored files with it; none if they no longer exist.
        stands: Whether nothing takes one of the submissions off the board; otherwise the cells are not needed.
    """

    content_hash: str
    submissions: tuple[SubmissionRow, ...]
    tasks: tuple[str, ...]
    files: tuple[Path, ...]
    stands: bool


@dataclass(frozen=True, kw_only=True)
class RescorePlan:
    """What a rescore of one phase would do.

    Attributes:
        before: The phase as it is recorded.
        setup: The phase as its files are now, but with the recorded rules.
        missing: Rows to complete.
    """

    before: PhaseRecord
    setup: PhaseSetup
    missing: tuple[IncompleteRow, ...]

    @property
    def changed(self) -> bool:
        """Whether tasks or protocol differ from those of the scores so far."""
        return not _score_alike(self.before, self.setup.record)

    @property
    def due(self) -> bool:
        """Whether there is anything to do: the current record does not match the files, or cells are missing."""
        return self.setup.record.hash != self.before.hash or bool(self.missing)


def _score_alike(one: PhaseRecord, other: PhaseRecord) -> bool:
    return one.scores_as(other.protocol.hash, other.versions)


def make_plan(session: OrganizerSession, setup: PhaseSetup) -> RescorePlan:
    """Return what a rescore has to do, without doing it.

    Raises:
        OrganizerError: If the phase is not recorded.
    """
    with session.store.read() as tx:
        before = recorded(tx, setup.record.codename)
        setup = with_rules_of(before, setup)
        missing = _missing(session, tx, setup)
    return RescorePlan(before=before, setup=setup, missing=missing)


def expected_s(session: OrganizerSession, plan: RescorePlan) -> float | None:
    """Return about how many seconds the missing cells take, by the worker's evaluations so far; None before the first one."""
    with session.store.read() as tx:
        ours = {row.pk for row in tx.submissions(phase=plan.setup.record.codename)}
        attempts_s = [
            (attempt.closed_at - attempt.opened_at).total_seconds()
            for attempt in tx.attempts()
            if attempt.submission in ours
            and attempt.outcome is Outcome.DONE
            and attempt.closed_at is not None
        ]
    return median(attempts_s) * len(plan.missing) if attempts_s else None


def with_rules_of(record: PhaseRecord, setup: PhaseSetup) -> PhaseSetup:
    """Return a phase as its files are, but with the recorded rules, which are applied on their own."""
    return replace(setup, record=replace(setup.record, rules=record.rules))


def _missing(session: OrganizerSession, tx: Transaction, setup: PhaseSetup) -> tuple[IncompleteRow, ...]:
    """Return the contents that were scored in a phase, but not on all of its tasks."""
    disqualified = disqualified_teams(tx)
    contents: dict[str, list[SubmissionRow]] = {}
    for row in tx.submissions(COUNTED | {State.SCORED}, phase=setup.record.codename):
        if row.content_hash is not None:
            contents.setdefault(row.content_hash, []).append(row)
    incomplete = []
    for content_hash, submissions in contents.items():
        tasks = tx.missing_tasks(content_hash, setup.record.protocol.hash, setup.record.versions)
        stored = (session.files.find(row.file_hash) for row in submissions if row.file_hash)
        files = tuple(path for path in stored if path is not None)
        stands = any(row.excluded is None and row.team_key not in disqualified for row in submissions)
        if tasks and (files or stands):
            incomplete.append(
                IncompleteRow(
                    content_hash=content_hash,
                    submissions=tuple(submissions),
                    tasks=tuple(tasks),
                    files=files,
                    stands=stands,
                )
            )
    return tuple(incomplete)


def check_files(missing: Sequence[IncompleteRow]) -> None:
    """Check that the files of all rows are still stored.

    Raises:
        OrganizerError: If they are not.
    """
    lost = [str(submission.pk) for row in missing if not row.files for submission in row.submissions]
    if lost:
        raise OrganizerError(
            f"The stored files of {count_of(len(lost), 'submission')} are missing ({name_some(lost)}).",
            hint="Copy them into the folder files of the state, from a backup or from another machine of the challenge; or re-run these"
            " submissions at EvalAI as a host, or disqualify them. Nothing was changed.",
            code="rescore.files_gone",
        )


def carry_out(
    session: OrganizerSession,
    plan: RescorePlan,
    *,
    reason: str = "",
    progress: Callable[[int, int], object] = lambda _, __: None,
) -> int:
    """Fill the missing cells, then update answers and board; return how many answers changed.

    Args:
        session: The challenge.
        plan: The result of :func:`make_plan`.
        reason: Why, in public.
        progress: Called before each row with 0 and after it with 1, and with the total.

    Raises:
        OrganizerError: If a stored file is gone, or embeddings cannot be scored on the new tasks.
        InfrastructureError: If an evaluation died; the next run continues from there.
    """
    while True:
        unscorable = fill_missing(session, plan, progress=progress)
        with session.store.write() as tx:
            # A running daemon has continued to score on the old tasks meanwhile.
            if unscorable.issuperset(row.content_hash for row in _missing(session, tx, plan.setup)):
                return _record_and_answer(session, tx, plan, reason)


def fill_missing(
    session: OrganizerSession,
    plan: RescorePlan,
    *,
    progress: Callable[[int, int], object] = lambda _, __: None,
) -> set[str]:
    """Fill the missing cells, which no board shows yet; return the contents off the board that cannot be scored, which stop nothing.

    Raises:
        OrganizerError, InfrastructureError: As :func:`carry_out`.
    """
    unscorable, done = set[str](), 0
    while True:
        with session.store.read() as tx:
            missing = _missing(session, tx, plan.setup)
        check_files(missing)
        rows = [row for row in missing if row.content_hash not in unscorable]
        if not rows:
            return unscorable
        for row in rows:
            progress(0, done + len(rows))
            try:
                fill(session, plan.setup, row)
            except (ParticipantError, OverLimit) as error:
                if row.stands:
                    raise _unscorable(row, error) from error
                unscorable.add(row.content_hash)
            progress(1, done + len(rows))
        done += len(rows)


def _unscorable(row: IncompleteRow, error: ParticipantError | OverLimit) -> OrganizerError:
    """Return the error for a submission on the board that cannot be scored on the new tasks."""
    pk = ", ".join(str(submission.pk) for submission in row.submissions[:5])
    reason, hint = error.sentence, "Check the new tasks, or disqualify the submission. Nothing was changed."
    if isinstance(error, OverLimit):
        limit = "deadline" if error.limit is Outcome.DEADLINE else "memory_gigabytes"
        reason = f"it takes more than submission.{limit} allows."
        hint = "Raise the limit, or disqualify the submission. Then run the command again. It continues where it stopped."
    return OrganizerError(
        f"Submission {pk} cannot be scored on the new tasks: {reason}", hint=hint, code="rescore.unscorable"
    )


def fill(session: OrganizerSession, setup: PhaseSetup, row: IncompleteRow) -> None:
    """Score one content's missing cells in a child process, within the limits of `submission`.

    Raises:
        InfrastructureError: If the child died, or exceeded its time or memory limit.
        ParticipantError: If these embeddings cannot be scored on these tasks.
    """
    act = FillRow(
        configuration=session.configuration,
        setup=setup,
        file=row.files[0],
        tasks=row.tasks,
        folder=session.files.of_command(),
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
            if not runner.look(session.clock()) and runner.acts:
                wake.wait(timeout=EVERY_S)
    finally:
        runner.stop(session.clock())


def _record_and_answer(session: OrganizerSession, tx: Transaction, plan: RescorePlan, reason: str) -> int:
    """Record the phase as its files are, and have every changed answer sent."""
    key, before = signer(tx, session.configuration), recorded(tx, plan.before.codename)
    if not any(_score_alike(before, expected) for expected in (plan.before, plan.setup.record)):
        raise OrganizerError(
            f"Another command has changed the tasks or the protocol of phase {before.codename} meanwhile. They stay as that command left"
            " them.",
            hint="Check the files of the phase, and run the command again.",
            code="rescore.changed_meanwhile",
        )
    setup = with_rules_of(before, plan.setup)  # they may have changed meanwhile
    now = session.clock()  # not the command's start: boards were made from the old cells meanwhile
    with decided(session, tx, reason):
        put_on_record(tx, setup.record)
    changed = correct_phase(tx, key, RegisterReplay(), setup.record.codename, now=now)
    if not _score_alike(before, setup.record):
        text = f"tasks or protocol of {setup.record.codename} changed{f': {reason}' if reason else ''}"
        commitments.check_keys(tx, read_secret(session.configuration), [setup])
        commitments.commit(tx, key, [setup], reason=text, now=now)
    return changed
