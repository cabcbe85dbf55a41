"""Store a probe per task, trained on all samples, as NeuCo-Bench does: ``probe.pth``, and ``load_probe.py`` to load it.

Stored probes are trained after scoring, from their own seeds, so storing them changes no score. In NeuCo-Bench it changes those of the
following tasks.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.run import RunReport
from scoring.probes.probe import ProbeSettings, make_probe


def store_probes(folder: Path, report: RunReport, settings: StandaloneSettings) -> None:
    """Write ``<task>/probe/probe.pth`` with NeuCo-Bench's keys, and what is needed to prepare embeddings; and the script beside it.

    A probe takes standardized embeddings. Support vector machines are not stored: their library would save a pickle, which can run code
    when it is loaded.
    """
    import torch

    probe = make_probe(settings.probe_type, ProbeSettings(params=settings.probe_params, seed=report.seed))
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
        }
        torch.save(checkpoint, target / "probe.pth")
