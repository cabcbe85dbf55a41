"""The replay against numbers that NeuCo-Bench itself produced."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from scoring.protocol import Recipe
from scoring.quality import mean_quality, quality
from scoring.replay import ReplayTask, replay_scores
from scoring.tasks import TaskType

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("case", ["digits_pixels", "digits_pca16_padded"])
def test_replay_gives_the_golden_scores(case: str) -> None:
    """Every fold agrees with NeuCo-Bench to 1e-5 and every Q to 1e-4, zero-padded dimensions included."""
    folder = GOLDEN / case
    config = yaml.safe_load((folder / "config.yaml").read_text())
    expected = json.loads((folder / "expected.json").read_text())
    matrix, tasks = load(folder)
    scores = replay_scores(
        matrix,
        tasks,
        folds=config["k_folds"],
        recipe=recipe(config),
        embedding_dim=config["embedding_dim"],
    )
    assert list(scores) == sorted(expected["tasks"])
    for name, folds in scores.items():
        assert folds == pytest.approx(expected["tasks"][name]["folds"], abs=1e-5)
        assert quality(folds).q == pytest.approx(expected["tasks"][name]["q"], abs=1e-4)
    overall = mean_quality([quality(folds).q for folds in scores.values()])
    assert overall == pytest.approx(expected["overall_q_score"], abs=1e-4)


def test_threads_do_not_change_a_replay() -> None:
    """The stream is moved past folds in order, whoever trains them."""
    matrix, tasks = load(GOLDEN / "digits_pca16_padded")
    one, five = (
        replay_scores(matrix, tasks, folds=4, recipe=Recipe(epochs=2), threads=threads) for threads in (1, 5)
    )
    assert one == five


def test_an_earlier_task_moves_the_stream_of_later_ones() -> None:
    """As in NeuCo-Bench, leaving out a task changes the tasks after it and not those before it."""
    matrix, tasks = load(GOLDEN / "digits_pixels")
    names = sorted(task.name for task in tasks)
    without_second = [task for task in tasks if task.name != names[1]]
    full = replay_scores(matrix, tasks, folds=2, recipe=Recipe(epochs=1))
    fewer = replay_scores(matrix, without_second, folds=2, recipe=Recipe(epochs=1))
    assert fewer[names[0]] == full[names[0]]
    assert fewer[names[2]] != full[names[2]]


def test_wider_embeddings_than_configured_are_refused() -> None:
    """There is no telling which dimensions to leave out."""
    matrix, tasks = load(GOLDEN / "digits_pca16_padded")
    with pytest.raises(ValueError, match="16 dimensions"):
        replay_scores(matrix, tasks, folds=1, recipe=Recipe(epochs=1), embedding_dim=15)


def load(folder: Path) -> tuple[np.ndarray, list[ReplayTask]]:
    """Read a golden case; rows of ids in any label file, labels in file order."""
    frame = pd.read_csv(folder / "embeddings.csv", dtype={"id": str}).set_index("id")
    labels = {
        path.stem: pd.read_csv(path, dtype={"id": str}) for path in sorted((folder / "labels").glob("*.csv"))
    }
    labelled = set().union(*(table["id"] for table in labels.values()))
    frame = frame.loc[[identifier for identifier in frame.index if identifier in labelled]]
    tasks = []
    for stem, table in labels.items():
        name, kind = stem.split("__")
        tasks.append(
            ReplayTask(
                name=name,
                type=TaskType(kind),
                rows=frame.index.get_indexer(table["id"]),
                labels=table["label"].to_numpy(dtype=np.float64),
            )
        )
    return frame.to_numpy(dtype=np.float32), tasks


def recipe(config: dict) -> Recipe:
    """Translate NeuCo-Bench's configuration."""
    probe = config["probe_params"]
    return Recipe(
        epochs=probe["epochs"], batch_size=probe["batch_size"], learning_rate=probe["learning_rate"]
    )
