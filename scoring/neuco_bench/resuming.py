"""Find what an earlier command has scored, so that a run of many files goes on where it was stopped.

A finished run has a digest of its inputs in its summary. It is written last, so a run that was stopped while it drew plots is not finished,
and `rank` and `export` leave it out when it was computed again.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from scoring.documents import UNREADABLE
from scoring.files import write_files
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.material import Material
from scoring.neuco_bench.results import SUMMARY, as_json, phase_folder, read_results
from scoring.scorecard import sources_digest

WITHOUT_EFFECT = {"raw", "warnings", "update_leaderboard"}  # on the files of a run


def inputs_digest(material: Material, settings: StandaloneSettings, seed: int) -> str:
    """Hash what decides the files of a run: this program, configuration, seed, embeddings, labels, and what was said of them."""
    facts = (
        sources_digest(),
        seed,
        settings.model_dump(exclude=WITHOUT_EFFECT),
        material.embeddings.ids,
        material.embeddings.names,  # in warnings
        [(task.name, task.kind.value, task.classes, task.ids, task.groups) for task in material.tasks],
        [(package.identifier, package.parent, package.ceiling) for package in material.packages],
        material.warnings,
    )
    digest = hashlib.sha256(repr(facts).encode())
    for array in (material.embeddings.matrix, *(task.labels for task in material.tasks)):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def mark_begun(folder: Path, inputs: str) -> None:
    """Write the digest of a run's inputs into its summary as ``unfinished``, because it lacks its plots or probes yet."""
    _mark(folder, unfinished=inputs)


def mark_finished(folder: Path, inputs: str) -> None:
    """Write the digest of a run's inputs into its summary, after everything else was written."""
    _mark(folder, inputs=inputs)


def _mark(folder: Path, **digest: str) -> None:
    summary = json.loads((folder / SUMMARY).read_bytes())
    for key in ("inputs", "unfinished"):
        summary.pop(key, None)
    write_files(folder, {SUMMARY: as_json({**summary, **digest})})  # `rank` may be reading it


def finished_run(output_dir: Path, *, phase: str, method: str, inputs: str) -> Path | None:
    """Return the folder of a method's first finished run with these inputs."""
    name = re.compile(re.escape(method) + r"_\d{8}_\d{6}(_\d+)?")
    for path in sorted(phase_folder(output_dir, phase).glob(f"*/{SUMMARY}")):
        if name.fullmatch(path.parent.name):
            try:
                summary: Any = read_results(path.parent)[0]
            except (OSError, *UNREADABLE):  # files that are incomplete
                continue
            if summary.get("inputs") == inputs:
                return path.parent
    return None
