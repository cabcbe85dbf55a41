"""Stored contents, read again in child processes: a reveal publishes them and lists their places, the private report compares them.

A failure never keeps a phase from being revealed. What cannot be published is listed with the reason, and its scores must be trusted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leaderboard import PhaseSnapshot
from leaderboard.ranking import counted, from_json
from leaderboard.report import similarities_of_rows
from scoring.errors import NeucoError, ParticipantError
from scoring.inputs.embeddings import Embeddings, canonical_bytes
from worker.challenge.files import read_secret
from worker.challenge.setups import PhaseSetup, open_phase
from worker.evaluation.stored import KeepContent
from worker.fairness import commitments, disclosure
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
        lists[name] = disclosure.files_text(
            [file for file in files if file.content not in unpushed], left_out
        )
    return lists


def due(tx: Transaction, phase: str) -> list[int]:
    """Return the submissions whose contents a phase's rule requires, by its last board."""
    rule = disclosure.rule_of(commitments.public(tx), phase)
    board = tx.newest_board(phase)
    standings = () if board is None else from_json(board).standings
    return disclosure.due(rule, ((standing.submission, standing.baseline) for standing in standings))


def _published(tx: Transaction) -> dict[str, PublishedFile]:
    """Return what earlier reveals have published: content hash to its place."""
    places = {disclosure.files_path(phase): files for phase, files in tx.reveals().items()}
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
    act = _kept(session, setup, stored, content, outbox(session.configuration) / content)
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
        contents or disclosure.files_text((), {}),
        due(tx, phase),
        "it was put on the board while the phase was being revealed",
    )


def similarities(
    session: OrganizerSession, phase: PhaseSnapshot, *, progress: Callable[[int, int | None], object]
) -> Mapping[int, NDArray[np.float32]]:
    """Read the submissions that count in a phase, and return the similarity of their rows: submission to its Gram matrix.

    Submissions whose stored files are gone or unreadable are left out.

    Args:
        session: The challenge.
        phase: The phase as it is now.
        progress: Called after each submission with 1 and the total.

    Raises:
        OrganizerError: If the phase is not recorded, or the secret is not the one of its record.
        InfrastructureError: If no child process could be started.
    """
    rows = counted(phase)
    if len({row.entry.team_key for row in rows}) < 2:
        return {}
    with session.store.read() as tx:
        setup = open_phase(tx, phase.codename, read_secret(session.configuration))
        files = {row.entry.submission: tx.get(row.entry.submission) for row in rows}
    alike: dict[int, NDArray[np.float32]] = {}
    for submission, row in files.items():
        stored = None if row is None else session.files.find(row.file_hash or "")
        if row is not None and stored is not None:
            embeddings = _embeddings(session, setup, stored, str(row.content_hash))
            if embeddings is not None:
                alike[submission] = similarities_of_rows(embeddings.matrix)
        progress(1, len(files))
    return alike


def _embeddings(
    session: OrganizerSession, setup: PhaseSetup, stored: Path, content: str
) -> Embeddings | None:
    place = session.files.temporary(f"{RESCORING}{content[:16]}-read")
    try:
        kept = _kept(session, setup, stored, content, place)
        if kept.error is not None or not kept.parts:
            return None
        content_bytes = b"".join((place / part["name"]).read_bytes() for part in kept.parts)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Embeddings.from_canonical(content_bytes, setup.record.ids, setup.record.protocol.embedding_dim)


def _kept(
    session: OrganizerSession, setup: PhaseSetup, stored: Path, content: str, place: Path
) -> KeepContent:
    """Have a child read a stored file, and write its content into a folder if it is still the one that was scored."""
    folder = session.files.temporary(f"{RESCORING}{content[:16]}")
    act = KeepContent(session.configuration, setup, stored, content, place=place, folder=folder)
    perform(session, act)
    return act
