"""The points at which a worker is killed, and stories that bring a worker to each of them."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import worker.daemon
from tests.waiting import LIMIT_S
from tests.worker.harness.drand import drawing
from tests.worker.harness.gate import hanging
from tests.worker.harness.harness import NEW, Harness, Killed, StepWorker, embeddings
from tests.worker.harness.webhook import Hook
from worker.evaluation.act import ScoreSubmission
from worker.fairness.register import register_team
from worker.organizer.rehearsal.practice_draw import practice_chain, served
from worker.runtime.acts import Act
from worker.sandbox import ManualClock
from worker.state import State
from worker.state.states import TRANSITIONS

BAD = b"id,0,1\nimg_000,1,2\n"
ENDED = {State.PUBLISHED, State.FAILED, State.CANCELLED, State.SUPERSEDED}
USUAL: dict[str, Any] = {
    "submission": {"disk_reserve_gigabytes": 0, "max_megabytes": 10, "answer_grid": 0},
    "fairness": {"beacon": "none"},
    "alerts": {"webhook": None},
}
"""The settings that stories change."""
STAYS: dict[str, Any] = {"submission": {"disk_reserve_gigabytes": 10**9}}
"""Nothing is fetched, so that a submission stays in its state until the listing is compared."""


def acts(kind: type[Act[Any, Any]] = Act) -> set[str]:
    """Return the names of all acts of a kind."""
    names = {kind.name} if kind.__module__.startswith("worker.") and hasattr(kind, "name") else set()
    return names.union(*map(acts, kind.__subclasses__()))


def kill_points() -> set[str]:
    """Return all kill points: before and after each transition and call, before, during and after the child, and all named checkpoints."""
    moves = [f"{source}>{target}" for source, targets in TRANSITIONS.items() for target in targets]
    points = set(both(f"new>{State.RECEIVED}", *moves, *(f"call {name}" for name in acts())))
    points |= {f"{when} child {ScoreSubmission.name}" for when in ("before", "during", "after")}
    for path in Path(worker.__file__).parent.rglob("*.py"):
        points |= set(re.findall(r'checkpoint\("([^"{]+)"\)', path.read_text()))
    return points


def both(*names: str) -> tuple[str, ...]:
    """Return the points before and after something."""
    return tuple(f"{when} {name}" for name in names for when in ("before", "after"))


class Theatre:
    """A challenge whose worker is killed the first time that it comes to each point, and then started again.

    Args:
        harness: The challenge.
        points: The points.

    Attributes:
        ahead: Points to which no worker has come yet.
        actions: What happens when a worker comes to a point, once.
        disqualified: The team that was disqualified; empty if none was.
    """

    def __init__(self, harness: Harness, points: set[str]) -> None:
        self.harness = harness
        self.evalai = harness.evalai
        self.clock = harness.clock or ManualClock()
        self.ahead = set(points)
        self.actions: dict[str, Callable[[], Any]] = {}
        self.disqualified = ""
        self.worker: StepWorker | None = None
        self._killed = False
        self._count = 0

    def _checkpoint(self, point: str) -> None:
        if action := self.actions.pop(point, None):
            action()
        if self._killed or point in self.ahead:
            self.ahead.discard(point)
            self._killed = True
            if self.worker is not None:
                self.worker.wake.set()
            raise Killed(point)

    def drive(self, until: Callable[[], bool]) -> None:
        """Run one worker after another until a condition holds."""
        ends = time.monotonic() + LIMIT_S
        while not until():
            assert time.monotonic() < ends, f"it did not come to {self.ahead}: {self.harness.states()}"
            with suppress(Killed):
                self.worker = self.worker or StepWorker(self.harness, checkpoint=self._checkpoint)
                if self.worker.step():
                    pass
                elif self.worker.busy:
                    self.worker.wake.wait(0.1)
                else:
                    self.worker.clock.advance(0.5)
            if self._killed:
                self.leave()

    def leave(self) -> None:
        """Leave the worker as a killed process leaves it."""
        self._killed = True
        if self.worker is not None:
            self.worker.abandon()
        self.worker, self._killed = None, False

    def submit(self, team: str = "", content: bytes | None = None) -> int:
        """Submit a file. Teams and contents rotate unless they are given; all scores except those of new contents are known."""
        self._count += 1
        content = embeddings(self._count % 6) if content is None else content
        return self.harness.submit(team or "ABCD"[self._count % 4], content)

    def new(self) -> bytes:
        """Return a content whose score is not known."""
        return embeddings(NEW + self._count)

    def state_of(self, pk: int) -> str | None:
        """Return the worker's state of a submission, None if the worker does not know it."""
        return self.harness.states().get(pk)

    def finish(self) -> None:
        """Drive until the queue is empty, and everything is answered, published and pushed."""

        def finished() -> bool:
            listed = self.evalai.submissions()
            if any(row["status"] in ("submitted", "running", "resuming") for row in listed):
                return False
            states = self.harness.states()
            return (
                self.evalai.queue_length() == 0
                and {row["id"] for row in listed if row["status"] != "cancelled"} <= set(states)
                and set(states.values()) <= ENDED
                and self.harness.commits() > 0
            )

        self.drive(finished)

    def idle(self) -> None:
        """Drive until a worker has compared the listing and found the queue empty."""
        self.finish()
        self.drive(lambda: self.worker is not None and self.worker.daemon.intake.drained)

    def let_the_listing_be_due(self) -> None:
        """Move the clock to the next comparison with EvalAI's listing."""
        self.clock.advance(600)

    def bring(self, state: State, content: bytes | None) -> int:
        """Bring a new submission into a state in which the worker dies."""
        self.idle()  # so that it comes with a message, which does not contain its facts
        pk = self.evalai.begin_upload("Z", "dev") if state is State.UPLOADING else self.submit("Z", content)
        if state is State.UPLOADING:  # it comes without a message
            self.let_the_listing_be_due()
        self.drive(lambda: self.state_of(pk) == state)
        self.leave()
        return pk


@dataclass(frozen=True, kw_only=True, eq=False)
class Story:
    """Something that happens to a challenge.

    Attributes:
        points: The points to which it brings a worker.
        state: The state in which a submission is when it happens; None if it does not happen to a submission.
        content: The content of this submission.
        event: What happens.
        settings: The settings that differ meanwhile.
    """

    points: tuple[str, ...]
    event: Callable[[Theatre, int], Any]
    state: State | None = None
    content: bytes | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def play(self, theatre: Theatre) -> None:
        """Let it happen, and let workers do all that follows."""
        pk = 0 if self.state is None else theatre.bring(self.state, self.content)
        self.event(theatre, pk)
        theatre.harness.configure(self.settings)
        if self.state is not None:
            theatre.drive(lambda: theatre.state_of(pk) != self.state)
            theatre.leave()
        theatre.harness.configure(USUAL)
        theatre.finish()


def arrive(theatre: Theatre, _: int) -> None:
    """Submit to an idle worker: one file, whose facts it reads alone, then several."""
    theatre.idle()
    theatre.submit("E", theatre.new())
    theatre.finish()
    for _count in range(3):
        theatre.submit()


def arrive_disqualified(theatre: Theatre, _: int) -> None:
    """Disqualify a team after its first answer; what it sends later is answered, too."""
    arrive(theatre, 0)
    if not theatre.disqualified:
        theatre.disqualified = "E"
        number = next(team.pk for team in theatre.evalai.world.teams.values() if team.name == "E")
        with closing(theatre.harness.store()) as store, store.write() as tx:
            now = theatre.evalai.world.clock.now()
            register_team(tx, number, disqualified=True, reason="a test", now=now)
            tx.request_publish()


def cancel(theatre: Theatre, pk: int) -> None:
    """Cancel the submission."""
    theatre.evalai.edit(pk, status="cancelled")


def rerun(theatre: Theatre, pk: int) -> None:
    """Run the submission again."""
    theatre.evalai.rerun(pk)


def reset(theatre: Theatre, pk: int) -> None:
    """Set the submission back to submitted."""
    theatre.evalai.edit(pk, status="submitted")


def cancelled_first(event: Callable[[Theatre, int], None]) -> Callable[[Theatre, int], None]:
    """Return an event that happens to the submission after it was cancelled."""

    def then(theatre: Theatre, pk: int) -> None:
        cancel(theatre, pk)
        theatre.harness.configure(STAYS)
        theatre.drive(lambda: theatre.state_of(pk) == State.CANCELLED)
        theatre.leave()
        theatre.harness.configure(USUAL)
        event(theatre, pk)

    return then


def while_read(event: Callable[[Theatre, int], None]) -> Callable[[Theatre, int], None]:
    """Return an event that happens while a child reads the fetched file."""

    def meanwhile(theatre: Theatre, pk: int) -> None:
        with closing(theatre.harness.store()) as store, store.read() as tx:
            (row,) = tx.get_many([pk]).values()
        (stored,) = theatre.harness.state.glob(f"files/*/{row.file_hash}")
        with ExitStack() as stack:  # not earlier: a worker fetches again what is no regular file
            theatre.actions["before child evaluate"] = partial(stack.enter_context, hanging(stored))
            theatre.drive(lambda: theatre.state_of(pk) == State.SCORING)
            event(theatre, pk)
            theatre.let_the_listing_be_due()
            theatre.drive(lambda: theatre.state_of(pk) in ENDED)
            theatre.leave()

    return meanwhile


def lose_file(theatre: Theatre, _: int) -> None:
    """Let all stored files disappear."""
    for path in theatre.harness.state.glob("files/*/*"):
        path.unlink()


def break_off(theatre: Theatre, pk: int) -> None:
    """Let the upload's message come without the file, and come again when the submission has failed."""
    theatre.evalai.send_again(pk)
    theatre.drive(lambda: theatre.state_of(pk) == State.FAILED)
    theatre.leave()
    theatre.evalai.send_again(pk)


def succeed_later(theatre: Theatre, pk: int) -> None:
    """Run the submission again when it has failed because the limit was too low."""
    theatre.harness.configure({"submission": {"max_megabytes": 0.0001}})
    theatre.drive(lambda: theatre.state_of(pk) == State.FAILED)
    theatre.leave()
    theatre.harness.configure(USUAL)
    rerun(theatre, pk)


def rerun_off_the_board(theatre: Theatre, pk: int) -> None:
    """Run the answered submission again while the repository cannot be reached."""
    # The board is pushed only afterwards.
    away = theatre.harness.board.rename(theatre.harness.board.with_name("away.git"))
    rerun(theatre, pk)
    theatre.drive(lambda: theatre.state_of(pk) == State.SUPERSEDED)
    away.rename(theatre.harness.board)


def alert(theatre: Theatre, _: int) -> None:
    """Send an alert to the organizer's webhook."""
    hook, harness = Hook(), theatre.harness
    (harness.folder / "hook").write_text(hook.url)
    harness.configure({"alerts": {"webhook": "file:hook"}})
    theatre.leave()
    with closing(harness.store()) as store, store.write() as tx:
        tx.raise_alert("key", "queue.foreign", "Something is wrong.", now=harness.evalai.world.clock.now())
    theatre.drive(lambda: not theatre.ahead & set(both("call alert")))
    hook.close()


def draw(theatre: Theatre, _: int) -> None:
    """Change a phase without scores, so that its splits wait for a public value."""
    theatre.finish()
    theatre.leave()
    harness, now = theatre.harness, theatre.evalai.world.clock.now
    rounds = practice_chain(genesis=int(now().timestamp()) - 1000)
    with served(rounds, clock=now) as server:
        with closing(sqlite3.connect(harness.state / "worker.db")) as database, database:
            database.execute("DELETE FROM cells WHERE phase = 'eval'")  # these were scored in advance
        settings = drawing(harness.folder, rounds, server, notice_s=1)
        harness.configure({**settings, "phases": {"eval": {"folds": 5 + len(theatre.ahead)}}})
        theatre.drive(lambda: theatre.worker is not None and _drawn(harness))
    theatre.leave()


def let_a_line_be_due(theatre: Theatre, _: int) -> None:
    """Move the clock to the next line of the public log."""
    theatre.finish()
    theatre.clock.advance(3600)
    theatre.drive(lambda: not theatre.ahead & set(both("call compare")))
    theatre.finish()


def publish_files(theatre: Theatre, pk: int) -> None:
    """Let a file wait for the branch of the published files, in a phase that is revealed."""
    theatre.finish()
    theatre.leave()
    harness = theatre.harness
    place = harness.state / "published" / "eval" / "content"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{pk}-{len(theatre.ahead)}").write_bytes(b"embeddings")
    with closing(harness.store()) as store, store.write() as tx:
        tx.add_reveal("eval", {})
    theatre.drive(lambda: not theatre.ahead & set(both("call files")))
    theatre.finish()


def _drawn(harness: Harness) -> bool:
    with closing(harness.store()) as store, store.read() as tx:
        return bool(tx.public_commitments()[-1]["drawn"])


def at_each_state(end: str, event: Callable[[Theatre, int], None]) -> Iterator[Story]:
    """Yield the stories of an event that ends a submission, in each state in which one waits."""
    for state in (State.RECEIVED, State.ACKNOWLEDGED, State.FETCHED, State.SCORED, State.REJECTED):
        content = BAD if state is State.REJECTED else None
        yield Story(points=both(f"{state}>{end}"), state=state, content=content, event=event, settings=STAYS)


STORIES: dict[str, tuple[Story, ...]] = {
    "the usual path": (
        Story(
            points=(
                *both("call connect", "call reconcile", "call phases", "call poll"),
                *both("call hosts", "call authors"),
                *both("call listing", "call read", "call running", "call post", "call boards", "call push"),
                *both("new>received", "received>acknowledged", "acknowledged>fetched", "fetched>scoring"),
                *both("scoring>fetched", "scoring>scored", "scored>posted", "posted>published"),
                *both("call fetch", "child evaluate"),
                *("before message taken", "during child evaluate"),
            ),
            event=arrive_disqualified,
        ),
        Story(
            points=both("scoring>rejected", "rejected>failed"),
            event=lambda theatre, _: theatre.submit("", BAD),
        ),
        Story(
            points=both("acknowledged>rejected", "failed>superseded"),
            state=State.ACKNOWLEDGED,
            event=succeed_later,
        ),
    ),
    "uploads and files": (
        Story(
            points=both("acknowledged>uploading", "uploading>acknowledged"),
            state=State.UPLOADING,
            event=lambda theatre, pk: theatre.evalai.finish_upload(pk, embeddings(2)),
        ),
        Story(points=both("uploading>cancelled"), state=State.UPLOADING, event=cancel),
        Story(points=both("uploading>superseded"), state=State.UPLOADING, event=rerun),
        Story(points=both("acknowledged>failed"), state=State.UPLOADING, event=break_off),
        Story(points=both("fetched>acknowledged"), state=State.FETCHED, event=lose_file),
    ),
    "cancelled": (
        *at_each_state("cancelled", cancel),
        Story(points=both("scoring>cancelled"), state=State.FETCHED, event=while_read(cancel)),
        Story(points=both("cancelled>acknowledged"), state=State.ACKNOWLEDGED, event=cancelled_first(reset)),
        Story(points=both("cancelled>superseded"), state=State.ACKNOWLEDGED, event=cancelled_first(rerun)),
    ),
    "run again": (
        *at_each_state("superseded", rerun),
        Story(points=both("scoring>superseded"), state=State.FETCHED, event=while_read(rerun)),
        Story(points=both("posted>superseded"), state=State.POSTED, event=rerun_off_the_board),
        Story(
            points=both("published>superseded"),
            state=State.PUBLISHED,
            event=rerun,
            settings={"submission": {"answer_grid": 5}},  # longer than making a board takes
        ),
    ),
    "changed later": (
        Story(
            points=both("failed>acknowledged"),
            state=State.FAILED,
            content=BAD,
            event=lambda theatre, pk: theatre.evalai.resume(pk),
        ),
        Story(points=both("failed>rejected"), state=State.FAILED, content=BAD, event=reset),
        Story(points=both("posted>scored"), state=State.POSTED, event=reset),
        Story(points=both("published>scored"), state=State.PUBLISHED, event=reset),
        Story(points=both("call alert"), event=alert),
        Story(points=both("call drand"), event=draw),
        Story(points=both("call files"), event=publish_files),
        Story(points=both("call compare"), event=let_a_line_be_due),
    ),
}
"""Stories that share a challenge, with the points to which they bring a worker."""
