"""Studies of how the score depends on the size of the embedding (paper Fig. 5a and 14)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scoring.metrics import FLOAT32_BYTES
from scoring.neuco_bench.charts import SeriesPoint, draw, sizes
from scoring.neuco_bench.results import write_json
from scoring.neuco_bench.run import RunReport


def size_document(report: RunReport, run: str, sample_values: int) -> dict[str, Any]:
    """Return the JSON entry of one size; the compression ratio counts values, like the paper's "about 7,000".

    Args:
        report: The run with this size.
        run: Name of the run's folder.
        sample_values: Values in one sample before compression.
    """
    return {
        "embedding_dim": report.embedding_dim,
        "bytes_per_sample": report.embedding_dim * FLOAT32_BYTES,
        "compression_ratio": sample_values / report.embedding_dim,
        "overall_q_score": report.overall_q,
        "overall_acc_score": report.overall_score,
        "task_q_scores": {task.data.name: task.quality.q for task in report.tasks},
        "task_acc_scores": {task.data.name: task.quality.mean for task in report.tasks},
        "run": run,
    }


def write_study(
    folder: Path, method: str, documents: Sequence[dict[str, Any]], *, sample_values: int
) -> None:
    """Write ``size_study.json``, ``size_study.csv`` and, for more than one size, ``size_study.png`` and ``size_study_q.png``."""
    write_json(
        folder / "size_study.json",
        {
            "method": method,
            "values_per_sample": sample_values,
            "dims_are": "the first dimensions",
            "sizes": documents,
        },
    )
    (folder / "size_study.csv").write_text(_csv(documents), "utf-8")
    if len(documents) > 1:
        for name, value, y, title in (
            ("size_study.png", "acc", "Mean score", "Score"),
            ("size_study_q.png", "q", "Q", "Q"),
        ):
            spec = sizes(f"{title} against embedding size – {method}", _series(documents, value), y=y)
            draw(spec, folder / name)


def _series(documents: Sequence[dict[str, Any]], value: str) -> list[SeriesPoint]:
    return [
        {"series": name, "size": document["embedding_dim"], "score": score}
        for document in documents
        for name, score in {
            **document[f"task_{value}_scores"],
            "mean of tasks": document[f"overall_{value}_score"],
        }.items()
        if score == score  # noqa: PLR0124 - a task without a score has no point
    ]


def _csv(documents: Sequence[dict[str, Any]]) -> str:
    table = pd.DataFrame(documents)
    tasks = [
        pd.DataFrame(list(table.pop(f"task_{value}_scores"))).add_prefix(f"{value}::")
        for value in ("q", "acc")
    ]
    csv: str = pd.concat([table.drop(columns="run"), *tasks], axis=1).to_csv(index=False, lineterminator="\n")
    return csv
