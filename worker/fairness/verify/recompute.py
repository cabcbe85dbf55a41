"""Recompute a submission from the revealed labels and compare fold by fold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scoring.engines import make_engine
from scoring.errors import NeucoError, ParticipantError
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.inputs.submission import read_submission
from scoring.scorecard import folds_from_json
from scoring.tasks import Task, load_tasks
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import UNREADABLE, RevealedPhase, read_phase, revealed_phases
from worker.fairness.verify.verdict import Verdict, Worth, believed, contradicted

TOLERANCE = 1e-5
EXPANDED_BYTES = 8_000_000_000
ENGINES = {"default": "local", "pytorch": "plain"}
YOURS = "your submission"


def submission_verdicts(
    repository: PublicRepository, file: Path, *, engine: str, progress: Callable[[int], None] = lambda _: None
) -> Iterator[Verdict]:
    """Score a submission file anew in every revealed phase that has it.

    A file belongs to the phase whose public ids it holds; phases that cannot read it are passed over.

    Args:
        repository: The public files.
        file: The submission as it was sent to EvalAI.
        engine: ``default`` or ``pytorch`` (the plain loop).
        progress: Called with the number of folds done since the last call.

    Raises:
        ParticipantError: If the file cannot be read in any revealed phase.
    """
    refused: list[ParticipantError] = []
    found, phases = 0, revealed_phases(repository)
    for name in phases:
        phase = read_phase(repository, name)
        try:
            embeddings = read_submission(
                file, phase.ids, phase.protocol.embedding_dim, max_expanded_bytes=EXPANDED_BYTES
            )
            records = [
                record
                for found_records in phase.records.values()
                for record in found_records
                if record["content_hash"] == embeddings.content_hash
            ]
            if records:
                found += 1
                yield _recomputed(phase, embeddings, records, engine, progress)
        except ParticipantError as error:
            refused.append(error)
        except UNREADABLE as error:
            found += 1
            yield contradicted(
                YOURS, f"What was revealed cannot be read ({type(error).__name__}).", phase=name
            )
    if refused and len(refused) == len(phases):
        raise refused[0]
    if not found:
        yield believed(
            YOURS,
            "No published entry has the content of this file; only entries that ever counted are published.",
        )


def _recomputed(
    phase: RevealedPhase,
    embeddings: Embeddings,
    records: list[Mapping[str, Any]],
    engine: str,
    progress: Callable[[int], None],
) -> Verdict:
    """Compute one submission's scores anew on the labels that were published, and compare."""
    if not phase.with_labels:
        return phase.believed(YOURS, "labels were released as hashes only: not recomputable")
    try:
        tasks = _tasks(phase)
    except NeucoError:
        return phase.contradicted(YOURS, "the published labels cannot be read")
    versions = {task.name: task.version for task in tasks}
    ours = [
        record
        for record in records
        if {task: cell["version"] for task, cell in record["cells"].items()} == versions
        and record["protocol_hash"] == phase.protocol.hash
    ]
    if not ours:
        return phase.believed(
            YOURS,
            "your file was scored on tasks that were changed since; their labels are not published: not recomputable",
        )
    card = score_embeddings(
        embeddings,
        tasks,
        phase.protocol,
        phase.phase_key(phase.latest),
        engine=make_engine(ENGINES[engine]),
        progress=progress,
    )
    worst = max(
        largest_difference(task.folds, folds_from_json(record["cells"][task.task]["folds"]))
        for record in ours
        for task in card.tasks
    )
    if worst > TOLERANCE:
        return phase.contradicted(
            YOURS, f"the published scores are not those of your file (off by {worst:.2g})"
        )
    return Verdict(
        phase=phase.name,
        check=YOURS,
        worth=Worth.RECOMPUTED,
        sentence=f"All {len(card.tasks)} x {phase.protocol.folds} fold scores were computed anew; "
        f"the largest difference is {worst:.1e}.",
        submissions=tuple(sorted({int(record["submission"]) for record in ours})),
    )


def _tasks(phase: RevealedPhase) -> tuple[Task, ...]:
    with tempfile.TemporaryDirectory() as temporary:
        for name, content in phase.label_files.items():
            (Path(temporary) / Path(name).name).write_bytes(content)
        return tuple(load_tasks(Path(temporary), phase.ids))


def largest_difference(computed: tuple[float, ...], published: tuple[float, ...]) -> float:
    """Compare fold scores: absolute up to 1, relative beyond (R2 is unbounded below); infinite where one of two folds failed."""
    ours, theirs = np.array(computed), np.array(published)
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs)), initial=0.0))
