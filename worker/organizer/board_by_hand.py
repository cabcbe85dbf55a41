"""Boards on command: publish them at once, close them, and open them again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from datetime import datetime
from logging import WARNING
from random import SystemRandom

import structlog

from leaderboard.rendering import render
from scoring.errors import InfrastructureError, OrganizerError
from scoring.printable import count_of
from worker.challenge.context import Context, Timetable
from worker.challenge.setups import read_record, recorded
from worker.challenge.signing import signer
from worker.daemon import make_client
from worker.fairness.published import has_begun
from worker.fairness.register import RegisterReplay, withholds
from worker.organizer.decisions import decided
from worker.organizer.session import LOOK_EVERY_S, LeaderWait, OrganizerSession, Tell, check_clock
from worker.publishing import Publishing
from worker.publishing.boards import (
    BoardHistory,
    Cycle,
    begin_cycle,
    keep_boards,
    make_boards,
)
from worker.publishing.pushing import REPLACES_FOREIGN, place
from worker.runtime.acts import begin
from worker.state import ACTIVE, COUNTED, Completed, Deposed, Pause, State, Transaction

SHOWS_VALUES = "Withheld values are then posted to EvalAI and shown, which cannot be undone."
"""What ends the withholding of values: a close, or another rule."""


def publish_now(session: OrganizerSession, *, tell: Tell) -> Completed:
    """Have the boards made and pushed at once, by the leading worker or, if there is none, by this process.

    Args:
        session: The challenge.
        tell: Called with a sentence about what the command waits for.

    Raises:
        OrganizerError: If EvalAI has not answered yet.
        NeucoError: The error that the leading worker recorded for its push; or as
            :meth:`leaderboard.git.publisher.Publisher.publish`.
    """
    with session.store.write() as tx:
        check_clock(tx)
        if not has_begun(tx):
            raise OrganizerError(
                "EvalAI has not answered yet, so nothing is published: a commitment in the repository is there for good.",
                hint="Start the worker, and check with `status` that it reaches EvalAI.",
                code="leaderboard.not_begun",
            )
        generation = tx.request_publish(awaited=True)
    with closing(session.leader_lock()) as lock:
        wait = LeaderWait(tell)
        while True:
            with session.store.read() as tx:
                completed, failure = tx.completed_publish(), tx.publish_failure(generation)
            if completed.generation >= generation:
                return completed
            if failure is not None:
                raise failure
            if lock.take():
                with suppress(Deposed):
                    _publish_leading(session, generation)
                    continue
                lock.close()  # another process leads now, and publishes
            wait.pause("publish the boards")


def replace_foreign(session: OrganizerSession) -> None:
    """Let a first push replace and remove files of others at the worker's paths."""
    with session.store.write() as tx:
        tx.set_fact(REPLACES_FOREIGN, place(session.configuration))


def _publish_leading(session: OrganizerSession, generation: int) -> None:
    """Make and push the boards in this process, which holds the leader's lock, until this request is met or has failed."""
    wake = threading.Event()
    # From here on, a daemon that has lost the lock without noticing pushes nothing.
    with session.store.lead(session.clock()) as tx:
        key = signer(tx, session.configuration)
    context = Context(
        configuration=session.configuration,
        store=session.store,
        signer=key,
        random=SystemRandom(),
        wake=wake.set,
        timetable=Timetable(()),
        # A command tells its result itself, perhaps as JSON on its standard output.
        log=structlog.wrap_logger(
            structlog.PrintLogger(sys.stderr), wrapper_class=structlog.make_filtering_bound_logger(WARNING)
        ),
    )
    stage = Publishing(context, RegisterReplay())
    try:
        while True:
            wake.clear()
            stage.collect(session.clock())
            with session.store.read() as tx:
                if tx.completed_publish().generation >= generation or tx.publish_failure(generation):
                    return
            begin(session.store, session.clock(), stage)
            wake.wait(LOOK_EVERY_S)
    finally:
        stage.stop()
        session.store.resign()


def preview(session: OrganizerSession) -> Mapping[str, bytes]:
    """Return the files that a push would publish now, by path; no board is made and nothing is pushed."""
    cycle = _make_boards(session, session.configuration.phases)
    return {**render(cycle.site, readme=None), **cycle.attestations}


def check_ended(session: OrganizerSession, phase: str) -> None:
    """Check at EvalAI that a phase takes no more submissions.

    Raises:
        OrganizerError: If it does, because what is sent after the close does not count.
        NeucoError: As every call to EvalAI.
    """
    with closing(make_client(session.configuration)) as client:
        open_phases = {
            listed.codename
            for listed in client.phases()
            if listed.is_active and not listed.is_submission_paused
        }
    if phase in open_phases:
        raise OrganizerError(
            f"EvalAI still takes submissions to phase {phase}. After the close they would not count.",
            hint="Set the phase's end date at EvalAI to a time in the past, and then close the board. Or add --now to close it anyway.",
            code="close.open_at_evalai",
        )


def check_closable(session: OrganizerSession, phase: str) -> bool:
    """Check before anything else that a phase can be closed, perhaps once what waits is answered; return whether values are withheld.

    Raises:
        OrganizerError: If it has not begun, or has no submission that could end the withholding of values.
    """
    with session.store.read() as tx:
        recorded(tx, phase)
        _check_scored(tx, phase, COUNTED | ACTIVE | {State.UPLOADING})
        return withholds(tx, phase)


def _check_scored(tx: Transaction, phase: str, states: Collection[State]) -> None:
    if withholds(tx, phase) and not tx.submissions(states, phase=phase):
        raise OrganizerError(
            f"No submission to phase {phase} has been scored yet. Closing the phase now would end shown: at_end, so participants would"
            " see the mean Q of submissions that are scored later.",
            hint="Close the phase after a submission has been scored.",
            code="close.empty",
        )


def wait_for_answers(session: OrganizerSession, phase: str, *, tell: Tell) -> None:
    """Wait until everything that was submitted to a phase so far is answered, if the phase withholds its values until it is closed.

    Args:
        session: The challenge.
        phase: Codename.
        tell: Called with a sentence about what the command waits for.

    Raises:
        OrganizerError: If a submission waits for a person, for the end of a pause, or only for the end of its upload.
        InfrastructureError: If no worker runs that would answer.
    """
    with closing(session.leader_lock()) as lock:
        wait = LeaderWait(tell)
        while True:
            with session.store.read() as tx:
                if not withholds(tx, phase):
                    return
                # The listing has what was sent; only the queue tells which uploads were finished.
                compared, polled = (
                    at is not None and datetime.fromisoformat(at) >= session.now
                    for at in map(tx.fact, ("reconciled_at", "polled_at"))
                )
                open_rows = [
                    row
                    for row in tx.submissions(ACTIVE | {State.UPLOADING}, phase=phase)
                    if row.submitted_at is None or row.submitted_at <= session.now
                ]
                pause = tx.pause()
            if compared and not open_rows:
                return
            _check_pause(pause, {row.state for row in open_rows}, compared=compared)
            if held := [row for row in open_rows if row.hold is not None]:
                raise OrganizerError(
                    f"Submission {held[0].pk} is on hold: {held[0].hold_reason}",
                    hint="Resolve this first, or add --now to close the phase without it.",
                    code="close.held",
                )
            if compared and polled and all(row.state is State.UPLOADING for row in open_rows):
                raise OrganizerError(
                    f"The upload of submission {open_rows[0].pk} was not finished, and EvalAI takes no file once a phase has ended.",
                    hint="Cancel the submission at EvalAI as a host, or add --now to close the phase without it.",
                    code="close.upload",
                )
            if not lock.held():
                raise InfrastructureError(
                    "No worker is running, so it is not known whether every submission to the phase has been answered.",
                    hint="Start the worker, and then close the phase. Or add --now; submissions without an answer then do not count.",
                    code="close.no_worker",
                )
            waiting = (
                f"answer {count_of(len(open_rows), 'more submission')}"
                if open_rows
                else "ask EvalAI which submissions were sent"
            )
            wait.pause(waiting)


def _check_pause(pause: Pause | None, states: Collection[State], *, compared: bool) -> None:
    """Refuse to wait for what a pause has stopped: scoring, or the comparison with EvalAI's list."""
    scores = not {State.FETCHED, State.SCORING}.isdisjoint(states)
    if pause is not None and (scores if pause.mode == "pause" else not compared):
        raise OrganizerError(
            pause.sentence,
            hint="Then close the phase. Or add --now; submissions without an answer then do not count.",
            code="close.paused",
        )


def close(session: OrganizerSession, phase: str, reason: str = "") -> None:
    """Close a phase on its current board, which shows everything that was answered so far and nothing that comes later.

    Values that had been withheld are shown: the daemon posts them.

    Args:
        session: The challenge.
        phase: Codename.
        reason: Why; kept in the register, and published by the reveal.

    Raises:
        OrganizerError: If the phase has not begun.
    """
    while True:
        cycle = _make_boards(session, [phase], closing=phase)
        with session.store.write() as tx:
            recorded(tx, phase)
            if not keep_boards(tx, cycle):
                continue  # the worker or another command was quicker
            if (row := tx.phase_record(phase)) is not None and row.closed_at is not None:
                return  # by another command, whose board is the last one
            _check_scored(tx, phase, COUNTED | {State.SCORED})
            with decided(session, tx, reason):
                tx.close_phase(phase, at=cycle.at)
            return


def reopen(session: OrganizerSession, phase: str, reason: str = "") -> None:
    """Open a phase's closed board again, for a reason that the register keeps."""
    with session.store.write() as tx, decided(session, tx, reason):
        tx.close_phase(phase, at=None)


def _make_boards(session: OrganizerSession, phases: Collection[str], *, closing: str | None = None) -> Cycle:
    with session.store.write() as tx:
        check_clock(tx)
        for name in phases:
            read_record(tx, name)  # a damaged one ends the command
        cycle = begin_cycle(
            tx,
            signer(tx, session.configuration),
            session.configuration,
            phases,
            BoardHistory(),
            replay=RegisterReplay(),
            now=session.clock(),
            closing=closing,
        )
    return make_boards(cycle)
