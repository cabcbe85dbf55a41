"""Write the results of a run in NeuCo-Bench's layout: the same folders and JSON keys, and a few more keys.

Stored probes are trained after scoring, from their own seeds, so storing them changes no score. In NeuCo-Bench it changes those of the
following tasks.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter

from scoring.errors import OrganizerError
from scoring.files import write_files
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.labels import names_a_folder
from scoring.neuco_bench.run import RunReport, TaskReport
from scoring.probes.probe import make_probe
from scoring.tasks import ceiled, group_scores

SUMMARY = "results_summary.json"
ANYTHING: TypeAdapter[Any] = TypeAdapter(
    Any, config=ConfigDict(ser_json_inf_nan="null", ser_json_bytes="base64")
)


def make_run_folder(output_dir: Path, *, phase: str, method: str, now: datetime) -> Path:
    """Make ``<output_dir>/<phase>/<method>_<YYYYMMDD_HHmmSS>``, with a number appended if two runs share a second.

    Raises:
        OrganizerError: If a name is not a valid folder name, or the folder cannot be made.
    """
    stem = f"{_folder_name('--method_name', method)}_{now:%Y%m%d_%H%M%S}"
    folder, again = phase_folder(output_dir, phase) / stem, count(2)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with suppress(FileExistsError):  # of another run, which may begin at this moment
                folder.mkdir()
                return folder
            folder = folder.with_name(f"{stem}_{next(again)}")
    except OSError as error:
        raise OrganizerError(
            f"{folder} cannot be made: {error.strerror}.",
            hint="Choose another --output_dir, or a shorter --phase or --method_name.",
            code="standalone.no_folder",
        ) from error


def phase_folder(output_dir: Path, phase: str) -> Path:
    """Return ``<output_dir>/<phase>``.

    Raises:
        OrganizerError: If the phase is not a valid folder name.
    """
    return output_dir / _folder_name("--phase", phase)


def _folder_name(option: str, name: str) -> str:
    if not names_a_folder(name):
        raise OrganizerError(
            f"{option} {name!r} cannot be used as the name of a folder.",
            hint="Use a name in UTF-8 without slashes, such as mine_v2.",
            code="standalone.bad_name",
        )
    return name


def write_results(folder: Path, report: RunReport, settings: StandaloneSettings, *, experiment: str) -> None:
    """Write ``<task>/<task>_result.json`` and, last, ``results_summary.json``, by which `rank` knows a run.

    A number that is not finite is ``null``; NeuCo-Bench writes NaN, which is not JSON.
    """
    results = {
        f"{task.data.name}/{task.data.name}_result.json": as_json(task_document(task, settings))
        for task in report.tasks
    }
    summary = as_json(summary_document(report, settings, experiment=experiment))
    write_files(folder, {**results, SUMMARY: summary})


def read_results(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Read the summary of a run that :func:`write_results` wrote, and the result of each task.

    Raises:
        OSError: If a file is missing.
        ValueError: If a file is not JSON.
    """
    summary = json.loads((folder / SUMMARY).read_bytes())
    return summary, {
        task: json.loads((folder / task / f"{task}_result.json").read_bytes())
        for task in summary["task_q_scores"]
    }


def summary_document(report: RunReport, settings: StandaloneSettings, *, experiment: str) -> dict[str, Any]:
    """Return a run's summary: NeuCo-Bench's six keys first, then ours, the last three only with task packages; numbers may be NaN."""
    scores = {task.data.name: task.quality.mean for task in report.tasks}
    summary: dict[str, Any] = {
        "experiment": experiment,
        "overall_q_score": report.overall_q,
        "overall_acc_score": report.overall_score,
        "task_q_scores": {task.data.name: task.quality.q for task in report.tasks},
        "task_acc_scores": scores,
        "config": dict(settings.raw),
        "probe_type": settings.probe_type,
        "seed": report.seed,
        "embedding_dim": report.embedding_dim,
        "warnings": list(report.warnings),
        "seconds": sum(task.seconds for task in report.tasks),
        "versions": dict(report.versions),
        "machine": dict(report.machine),
    }
    if report.packages:
        ceilings = {package.identifier: package.ceiling for package in report.packages}
        summary["task_ceilings"] = {task: ceilings.get(task) for task in scores}
        summary["task_ceiled_scores"] = {
            task: ceiled(score, ceilings.get(task)) for task, score in scores.items()
        }
        summary["groups"] = [
            {**vars(group), "tasks": list(group.tasks)} for group in group_scores(scores, report.packages)
        ]
    return summary


def task_document(task: TaskReport, settings: StandaloneSettings) -> dict[str, Any]:
    """Return a task's result: NeuCo-Bench's keys first, with its spelling of ``hyperparamaters``, then ours; numbers may be NaN.

    ``q_t`` has the scores of all folds, if the configuration asks for them. It comes with two hashes that show which runs may be compared
    fold by fold: ``splits``, of the rows that each fold tests, and ``labels``, of the labels of all rows. If folds
    test the same rows, as they do with few groups, ``test_parts`` numbers these for each fold.
    """
    scores: dict[str, Any] = {}
    if settings.output_fold_results:
        scores = {
            "q_t": [fold.score for fold in task.folds],
            "splits": _digest(len(task.data.rows), *(fold.test for fold in task.folds)),
            "labels": _digest(len(task.data.rows), np.asarray(task.data.targets)),
            **({"test_parts": task.test_parts} if task.test_parts else {}),
        }
    document: dict[str, Any] = {
        "q_stat": task.quality.q,
        "mean_score": task.quality.mean,
        "std_dev": task.quality.std,
        "hyperparamaters": dict(task.hyperparameters),
        **scores,
        "task_type": task.data.kind.value,
        "samples": len(task.data.rows),
        "folds": settings.k_folds,
        "failed_folds": task.quality.failed_folds,
        "enough_steps": task.trained_enough,
        "metrics": {
            name: _summed_up(values, settings.output_fold_results) for name, values in task.metrics.items()
        },
        "complexity": vars(task.complexity),
        "seconds": task.seconds,
    }
    if task.data.classes:
        document["classes"] = list(task.data.classes)
    return document


def as_json(document: object) -> bytes:
    """Return a document as JSON, with ``null`` for numbers that are not finite, and bytes in base 64."""
    return ANYTHING.dump_json(document, indent=2) + b"\n"


def _digest(rows: int, *arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{rows}\0".encode())
    for array in arrays:
        digest.update(f"{array.dtype.kind}{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()


def _summed_up(values: tuple[float, ...], fold_results: bool) -> dict[str, Any]:
    finite = np.array([value for value in values if math.isfinite(value)])
    summary: dict[str, Any] = {
        "mean": float(finite.mean()) if len(finite) else None,
        "std": float(finite.std()) if len(finite) else None,
    }
    if fold_results:
        summary["folds"] = list(values)
    return summary


def store_probes(folder: Path, report: RunReport, settings: StandaloneSettings) -> None:
    """Write ``<task>/probe/probe.pth`` with NeuCo-Bench's keys and with what its inputs and outputs mean, and the script beside it.

    A probe takes standardized embeddings. Support vector machines are not stored: their library would save a pickle, which can run code
    when it is loaded.
    """
    import torch

    probe = make_probe(settings.probe_type, settings.probe_params, seed=report.seed)
    for task in report.tasks:
        layers = probe.refit(task.data)
        if not layers:
            continue
        target = folder / task.data.name / "probe"
        target.mkdir(parents=True)
        shutil.copy(Path(__file__).with_name("load_probe.py"), target)
        names = [*(f"hidden_{number}" for number in range(len(layers) - 1)), "linear"]
        state = {
            f"{name}.{part}": torch.from_numpy(values)
            for name, layer in zip(names, layers, strict=True)
            for part, values in zip(("weight", "bias"), layer, strict=True)
        }
        checkpoint = {
            "state_dict": state,
            "input_dim": report.embedding_dim,
            "output_dim": task.data.outputs,
            "task_type": task.data.kind.value,
            "classes": list(task.data.classes),
            "embedding_mean": float(report.scale.mean),
            "embedding_std": float(report.scale.std),
            "label_low": task.data.label_low,
            "label_range": task.data.label_range,
        }
        torch.save(checkpoint, target / "probe.pth")
