"""Challenge-size data: 13,260 ids x 1,024, nine hidden tasks on five row sets, as in the evaluation phase of 2025."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv

DIM = 1024
TASKS = (  # name, type, row set
    ("biomass_mean", "regr", 0),
    ("biomass_std", "regr", 0),
    ("crops", "regr", 1),
    ("landcover_agriculture", "regr", 2),
    ("landcover_forest", "regr", 2),
    ("heat_mean", "regr", 3),
    ("heat_std", "regr", 3),
    ("random_regression", "regr", 4),
    ("random_classes", "cls", 4),
)
ROW_SETS = (2415, 3355, 4691, 1659, 1140)
DEVELOPMENT = ("biomass_mean", "crops", "landcover_forest", "heat_mean", "random_classes")


@dataclass(frozen=True, kw_only=True)
class ChallengeData:
    """Paths of a generated challenge's files."""

    submission: Path
    ids: Path
    tasks: Path
    development_tasks: Path


def generate(folder: Path) -> ChallengeData:
    """Write the files, unless they exist already.

    The embeddings have a spectrum that decays like 1/k, and a random rotation. Labels depend on some leading directions, with noise, so
    that scores are similar to those of a real submission.
    """
    data = ChallengeData(
        submission=folder / "submission.csv",
        ids=folder / "ids.txt",
        tasks=folder / "tasks",
        development_tasks=folder / "tasks_dev",
    )
    done = folder / "complete"
    if done.exists():
        return data
    random = np.random.default_rng(2025)
    total = sum(ROW_SETS)
    ids = np.array([f"ssl4eos12_{number:06d}" for number in random.permutation(10**6)[:total]])
    latent = random.standard_normal((total, DIM), dtype=np.float32) / np.sqrt(
        np.arange(1, DIM + 1, dtype=np.float32)
    )
    rotation = np.linalg.qr(random.standard_normal((DIM, DIM)))[0].astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    _write_submission(data.submission, ids, latent @ rotation)
    data.ids.write_text("".join(f"{identifier}\n" for identifier in ids))
    for tasks in (data.tasks, data.development_tasks):
        tasks.mkdir(exist_ok=True)
    ends = np.cumsum(ROW_SETS)
    for name, kind, row_set in TASKS:
        rows = np.arange(ends[row_set] - ROW_SETS[row_set], ends[row_set])
        signal = latent[rows, :12] @ random.standard_normal(12) + 0.3 * random.standard_normal(len(rows))
        if name.startswith("random"):
            signal = random.standard_normal(len(rows))
        labels = signal if kind == "regr" else (signal > 0).astype(int)
        text = "id,label\n" + "".join(
            f"{ids[row]},{label}\n" for row, label in zip(rows, labels, strict=True)
        )
        (data.tasks / f"{name}__{kind}.csv").write_text(text)
        if name in DEVELOPMENT:
            (data.development_tasks / f"{name}__{kind}.csv").write_text(text)
    done.touch()
    return data


def _write_submission(path: Path, ids: np.ndarray, matrix: np.ndarray) -> None:
    columns = {str(number): matrix[:, number] for number in range(matrix.shape[1])}
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    pyarrow.csv.write_csv(pyarrow.table({"id": ids} | columns), path, options)
