"""Stored contents, read again in child processes: a reveal publishes them, the private report compares them.

A stored file that is gone or has other content does not keep a phase from being revealed. Its scores must be trusted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leaderboard import PhaseSnapshot
from leaderboard.ranking import counted, from_json
from leaderboard.report import similarities_of_rows
from scoring.errors import NeucoError, ParticipantError
from scoring.inputs.embeddings import Embeddings, canonical_bytes
from worker.challenge.setups import PhaseSetup, open_phase, read_secret
from worker.evaluation.stored import KeepContent
from worker.fairness import commitments, disclosure
from worker.organizer.rescoring import perform
from worker.organizer.session import OrganizerSession, Tell
from worker.publishing import files_branch
from worker.state import SubmissionRow, Transaction


def prepare_files(session: OrganizerSession, phases: Collection[str], *, tell: Tell) -> None:
    """Write the contents that the rules of phases name to where the worker finds them, which publishes them once the phases are revealed.

    Args:
        session: The challenge.
        phases: Codenames.
        tell: Called with a sentence about each content that cannot be published.

    Raises:
        OrganizerError: If a phase is not recorded, or the secret is not the one of its record.
        InfrastructureError: If no child process could be started, or one lacks disk space.
    """
    secret = read_secret(session.configuration)
    for name in phases:
        with session.store.read() as tx:
            setup = open_phase(tx, name, secret)
            remove_undue(tx, session, name)
            rows = _due(tx, name)
        for row in rows:
            if reason := _prepare(session, setup, row):
                tell(f"The file of submission {row.pk} in phase {name} is not published: {reason}.")


def remove_undue(tx: Transaction, session: OrganizerSession, phase: str) -> None:
    """Remove what was prepared of a phase and is no longer due, by this reveal or one that was ended: it would be published."""
    if phase in tx.revealed():
        return
    contents = {row.content_hash for row in _due(tx, phase)}
    for place in files_branch.folder(session.configuration, phase).glob("*"):
        if place.name not in contents:
            removed = session.files.of_command()  # first, because half of it must not count as prepared
            with suppress(FileNotFoundError):  # another command was quicker
                place.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)


def _due(tx: Transaction, phase: str) -> list[SubmissionRow]:
    """Return the submissions whose contents a phase's rule names, by its last board."""
    rule = disclosure.rule_of(commitments.public(tx), phase)
    board = tx.newest_board(phase)
    standings = () if board is None else from_json(board).standings
    pks = disclosure.due(rule, ((standing.submission, standing.baseline) for standing in standings))
    return [tx.known(pk) for pk in pks]


def _prepare(session: OrganizerSession, setup: PhaseSetup, row: SubmissionRow) -> str:
    """Write a content, unless it is there already; return why it cannot be published, empty if it can."""
    content, configuration = str(row.content_hash), session.configuration
    place = files_branch.folder(configuration, setup.record.codename) / content
    if place.is_dir():
        return ""
    size = canonical_bytes(setup.record.ids, setup.record.protocol.embedding_dim)
    if files_branch.prepared_bytes(configuration) + size > disclosure.LIMIT_BYTES:
        return "with it, the published files would take more than 1 GB"
    stored = session.files.find(row.file_hash)
    if stored is None:
        return "its stored file is not on this machine"
    error = _keep(session, setup, stored, content, place)
    if error is not None and not isinstance(error, ParticipantError):
        raise error
    return "" if place.is_dir() else "its stored file no longer has the content that was scored"


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
        sent = [tx.known(row.entry.submission) for row in rows]
    alike: dict[int, NDArray[np.float32]] = {}
    for row in sent:
        stored = session.files.find(row.file_hash)
        embeddings = None if stored is None else _embeddings(session, setup, stored, str(row.content_hash))
        if embeddings is not None:
            alike[row.pk] = similarities_of_rows(embeddings.matrix)
        progress(1, len(sent))
    return alike


def _embeddings(
    session: OrganizerSession, setup: PhaseSetup, stored: Path, content: str
) -> Embeddings | None:
    place, ids, dim = session.files.of_command(), setup.record.ids, setup.record.protocol.embedding_dim
    try:
        _keep(session, setup, stored, content, place)
        if not place.is_dir():
            return None
        names = disclosure.part_names(content, canonical_bytes(ids, dim))
        content_bytes = b"".join((place / name).read_bytes() for name in names)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Embeddings.from_canonical(content_bytes, ids, dim)


def _keep(
    session: OrganizerSession, setup: PhaseSetup, stored: Path, content: str, place: Path
) -> NeucoError | None:
    """Have a child read a stored file, and write its content into a folder if it is still the one that was scored; return its error."""
    act = KeepContent(
        configuration=session.configuration,
        setup=setup,
        file=stored,
        content_hash=content,
        place=place,
        folder=session.files.of_command(),
    )
    perform(session, act)
    return act.error
