"""Boards by hand: what an organizer does to them beside the daemon. They are published at once, and closed and opened again."""

from __future__ import annotations

from collections.abc import Collection

from leaderboard.publisher import Published, Publisher
from scoring.errors import InfrastructureError
from worker.challenge.setups import put_on_record
from worker.fairness import commitments, receipts
from worker.office import Office
from worker.publishing.board_history import BoardHistory
from worker.publishing.boards import PendingBoards, keep_boards, make_boards, read_inputs
from worker.publishing.pushing import publisher_settings, push, record_push
from worker.state import Transaction


def publish_now(office: Office) -> Published:
    """Compute and push the boards at once, whether or not a daemon runs.

    Raises:
        NeucoError: As :meth:`leaderboard.publisher.Publisher.publish`.
    """
    publisher = Publisher(publisher_settings(office.configuration))
    while True:
        pending = _make_boards(office, office.configuration.phases)
        with office.store.write() as tx:
            _keep(tx, pending)
            tx.request_publish()  # should this process die, or fail to push, a daemon does it
        try:
            published = push(publisher, pending)
            break
        except receipts.LogIsAhead as error:
            with office.store.write() as tx:
                receipts.take_over(tx, error)
        except InfrastructureError as error:
            with office.store.read() as tx:
                committed = commitments.commitment_file(tx)
            if error.code != commitments.UNKNOWN or committed == pending.preconditions.promises.get(
                commitments.PATH
            ):
                raise  # else a daemon has committed and pushed since we read
    with office.store.write() as tx:
        record_push(tx, pending, published, now=office.now)
    return published


def freeze(office: Office, phase: str) -> None:
    """Close a phase on the board that is due now: what was answered until this moment stands on it, nothing that comes later.

    Raises:
        OrganizerError: If there is no such phase.
        InfrastructureError: If the daemon made a board at the same moment.
    """
    office.check_phase(phase)
    pending = _make_boards(office, [phase])
    setup = office.phase(phase) if pending.preconditions.records[phase] is None else None
    with office.store.write() as tx:
        _keep(tx, pending)
        if tx.phase_record(phase) != pending.preconditions.records[phase]:  # a rescore would be closed out
            raise _busy()
        if setup is not None:
            put_on_record(tx, setup.record, files=setup.files, now=office.now)
        tx.freeze_phase(phase, at=office.now)
        tx.request_publish()
        tx.log("frozen", actor=office.actor, now=office.now, phase=phase)


def thaw(office: Office, phase: str) -> None:
    """Let a phase's board move again.

    Raises:
        OrganizerError: If there is no such phase.
    """
    office.check_phase(phase)
    with office.store.write() as tx:
        tx.freeze_phase(phase, at=None)
        tx.request_publish()
        tx.log("thawed", actor=office.actor, now=office.now, phase=phase)


def _make_boards(office: Office, phases: Collection[str]) -> PendingBoards:
    with office.store.read() as tx:
        inputs = read_inputs(tx, office.configuration, phases, BoardHistory())
    return make_boards(inputs, office.clock())


def _keep(tx: Transaction, pending: PendingBoards) -> None:
    if not keep_boards(tx, pending):
        raise _busy()


def _busy() -> InfrastructureError:
    return InfrastructureError(
        "The daemon or another command changed the board at the same moment.",
        cure="Try again.",
        code="board.busy",
    )
