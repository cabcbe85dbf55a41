"""Export our score matrix in GEO-Bench's format, with folds in place of seeds."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leaderboard.exchange.geobench import COLUMNS, INFO, INFO_KEYS, MODELS, RESULTS
from leaderboard.snapshot import PhaseSnapshot
from scoring.errors import OrganizerError

if TYPE_CHECKING:
    from scoring.neuco_bench.results import RunSummary, TaskResult

METRICS = {
    "regr": "R2_Score",
    "cls": "F1_Score",
    "multiclass": "Macro_F1_Score",
    "multilabel": "Macro_F1_Score",
}
WEIGHT_DECAY = 0.01  # AdamW's default in PyTorch, which the protocol uses
STATEMENT = (
    "Each Seed is one of the K random train/test splits (folds) of neuco-worker: a probe on frozen embeddings, trained on 90 % of the"
    " labeled samples and scored on the rest. Folds share samples, so their spread is not that of independent repetitions."
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """All folds of one entry on one task."""

    backbone: str
    experiment: str
    task: str
    metric: str
    folds: tuple[float, ...]
    epochs: int
    batch_size: int
    learning_rate: float


def rows_of_runs(output_dir: Path, phase: str) -> tuple[Row, ...]:
    """Return the rows of a standalone phase's runs.

    Raises:
        OrganizerError: If there are no runs, or one has no fold scores.
    """
    rows = []
    for path in sorted((output_dir / phase).glob("*/results_summary.json")):
        summary: RunSummary = json.loads(path.read_text("utf-8"))
        for task in summary["task_q_scores"]:
            result: TaskResult = json.loads((path.parent / task / f"{task}_result.json").read_text("utf-8"))
            if "q_t" not in result:
                raise OrganizerError(
                    f"The run {path.parent.name} has no fold scores.",
                    cure="Score again with output_fold_results: true.",
                    code="geobench.no_folds",
                )
            used = result.get("hyperparamters", {})
            rows.append(
                Row(
                    backbone=path.parent.name.rsplit("_", 2)[0],
                    experiment=summary["experiment"],
                    task=task,
                    metric=METRICS[result["task_type"]],
                    folds=tuple(math.nan if score is None else score for score in result["q_t"]),
                    epochs=int(used.get("epochs", 0)),
                    batch_size=int(used.get("batch_size", 0)),
                    learning_rate=float(used.get("learning_rate", 0.0)),
                )
            )
    if not rows:
        raise OrganizerError(
            f"There are no runs in {output_dir / phase}.",
            cure="Set --output_dir and --phase to those of the runs.",
            code="geobench.no_runs",
        )
    return tuple(rows)


def rows_of_phase(
    phase: PhaseSnapshot, kinds: Mapping[str, str], *, epochs: int, batch_size: int, learning_rate: float
) -> tuple[Row, ...]:
    """Return the rows of the public scored submissions of a challenge's phase.

    Args:
        phase: The phase.
        kinds: Task type by task.
        epochs: From the protocol.
        batch_size: From the protocol.
        learning_rate: From the protocol.
    """
    return tuple(
        Row(
            backbone=f"{entry.team} – {entry.method} ({entry.submission})",
            experiment=f"{phase.codename}-{entry.submission}",
            task=task,
            metric=METRICS[kinds[task]],
            folds=tuple(entry.scores[task]),
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
        )
        for entry in sorted(phase.entries, key=lambda entry: entry.submission)
        if entry.public
        for task in sorted(entry.scores)
    )


def write_export(folder: Path, rows: Sequence[Row]) -> None:
    """Write ``results_and_parameters.csv`` and ``additional_info.json``; a failed fold has no line.

    Args:
        folder: Created if it does not exist.
        rows: The rows to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_text(results_csv(rows), "utf-8")
    info: dict[str, object] = dict.fromkeys(INFO_KEYS, "N/A")
    info["Number of HPO trials"] = "1"
    info["Additional information about submission"] = STATEMENT
    info[MODELS] = [
        {
            "model_display_name": backbone,
            "model_size": "N/A",
            "unique_backbone_key": backbone,
        }
        for backbone in sorted({row.backbone for row in rows})
    ]
    (folder / INFO).write_text(json.dumps(info, indent=4, ensure_ascii=False) + "\n", "utf-8")


def results_csv(rows: Sequence[Row]) -> str:
    """Return ``results_and_parameters.csv``: GEO-Bench's columns, one line per fold."""
    output = io.StringIO()
    writer = csv.DictWriter(output, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        for fold, score in enumerate(row.folds):
            if math.isfinite(score):
                writer.writerow(
                    {
                        "backbone": row.backbone,
                        "dataset": row.task,
                        "Metric": row.metric,
                        "experiment_name": row.experiment,
                        "batch_size_selection": "fixed",
                        "early_stop_patience": row.epochs,
                        "n_trials": 1,
                        "Seed": fold,
                        "batch_size": row.batch_size,
                        "weight_decay": WEIGHT_DECAY,
                        "lr": row.learning_rate,
                        "test metric": score,
                    }
                )
    return output.getvalue()
