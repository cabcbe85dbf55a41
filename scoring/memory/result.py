"""The scores that Python callers get."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import pandas as pd

from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.run import RunReport


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
                "folds": [fold.score for fold in task.folds],
            }
            for task in self.report.tasks
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")

    def __repr__(self) -> str:
        """Return mean Q, a line per task, the notes and the warnings."""
        title, table, remarks = self._parts()
        return "\n".join([title, table.to_string(index_names=False), *remarks])

    def _repr_html_(self) -> str:
        title, table, remarks = self._parts()
        lines = "".join(f"<p>{escape(line)}</p>" for line in remarks)
        return f"<p><b>{title}</b></p>{table.to_html(escape=True)}{lines}"

    def _parts(self) -> tuple[str, pd.DataFrame, list[str]]:
        table = self.to_frame().drop(columns="folds").round({"q": 3, "score": 4, "std": 4})
        title = f"Mean Q {self.q:.3f}, mean score {self.report.overall_score:.4f}"
        remarks = [f"Note: {note}" for note in self.notes]
        return title, table, remarks + [f"Warning: {warning}" for warning in self.report.warnings]
