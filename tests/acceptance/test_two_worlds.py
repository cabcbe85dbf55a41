"""Nothing about the hidden tasks is visible from outside: the same story looks the same in two worlds.

The worlds differ in the number, names, types and labels of their tasks, and in whether samples have groups; everything else is equal.
Any visible difference is a leak. The faults are real: a deleted label file, a disk that hangs (a pipe without a writer), a child that is
killed. Leaks are planted in the worker one by one, and the comparison detects each of them.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leaderboard import Site
from leaderboard.rendering import files
from tests.acceptance.two_worlds import LEFT, RIGHT, World, WorldPlay, WorldStage, in_both
from tests.scoring.inputs.reading_tables import as_npz, zipped
from tests.worker.harness.gate import hanging, scoring_hangs
from tests.worker.harness.harness import DIM, IDS, NOISES, embeddings, score_ahead
from worker.answers import answers
from worker.fairness.register import register_team
from worker.state import State

pytestmark = pytest.mark.processes

Leak = Callable[[pytest.MonkeyPatch, World], None]


def matrix(seed: int = 0) -> np.ndarray:
    """Return the values of a good submission."""
    return np.loadtxt(
        io.BytesIO(embeddings(seed)), delimiter=",", skiprows=1, usecols=range(1, DIM + 1), dtype=np.float32
    )


def lines(change: Callable[[list[str]], list[str]]) -> bytes:
    """Return a good file whose lines were changed."""
    return ("\n".join(change(embeddings().decode().splitlines())) + "\n").encode()


GOOD: dict[str, bytes] = {
    "plain": embeddings(0),
    "gzip": embeddings(1, packed=True),
    "npz": as_npz(ids=np.array(IDS), embeddings=matrix()),
    "zip with shuffled rows": zipped(("table.csv", embeddings(0, shuffled=True))),
    "zarr suffix, extra ids and columns, BOM, CRLF": b"\xef\xbb\xbf"
    + lines(
        lambda table: [
            f"{table[0]},note",
            *(row.replace(",", ".zarr.zip,", 1) + ",1" for row in table[1:]),
            "another," + ",".join("1" * (DIM + 1)),
        ]
    ).replace(b"\n", b"\r\n"),
}
REFUSED: dict[str, bytes] = {
    "wrong dimension": b"id,0,1\nimg_000,1,2\n",
    "text": lines(lambda table: [*table[:3], table[3].rsplit(",", 1)[0] + ",<b>quercus", *table[4:]]),
    "cut off": gzip.compress(embeddings(0), mtime=0)[:400],
    "pickled": as_npz(ids=np.array(IDS, dtype=object), embeddings=matrix()),
    "ids missing": lines(lambda table: table[:-7]),
    "bomb": gzip.compress(b"id,0\n" + b"\n" * 2_000_000, mtime=0),
}


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The scores of most contents, world by world. On the worlds' clock, these take as long as others."""
    places = {}
    for world in (LEFT, RIGHT):
        folder = tmp_path_factory.mktemp(world.name)
        places[world.name] = folder / "cells"
        with WorldStage(folder, world) as harness:
            score_ahead(harness, places[world.name], noises=(NOISES[0], NOISES[-1]))
    return places


def upload_begun(worker: WorldPlay, team: str) -> int:
    """Begin a large upload, and let the worker find its placeholder."""
    pk = worker.harness.evalai.begin_upload(team, "dev")
    worker.drive(lambda: worker.states().get(pk) == State.UPLOADING)
    return pk


def tell(worker: WorldPlay) -> dict[str, int]:
    """Play the story: good and refused files, and other events around submissions. Return the submissions by name."""
    harness = worker.harness
    sent: dict[str, int] = {}
    worker.drive()
    for number, (name, content) in enumerate(GOOD.items()):
        sent[name] = harness.submit(f"team {number}", content)
        worker.drive()
    for name, content in REFUSED.items():
        sent[name] = harness.submit("refused", content)
    sent["too large"] = harness.submit("refused", b"x" * 300_000)
    sent["private"] = harness.submit("private", embeddings(2), is_public=False)
    sent["cancelled"] = harness.submit("cancelled", embeddings(3))
    harness.evalai.edit(sent["cancelled"], status="cancelled")
    sent["deleted"] = harness.submit("cancelled", embeddings(3))
    harness.evalai.edit(sent["deleted"], ignore_submission=True)
    worker.drive()
    sent["baseline"] = harness.submit(
        "host", embeddings(5, noise=NOISES[-1]), method_name="Baseline random embeddings"
    )
    worker.drive()
    sent["trial"] = harness.submit("cohost", embeddings(6), method_name="a trial")
    worker.drive()
    sent["other phase"] = harness.submit("team 0", embeddings(1), phase="eval")
    worker.drive()
    sent["run again"] = harness.evalai.rerun(sent["gzip"])
    worker.drive()
    with worker.store.write() as tx:
        number = worker.row(sent["other phase"]).team_key or 0
        register_team(tx, number, disqualified=True, reason="a test", now=worker.clock.now())
        tx.request_publish()
    worker.drive()
    for phase, seed in (("dev", 1), ("eval", 0)):
        sent[f"disqualified in {phase}"] = harness.submit("team 0", embeddings(seed), phase=phase)
    worker.drive()
    for name in ("large upload", "broken off"):
        sent[name] = upload_begun(worker, name)
    harness.evalai.finish_upload(sent["large upload"], embeddings(6))
    harness.evalai.send_again(sent["broken off"])
    worker.drive()
    harness.evalai.send_again(sent["plain"])
    harness.evalai.edit(sent["private"], is_public=True)
    harness.evalai.edit(sent["npz"], status="submitted")  # set back by its team
    worker.drive()
    worker.clock.advance(3600)  # a batch of receipts
    worker.drive()
    sent["held"] = harness.submit("held", embeddings(4))
    harness.evalai.edit(sent["held"], created_by=harness.evalai.submission(sent["plain"])["created_by"])
    worker.drive(lambda: sent["held"] in worker.states() and worker.row(sent["held"]).hold is not None)
    return sent


@pytest.mark.slow
def test_the_same_story_looks_the_same_over_other_tasks(tmp_path: Path, cells: dict[str, Path]) -> None:
    """Except for the allowed fields, texts, records, execution times, file names, boards and commits are equal in both worlds."""
    differences, left, (sent, _) = in_both(tmp_path, tell, cells=cells)
    assert "\n".join(differences) == ""
    ended = {name: left["submissions"][str(pk)]["record"]["status"] for name, pk in sent.items()}
    assert {
        ended[name]
        for name in (*GOOD, "private", "baseline", "trial", "other phase", "run again", "large upload")
    } <= {"finished", "cancelled"}
    assert {ended[f"disqualified in {phase}"] for phase in ("dev", "eval")} == {"finished"}
    assert {ended[name] for name in (*REFUSED, "too large", "broken off")} == {"failed"}
    assert (ended["cancelled"], ended["held"]) == ("cancelled", "submitted")
    assert len(left["commits"]) > len(GOOD)
    times = {seen["record"]["execution_time"] for seen in left["submissions"].values()}
    assert times == {30, "repeated", "None"}


# trouble


def answered(worker: WorldPlay, pk: int) -> None:
    """Step until a submission that was retried is on the board."""
    worker.drive(lambda: worker.state(pk) is State.PUBLISHED)
    worker.drive()


def out_of_time(worker: WorldPlay) -> None:
    """Advance the clock until the child's deadline ends it."""
    while worker.daemon.evaluation.busy:
        worker.clock.advance(1)
        worker.step()


def out_of_memory(worker: WorldPlay) -> None:
    """Lower the memory limit below what the child uses already, until it is ended; a configuration file with such a limit is refused."""
    context = worker.daemon.context
    usual = context.configuration
    limits = usual.submission.model_copy(update={"memory_gigabytes": 0.001})
    context.configuration = usual.model_copy(update={"submission": limits})
    while worker.daemon.evaluation.busy:
        worker.step()
    context.configuration = usual


def killed(worker: WorldPlay) -> None:
    """Kill the child as the kernel does."""
    child = worker.child()
    assert child is not None
    child.kill()
    worker.drive(lambda: not worker.daemon.evaluation.busy)


ENDS: dict[str, Callable[[WorldPlay], None]] = {
    "deadline": out_of_time,
    "memory": out_of_memory,
    "killed": killed,
    "restart": WorldPlay.restart,
}


def trouble(worker: WorldPlay) -> dict[str, int]:
    """Play a story in which submissions fail while they are read or scored. Return the submissions by name."""
    harness = worker.harness
    sent: dict[str, int] = {}
    worker.drive()
    harness.labels().unlink()  # the worker does not read it again
    for seed, (name, end) in enumerate(ENDS.items()):
        sent[f"{name} while scoring"] = harness.submit(f"team {seed}", embeddings(seed))
        with scoring_hangs(harness.folder):
            worker.drive(lambda: worker.scoring("scoring"))
        end(worker)
        answered(worker, sent[f"{name} while scoring"])
    for name in ("deadline", "memory"):
        pk = sent[f"{name} while reading"] = harness.submit("hostile", embeddings(9))
        with ExitStack() as obstacles:
            worker.before_child = lambda obstacles=obstacles, pk=pk: obstacles.enter_context(
                hanging(worker.daemon.files.find(worker.row(pk).file_hash))
            )
            worker.drive(lambda: worker.scoring("reading"))
            worker.before_child = lambda: None
            ENDS[name](worker)
        worker.drive()
    ends = {name: worker.outcomes(pk) for name, pk in sent.items()}
    assert ends == {
        "deadline while scoring": ["deadline", "done"],
        "memory while scoring": ["memory", "done"],
        "killed while scoring": ["signal", "done"],
        "restart while scoring": ["cancelled", "done"],
        "deadline while reading": ["deadline"],
        "memory while reading": ["memory"],
    }
    return sent


@pytest.mark.slow
def test_trouble_in_the_middle_looks_the_same_over_other_tasks(tmp_path: Path) -> None:
    """Deadlines, memory limits, kills, restarts and lost labels reveal nothing of the tasks; only limits on reading fail a submission."""
    differences, left, (sent, _) = in_both(tmp_path, trouble)
    assert "\n".join(differences) == ""
    for name, pk in sent.items():
        seen, expected = left["submissions"][str(pk)], "failed" if "reading" in name else "finished"
        assert (name, seen["record"]["status"], seen["posts"]) == (name, expected, 1)
        assert seen["record"]["execution_time"] % 30 == 0


def beginnings(worker: WorldPlay, pks: list[int]) -> list[int]:
    """Return when EvalAI shows that each submission was started, in seconds after the first."""
    shown = [datetime.fromisoformat(worker.harness.evalai.submission(pk)["started_at"]) for pk in pks]
    return [round((moment - shown[0]).total_seconds()) for moment in shown]


def kept_back(worker: WorldPlay) -> tuple[list[int], list[int]]:
    """Submit to a phase that shows values only at its end, and to one whose ladder step is too large to be climbed twice.

    Return the submissions, and when the first team's were started.
    """
    harness = worker.harness
    pks = [harness.submit("A", embeddings(seed)) for seed in range(2)]
    pks += [
        harness.submit("A", embeddings(0), is_public=False),
        harness.submit("A", embeddings(0)),
        harness.submit("B", embeddings(2)),
        harness.submit("B", b"no embeddings"),
    ]
    pks += [harness.submit("B", embeddings(seed), phase="eval") for seed in range(2)]
    worker.drive()
    return pks, beginnings(worker, pks[:4])


@pytest.mark.slow
def test_withheld_values_show_nothing_of_the_tasks(tmp_path: Path, cells: dict[str, Path]) -> None:
    """Both worlds look the same; answers omit values that are shown at the end, and only the first submission counts on the ladder.

    EvalAI shows the start of each submission, so a team's files start on the answer grid, however long scoring takes.
    """
    changes = {"phases": {"dev": {"shown": "at_end"}, "eval": {"selection": "ladder", "ladder_step": 1000.0}}}
    differences, left, ((pks, begun), (_, elsewhere)) = in_both(tmp_path, kept_back, changes, cells=cells)
    assert "\n".join(differences) == ""
    assert begun == elsewhere == [0, 30, 60, 90]
    seen = [left["submissions"][str(pk)]["texts"]["stdout_file"] for pk in pks]
    assert ["q_mean" in document for document in seen if isinstance(document, dict)] == [False] * 5 + [
        True
    ] * 2
    assert [document.get("counts") for document in seen[-2:]] == [True, False]


# leaks


def leak_a_task_name(patch: pytest.MonkeyPatch, world: World) -> None:
    """A message names a label file."""
    failed, name = answers.failed, min(world.tasks["dev"])
    patch.setattr("worker.answers.answers.failed", lambda error: replace(failed(error), stderr=f"At {name}."))


def leak_weighted_ranks(patch: pytest.MonkeyPatch, world: World) -> None:
    """The board shows the weighted rank, which depends on the number of tasks."""

    def render(site: Site, **options: Any) -> dict[str, bytes]:
        made = files.render(site, **options)
        for phase in site.phases:
            figures = phase.history[-1].figures if phase.history else None
            if figures:
                path = f"leaderboard/{phase.codename}.json"
                ranks = [row.weighted_rank for row in figures.rows]
                made[path] = json.dumps({**json.loads(made[path]), "weighted_ranks": ranks}).encode()
        return made

    patch.setattr("worker.publishing.pushing.render", render)


def leak_the_time(patch: pytest.MonkeyPatch, world: World) -> None:
    """Answers are posted as soon as they are ready."""
    patch.setattr("worker.answers.answers.release_at", lambda now, **_: now)


def leak_the_number_of_tasks(patch: pytest.MonkeyPatch, world: World) -> None:
    """A note states the number of tasks."""
    finished, notes = answers.finished, (f"Scored on {len(world.tasks['dev'])} tasks.",)
    patch.setattr(
        "worker.answers.answers.finished",
        lambda score, **options: finished(score, **{**options, "notes": notes}),
    )


def leak_the_next_beginning(patch: pytest.MonkeyPatch, world: World) -> None:
    """A team's next file is started as soon as the previous one is scored."""
    patch.setattr("worker.answers.answers.unreleased", lambda *_, **__: frozenset())


def two_files(worker: WorldPlay) -> list[int]:
    """Submit two files of a team at once, and return when they were started."""
    pks = [worker.harness.submit("A", embeddings(seed)) for seed in range(2)]
    worker.drive()
    return beginnings(worker, pks)


def test_a_start_that_reveals_the_scoring_time_is_detected(tmp_path: Path, cells: dict[str, Path]) -> None:
    """A file that starts when the previous one is scored starts at other times in another world."""
    _, _, (begun, elsewhere) = in_both(tmp_path, two_files, leak=leak_the_next_beginning, cells=cells)
    assert begun != elsewhere


def brief(worker: WorldPlay) -> None:
    """Play a short story: two good files, and one that is refused."""
    for seed, team in enumerate("AB"):
        worker.harness.submit(team, embeddings(seed))
    worker.harness.submit("C", b"id,0\nx,1\n")
    worker.drive()


LEAKS: dict[Leak, str] = {
    leak_a_task_name: ".texts.stderr_file: 'At quercus_age__regr.csv.'",
    leak_weighted_ranks: "/dev.json.weighted_ranks[0]:",
    leak_the_time: ".record.execution_time:",
    leak_the_number_of_tasks: ".texts.stdout_file.notes[0]: 'Scored on 3 tasks.'",
}
"""Leaks, and the difference by which each is detected."""


def every_leak(patch: pytest.MonkeyPatch, world: World) -> None:
    """Plant all leaks."""
    for leak in LEAKS:
        leak(patch, world)


def test_a_worker_that_leaks_is_detected(tmp_path: Path, cells: dict[str, Path]) -> None:
    """The comparison that finds no difference in an honest worker finds each planted leak."""
    differences, left, _ = in_both(tmp_path, brief, leak=every_leak, cells=cells)
    for trace in LEAKS.values():
        assert trace in "\n".join(differences)
    assert {submission["posts"] for submission in left["submissions"].values()} == {1}
