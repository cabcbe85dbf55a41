"""Nothing of the hidden tasks is seen when something goes wrong half-way, and a worker that leaks is found out.

The faults are real: a label file that is gone, a disk that hangs (a pipe that nobody writes to), a child that is stopped or killed.
The leaks are planted one by one in the worker; the comparison that finds no difference in an honest worker finds each of them.
"""

from __future__ import annotations

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
from tests.acceptance.two_worlds import LEFT, RIGHT, World, WorldPlay, differences, look, opened
from tests.worker.harness.gate import hanging
from tests.worker.harness.harness import embeddings
from worker.evaluation import answers
from worker.fairness.ladder import Told
from worker.runtime.cgroup import Delegation
from worker.state import State


def reach(worker: WorldPlay, harness: str) -> None:
    """Go on until the child is reading or scoring, and keep it there."""
    worker.drive(lambda: worker.scoring(harness))
    child = worker.child()
    assert child is not None
    child.suspend()  # while it scores; while it reads it hangs already


def answered(worker: WorldPlay, pk: int) -> None:
    """Go on until a submission that was tried again stands on the board."""
    worker.drive(lambda: worker.state(pk) is State.PUBLISHED)
    worker.drive()


def out_of_time(worker: WorldPlay) -> None:
    """Let time pass until the child's deadline."""
    while worker.daemon.evaluation.busy:
        worker.clock.advance(1)
        worker.step()


def out_of_memory(worker: WorldPlay) -> None:
    """End the child as the kernel does when it goes over its ceiling, which stands in its group's file."""
    child = worker.child()
    assert child is not None
    for group in ceilings(worker).iterdir():
        if (group / "cgroup.procs").read_text() == f"{child.pid}\n":
            (group / "memory.events").write_text("oom_kill 1\n")
    killed(worker)


def ceilings(worker: WorldPlay) -> Path:
    """Return a folder in place of the kernel's tree, and let the worker keep its children's groups there."""
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
    """Tell the story of everything that goes wrong in the middle."""
    harness = worker.harness
    sent: dict[str, int] = {}
    worker.drive()
    ceilings(worker)
    harness.labels().unlink()  # nothing reads it any more
    for seed, (name, end) in enumerate(ENDS.items()):
        sent[f"{name} while scoring"] = harness.submit(f"team {seed}", embeddings(seed))
        reach(worker, "scoring")
        end(worker)
        answered(worker, sent[f"{name} while scoring"])
    ceilings(worker)  # the restart has made another worker
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


def in_both(
    folder: Path, story: Callable[[WorldPlay], Any], changes: Any = None
) -> tuple[list[str], list[Any]]:
    """Tell a story in both worlds; return the differences and what the stories returned."""
    looks, told = [], []
    for world in (LEFT, RIGHT):
        with opened(folder / world.name, world, changes) as worker:
            told.append(story(worker))
            looks.append(look(worker))
    return differences(*looks), [looks[0], *told]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_trouble_in_the_middle_looks_the_same_over_other_tasks(tmp_path: Path) -> None:
    """Deadlines, memory, killed children, restarts and lost labels show nothing of the tasks; only limits in reading end a submission."""
    found, (left, sent, _) = in_both(tmp_path, trouble, {"scoring": {"epochs": 6000}})
    assert "\n".join(found) == ""
    ended = {name: left.submissions[str(pk)] for name, pk in sent.items()}
    for name, seen in ended.items():
        expected = "failed" if "reading" in name else "finished"
        assert (name, seen["record"]["status"], seen["posts"]) == (name, expected, 1)
        assert seen["record"]["execution_time"] % 30 == 0


def kept_back(worker: WorldPlay) -> list[int]:
    """Send files to a phase that shows nothing until its end, and to one whose ladder has a step that nothing climbs twice."""
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


def test_what_is_kept_back_shows_nothing_of_the_tasks(tmp_path: Path) -> None:
    """Where values come at the end not even they differ; on a ladder nobody climbs, only the first one may."""
    changes = {"phases": {"dev": {"shown": "at_end"}, "eval": {"selection": "ladder", "ladder_step": 1000.0}}}
    found, (left, pks, _) = in_both(tmp_path, kept_back, changes)
    assert "\n".join(found) == ""
    seen = [left.submissions[str(pk)]["texts"]["stdout_file"] for pk in pks]
    assert ["q_mean" in document for document in seen if isinstance(document, dict)] == [False] * 5 + [
        True
    ] * 2
    assert [document.get("counts") for document in seen[-2:]] == [True, False]


# leaks


def leak_a_task_name(patch: pytest.MonkeyPatch, world: World) -> None:
    """A message names a label file."""
    honest = answers.failed

    def failed(error: ParticipantError) -> answers.Answer:
        answer = honest(error)
        return replace(answer, stderr=f"{answer.stderr} (at {min(world.tasks['dev'])})")

    patch.setattr("worker.evaluation.answers.failed", failed)


def leak_weighted_ranks(patch: pytest.MonkeyPatch, world: World) -> None:
    """The board shows the weighted rank, a sum over as many ranks as there are tasks."""
    honest = files._entry

    def render(site: Site, **options: Any) -> dict[str, bytes]:
        ranks = {
            row.submission: row.weighted_rank
            for phase in site.phases
            for board in phase.history[-1:]
            if board.private.figures
            for row in board.private.figures.rows
        }
        patch.setattr(
            files, "_entry", lambda row: {**honest(row), "weighted_rank": ranks.get(row.submission)}
        )
        return files.render(site, **options)

    patch.setattr("worker.publishing.pushing.render", render)


def leak_the_time(patch: pytest.MonkeyPatch, world: World) -> None:
    """Answers leave when they are ready."""
    patch.setattr("worker.evaluation.answers.release_at", lambda now, **_: now)


def leak_the_number_of_tasks(patch: pytest.MonkeyPatch, world: World) -> None:
    """A note counts tasks."""
    honest = answers.finished

    def finished(told: Told, *, notes: tuple[str, ...], **options: Any) -> answers.Answer:
        return honest(told, notes=(*notes, f"Scored on {len(world.tasks['dev'])} tasks."), **options)

    patch.setattr("worker.evaluation.answers.finished", finished)


def leak_digits(patch: pytest.MonkeyPatch, world: World) -> None:
    """The repository shows mean Q with more digits than EvalAI."""
    honest = files._entry
    patch.setattr(files, "_entry", lambda row: honest(row))

    def render(site: Site, **options: Any) -> dict[str, bytes]:
        made = files.render(site, **options)
        for phase in site.phases:
            for board in phase.history[-1:]:
                made[f"leaderboard/{phase.codename}.csv"] += f"#{board.standings[0].q_mean!r}\n".encode()
        return made

    patch.setattr("worker.publishing.pushing.render", render)


def leak_the_next_beginning(patch: pytest.MonkeyPatch, world: World) -> None:
    """A team's next file begins as soon as the one before is done."""
    patch.setattr("worker.evaluation.answers.unreleased", lambda *_, **__: frozenset())


def beginnings(worker: WorldPlay) -> list[int]:
    """Let a team and another one send files at once; return after how many seconds each of the team's was begun."""
    pks = [worker.harness.submit("A", embeddings(seed)) for seed in range(3)]
    worker.harness.submit("B", embeddings(3))
    worker.drive()
    shown = [datetime.fromisoformat(worker.harness.evalai.submission(pk)["started_at"]) for pk in pks]
    return [round((moment - shown[0]).total_seconds()) for moment in shown]


def test_the_next_beginning_tells_nothing_of_the_time_before_it(tmp_path: Path) -> None:
    """EvalAI shows when each file was begun: a team's files follow each other on the answer grid, however long scoring takes."""
    _, (_, left, right) = in_both(tmp_path, beginnings)
    assert left == right == [0, 30, 60]


def test_a_worker_that_does_not_wait_between_files_is_found_out(tmp_path: Path) -> None:
    """The same files without the wait: the seconds between them are those of scoring."""
    told = []
    for world in (LEFT, RIGHT):
        with pytest.MonkeyPatch.context() as patch:
            leak_the_next_beginning(patch, world)
            with opened(tmp_path / world.name, world) as worker:
                told.append(beginnings(worker))
    assert told[0] != told[1]


LEAKS = (leak_a_task_name, leak_weighted_ranks, leak_the_time, leak_the_number_of_tasks, leak_digits)


def honest(patch: pytest.MonkeyPatch, world: World) -> None:
    """Nothing leaks: without a difference here, what is found below is the leak."""


@pytest.mark.parametrize("leak", [*LEAKS, honest])
def test_a_worker_that_leaks_is_found_out(leak: Callable[..., None], tmp_path: Path) -> None:
    """The comparison that an honest worker passes, here too, fails for each planted leak."""

    def story(worker: WorldPlay) -> None:
        if leak is leak_a_task_name:
            worker.harness.submit("A", b"id,0\nx,1\n")
        else:
            worker.harness.submit("A", embeddings(0))
        if leak is leak_weighted_ranks:  # with one entry it is 1 everywhere
            worker.harness.submit("B", embeddings(1))
        worker.drive()

    looks = []
    for world in (LEFT, RIGHT):
        with pytest.MonkeyPatch.context() as patch:
            leak(patch, world)
            with opened(tmp_path / world.name, world) as worker:
                story(worker)
                looks.append(look(worker))
    assert bool(differences(*looks)) == (leak is not honest)
    for seen in looks:
        assert {submission["posts"] for submission in seen.submissions.values()} == {1}
