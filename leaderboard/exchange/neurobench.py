"""Export results in NeuroBench's JSON layout: correctness, complexity and system metrics of a model on a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from scoring.errors import OrganizerError

if TYPE_CHECKING:
    from scoring.neuco_bench.results import RunSummary, TaskResult

FRAMEWORK = "neuco-worker"


class NeuroBenchDocument(TypedDict):
    """The results of a model on a task."""

    task: str
    model: str
    metrics: dict[str, dict[str, object]]
    framework: str


def neurobench_documents(source: Path) -> tuple[NeuroBenchDocument, ...]:
    """Return one document per task of a standalone run's folder or of a challenge's scorecard file.

    Raises:
        OrganizerError: If ``source`` is neither.
    """
    try:
        if source.is_dir():
            return _run(source)
        return _scorecard(json.loads(source.read_text("utf-8")), source.stem)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OrganizerError(
            f"{source} is neither the folder of a run nor a scorecard.",
            cure="Name <output_dir>/<phase>/<method>_<time>, or the JSON file of a scorecard.",
            code="neurobench.no_results",
        ) from error


def _run(folder: Path) -> tuple[NeuroBenchDocument, ...]:
    summary: RunSummary = json.loads((folder / "results_summary.json").read_text("utf-8"))
    found = []
    for task in summary["task_q_scores"]:
        result: TaskResult = json.loads((folder / task / f"{task}_result.json").read_text("utf-8"))
        correctness = {name: values["mean"] for name, values in result["metrics"].items()}
        found.append(
            document(
                task,
                summary["experiment"],
                {
                    **correctness,
                    "mean_score": result["mean_score"],
                    "std_dev": result["std_dev"],
                    "q": result["q_stat"],
                },
                result["complexity"],
            )
        )
    return tuple(found)


def _scorecard(card: Mapping[str, Any], model: str) -> tuple[NeuroBenchDocument, ...]:
    found = []
    for task in card["tasks"]:
        name = "r2" if task["type"] == "regr" else "f1"
        correctness = {name: task["mean"], "mean_score": task["mean"], "std_dev": task["std"], "q": task["q"]}
        found.append(document(task["task"], model, correctness, card["complexity"]))
    return tuple(found)


def document(
    task: str, model: str, correctness: Mapping[str, float | None], complexity: Mapping[str, float | None]
) -> NeuroBenchDocument:
    """Return the document of one task.

    Embeddings have one time step and no spikes. A synaptic operation is a multiply-accumulate whose embedding value is not zero. Energy is
    not measured, so it is null.
    """
    return {
        "task": task,
        "model": model,
        "metrics": {
            "correctness": dict(correctness),
            "complexity": {
                "total_parameters": complexity["probe_parameters"],
                "synaptic_operations": complexity["effective_multiply_accumulates"],
                "activation_sparsity": complexity["activation_sparsity"],
                "total_spikes": 0,
                "timesteps": 1,
                "multiply_accumulates": complexity["multiply_accumulates"],
                "embedding_dim": complexity["embedding_dim"],
                "embedding_bytes": complexity["embedding_bytes"],
            },
            "system": {"latency_ms": complexity["latency_ms"], "energy_nj": None},
        },
        "framework": FRAMEWORK,
    }
