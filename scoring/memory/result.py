"""The scores that Python callers get."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scoring.documents import expanded
from scoring.errors import WrongValue, needs_extra
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.results import as_json, store_probes, summary_document, task_document, write_results
from scoring.neuco_bench.run import RunReport

FEWEST_FOLDS = 5  # for an interval
# of a table of results, also if no task is scored
COLUMNS = ["type", "samples", "q", "score", "std", "enough_steps", "low", "high", "folds"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """The scores of embeddings; ``report`` has everything, also each fold's predictions, and ``settings`` how they were made."""

    report: RunReport
    settings: StandaloneSettings

    @property
    def q(self) -> float:
        """Mean Q over the tasks; NaN unless every task has one."""
        return self.report.overall_q

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen, although something else could have been meant."""
        return self.report.notes

    def to_frame(self) -> pd.DataFrame:
        """Return a row per task: its type, samples, Q, mean score and standard deviation over the folds, and the scores of all folds.

        ``low`` and ``high`` are the ends of the 95 % interval of the mean score; like those of ``scoring.compare``, they reflect the random
        splits, not new data, and are NaN with fewer than 5 folds. Folds with the same test part, which few groups have, count once.
        ``enough_steps`` is false if the probe trained for too few steps, so that its score says little about the embeddings.
        """
        rows = {
            task.data.name: {
                "type": task.data.kind.value,
                "samples": len(task.data.rows),
                "q": task.quality.q,
                "score": task.quality.mean,
                "std": task.quality.std,
                "enough_steps": task.trained_enough,
                "low": low,
                "high": high,
                "folds": scores,
            }
            for task in self.report.tasks
            for scores in [[fold.score for fold in task.folds]]
            for low, high in [interval(_once(scores, task.test_parts))]
        }
        table = pd.DataFrame([*rows.values()], index=[*rows], columns=COLUMNS)
        return table.rename_axis("task")

    def to_dict(self) -> dict[str, Any]:
        """Return what :meth:`save` writes, except plots and probes, and the notes, as values of JSON."""
        document = {
            **summary_document(self.report, self.settings, experiment=""),
            "notes": self.notes,
            "tasks": {task.data.name: task_document(task, self.settings) for task in self.report.tasks},
        }
        return dict(json.loads(as_json(document)))

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the folder of a run, which `neuco-worker compare` reads; `rank` reads ``<folder>/<phase>/<run>``.

        Plots and trained probes are written if ``enable_plots`` and ``store_probes`` were set.

        Raises:
            ValueError: If the folder is not new or empty.
        """
        place = expanded(folder)
        if place.is_file() or (place.is_dir() and any(place.iterdir())):
            raise WrongValue(f"{place} is not empty.", hint="Name a new folder.", code="score.folder")
        place.mkdir(parents=True, exist_ok=True)
        write_results(place, self.report, self.settings, experiment=place.name)
        with needs_extra("research", "A plot, or a probe that is stored,"):
            if self.settings.store_probes:
                store_probes(place, self.report, self.settings)
            if self.settings.enable_plots:
                from scoring.neuco_bench.plots import draw_plots

                for task in self.report.tasks:
                    draw_plots(place, task, stem=place.name)
        return place

    def __repr__(self) -> str:
        """Return mean Q, a line per task, the notes and the warnings."""
        title, table, remarks = self._parts()
        return "\n".join([title, table.to_string(index_names=False), *remarks])

    def _repr_html_(self) -> str:
        title, table, remarks = self._parts()
        lines = "".join(f"<p>{escape(line)}</p>" for line in remarks)
        return f"<p><b>{title}</b></p>{table.to_html(escape=True)}{lines}"

    def _parts(self) -> tuple[str, pd.DataFrame, list[str]]:
        table = self.to_frame().drop(columns=["low", "high", "folds"]).round({"q": 3, "score": 4, "std": 4})
        title = f"Mean Q {self.q:.3f}, mean score {self.report.overall_score:.4f}"
        remarks = [f"Note: {note}" for note in self.notes]
        return title, table, remarks + [f"Warning: {warning}" for warning in self.report.warnings]


def _once(scores: list[float], test_parts: tuple[int, ...]) -> list[float]:
    """Return the mean score of the folds with each test part."""
    parts: dict[int, list[float]] = {}
    for part, score in zip(test_parts or range(len(scores)), scores, strict=True):
        parts.setdefault(part, []).append(score)
    return [float(np.mean(of)) for of in parts.values()]


def interval(scores: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of fold scores over random splits, by Student's t; NaN if there are too few.

    The quantile of t is expanded about that of the normal distribution (Abramowitz and Stegun, 26.7.5): to 0.2 % with 5 folds.
    """
    values = np.array(scores)[np.isfinite(scores)]
    if len(values) < FEWEST_FOLDS:
        return np.nan, np.nan
    z, freedom = 1.959963984540054, len(values) - 1
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    quantile = sum(term / freedom**power for power, term in enumerate(terms))
    mean, error = float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5
    return mean - quantile * error, mean + quantile * error
