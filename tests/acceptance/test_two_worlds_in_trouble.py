"""Nothing about the hidden tasks becomes visible when something fails, and a worker that leaks is detected.

The faults are real: a deleted label file, a disk that hangs (a pipe without a writer), a child that is stopped or killed. The leaks are
planted in the worker one by one. The comparison that finds no difference in an honest worker detects each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from leaderboard import Site
from leaderboard.rendering import files
from scoring.errors import ParticipantError
from tests.acceptance.two_worlds import World, WorldPlay, honest, in_both
from tests.worker.harness.gate import hanging
from tests.worker.harness.harness import embeddings
from worker.evaluation import answers
from worker.fairness.membership import ShownValue
from worker.runtime.cgroup import Delegation
from worker.state import State

Leak = Callable[[pytest.MonkeyPatch, World], None]


def reach(worker: WorldPlay, harness: str) -> None:
    """Step until the child is reading or scoring, and suspend it there."""
    worker.drive(lambda: worker.scoring(harness))
    child = worker.child()
    assert child is not None
    child.suspend()  # needed while it scores; while it reads, it hangs already


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
    """Kill the child as the kernel does when it exceeds its memory limit, and record that in its cgroup's file."""
    child = worker.child()
    assert child is not None
    for group in ceilings(worker).iterdir():
        if (group / "cgroup.procs").read_text() == f"{child.pid}\n":
            (group / "memory.events").write_text("oom_kill 1\n")
    killed(worker)


def ceilings(worker: WorldPlay) -> Path:
    """Make the worker keep its children's cgroups in a folder instead of the kernel's tree, and return that folder."""
    tree = worker.harness.folder / "tree"
    tree.mkdir(exist_ok=True)
    worker.daemon.context.cgroup = Delegation(tree)
    return tree


def killed(worker: WorldPlay) -> None:
    """Kill the child as the kernel does."""
    child = worker.child()
    assert child is not None
    child.kill()
    while worker.daemon.evaluation.busy:
        worker.step()


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
    ceilings(worker)
    harness.labels().unlink()  # the worker does not read it again
    for seed, (name, end) in enumerate(ENDS.items()):
        sent[f"{name} while scoring"] = harness.submit(f"team {seed}", embeddings(seed))
        reach(worker, "scoring")
        end(worker)
        answered(worker, sent[f"{name} while scoring"])
    ceilings(worker)  # the restart has created a new worker
    for name in ("deadline", "memory"):
        pk = sent[f"{name} while reading"] = harness.submit("hostile", embeddings(9))
        with ExitStack() as obstacles:

            def hang(pk: int = pk, obstacles: ExitStack = obstacles) -> None:
                stored = worker.daemon.files.find(worker.row(pk).file_hash or "")
                assert stored is not None
                obstacles.enter_context(hanging(stored))

            worker.before_child = hang
            reach(worker, "reading")
            worker.before_child = lambda: None
            ENDS[name](worker)
        worker.drive()
    for name, pk in sent.items():
        expected = {
            "deadline": "deadline",
            "memory": "memory",
            "killed": "signal",
            "restart": "shutdown",
        }
        first, *rest = worker.outcomes(pk)
        assert (name, first) == (name, expected[name.split()[0]])
        assert rest == (["done"] if "scoring" in name else [])
    return sent


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_trouble_in_the_middle_looks_the_same_over_other_tasks(tmp_path: Path) -> None:
    """Deadlines, memory limits, kills, restarts and lost labels reveal nothing of the tasks; only limits on reading fail a submission."""
    found, left, (sent, _) = in_both(tmp_path, trouble, {"scoring": {"epochs": 6000}})
    assert "\n".join(found) == ""
    ended = {name: left.submissions[str(pk)] for name, pk in sent.items()}
    for name, seen in ended.items():
        expected = "failed" if "reading" in name else "finished"
        assert (name, seen["record"]["status"], seen["posts"]) == (name, expected, 1)
        assert seen["record"]["execution_time"] % 30 == 0


def kept_back(worker: WorldPlay) -> list[int]:
    """Submit to a phase that shows values only at its end, and to one whose ladder step is too large to be climbed twice."""
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
    return pks


def test_withheld_values_show_nothing_of_the_tasks(tmp_path: Path) -> None:
    """Both worlds look the same; answers omit values that are shown at the end, and only the first submission counts on the ladder."""
    changes = {"phases": {"dev": {"shown": "at_end"}, "eval": {"selection": "ladder", "ladder_step": 1000.0}}}
    found, left, (pks, _) = in_both(tmp_path, kept_back, changes)
    assert "\n".join(found) == ""
    seen = [left.submissions[str(pk)]["texts"]["stdout_file"] for pk in pks]
    assert ["q_mean" in document for document in seen if isinstance(document, dict)] == [False] * 5 + [
        True
    ] * 2
    assert [document.get("counts") for document in seen[-2:]] == [True, False]


# leaks


def leak_a_task_name(patch: pytest.MonkeyPatch, world: World) -> None:
    """A message names a label file."""
    message = answers.failed

    def failed(error: ParticipantError) -> answers.Answer:
        answer = message(error)
        return replace(answer, stderr=f"{answer.stderr} (at {min(world.tasks['dev'])})")

    patch.setattr("worker.evaluation.answers.failed", failed)


def leak_weighted_ranks(patch: pytest.MonkeyPatch, world: World) -> None:
    """The board shows the weighted rank, which depends on the number of tasks."""

    def render(site: Site, **options: Any) -> dict[str, bytes]:
        made = files.render(site, **options)
        for phase in site.phases:
            figures = phase.history[-1].private.figures if phase.history else None
            if figures:
                path = f"leaderboard/{phase.codename}.json"
                ranks = [row.weighted_rank for row in figures.rows]
                made[path] = json.dumps({**json.loads(made[path]), "weighted_ranks": ranks}).encode()
        return made

    patch.setattr("worker.publishing.pushing.render", render)


def leak_the_time(patch: pytest.MonkeyPatch, world: World) -> None:
    """Answers are posted as soon as they are ready."""
    patch.setattr("worker.evaluation.answers.release_at", lambda now, **_: now)


def leak_the_number_of_tasks(patch: pytest.MonkeyPatch, world: World) -> None:
    """A note states the number of tasks."""
    message = answers.finished

    def finished(told: ShownValue, *, notes: tuple[str, ...], **options: Any) -> answers.Answer:
        return message(told, notes=(*notes, f"Scored on {len(world.tasks['dev'])} tasks."), **options)

    patch.setattr("worker.evaluation.answers.finished", finished)


def leak_the_next_beginning(patch: pytest.MonkeyPatch, world: World) -> None:
    """A team's next file is started as soon as the previous one is scored."""
    patch.setattr("worker.evaluation.answers.unreleased", lambda *_, **__: frozenset())


def beginnings(worker: WorldPlay) -> list[int]:
    """Submit files of two teams at once. Return the start of each of the first team's files, in seconds after its first start."""
    pks = [worker.harness.submit("A", embeddings(seed)) for seed in range(3)]
    worker.harness.submit("B", embeddings(3))
    worker.drive()
    shown = [datetime.fromisoformat(worker.harness.evalai.submission(pk)["started_at"]) for pk in pks]
    return [round((moment - shown[0]).total_seconds()) for moment in shown]


@pytest.mark.parametrize("leak", [honest, leak_the_next_beginning])
def test_the_start_of_a_submission_reveals_no_earlier_scoring_time(leak: Leak, tmp_path: Path) -> None:
    """EvalAI shows the start of each submission, so a team's files start on the answer grid, however long scoring takes."""
    _, _, told = in_both(tmp_path, beginnings, leak=leak)
    assert (told == [[0, 30, 60]] * 2) == (leak is honest)
    assert (told[0] == told[1]) == (leak is honest)


LEAKS = (honest, leak_a_task_name, leak_weighted_ranks, leak_the_time, leak_the_number_of_tasks)


@pytest.mark.parametrize("leak", LEAKS)
def test_a_worker_that_leaks_is_detected(leak: Leak, tmp_path: Path) -> None:
    """The comparison fails for each planted leak, and passes for an honest worker."""

    def story(worker: WorldPlay) -> None:
        if leak is leak_a_task_name:
            worker.harness.submit("A", b"id,0\nx,1\n")
        else:
            worker.harness.submit("A", embeddings(0))
        if leak is leak_weighted_ranks:  # with one entry, the weighted rank is always 1
            worker.harness.submit("B", embeddings(1))
        worker.drive()

    found, left, _ = in_both(tmp_path, story, leak=leak)
    assert bool(found) == (leak is not honest)
    assert {submission["posts"] for submission in left.submissions.values()} == {1}
