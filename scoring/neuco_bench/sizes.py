"""Studies of how the score depends on the size of the embedding (paper Fig. 5a and 14)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from scoring.complexity import FLOAT32_BYTES
from scoring.neuco_bench.charts import SeriesPoint, draw, sizes
from scoring.neuco_bench.results import write_json
from scoring.neuco_bench.run import RunReport


@dataclass(frozen=True, kw_only=True)
class SizePoint:
    """The results for one size of a study.

    Attributes:
        dim: Dimension N.
        run: Name of the run's folder.
        overall_q: Mean Q, NaN if a task has none.
        overall_score: Mean of the mean scores, NaN if a task has none.
        task_q: Q by task.
        task_scores: Mean score by task.
    """

    dim: int
    run: str
    overall_q: float
    overall_score: float
    task_q: Mapping[str, float]
    task_scores: Mapping[str, float]

    @classmethod
    def from_report(cls, report: RunReport, run: str) -> SizePoint:
        """Extract a study's values from a run's report."""
        return cls(
            dim=report.embedding_dim,
            run=run,
            overall_q=report.overall_q,
            overall_score=report.overall_score,
            task_q={task.data.name: task.quality.q for task in report.tasks},
            task_scores={task.data.name: task.quality.mean for task in report.tasks},
        )


class SizeDocument(TypedDict):
    """One entry of ``size_study.json``."""

    embedding_dim: int
    bytes_per_sample: int
    compression_ratio: float
    overall_q_score: float
    overall_acc_score: float
    task_q_scores: dict[str, float]
    task_acc_scores: dict[str, float]
    run: str


def point_document(point: SizePoint, sample_values: int) -> SizeDocument:
    """Return the JSON entry of one size; the compression ratio counts values, like the paper's "about 7,000"."""
    return {
        "embedding_dim": point.dim,
        "bytes_per_sample": point.dim * FLOAT32_BYTES,
        "compression_ratio": sample_values / point.dim,
        "overall_q_score": point.overall_q,
        "overall_acc_score": point.overall_score,
        "task_q_scores": dict(point.task_q),
        "task_acc_scores": dict(point.task_scores),
        "run": point.run,
    }


def write_study(folder: Path, method: str, points: Sequence[SizePoint], *, sample_values: int) -> None:
    """Write ``size_study.json``, ``size_study.csv`` and, for more than one size, ``size_study.png`` and ``size_study_q.png``."""
    documents = [point_document(point, sample_values) for point in points]
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
    if len(points) > 1:
        scores = [(point, point.task_scores, point.overall_score) for point in points]
        draw(
            sizes(f"Score against embedding size – {method}", _series(scores), y="Mean score"),
            folder / "size_study.png",
        )
        qualities = [(point, point.task_q, point.overall_q) for point in points]
        draw(
            sizes(f"Q against embedding size – {method}", _series(qualities), y="Q"),
            folder / "size_study_q.png",
        )


def _series(rows: Sequence[tuple[SizePoint, Mapping[str, float], float]]) -> list[SeriesPoint]:
    return [
        {"series": name, "size": point.dim, "score": value}
        for point, by_task, overall in rows
        for name, value in {**by_task, "mean of tasks": overall}.items()
        if value == value  # noqa: PLR0124 - a task without a score has no point
    ]


def _csv(documents: Sequence[SizeDocument]) -> str:
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    tasks = list(documents[0]["task_q_scores"])
    plain = ("embedding_dim", "bytes_per_sample", "compression_ratio", "overall_q_score", "overall_acc_score")
    writer.writerow([*plain, *(f"q::{task}" for task in tasks), *(f"acc::{task}" for task in tasks)])
    for document in documents:
        writer.writerow(
            [
                document["embedding_dim"],
                document["bytes_per_sample"],
                document["compression_ratio"],
                document["overall_q_score"],
                document["overall_acc_score"],
                *(document["task_q_scores"][task] for task in tasks),
                *(document["task_acc_scores"][task] for task in tasks),
            ]
        )
    return output.getvalue()
