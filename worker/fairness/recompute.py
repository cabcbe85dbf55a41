"""Recompute a submission from the revealed labels and compare fold by fold."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from scoring.engines import make_engine
from scoring.evaluate import score_embeddings
from scoring.reading import read_submission
from scoring.scorecard import folds_from_json
from scoring.tasks import load_tasks
from worker.fairness.public import PublicRepository
from worker.fairness.verify import PhaseCheck, Verdict, false, revealed_phases, true, unknown

TOLERANCE = 1e-5
EXPANDED_BYTES = 8_000_000_000
ENGINES = {"default": "local", "pytorch": "plain"}


def submission_verdicts(
    repository: PublicRepository, file: Path, *, engine: str, progress: Callable[[int], None] = lambda _: None
) -> Iterator[Verdict]:
    """Score a submission file anew in every revealed phase that has it.

    Args:
        repository: The public files.
        file: The submission as it was sent to EvalAI.
        engine: ``default`` or ``pytorch`` (the plain loop).
        progress: Called with the number of folds done since the last call.

    Raises:
        ParticipantError: If the file cannot be read.
    """
    found = False
    for phase in revealed_phases(repository):
        check = PhaseCheck(repository, phase, [], [])
        ids = tuple(line for line in repository.files[f"reveal/{phase}/ids.txt"].decode().split("\n") if line)
        embeddings = read_submission(
            file, ids, check.protocol.embedding_dim, max_expanded_bytes=EXPANDED_BYTES
        )
        records = [
            entry["record"]
            for entry in check.document["entries"]
            if entry["record"]["content_hash"] == embeddings.content_hash
        ]
        if not records:
            continue
        found = True
        if check.document["labels"] != "published":
            yield unknown(
                "your submission", f"Phase {phase}: labels were released as hashes only: not recomputable."
            )
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = f"reveal/{phase}/labels/"
            for path, content in repository.files.items():
                if path.startswith(folder):
                    (Path(temporary) / Path(path).name).write_bytes(content)
            tasks = load_tasks(Path(temporary), ids)
        public = PhaseCheck(repository, phase, _entries(repository), [])
        card = score_embeddings(
            embeddings,
            tasks,
            check.protocol,
            public.phase_key,
            engine=make_engine(ENGINES[engine]),
            progress=progress,
        )
        cells = records[-1]["cells"]
        worst = 0.0
        for task in card.tasks:
            published = folds_from_json(cells[task.task]["folds"])
            worst = max(worst, largest_difference(task.folds, published))
        if worst <= TOLERANCE:
            yield true(
                "your submission",
                f"Phase {phase}: all {len(card.tasks)} x {check.protocol.folds} fold scores were computed anew; "
                f"the largest difference is {worst:.1e}.",
            )
        else:
            yield false(
                "your submission",
                f"Phase {phase}: the published scores are not those of your file (off by {worst:.2g}).",
            )
    if not found:
        yield unknown(
            "your submission",
            "No published entry has the content of this file; only entries that ever counted are published.",
        )


def largest_difference(computed: tuple[float, ...], published: tuple[float, ...]) -> float:
    """Compare fold scores: absolute up to 1, relative beyond (R2 is unbounded below); infinite where one of two folds failed."""
    ours, theirs = np.array(computed), np.array(published)
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs)), initial=0.0))


def _entries(repository: PublicRepository) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = json.loads(repository.files.get("commitment.json", b"[]"))
    return entries
