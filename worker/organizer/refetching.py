"""Files that a rescore needs but that are gone: ask the leading worker for them, and wait."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing

from scoring.errors import InfrastructureError
from scoring.printable import count_of
from worker.organizer.session import LeaderWait, OrganizerSession
from worker.state import LeaderLock, SubmissionRow, WantedFile, leader_lock

ELSEWHERE = "the running worker has it on another machine; run this command there"


def fetch_again(
    session: OrganizerSession, submissions: Collection[SubmissionRow], *, tell: Callable[[str], object]
) -> dict[int, str]:
    """Have the leading worker fetch the stored files of submissions again; return why the others could not be fetched.

    Args:
        session: The challenge.
        submissions: Those whose files are gone.
        tell: Called with a sentence about what the command waits for.

    Raises:
        InfrastructureError: If no worker leads; the requests are kept until one does.
    """
    hashes = {known.pk: known.file_hash for known in submissions if known.file_hash is not None}
    with session.store.write() as tx:
        for pk, file_hash in hashes.items():
            tx.want_file(pk, file_hash)
    with closing(leader_lock(session.configuration.database_url, session.configuration.state_dir)) as lock:
        ended = _wait(session, hashes, lock, tell)
    return {
        request.submission: request.failure or ELSEWHERE
        for request in ended
        if session.files.find(request.file_hash) is None
    }


def _wait(
    session: OrganizerSession, pks: Collection[int], lock: LeaderLock, tell: Callable[[str], object]
) -> list[WantedFile]:
    """Wait until the requests have ended; return them."""
    wait = LeaderWait(tell)
    while True:
        with session.store.read() as tx:
            asked = [request for request in tx.wanted_files() if request.submission in pks]
        left = sum(request.open for request in asked)
        if not left:
            return asked
        if not lock.held():
            raise InfrastructureError(
                f"No worker is running that could download {count_of(left, 'missing file')} from EvalAI.",
                cure="Start the worker and run this command again. Nothing was changed.",
                code="rescore.no_leader",
            )
        wait.pause(f"fetch {count_of(left, 'file')} again from EvalAI")
