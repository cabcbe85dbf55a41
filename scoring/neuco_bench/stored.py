"""Train probes on all samples of a task and store them in a file that can be read without our code.

Stored probes are trained after scoring, from their own seeds, so storing them changes no score. (In NeuCo-Bench it advances the random
stream of all later tasks.)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.results import write_json
from scoring.neuco_bench.run import RunReport
from scoring.probes.probe import ProbeInput, ProbeSettings, TrainingParameters
from scoring.probes.ridge import RidgeProbe, decompose, signed_targets

STORABLE = ("linear", "mlp", "ridge")


def store_probes(folder: Path, report: RunReport, settings: StandaloneSettings) -> None:
    """Write ``<task>/probe/probe.npz`` (``weight_0``, ``bias_0`` and so on, one pair per layer) and ``metadata.json``.

    A probe predicts ``standardized embedding @ weight_0.T + bias_0``, with ReLU between layers if there are more. Support vector machines
    are not stored: their library would save a pickle, which can run code when it is loaded.
    """
    if settings.probe_type not in STORABLE:
        return
    for task in report.tasks:
        target = folder / task.data.name / "probe"
        target.mkdir(parents=True, exist_ok=True)
        layers = _layers(task.data, settings, report.seed)
        arrays = {
            f"{part}_{number}": values
            for number, layer in enumerate(layers)
            for part, values in zip(("weight", "bias"), layer, strict=True)
        }
        np.savez(target / "probe.npz", **arrays)  # type: ignore[arg-type]
        write_json(target / "metadata.json", _metadata(task.data, report, settings))


def _metadata(data: ProbeInput, report: RunReport, settings: StandaloneSettings) -> dict[str, object]:
    return {
        "task": data.name,
        "task_type": data.kind.value,
        "classes": list(data.classes),
        "probe_type": settings.probe_type,
        "embedding_dim": report.embedding_dim,
        "embedding_mean": report.scale.mean,
        "embedding_std": report.scale.std,
        "labels_normalized": settings.normalize_labels,
        "samples": len(data.rows),
    }


def _layers(
    data: ProbeInput, settings: StandaloneSettings, seed: int
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    if settings.probe_type == "ridge":
        return [_ridge(data, RidgeProbe(ProbeSettings(params=settings.probe_params, seed=seed)).alphas)]
    from scoring.probes.mlp import MlpProbe
    from scoring.probes.torch_loop import train_on_all

    params = dict(settings.probe_params)
    hidden: tuple[int, ...] = ()
    if settings.probe_type == "mlp":
        hidden = MlpProbe(ProbeSettings(params=params)).hidden
    return train_on_all(data, TrainingParameters.from_params(params), hidden=hidden, seed=seed)


def _ridge(data: ProbeInput, alphas: tuple[float, ...]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Fit all rows, with the penalty that generalized cross-validation selects."""
    rows = data.rows.astype(np.float64)
    targets = signed_targets(data)
    parts = decompose(data.rows)
    projected = parts.basis.T @ targets

    def criterion(alpha: float) -> float:
        shrinkage = parts.shrinkage(alpha)
        left = max(len(rows) - float(shrinkage.sum()), 1e-9)
        residual = targets - parts.basis @ (shrinkage[:, np.newaxis] * projected)
        return float(np.sum(residual**2)) / left**2

    alpha = min(alphas, key=criterion)
    mean, middle = rows.mean(axis=0), targets.mean(axis=0)
    centered = rows - mean
    if rows.shape[1] <= len(rows):
        gram = centered.T @ centered + alpha * np.eye(rows.shape[1])
        weights = np.linalg.solve(gram, centered.T @ (targets - middle)).T
    else:
        gram = centered @ centered.T + alpha * np.eye(len(rows))
        weights = (centered.T @ np.linalg.solve(gram, targets - middle)).T
    return weights.astype(np.float32), (middle - weights @ mean).astype(np.float32)
