"""Compare what teams submitted: child processes read the counted submissions again, for the private report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leaderboard import PhaseSnapshot
from leaderboard.ranking import counted
from leaderboard.report import similarities_of_rows
from scoring.inputs.embeddings import Embeddings
from worker.challenge.files import read_secret
from worker.challenge.setups import PhaseSetup, open_phase
from worker.evaluation.stored import KeepContent
from worker.organizer.rescoring import perform
from worker.organizer.session import OrganizerSession
from worker.runtime.files import RESCORING


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
            embeddings = _read(session, setup, stored, str(row.content_hash))
            if embeddings is not None:
                alike[submission] = similarities_of_rows(embeddings.matrix)
        progress(1, len(files))
    return alike


def _read(session: OrganizerSession, setup: PhaseSetup, stored: Path, content: str) -> Embeddings | None:
    folder = session.files.temporary(f"{RESCORING}{content[:16]}")
    place = session.files.temporary(f"{RESCORING}{content[:16]}-read")
    act = KeepContent(session.configuration, setup, stored, content, place=place, folder=folder)
    try:
        perform(session, act)
        if act.error is not None or not act.parts:
            return None
        content_bytes = b"".join((place / part["name"]).read_bytes() for part in act.parts)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Embeddings.from_canonical(content_bytes, setup.ids, setup.protocol.embedding_dim)
