"""The replay of NeuCo-Bench's random stream: threads do not change it, and a task that is left out changes only later ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scoring.neuco_bench.configuration import StandaloneSettings, read_settings
from scoring.neuco_bench.labels import read_annotations
from scoring.neuco_bench.run import Material, read_material, score_run

GOLDEN = Path(__file__).parent / "golden"


def test_leaving_out_a_task_changes_only_later_ones() -> None:
    """As in NeuCo-Bench, the tasks after it change, and those before it do not."""
    material, settings = load(GOLDEN / "digits_pixels", k_folds=2, epochs=1)
    names = sorted(task.name for task in material.tasks)
    full = scores(material, settings)
    left = tuple(task for task in material.tasks if task.name != names[1])
    fewer = scores(replace(material, tasks=left), settings)
    assert fewer[names[0]] == full[names[0]]
    assert fewer[names[2]] != full[names[2]]


def load(
    folder: Path, *, k_folds: int | None = None, epochs: int | None = None
) -> tuple[Material, StandaloneSettings]:
    """Read a golden case, and its configuration with other folds or epochs."""
    settings = read_settings(folder / "config.yaml")
    if k_folds is not None:
        settings = settings.model_copy(update={"k_folds": k_folds})
    if epochs is not None:
        params = {**settings.probe_params, "epochs": epochs}
        settings = settings.model_copy(update={"probe_params": params})
    labels = read_annotations(folder / "labels")
    return read_material(folder / "embeddings.csv", labels, settings), settings


def scores(
    material: Material, settings: StandaloneSettings, *, threads: int | None = None
) -> dict[str, list[float]]:
    """Return each task's fold scores."""
    report = score_run(material, settings, threads=threads)
    return {task.data.name: [fold.score for fold in task.folds] for task in report.tasks}
