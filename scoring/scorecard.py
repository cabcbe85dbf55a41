"""The scorecard: the result of scoring one submission.

Its provenance (library versions, machine and memory) is no part of the result.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ALWAYS = ("neuco-worker", "numpy", "numba", "llvmlite")
"""What every score is computed with; an engine or a probe names further libraries."""


def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of Python and of the libraries that scores are computed with."""
    by_library = {"python": platform.python_version()}
    for library in (*ALWAYS, *libraries):
        try:
            by_library[library] = version(library)
        except PackageNotFoundError:  # a checkout that is not installed
            by_library[library] = "unknown"
    return by_library


@cache
def sources_digest() -> str:
    """Return a hash of the sources of ``scoring``, because a checkout changes without its version."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def machine() -> dict[str, str]:
    """Describe the machine: architecture, processor, cores, system; without its host name, because scorecards are passed on."""
    return {
        "architecture": platform.machine(),
        "processor": _entry("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": str(os.cpu_count() or 1),
        "system": platform.system(),
    }


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process so far; 0 if the system does not report it.

    It is VmHWM, because ru_maxrss includes the parent's memory at the time of the fork.
    """
    return 1024 * int((_entry("/proc/self/status", "VmHWM") or "0").split()[0])


def _entry(path: str, name: str) -> str:
    """Return an entry of a file of the Linux kernel; empty elsewhere."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


@dataclass(frozen=True, kw_only=True)
class TaskScore:
    """A task's scores over all folds.

    Attributes:
        task: Task identifier (hidden; never shown before the reveal).
        version: Hash of the task's parsed (id, label) rows.
        type: ``"regr"`` or ``"cls"``.
        row_set: SHA-256 (hex) of the sorted ids that the task uses; tasks with equal row sets share splits and seeds.
        folds: K scores, NaN where a fold failed.
        test_parts: See :func:`scoring.randomness.seeds.test_parts`; empty without groups.
        mean: Mean over the finite folds.
        std: Population standard deviation over the finite folds.
        q: Quality score (paper Eq. 1).
        failed_folds: Number of non-finite folds.
        seconds: Wall time spent on the task (shared work is split evenly).
    """

    task: str
    version: str
    type: str
    row_set: str
    folds: tuple[float, ...]
    test_parts: tuple[int, ...]
    mean: float
    std: float
    q: float
    failed_folds: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """All task scores of one submission, with their provenance."""

    tasks: tuple[TaskScore, ...]
    q_mean: float
    versions: dict[str, str]
    machine: dict[str, str]
    seconds: float
    peak_memory_bytes: int

    def to_json(self) -> dict[str, object]:
        """Return a JSON-ready document; failed folds are ``null``, never NaN."""
        tasks = [vars(task) | {"folds": folds_to_json(task.folds)} for task in self.tasks]
        return vars(self) | {"tasks": tasks}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Scorecard:
        """Read what :meth:`to_json` wrote."""
        tasks = (
            TaskScore(
                **task | {"folds": folds_from_json(task["folds"]), "test_parts": tuple(task["test_parts"])}
            )
            for task in document["tasks"]
        )
        return cls(**{**document, "tasks": tuple(tasks)})


def folds_to_json(folds: tuple[float, ...]) -> list[float | None]:
    """Write fold scores; a failed fold is ``null``, since JSON has no NaN."""
    return [score if math.isfinite(score) else None for score in folds]


def folds_from_json(document: list[float | None]) -> tuple[float, ...]:
    """Read what :func:`folds_to_json` wrote."""
    return tuple(math.nan if score is None else float(score) for score in document)
