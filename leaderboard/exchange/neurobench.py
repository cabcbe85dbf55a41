"""Export results in NeuroBench's JSON layout: correctness, complexity and system metrics of a model on a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leaderboard.exchange.runs import read_run
from scoring.errors import OrganizerError
from scoring.scorecard import Scorecard


def neurobench_documents(source: Path) -> list[dict[str, Any]]:
    """Return one document per task of a standalone run's folder or of a challenge's scorecard file.

    Raises:
        OrganizerError: If ``source`` is neither.
    """
    try:
        if source.is_dir():
            summary, results = read_run(source)
            return [
                _document(
                    task,
                    summary.experiment,
                    {name: values["mean"] for name, values in result.metrics.items()},
                    (result.mean_score, result.std_dev, result.q_stat),
                    result.complexity,
                )
                for task, result in results.items()
            ]
        card = Scorecard.from_json(json.loads(source.read_text("utf-8")))
        return [
            _document(
                task.task,
                source.stem,
                {"r2" if task.type == "regr" else "f1": task.mean},
                (task.mean, task.std, task.q),
                card.complexity,
            )
            for task in card.tasks
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OrganizerError(
            f"{source} is neither the folder of a run nor a scorecard.",
            cure="Name <output_dir>/<phase>/<method>_<time>, or the JSON file of a scorecard.",
            code="neurobench.no_results",
        ) from error


def _document(
    task: str,
    model: str,
    correctness: Mapping[str, float | None],
    scores: tuple[float | None, float | None, float | None],
    complexity: Mapping[str, float | None],
) -> dict[str, Any]:
    """Return the document of one task.

    Embeddings have one time step and no spikes. A synaptic operation is a multiply-accumulate whose embedding value is not zero. Energy is
    not measured, so it is null. sc-neurocore requires an accuracy; where there is none, such as of a regression, it is the mean score.
    """
    mean, std, q = scores
    return {
        "task": task,
        "model": model,
        "metrics": {
            "correctness": {"accuracy": mean, **correctness, "mean_score": mean, "std_dev": std, "q": q},
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
        "framework": "neuco-worker",
    }
