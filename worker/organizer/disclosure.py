"""Disclosure: the contents that a reveal publishes are prepared, pushed, and listed with their places.

A failure never keeps a phase from being revealed. What cannot be published is listed with the reason, and its scores must be trusted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

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
from worker.organizer.session import OrganizerSession
from worker.publishing.contents import elsewhere, outbox, waiting
from worker.runtime.files import RESCORING
from worker.state import SubmissionRow, Transaction


@dataclass
class _Listed:
    """What is published of one phase, and what is left out."""

    files: list[PublishedFile] = field(default_factory=list)
    left_out: dict[int, str] = field(default_factory=dict)


def disclose(
    session: OrganizerSession,
    phases: Collection[str],
    *,
    files_at: str | None = None,
    tell: Callable[[str], object],
) -> dict[str, str]:
    """Publish the contents that the rules of phases require; return the lists for the reveal: phase to ``files.json``.

    Args:
        session: The challenge.
        phases: Codenames.
        files_at: Address at which the organizers will publish what is too large for the branch.
        tell: Called with a sentence about what the command waits for and what is left out.

    Raises:
        OrganizerError: If a phase is not recorded, or the secret is not the one of its record.
        InfrastructureError: If no child process could be started, or one lacks disk space.
    """
    secret = read_secret(session.configuration)
    with session.store.read() as tx:
        published = _published(tx)
        setups = {name: open_phase(tx, name, secret) for name in phases}
        rows = {name: [tx.get(pk) for pk in due(tx, name)] for name in phases}
    listed = {name: _Listed() for name in phases}
    for name, setup in setups.items():
        for row in rows[name]:
            if row is not None:
                _lay_out(session, setup, row, published, listed[name], files_at=files_at)
    _push(session, tell, listed.values())
    _tell_elsewhere(session, tell, listed.values())
    for name, one in listed.items():
        for pk, reason in one.left_out.items():
            tell(f"The file of submission {pk} in phase {name} is not published: {reason}.")
    return {name: disclosure.text(one.files, one.left_out) for name, one in listed.items()}


def due(tx: Transaction, phase: str) -> list[int]:
    """Return the submissions whose contents a phase's rule requires, by its last board."""
    rule = disclosure.rule_of((public for public, _ in tx.commitments()), phase)
    boards = tx.boards(phase, after=tx.last_board(phase) - 1)
    standings = from_json(boards[-1]).standings if boards else ()
    return disclosure.due(rule, ((standing.submission, standing.baseline) for standing in standings))


def _published(tx: Transaction) -> dict[str, PublishedFile]:
    """Return what earlier reveals have published: content hash to its place."""
    places = {disclosure.path(phase): files for phase, files in tx.reveals().items()}
    lists = (read(Files, files[path], path) for path, files in places.items())
    return {file.content: file for listed in lists for file in listed.files}


def _lay_out(
    session: OrganizerSession,
    setup: PhaseSetup,
    row: SubmissionRow,
    published: dict[str, PublishedFile],
    listed: _Listed,
    *,
    files_at: str | None,
) -> None:
    """Prepare one content to be pushed or uploaded elsewhere, unless it is published already or cannot be."""
    content, known = str(row.content_hash), published.get(str(row.content_hash))
    if known is not None:
        listed.files.append(known.model_copy(update={"submission": row.pk}))
        return
    size = canonical_bytes(setup.ids, setup.protocol.embedding_dim)
    stored = session.files.find(row.file_hash or "")
    pushed = sum(file.bytes for file in published.values() if file.at is None)
    too_much = pushed + size > disclosure.LIMIT_BYTES
    if too_much and files_at is None:
        listed.left_out[row.pk] = "with it, the published files would take more than 1 GB"
        return
    if stored is None:
        listed.left_out[row.pk] = "its stored file is gone"
        return
    act = KeepContent(
        session.configuration,
        setup,
        stored,
        content,
        place=(elsewhere if too_much else outbox)(session.configuration) / content,
        folder=session.files.temporary(f"{RESCORING}{content[:16]}"),
    )
    perform(session, act)
    if isinstance(act.error, ParticipantError) or (act.error is None and not act.parts):
        listed.left_out[row.pk] = "its stored file no longer has the content that was scored"
        return
    if act.error is not None:
        raise act.error
    published[content] = PublishedFile(
        submission=row.pk,
        content=content,
        bytes=size,
        parts=[Part.model_validate(part) for part in act.parts],
        at=files_at if too_much else None,
    )
    listed.files.append(published[content])


def _tell_elsewhere(
    session: OrganizerSession, tell: Callable[[str], object], listed: Collection[_Listed]
) -> None:
    """Say which files the organizers have to upload to which address."""
    folder = elsewhere(session.configuration)
    for address, files in _by_address(listed).items():
        here = [file for file in files if (folder / file.content).is_dir()]
        if here:
            size = sum(file.bytes for file in here) / 1e9
            tell(
                f"Upload all files in the folders of {folder} to {address}, so that anyone can recompute the scores of {len(here)}"
                f" submissions ({size:.1f} GB). Until then, these scores have to be taken on trust."
            )


def _by_address(listed: Collection[_Listed]) -> dict[str, list[PublishedFile]]:
    found: dict[str, list[PublishedFile]] = {}
    for one in listed:
        for file in one.files:
            if file.at is not None:
                found.setdefault(file.at, []).append(file)
    return found


def _push(session: OrganizerSession, tell: Callable[[str], object], listed: Collection[_Listed]) -> None:
    """Have the waiting contents pushed; leave out those that the leader does not push."""
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
    missing = {folder.name for folder in left}
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    for one in listed:
        one.left_out |= {file.submission: reason for file in one.files if file.content in missing}
        one.files = [file for file in one.files if file.content not in missing]


def with_latecomers(tx: Transaction, phase: str, contents: Mapping[str, str]) -> str:
    """Return a phase's list as it is now, because an open phase may have got another board meanwhile."""
    text = contents.get(phase) or disclosure.text((), {})
    return disclosure.explained(
        text, due(tx, phase), "it was put on the board while the phase was being revealed"
    )
