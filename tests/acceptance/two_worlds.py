"""Two worlds that differ only in their hidden tasks, and everything that a participant can see of each.

A world is a whole challenge: sandbox, worker and repository. :func:`look` collects everything that is visible from outside.
:func:`differences` compares two looks, except for an explicit list of fields (``ALLOWED``). If the same actions in both worlds lead to a
difference, something leaks.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leaderboard.git import without_signature
from tests.worker.harness.harness import IDS, ROWS, Harness, StepWorker, clean_environment, git
from worker.sandbox import ManualClock
from worker.state import ACTIVE

GRID_S = 30
FOLD_COST_S = 0.25  # per fold of a task, on the worlds' clock; the scoring time therefore depends on the number of tasks
FOLDS = 4
AHEAD_S = 3.5  # a submission is read again this long before its answer is posted

ALLOWED = (
    "q_mean",
    "rank",
    "rank_by_mean",
    "group",
    "move",
    "move_kind",
    "position",
    "reliable",
    "why",
    "effect",
)
"""Fields of the board that may differ: mean Q and values computed from it. Hashes, nonces and times of day may differ too."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A set of hidden tasks: for each phase, the names of its label files and the number of ids in each; and whether ids have groups."""

    name: str
    tasks: Mapping[str, Mapping[str, int]]
    seed: int
    grouped: bool = False

    def words(self) -> tuple[str, ...]:
        """Return the words that must not be visible anywhere: the task names of this world."""
        return tuple(sorted({name.split("__")[0] for files in self.tasks.values() for name in files}))


LEFT = World(
    name="left",
    tasks={
        "dev": {"quercus_height__regr.csv": ROWS, "quercus_oak__cls.csv": ROWS, "quercus_age__regr.csv": 45},
        "eval": {"quercus_snow__cls.csv": ROWS},
    },
    seed=1,
)
RIGHT = World(
    name="right",
    tasks={
        "dev": {
            **{f"zyzzyva_{number:02d}__cls.csv": ROWS for number in range(4)},
            "zyzzyva_with_a_very_long_name_that_would_change_sizes__regr.csv": 50,
        },
        "eval": {"zyzzyva_rain__regr.csv": 40, "zyzzyva_wind__regr.csv": ROWS, "zyzzyva_fog__cls.csv": ROWS},
    },
    seed=2,
    grouped=True,
)


class WorldStage(Harness):
    """A challenge with a world's own tasks."""

    def __init__(self, folder: Path, world: World, **options: Any) -> None:
        super().__init__(folder, **options)
        self.world = world

    def _write_challenge(self) -> None:
        super()._write_challenge()
        rng = np.random.default_rng(self.world.seed)
        for phase, files in self.world.tasks.items():
            folder = self.folder / "tasks" / phase
            shutil.rmtree(folder)
            folder.mkdir()
            for name, rows in files.items():
                values = rng.normal(size=rows)
                labels = (values > 0).astype(int) if "__cls" in name else values
                groups = [f",tile {row % 9}" if self.world.grouped else "" for row in range(rows)]
                lines = (f"{row[0]},{row[1]}{row[2]}\n" for row in zip(IDS, labels, groups, strict=False))
                (folder / name).write_text(f"id,label{',group' * self.world.grouped}\n" + "".join(lines))

    def labels(self, phase: str = "dev") -> Path:
        """Return the label file that is read last."""
        return max((self.folder / "tasks" / phase).iterdir())


class WorldPlay(StepWorker):
    """A worker with a manual clock, on which the scoring time is proportional to the number of folds and tasks."""

    def __init__(self, harness: WorldStage, **options: Any) -> None:
        self._costed = False
        self._world = harness.world
        self.before_child: Callable[[], None] = lambda: None
        super().__init__(harness, checkpoint=self._passing, **options)

    def _passing(self, checkpoint: str) -> None:
        if checkpoint == "before child evaluate":
            self.before_child()

    def step(self) -> bool:
        """Do one step; once per attempt, advance the clock by the scoring time."""
        moved = super().step()
        if not self.scoring("scoring"):
            self._costed = False
        elif not self._costed:
            self._costed = True
            (act,) = self.daemon.evaluation.runner.acts
            tasks = self._world.tasks[self.row(act.pk).phase or "dev"]
            self.clock.advance(len(tasks) * FOLDS * FOLD_COST_S)
        return moved

    def idle_s(self) -> float:
        """Return the seconds to the next answer or retry, or to the reading of the facts shortly before it, if that is still ahead."""
        now = self.clock.now()
        with self.store.read() as tx:
            moments = [
                submission.not_before
                for submission in tx.submissions(ACTIVE)
                if submission.not_before is not None
            ]
        waits = [(moment - now).total_seconds() for moment in moments if moment > now]
        if not waits:
            return 1.0
        return min(waits) - AHEAD_S if min(waits) > AHEAD_S + 0.5 else max(0.001, min(waits))


@contextmanager
def opened(
    folder: Path, world: World, changes: Mapping[str, Any] | None = None, cells: Path | None = None
) -> Iterator[WorldPlay]:
    """Open a world with a worker in it, to which some scores may be known."""
    base: dict[str, Any] = {
        "submission": {"answer_grid": GRID_S, "max_megabytes": 0.2, "deadline": 12},
        "leaderboard": {"receipts_every": 3600},
    }
    for section, values in (changes or {}).items():
        base[section] = {**base.get(section, {}), **values}
    folder.mkdir()
    with WorldStage(folder, world, clock=ManualClock(), changes=base, cells=cells) as harness:
        worker = WorldPlay(harness)
        try:
            yield worker
        finally:
            worker.stop()


OF_THE_BEST = ("result", "filtering_score", "id", "submission__id", "submission__method_name")
"""What EvalAI's leaderboard shows of a team's submission with the highest mean Q, which may be another one."""
Look = dict[str, Any]
"""Everything that is visible of a world from outside, with the allowed fields masked.

``submissions``: the record and texts that its team sees at EvalAI, and its effects in their order. ``evalai_boards``: EvalAI's own
leaderboards. ``commits``: message, header and files, oldest first. ``foreign``: where words of hidden tasks were found.
"""
TEXTS = ("stdout_file", "stderr_file", "submission_result_file", "submission_metadata_file")


def look(worker: WorldPlay) -> Look:
    """Collect everything that is visible from outside."""
    harness = worker.harness
    assert isinstance(harness, WorldStage)
    submissions = {
        str(shown["id"]): {
            "record": _record(shown, repeated=len(harness.posts(shown["id"])) > 1),
            "texts": {name: _text(harness.evalai.text(shown["id"], name)) for name in TEXTS},
            "effects": [
                effect.name
                for effect in harness.evalai.journal.effects(submission=shown["id"])
                if not effect.name.startswith(("message_", "delete_"))
            ],
            "posts": len(harness.posts(shown["id"])),
        }
        for shown in harness.evalai.submissions()
    }
    evalai_boards = {
        phase: [
            _shape(_untimed(row), OF_THE_BEST)
            for row in sorted(
                harness.evalai.leaderboard(phase), key=lambda row: int(row["submission__participant_team"])
            )
        ]
        for phase in ("dev", "eval")
    }
    objects = _objects(harness.board)
    return {
        "submissions": submissions,
        "evalai_boards": evalai_boards,
        "commits": list(_commits(harness.board, objects)),
        "foreign": _foreign(harness, objects),
    }


def honest(patch: pytest.MonkeyPatch, world: World) -> None:
    """Plant no leak."""


def in_both(
    folder: Path,
    story: Callable[[WorldPlay], Any],
    changes: Mapping[str, Any] | None = None,
    leak: Callable[[pytest.MonkeyPatch, World], None] = honest,
    cells: Mapping[str, Path] = {},
) -> tuple[list[str], Look, list[Any]]:
    """Play a story in both worlds; return the differences, the look of the left world, and what each story returned."""
    looks, returned = [], []
    for world in (LEFT, RIGHT):
        place = folder / world.name, world, changes, cells.get(world.name)
        with pytest.MonkeyPatch.context() as patch, opened(*place) as worker:
            leak(patch, world)
            returned.append(story(worker))
            looks.append(look(worker))
    return differences(*looks), looks[0], returned


def differences(left: Look, right: Look) -> list[str]:
    """Return the differences between two looks, and everything that either of them shows but must not."""
    return [*left.pop("foreign"), *right.pop("foreign"), *_compare("", left, right)]


def _compare(path: str, left: Any, right: Any) -> list[str]:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        keys = [*left, *(key for key in right if key not in left)]
        return [
            text
            for key in keys
            for text in _compare(f"{path}.{key}", left.get(key, "absent"), right.get(key, "absent"))
        ]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            text
            for place, pair in enumerate(zip(left, right, strict=True))
            for text in _compare(f"{path}[{place}]", *pair)
        ]
    return [] if left == right else [f"{path}: {str(left)[:200]!r} is not {str(right)[:200]!r}"]


# EvalAI


def _record(shown: Mapping[str, Any], *, repeated: bool) -> dict[str, Any]:
    """Return a submission's record, with addresses shortened, times reduced to dates, and the execution time to whole seconds."""
    record = dict(shown)
    for name, value in shown.items():
        if name.endswith("_file") and isinstance(value, str):
            record[name] = re.sub(r"^http://[^/]+|[0-9a-f-]{36}", "", value)
        elif name.endswith("_at") or name == "when_made_public":
            record[name] = None if value is None else value[:10]
    if isinstance(shown["execution_time"], float):
        # the time of a repeated answer depends on when its team caused the repetition
        record["execution_time"] = "repeated" if repeated else math.floor(shown["execution_time"])
    return record


def _text(text: str) -> Any:
    """Return a file that a participant can read, with the value and the receipt's hashes masked."""
    try:
        document = json.loads(text)
    except ValueError:
        return re.sub(r"(?<='q_mean': )-?[0-9.]+(e-?\d+)?", "VALUE", text)
    if "q_mean" in document:
        document["q_mean"] = type(document["q_mean"]).__name__
    if "receipt" in document:
        document["receipt"]["q_mean"] = type(document["receipt"]["q_mean"]).__name__
        document["receipt"] = {key: _shape(value) for key, value in document["receipt"].items()}
    return document


def _shape(value: Any, masked: tuple[str, ...] = ()) -> str:
    """Return a value as JSON, with all hashes masked and the named fields replaced by their types."""
    if isinstance(value, Mapping):
        value = {key: type(item).__name__ if key in masked else item for key, item in value.items()}
    return re.sub(r"\b(?:[0-9a-f]{64}){1,2}\b", "HASH", json.dumps(value, sort_keys=True, default=str))


# the repository


def _objects(repository: Path) -> dict[str, bytes]:
    """Return all objects of the repository, even those that are on no branch: commits, trees with their names, and file contents."""
    output = subprocess.run(
        ["git", "--git-dir", str(repository), "cat-file", "--batch", "--batch-all-objects"],
        check=True,
        capture_output=True,
        env=clean_environment(),
    ).stdout
    objects, start = {}, 0
    while start < len(output):
        end = output.index(b"\n", start)
        sha, _, size = output[start:end].split()
        objects[sha.decode()] = output[end + 1 : end + 1 + int(size)]
        start = end + 1 + int(size) + 1
    return objects


def _commits(repository: Path, objects: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    for sha in git(repository, "rev-list", "--reverse", "--all").split():
        payload, _ = without_signature(objects[sha])
        header, _, message = payload.decode().partition("\n\n")
        files = {}
        for line in git(repository, "ls-tree", "-r", "--full-tree", sha).splitlines():
            facts, path = line.split("\t")
            mode, _, blob = facts.split()
            files[f"{mode} {path}"] = objects[blob].decode()
        yield {
            "message": message,
            "header": [re.sub(r"[0-9a-f]{40}|\d{10} [+-]\d{4}", "", line) for line in header.splitlines()],
            "files": _masked_files(files),
        }


_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| UTC|\+00:00)?")
# These files are made of the public rows, which the JSON contains; test_files.py in leaderboard/ checks that.
_DERIVED = ("README.md", "index.html", ".svg", ".csv")


def _masked_files(files: Mapping[str, str]) -> dict[str, Any]:
    masked: dict[str, Any] = {}
    for path, text in files.items():
        name = path.split(" ", 1)[1]
        if name.endswith(_DERIVED):
            masked[path] = "made of public rows"
        elif name == "leaderboard/history.jsonl":
            masked[path] = [_history_line(json.loads(line)) for line in text.splitlines()]
        elif re.fullmatch(r"leaderboard/\w+\.json", name):
            document = json.loads(text)
            document["entries"] = sorted(
                (_allowed(entry) for entry in document["entries"]), key=lambda entry: entry["submission"]
            )
            document["decisions"] = [_allowed(decision) for decision in document["decisions"]]
            masked[path] = _untimed({key: value for key, value in document.items() if key != "link"})
        else:
            masked[path] = _TIME.sub("TIME", re.sub(r"\b(?:[0-9a-f]{64}){1,2}\b", "HASH", text))
    return masked


def _allowed(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: type(value).__name__ if key in ALLOWED else value for key, value in entry.items()}


def _history_line(line: dict[str, Any]) -> Any:
    """Return a line of the history with only its triggers and its length; places and other changes follow from values, which may differ."""
    triggers = set(line["triggers"])
    changed = sorted(line["changed"], key=lambda row: row["submission"])
    line["changed"] = [_allowed(row) for row in changed if row["submission"] in triggers]
    for column in ("order", "rank", "rank_by_mean", "move"):
        line[column] = len(line[column])
    del line["own"]
    return _untimed(line)


def _untimed(document: Any) -> Any:
    return json.loads(_TIME.sub("TIME", json.dumps(document)))


def _foreign(harness: WorldStage, objects: Mapping[str, bytes]) -> list[str]:
    """Find words of the hidden tasks, local paths and tracebacks in everything that EvalAI and git store."""
    shown = "".join(
        harness.evalai.text(row["id"], name)
        for row in harness.evalai.submissions()
        for name in (*TEXTS, "environment_log_file")
    )
    held = b"".join(objects.values())
    words = (*harness.world.words(), str(harness.folder), "Traceback")
    return [
        f"{word!r} stands in {place}"
        for place, text in (("a text at EvalAI", shown), ("the repository", held.decode(errors="replace")))
        for word in words
        if word in text
    ]
