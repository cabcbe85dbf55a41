"""Disclosure: the contents that a reveal publishes are prepared, pushed, and listed with their places.

A failure never keeps a phase from being revealed. What cannot be published is listed with the reason, and its scores must be trusted.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection

from leaderboard.ranking import from_json
from scoring.errors import NeucoError, ParticipantError
from scoring.inputs.embeddings import canonical_bytes
from worker.challenge.files import read_secret
from worker.challenge.setups import PhaseSetup, open_phase
from worker.evaluation.stored import KeepContent
from worker.fairness import disclosure
from worker.fairness.disclosure import Files, Part, PublishedFile
from worker.fairness.documents import read
from worker.organizer.board_by_hand import publish_now
from worker.organizer.rescoring import perform
from worker.organizer.session import OrganizerSession, Tell
from worker.publishing.pushing import outbox, waiting
from worker.runtime.storage import RESCORING
from worker.state import SubmissionRow, Transaction


def disclose(session: OrganizerSession, phases: Collection[str], *, tell: Tell) -> dict[str, str]:
    """Publish the contents that the rules of phases require; return the lists for the reveal: phase to ``files.json``.

    Args:
        session: The challenge.
        phases: Codenames.
        tell: Called with a sentence about what the command waits for and what is left out.

    Raises:
        OrganizerError: If a phase is not recorded, or the secret is not the one of its record.
        InfrastructureError: If no child process could be started, or one lacks disk space.
    """
    secret = read_secret(session.configuration)
    with session.store.read() as tx:
        published = _published(tx)
        setups = {name: open_phase(tx, name, secret) for name in phases}
        rows = {name: [row for pk in due(tx, name) if (row := tx.get(pk)) is not None] for name in phases}
    results = {
        name: {row.pk: _lay_out(session, setup, row, published) for row in rows[name]}
        for name, setup in setups.items()
    }
    unpushed, reason = _push(session, tell)
    lists = {}
    for name, contents in results.items():
        files = [file for file in contents.values() if isinstance(file, PublishedFile)]
        left_out = {pk: text for pk, text in contents.items() if isinstance(text, str)}
        left_out |= {file.submission: reason for file in files if file.content in unpushed}
        for pk, text in left_out.items():
            tell(f"The file of submission {pk} in phase {name} is not published: {text}.")
        lists[name] = disclosure.text([file for file in files if file.content not in unpushed], left_out)
    return lists


def due(tx: Transaction, phase: str) -> list[int]:
    """Return the submissions whose contents a phase's rule requires, by its last board."""
    rule = disclosure.rule_of((public for public, _ in tx.commitments()), phase)
    board = tx.newest_board(phase)
    standings = () if board is None else from_json(board).standings
    return disclosure.due(rule, ((standing.submission, standing.baseline) for standing in standings))


def _published(tx: Transaction) -> dict[str, PublishedFile]:
    """Return what earlier reveals have published: content hash to its place."""
    places = {disclosure.path(phase): files for phase, files in tx.reveals().items()}
    lists = (read(Files, files[path], path) for path, files in places.items())
    return {file.content: file for listed in lists for file in listed.files}


def _lay_out(
    session: OrganizerSession, setup: PhaseSetup, row: SubmissionRow, published: dict[str, PublishedFile]
) -> PublishedFile | str:
    """Prepare a content to be pushed, unless it is published already; return its entry in the list, or why it cannot be published."""
    content = str(row.content_hash)
    if content in published:
        return published[content].model_copy(update={"submission": row.pk})
    size = canonical_bytes(setup.record.ids, setup.record.protocol.embedding_dim)
    if sum(file.bytes for file in published.values()) + size > disclosure.LIMIT_BYTES:
        return "with it, the published files would take more than 1 GB"
    stored = session.files.find(row.file_hash or "")
    if stored is None:
        return "its stored file is gone"
    act = KeepContent(
        session.configuration,
        setup,
        stored,
        content,
        place=outbox(session.configuration) / content,
        folder=session.files.temporary(f"{RESCORING}{content[:16]}"),
    )
    perform(session, act)
    if isinstance(act.error, ParticipantError) or (act.error is None and not act.parts):
        return "its stored file no longer has the content that was scored"
    if act.error is not None:
        raise act.error
    published[content] = PublishedFile(
        submission=row.pk,
        content=content,
        bytes=size,
        parts=[Part.model_validate(part) for part in act.parts],
    )
    return published[content]


def _push(session: OrganizerSession, tell: Tell) -> tuple[set[str], str]:
    """Have the waiting contents pushed; return those that could not be pushed, and why."""
    reason = "the running worker does not find it, because it is on another machine"
    left = waiting(session.configuration)
    before = len(left) + 1
    try:
        while left and len(left) < before:
            before = len(left)
            publish_now(session, tell=tell)
            left = waiting(session.configuration)
    except NeucoError as error:
        reason, left = f"it could not be pushed: {error.sentence.rstrip('.')}", waiting(session.configuration)
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    return {folder.name for folder in left}, reason


def with_latecomers(tx: Transaction, phase: str, contents: str | None) -> str:
    """Return a phase's list as it is now, because an open phase may have got another board meanwhile."""
    return disclosure.explained(
        contents or disclosure.text((), {}),
        due(tx, phase),
        "it was put on the board while the phase was being revealed",
    )
