"""The kill points of the worker, and for each of them a story that brings a worker to that point."""

from __future__ import annotations

import inspect
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import worker.daemon
from tests.worker.harness.drand import drawing
from tests.worker.harness.harness import NEW, Harness, embeddings
from tests.worker.publishing.test_alerts_and_publishing import Hook
from worker.evalai import Client
from worker.evaluation.act import ScoreSubmission
from worker.fetching.act import FetchFile
from worker.intake.calls import Call
from worker.organizer.rehearsal.practice_draw import practice_chain, served
from worker.runtime import Act
from worker.state import State
from worker.state.states import TRANSITIONS

ENOUGH = 5  # waiting submissions; no more than two are fetched ahead
BAD = b"id,0,1\nimg_000,1,2\n"
SOURCES = sorted(Path(worker.__file__).parent.rglob("*.py"))

ACTS = {
    "challenge": "connect",
    "phases": "connect",
    "receive": "poll",
    "submission": "read",
    "submissions": "reconcile",
    "set_running": "running",
    "finish": "post",
    "fail": "post",
    "delete_message": "delete",
    "host_names": "hosts",
    "account": "hosts",
    "authors": "authors",
}
"""The act that makes each call of the client; the act ``listing`` calls ``submissions`` too."""
MORE_ACTS = frozenset({"listing", "reconnect"})
NOT_CALLED = frozenset(
    {
        "call",
        "close",
        "phase_splits",
        "dataset_split",
        "learn_labels",
    }
)
"""The public names of the client that the daemon does not use; none of them changes anything at EvalAI."""


def client_methods() -> set[str]:
    """Return the public names of the client."""
    return {name for name, _ in inspect.getmembers(Client) if not name.startswith("_")}


def acts(kind: type[Act[Any, Any]] = Act) -> set[str]:
    """Return the names of all acts of a kind."""
    kinds, found = set(kind.__subclasses__()), set()
    while kinds:
        act = kinds.pop()
        if act.__module__.startswith("worker.") and hasattr(act, "name"):
            found.add(act.name)
        kinds |= set(act.__subclasses__())
    return found


def daemon_acts() -> set[str]:
    """Return the names of the acts on EvalAI."""
    return acts(Call)


def kill_points() -> list[str]:
    """Return all kill points: before and after each transition and call, before, during and after each child, and all named checkpoints."""
    moves = [f"new>{State.RECEIVED}"]
    moves += [f"{source}>{target}" for source, targets in TRANSITIONS.items() for target in targets]
    calls = [f"call {name}" for name in sorted(acts())]
    points = {f"{when} {what}" for when in ("before", "after") for what in (*moves, *calls)}
    points |= {
        f"{when} child {act.name}"
        for when in ("before", "during", "after")
        for act in (FetchFile, ScoreSubmission)
    }
    for path in SOURCES:
        points |= set(re.findall(r'checkpoint\("([^"{]+)"\)', path.read_text()))
    return sorted(points)


class Plot:
    """Gives a story the challenge, functions that run and kill workers, and a count of submissions."""

    def __init__(self, harness: Harness, live: Callable[..., None], finish: Callable[[], None]) -> None:
        self.harness = harness
        self.finish = finish  # runs a worker until all work is done
        self.live = live  # live(at=..., until=..., meanwhile=...)
        self.count = 0

    def submit(self, content: bytes | None = None, *, team: str | None = None) -> int:
        """Submit the next file. Teams and contents rotate unless they are given."""
        self.count += 1
        name = team or "ABCD"[self.count % 4]
        return self.harness.submit(name, embeddings(self.count % 6) if content is None else content)

    def known(self, pk: int) -> str | None:
        """Return the worker's state of a submission, or None if the worker does not know it."""
        return self.harness.states().get(pk)

    def bring(self, state: State, content: bytes | None = None) -> int:
        """Bring a new submission into a state, after all earlier work is done. No worker runs afterwards."""
        self.finish()
        if state is State.RECEIVED:  # the listing would give all facts at once; a message does not
            seen, brought = len(self.harness.evalai.journal), list[int]()
            self.live(
                at="after new>received",
                meanwhile=lambda: brought.append(self.submit(content, team="Z")),
                when=lambda: listed(self.harness, seen),
            )
            return brought[0]
        pk = self.submit(content, team="Z")
        ways = {
            State.ACKNOWLEDGED: "after received>acknowledged",
            State.FETCHED: "after acknowledged>fetched",
            State.SCORING: "after fetched>scoring",
            State.SCORED: "after scoring>scored",
            State.REJECTED: "after scoring>rejected",
            State.POSTED: "after scored>posted",
            State.FAILED: "after rejected>failed",
        }
        if state in ways:
            self.live(at=ways[state])
        else:
            self.live(until=lambda: self.known(pk) == state.value)
        return pk


Story = Callable[[Plot, str], None]


@contextmanager
def fetching_stopped(harness: Harness) -> Iterator[None]:
    """Stop all fetching with a huge disk reserve, so that known submissions stay in their states."""
    harness.configure({"submission": {"disk_reserve_gigabytes": 10**9}})
    try:
        yield
    finally:
        harness.configure({"submission": {"disk_reserve_gigabytes": 0}})


def arriving(plot: Plot, point: str) -> None:
    """A good file is submitted, unless the worker has not yet seen an earlier one."""
    if {s["id"] for s in plot.harness.evalai.submissions()} <= set(plot.harness.states()):
        plot.submit()
    plot.live(at=point)


def scoring(plot: Plot, point: str) -> None:
    """Good files are in progress, enough of them to have one in every stage."""
    while sum(s["status"] in ("submitted", "running") for s in plot.harness.evalai.submissions()) < ENOUGH:
        plot.submit()
    plot.live(at=point)


def answering(plot: Plot, point: str) -> None:
    """Good files are answered and published."""
    scoring(plot, point)


def scored_anew(plot: Plot, point: str) -> None:
    """A good file is submitted whose score is not stored yet."""
    plot.count += 1
    plot.harness.submit("D", embeddings(NEW + plot.count))
    plot.live(at=point)


def read_alone(plot: Plot, point: str) -> None:
    """A file is submitted while the worker is idle, so it is read with a request of its own."""
    seen = len(plot.harness.evalai.journal)
    plot.live(at=point, meanwhile=lambda: plot.submit(), when=lambda: listed(plot.harness, seen))


def read_together(plot: Plot, point: str) -> None:
    """Several files are submitted while the worker runs, so they are read with one listing."""
    seen = len(plot.harness.evalai.journal)

    def many() -> None:
        for _ in range(5):
            plot.submit()

    plot.live(at=point, meanwhile=many, when=lambda: listed(plot.harness, seen))


def listed(harness: Harness, since: int) -> bool:
    """Return whether a worker has requested the listing since a given entry of the journal."""
    return any(
        entry.number >= since and entry.path.endswith("/submission/")
        for entry in harness.evalai.journal.requests("GET")
    )


def bad_file(plot: Plot, point: str) -> None:
    """A malformed file is submitted."""
    plot.submit(BAD)
    plot.live(at=point)


def too_large(plot: Plot, point: str) -> None:
    """A file is submitted that is larger than allowed."""
    plot.harness.configure({"submission": {"max_megabytes": 0.0001}})
    plot.submit()
    plot.live(at=point)
    plot.harness.configure({"submission": {"max_megabytes": 10}})


def file_gone(plot: Plot, point: str) -> None:
    """The stored file of a fetched submission disappears."""
    plot.bring(State.FETCHED, embeddings(NEW + 50 + plot.count))
    for path in plot.harness.state.glob("files/*/*"):
        path.unlink()
    plot.live(at=point)


def upload_begun(plot: Plot, point: str) -> None:
    """A large upload begins, and is finished after the worker was killed."""
    pk = plot.harness.evalai.begin_upload("Z", "dev")
    plot.live(at=point)
    plot.harness.evalai.finish_upload(pk, embeddings(1))


def _uploading(plot: Plot) -> int:
    """Begin a large upload, and run a worker until it waits for the file."""
    plot.finish()
    pk = plot.harness.evalai.begin_upload("Z", "dev")
    plot.live(until=lambda: plot.known(pk) == State.UPLOADING.value)
    return pk


def upload_finished(plot: Plot, point: str) -> None:
    """A large upload that the worker waits for is finished, and its message arrives."""
    plot.harness.evalai.finish_upload(_uploading(plot), embeddings(2))
    plot.live(at=point)


def upload_cancelled(plot: Plot, point: str) -> None:
    """A large upload is cancelled while it is under way."""
    plot.harness.evalai.cancel(_uploading(plot))
    plot.live(at=point)


def upload_run_again(plot: Plot, point: str) -> None:
    """A large upload is run again while it is under way."""
    plot.harness.evalai.rerun(_uploading(plot))
    plot.live(at=point)


def upload_broken_off(plot: Plot, point: str) -> None:
    """A large upload has failed because its message came without the file, and the same message arrives again."""
    pk = _uploading(plot)
    plot.harness.evalai.send_again(pk)
    plot.live(until=lambda: plot.known(pk) == State.FAILED.value)
    plot.harness.evalai.send_again(pk)
    plot.live(at=point)


def ended_in(state: State, content: bytes | None = None) -> Story:
    """Make a story in which a submission is cancelled while it is in a given state."""

    def story(plot: Plot, point: str) -> None:
        pk = plot.bring(state, content)
        plot.harness.evalai.cancel(pk)
        with fetching_stopped(plot.harness):
            plot.live(at=point)

    return story


def rerun_in(state: State, content: bytes | None = None) -> Story:
    """Make a story in which a submission is run again while it is in a given state."""

    def story(plot: Plot, point: str) -> None:
        pk = plot.bring(state, content)
        plot.harness.evalai.rerun(pk)
        with fetching_stopped(plot.harness):
            plot.live(at=point)

    return story


def while_scoring(end: str) -> Story:
    """Make a story in which a submission is cancelled or run again while a child scores it, and the listing is compared meanwhile."""

    def story(plot: Plot, point: str) -> None:
        evalai = plot.harness.evalai
        plot.harness.configure({"evalai": {"reconcile_every": 0.3}, "phases": {"dev": {"folds": 30_000}}})
        pk = plot.harness.submit("Y", embeddings(NEW + 90 + plot.count))
        plot.live(
            at=point,
            meanwhile=lambda: evalai.cancel(pk) if end == "cancel" else evalai.rerun(pk) and None,
            when=lambda: bool(evalai.journal.effects("running", pk)),
        )
        if end == "rerun":  # scoring the new submission would take too long
            evalai.cancel(max(known["id"] for known in evalai.submissions()))
        plot.harness.configure({"evalai": {"reconcile_every": 600}, "phases": {"dev": {"folds": 4}}})

    return story


def revived(plot: Plot, point: str) -> None:
    """A cancelled submission is set back to submitted."""
    pk = _cancelled(plot)
    plot.harness.evalai.edit(pk, status="submitted")
    plot.live(at=point)


def _cancelled(plot: Plot) -> int:
    pk = plot.bring(State.ACKNOWLEDGED)
    plot.harness.evalai.cancel(pk)
    plot.live(until=lambda: plot.known(pk) == State.CANCELLED.value)
    return pk


def rerun_of_cancelled(plot: Plot, point: str) -> None:
    """A cancelled submission is run again, and the new one is answered."""
    plot.harness.evalai.rerun(_cancelled(plot))
    plot.live(at=point)


def resumed(plot: Plot, point: str) -> None:
    """A host resumes a failed submission."""
    plot.harness.evalai.resume(plot.bring(State.FAILED, BAD))
    plot.live(at=point)


def set_back(state: State, content: bytes | None = None) -> Story:
    """Make a story in which a participant sets an answered submission back to submitted."""

    def story(plot: Plot, point: str) -> None:
        pk = plot.bring(state, content)
        plot.harness.evalai.edit(pk, status="submitted")
        plot.live(at=point)

    return story


def hidden(plot: Plot, point: str) -> None:
    """A published submission is flagged and later unflagged."""
    pk = plot.bring(State.PUBLISHED)
    plot.harness.evalai.edit(pk, is_flagged=True)
    plot.live(at=point)
    plot.harness.evalai.edit(pk, is_flagged=False)


def rerun_of_failed(plot: Plot, point: str) -> None:
    """A failed submission is run again and succeeds, because the organizer has corrected the configuration meanwhile."""
    plot.harness.configure({"submission": {"max_megabytes": 0.0001}})
    pk = plot.submit(team="X")
    plot.live(at="after rejected>failed")
    plot.harness.configure({"submission": {"max_megabytes": 10}})
    plot.harness.evalai.rerun(pk)
    plot.live(at=point)


def rerun_of_published(plot: Plot, point: str) -> None:
    """A submission on the board is run again, and the new answer comes after the board has been checked."""
    pk = plot.bring(State.PUBLISHED)
    plot.harness.configure({"submission": {"answer_grid": 5}})  # longer than making a board takes
    plot.harness.evalai.rerun(pk)
    plot.live(at=point)
    plot.harness.configure({"submission": {"answer_grid": 0}})


def rerun_of_posted(plot: Plot, point: str) -> None:
    """A submission that is answered but not yet on the board is run again."""
    pk = plot.bring(State.POSTED)
    away = plot.harness.board.with_name("away.git")
    plot.harness.board.rename(away)
    plot.harness.evalai.rerun(pk)
    try:
        plot.live(at=point)
    finally:
        away.rename(plot.harness.board)


def first_sent(plot: Plot, point: str) -> None:
    """A new team sends its first submission."""
    plot.submit(team=f"new {plot.count}")
    plot.live(at=point)


def reloaded(plot: Plot, point: str) -> None:
    """A running worker reloads its configuration."""
    plot.submit()
    seen = len(plot.harness.evalai.journal)
    plot.live(at=point, meanwhile="reload", when=lambda: listed(plot.harness, seen))


def alerted(plot: Plot, point: str) -> None:
    """An alert is sent to the organizer's webhook."""
    hook = Hook()
    (plot.harness.folder / "hook").write_text(hook.url)
    plot.harness.configure({"alerts": {"webhook": "file:hook"}})
    with closing(plot.harness.store()) as store, store.write() as tx:
        tx.raise_alert(
            point, "queue.foreign", "Something is wrong.", now=plot.harness.evalai.world.clock.now()
        )
    plot.live(at=point)
    plot.harness.configure({"alerts": {"webhook": None}})
    hook.close()


def drawn(plot: Plot, point: str) -> None:
    """A phase without any scores is changed, and its splits wait for another round."""
    now = plot.harness.evalai.world.clock.now
    rounds = practice_chain(genesis=int(now().timestamp()) - 1000)
    with served(rounds, clock=now) as server:
        plot.finish()
        with closing(sqlite3.connect(plot.harness.state / "worker.db")) as database, database:
            database.execute("DELETE FROM cells WHERE phase = 'eval'")  # these were scored in advance
        folds = 5 + len(_commitments(plot.harness))
        settings = drawing(plot.harness.folder, rounds, server, notice_s=1)
        plot.harness.configure({**settings, "phases": {"eval": {"folds": folds}}})
        plot.live(at=point)
        plot.live(until=lambda: bool(_commitments(plot.harness)[-1]["drawn"]))
        plot.harness.configure({"fairness": {"beacon": "none"}})


def _commitments(harness: Harness) -> list[dict[str, Any]]:
    with closing(harness.store()) as store, store.read() as tx:
        return tx.public_commitments()


def _both(*whats: str) -> list[str]:
    return [f"{when} {what}" for what in whats for when in ("before", "after")]


STORIES: dict[Story, list[str]] = {
    arriving: [
        *_both("call connect", "call reconcile", "new>received", "received>acknowledged", "call poll"),
        *("before message taken",),
        *_both("call delete", "call hosts"),
    ],
    first_sent: _both("call authors"),
    scoring: [
        *_both("child fetch", "acknowledged>fetched", "call running", "fetched>scoring"),
        *_both("child evaluate", "scoring>fetched", "scoring>scored"),
        *("during child fetch", "during child evaluate"),
    ],
    answering: [*_both("call post", "scored>posted", "call boards", "call push", "posted>published")],
    scored_anew: [*_both("child evaluate"), "during child evaluate"],
    read_alone: _both("call read"),
    read_together: _both("call listing"),
    bad_file: [*_both("scoring>rejected", "call post", "rejected>failed"), "after child evaluate"],
    too_large: _both("acknowledged>rejected"),
    file_gone: _both("fetched>acknowledged"),
    upload_begun: _both("acknowledged>uploading"),
    upload_finished: _both("uploading>acknowledged"),
    upload_cancelled: _both("uploading>cancelled"),
    upload_run_again: _both("uploading>superseded"),
    upload_broken_off: _both("acknowledged>failed"),
    ended_in(State.RECEIVED): _both("received>cancelled"),
    ended_in(State.ACKNOWLEDGED): _both("acknowledged>cancelled"),
    ended_in(State.FETCHED): _both("fetched>cancelled"),
    ended_in(State.SCORED): _both("scored>cancelled"),
    ended_in(State.REJECTED, BAD): _both("rejected>cancelled"),
    while_scoring("cancel"): _both("scoring>cancelled"),
    while_scoring("rerun"): _both("scoring>superseded"),
    rerun_in(State.RECEIVED): _both("received>superseded"),
    rerun_in(State.ACKNOWLEDGED): _both("acknowledged>superseded"),
    rerun_in(State.FETCHED): _both("fetched>superseded"),
    rerun_in(State.SCORED): _both("scored>superseded"),
    rerun_in(State.REJECTED, BAD): _both("rejected>superseded"),
    rerun_of_cancelled: _both("cancelled>superseded"),
    rerun_of_failed: _both("failed>superseded"),
    rerun_of_posted: _both("posted>superseded"),
    rerun_of_published: _both("published>superseded"),
    revived: _both("cancelled>acknowledged"),
    resumed: _both("failed>acknowledged"),
    set_back(State.FAILED, BAD): _both("failed>rejected"),
    set_back(State.POSTED): _both("posted>scored"),
    set_back(State.PUBLISHED): _both("published>scored"),
    hidden: _both("published>posted"),
    reloaded: _both("call reconnect"),
    drawn: _both("call drand"),
    alerted: _both("call alert"),
}
"""Each story with the kill points that it reaches; several stories may reach the same point."""
