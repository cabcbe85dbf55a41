"""Sharing: how several daemons work on one challenge, and how one alone does not notice.

On SQLite a daemon is :class:`Alone`, and nothing here costs anything. On a database server (:class:`Shared`)

- an evaluation or a download is a *claim*: an open attempt with a lease, which its worker renews; its number is the fencing token. Whoever
  finds a lease that has ended closes the attempt, and from then on every write of the former holder is refused, because it looks, in the
  transaction that writes, whether its attempt is still open;
- all calls to EvalAI are made by the one daemon that holds the post of courier, all pushes by the publisher (see
  :class:`worker.state.servers.Post`); the budget of calls is kept in the database, so that a new courier knows what the last one spent;
- stored files lie on the machine that fetched them, or on a folder that all share. If that machine is gone, they are fetched again.

Leases are judged by the workers' clocks. A clock that is wrong costs work done twice, never a wrong result: the fence decides.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections import deque
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from worker.budget import WINDOW, Budget
from worker.fetching.files import FileStore
from worker.state import Store, Tracked, Transaction
from worker.states import Attempt, Outcome, State

LEASE = timedelta(seconds=60)
BEAT = LEASE / 4
LOOK = timedelta(seconds=1)  # how often a post is asked for
COURIER = "courier"
PUBLISHER = "publisher"
_BUDGET = "budget"
_WORKER = "worker:"


class Alone:
    """One daemon on the state.

    Args:
        name: This worker's name.
    """

    shared = False

    def __init__(self, name: str) -> None:
        self.name = name

    def budget(self, per_minute: int) -> Budget:
        """Return the budget of calls to EvalAI."""
        return Budget(per_minute)

    def step(self, now: datetime) -> bool:
        """Renew what is ours and take over what nobody holds any more; tell whether anything moved."""
        return False

    def leads(self, post: str, now: datetime) -> bool:
        """Tell whether this daemon holds a post."""
        return True

    def recover(self, tx: Transaction, now: datetime) -> None:
        """At start: close what a killed predecessor left open."""
        for attempt in tx.attempts(open_only=True):
            tx.close_attempt(attempt["id"], Outcome.DEAD, now=now, reason="found open at start")
        for known in tx.submissions([State.SCORING]):
            tx.move(known.pk, State.SCORING, State.FETCHED)

    def scorable(self, tx: Transaction, ready: Sequence[Tracked]) -> list[Tracked]:
        """Return those of the submissions in state fetched or scoring that this daemon may score."""
        return list(ready)

    def fetchable(self, tx: Transaction, ready: Sequence[Tracked]) -> list[Tracked]:
        """Return those that nobody else is fetching."""
        return list(ready)

    def stored(self, fetched: Sequence[Tracked]) -> list[Tracked]:
        """Return those fetched submissions whose files lie here."""
        return list(fetched)

    def claim(self, pk: int, now: datetime) -> bool:
        """Claim a fetched submission, so that the courier sets it to running; tell whether it is ours."""
        return True

    def wanted(self, tx: Transaction, now: datetime) -> int | None:
        """Return the fetched submission that was claimed first and waits to be set to running, whoever claimed it."""
        return None

    def begin(self, tx: Transaction, pk: int, kind: Attempt, now: datetime) -> int | None:
        """Return the attempt under which work begins now, None if somebody else has it."""
        return tx.open_attempt(pk, kind, worker=self.name, now=now)

    def holds(self, tx: Transaction, attempt: int) -> bool:
        """Tell whether an attempt is still ours; asked in the transaction that writes its result."""
        return True

    def let_go(self, tx: Transaction, pk: int, now: datetime) -> None:
        """Give up a claim under which nothing began."""

    def hand_back(self, tx: Transaction, phases: Collection[str], now: datetime) -> None:
        """Leave what we fetched of some phases, and score not yet, to other machines."""

    def here(self, key: str) -> str:
        """Return the key of an alert about this machine; another one's is another alert."""
        return key

    def stop(self, now: datetime) -> None:
        """Give everything back, because the worker ends."""


class Shared(Alone):
    """One of several daemons on a database server.

    Args:
        name: This worker's name, see :func:`worker_name`.
        store: On a database server.
        files: This worker's stored files.
    """

    shared = True

    def __init__(
        self,
        name: str,
        store: Store,
        files: FileStore,
    ) -> None:
        super().__init__(name)
        self._store = store
        self._files = files
        self._posts = {post: store.post(post) for post in (COURIER, PUBLISHER)}
        self._held: dict[str, tuple[datetime, bool]] = {}
        self._beaten_at: datetime | None = None

    def budget(self, per_minute: int) -> Budget:
        """Return the account's budget, kept in the database."""
        return SharedBudget(per_minute, self._store)

    def step(self, now: datetime) -> bool:
        """Renew our leases, drop claims under which nothing can begin, and take over what the dead left."""
        if self._beaten_at is not None and now - BEAT < self._beaten_at <= now:
            return False
        self._beaten_at = now
        with self._store.write() as tx:
            tx.set_fact(_WORKER + self.name, now.isoformat())
            tx.renew_attempts(self.name, until=now + LEASE)
            return self._take_over(tx, now)

    def leads(self, post: str, now: datetime) -> bool:
        """Tell whether the post is ours; asked for about once a second, and given up by the server with our session."""
        held = self._held.get(post)
        if held is not None and held[0] <= now < held[0] + LOOK:
            return held[1]
        ours = self._posts[post].take()
        self._held[post] = (now, ours)
        return ours

    def recover(self, tx: Transaction, now: datetime) -> None:
        """Close what an earlier life of this very worker left open; what others left is taken over when their leases end."""
        tx.set_fact(_WORKER + self.name, now.isoformat())
        for attempt in tx.attempts(open_only=True):
            if attempt["worker"] == self.name:
                self._close(tx, attempt, now)
        self._take_over(tx, now)

    def _take_over(self, tx: Transaction, now: datetime) -> bool:
        moved = False
        evaluated = set()
        for attempt in tx.attempts(open_only=True):
            until = attempt["lease_until"]
            if until is None or not now < until <= now + 2 * LEASE or is_dead(attempt["worker"]):
                self._close(tx, attempt, now)
                moved = True
            elif attempt["kind"] == Attempt.EVALUATE:
                evaluated.add(attempt["submission"])
        for known in tx.submissions([State.SCORING]):
            if known.pk not in evaluated:  # as a single daemon left it
                moved |= tx.move(known.pk, State.SCORING, State.FETCHED)
        for known in tx.submissions([State.FETCHED]):
            if known.pk not in evaluated and self._out_of_reach(tx, known, now):
                tx.move(known.pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None)
                moved = True
        return moved

    def _close(self, tx: Transaction, attempt: dict[str, object], now: datetime) -> None:
        tx.close_attempt(int(str(attempt["id"])), Outcome.DEAD, now=now, reason="its worker is gone")
        known = tx.get(int(str(attempt["submission"])))
        if known is not None and known.state is State.SCORING and attempt["kind"] == Attempt.EVALUATE:
            tx.move(known.pk, State.SCORING, State.FETCHED)

    def _out_of_reach(self, tx: Transaction, known: Tracked, now: datetime) -> bool:
        """Tell whether a fetched file is neither here nor with a worker that lives."""
        if known.file_hash is None or self._files.find(known.file_hash) is not None:
            return False
        return self._keeper(tx, known, now) is None

    def _keeper(self, tx: Transaction, known: Tracked, now: datetime) -> str | None:
        """Return the worker that fetched a file last, if it lives."""
        fetched = [
            attempt["worker"]
            for attempt in tx.attempts(pk=known.pk)
            if attempt["kind"] == Attempt.FETCH and attempt["outcome"] == Outcome.DONE
        ]
        seen = tx.fact(_WORKER + fetched[-1]) if fetched else None
        if seen is None or datetime.fromisoformat(seen) + LEASE < now or is_dead(fetched[-1]):
            return None
        return str(fetched[-1])

    def hand_back(self, tx: Transaction, phases: Collection[str], now: datetime) -> None:
        """Leave what we fetched of some phases, and score not yet, to other machines."""
        claims = _open(tx, Attempt.EVALUATE)
        for known in tx.submissions([State.FETCHED]):
            if known.phase not in phases or claims.get(known.pk, (self.name, 0))[0] != self.name:
                continue
            self.let_go(
                tx, known.pk, now
            )  # also of a file that another machine fetched: the same content may lie here
            if self.stored([known]) and self._keeper(tx, known, now) in (None, self.name):
                tx.move(known.pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None)

    def here(self, key: str) -> str:
        """Return the key of an alert about this machine; another one's is another alert."""
        return f"{key}@{socket.gethostname()}"

    def scorable(self, tx: Transaction, ready: Sequence[Tracked]) -> list[Tracked]:
        """Return what we have claimed, else what is free and lies here."""
        claims = _open(tx, Attempt.EVALUATE)
        ours = [known for known in ready if claims.get(known.pk, ("", 0))[0] == self.name]
        if ours:
            return ours
        free = [known for known in ready if known.pk not in claims and known.state is State.FETCHED]
        return self.stored(free)

    def fetchable(self, tx: Transaction, ready: Sequence[Tracked]) -> list[Tracked]:
        """Return those without an open attempt to fetch them."""
        claims = _open(tx, Attempt.FETCH)
        return [known for known in ready if known.pk not in claims]

    def stored(self, fetched: Sequence[Tracked]) -> list[Tracked]:
        """Return those whose files lie on this machine, claimed or not."""
        return [
            known
            for known in fetched
            if known.file_hash is not None and self._files.find(known.file_hash) is not None
        ]

    def claim(self, pk: int, now: datetime) -> bool:
        """Open the attempt already: the courier sets to running what is claimed."""
        with self._store.read() as tx:
            claims = _open(tx, Attempt.EVALUATE)
        if pk in claims:
            return claims[pk][0] == self.name
        with self._store.write() as tx:
            self._drop_idle(tx, now)
            known = tx.lock_free(pk)
            if known is None or known.state is not State.FETCHED or pk in _open(tx, Attempt.EVALUATE):
                return False
            self._open(tx, pk, Attempt.EVALUATE, now)
        return True

    def _drop_idle(self, tx: Transaction, now: datetime) -> None:
        """Give up claims that came to nothing: asked for while we evaluate nothing, so none of them is at work."""
        for pk, (worker, _) in _open(tx, Attempt.EVALUATE).items():
            known = tx.get(pk)
            if worker == self.name and (known is None or known.state is not State.SCORING):
                self.let_go(tx, pk, now)

    def wanted(self, tx: Transaction, now: datetime) -> int | None:
        """Return the oldest claim that waits for EvalAI."""
        for pk in _open(tx, Attempt.EVALUATE):
            known = tx.get(pk)
            if (
                known is not None
                and known.state is State.FETCHED
                and not (known.hold or "").startswith("facts.")  # as the courier sees it
                and not known.waits(now)
            ):
                return pk
        return None

    def begin(self, tx: Transaction, pk: int, kind: Attempt, now: datetime) -> int | None:
        """Return our claim, or make one where work begins without."""
        claims = _open(tx, kind)
        if pk in claims:
            worker, attempt = claims[pk]
            return attempt if worker == self.name else None
        known = tx.lock_free(pk)
        if kind is Attempt.EVALUATE or known is None or known.state is not State.ACKNOWLEDGED:
            return None
        return self._open(tx, pk, kind, now)

    def _open(self, tx: Transaction, pk: int, kind: Attempt, now: datetime) -> int:
        return tx.open_attempt(pk, kind, worker=self.name, now=now, lease_until=now + LEASE)

    def holds(self, tx: Transaction, attempt: int) -> bool:
        """Look whether the attempt is open; the write lock keeps it so until the result is written."""
        return any(row["id"] == attempt for row in tx.attempts(open_only=True))

    def let_go(self, tx: Transaction, pk: int, now: datetime) -> None:
        """Close our claim as one under which nothing began."""
        claim = _open(tx, Attempt.EVALUATE).get(pk)
        if claim is not None and claim[0] == self.name:
            tx.close_attempt(claim[1], Outcome.CANCELLED, now=now, reason="nothing began")

    def stop(self, now: datetime) -> None:
        """Close what we still claim, and leave the posts."""
        with self._store.write() as tx:
            for pk in _open(tx, Attempt.EVALUATE):
                self.let_go(tx, pk, now)
            tx.set_fact(_WORKER + self.name, None)
        for post in self._posts.values():
            post.leave()


class SharedBudget(Budget):
    """A budget that all workers of an account see.

    Args:
        per_minute: Calls allowed in any 60 seconds.
        store: Where the calls of the last minute stand.
    """

    def __init__(self, per_minute: int, store: Store) -> None:
        super().__init__(per_minute)
        self._store = store

    def left(self, now: datetime) -> int:
        """Return how many calls may leave now, after what every worker has spent."""
        with self._store.read() as tx:
            self._load(tx)
        if self._closed is not None and self._closed[0] <= now < self._closed[1]:
            return 0
        return self.per_minute - sum(abs(now - call) < WINDOW for call in self._calls)

    def spend(self, now: datetime, calls: int = 1) -> None:
        """Count calls, where all can be foreseen before they leave."""
        with self._store.write() as tx:
            self._load(tx)
            super().spend(now, calls)
            self._save(tx, now)

    def close(self, now: datetime, until: datetime) -> None:
        """Let nothing leave before a time, whoever asks."""
        with self._store.write() as tx:
            self._load(tx)
            super().close(now, until)
            self._save(tx, now)

    def _load(self, tx: Transaction) -> None:
        document = json.loads(tx.fact(_BUDGET) or '{"calls": [], "closed": null}')
        self._calls = deque(map(datetime.fromisoformat, document["calls"]))
        closed = document["closed"]
        self._closed = (
            None if closed is None else (datetime.fromisoformat(closed[0]), datetime.fromisoformat(closed[1]))
        )

    def _save(self, tx: Transaction, now: datetime) -> None:
        calls = [call.isoformat() for call in self._calls if abs(now - call) < WINDOW]
        closed = None if self._closed is None else [moment.isoformat() for moment in self._closed]
        tx.set_fact(_BUDGET, json.dumps({"calls": calls, "closed": closed}))


def _open(tx: Transaction, kind: Attempt) -> dict[int, tuple[str, int]]:
    """Return the open attempts of a kind, oldest first: submission to (worker, attempt)."""
    return {
        row["submission"]: (row["worker"], row["id"])
        for row in tx.attempts(open_only=True)
        if row["kind"] == kind.value
    }


def machine_mark() -> str:
    """Return a mark of this boot of this machine, container by container: where a process number means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return socket.gethostname()[:8]
    return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:8]


def is_dead(worker: str) -> bool:
    """Tell whether a worker of this very machine is gone, before its lease tells; False for workers of others."""
    parts = worker.rsplit(":", 2)
    return (
        len(parts) == 3
        and parts[2] == machine_mark()
        and parts[1].isdigit()
        and not Path(f"/proc/{parts[1]}").exists()
    )


def worker_name() -> str:
    """Return this process's name among the workers of a challenge: host, process, and what tells whether the process lives."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{machine_mark()}"
