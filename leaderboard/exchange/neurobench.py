"""Export results in NeuroBench's JSON layout: correctness, complexity and system metrics of a model on a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leaderboard.exchange.runs import TaskResult, method_of, read_run


def neurobench_documents(folder: Path) -> list[dict[str, Any]]:
    """Return one document per task of a run.

    Raises:
        OrganizerError: If it is not the folder of a run.
    """
    summary, results = read_run(folder)
    model = method_of(summary.experiment)
    return [_document(task, model, result) for task, result in results.items()]


def _document(task: str, model: str, result: TaskResult) -> dict[str, Any]:
    """Return the document of one task.

    Embeddings have one time step and no spikes. A synaptic operation is a multiply-accumulate whose embedding value is not zero. Energy is
    not measured, so it is null. sc-neurocore requires an accuracy; where there is none, such as of a regression, it is the mean score.
    """
    mean, complexity = result.mean_score, result.complexity
    correctness = {name: values.mean for name, values in result.metrics.items()}
    scores = {"mean_score": mean, "std_dev": result.std_dev, "q": result.q_stat}
    return {
        "task": task,
        "model": model,
        "metrics": {
            "correctness": {"accuracy": mean, **correctness, **scores},
            "complexity": {
                "total_parameters": complexity.get("probe_parameters"),
                "synaptic_operations": complexity.get("effective_multiply_accumulates"),
                "activation_sparsity": complexity.get("activation_sparsity"),
                "total_spikes": 0,
                "timesteps": 1,
                "multiply_accumulates": complexity.get("multiply_accumulates"),
                "embedding_dim": complexity.get("embedding_dim"),
                "embedding_bytes": complexity.get("embedding_bytes"),
            },
            "system": {"latency_ms": complexity.get("latency_ms"), "energy_nj": None},
        },
        "framework": "neuco-worker",
    }
