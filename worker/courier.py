"""The courier: the one errand to EvalAI that is under way, and what follows from it.

All calls go through one lane, one after another, so that answers are never overtaken by readings that are older. What is due is read from
the database at each step, in the order: answers, the submission about to be scored, facts of new ones, deletions, reconciliation, the
queue. Every errand is one call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker import connection, intake
from worker.answers import Answer, release_at
from worker.budget import Budget
from worker.configuration import Configuration
from worker.context import Context, seconds
from worker.evalai import Client, Message, Rejected, Submission, Throttled, TokenRefused
from worker.lanes import Lane
from worker.sharing import COURIER
from worker.state import Owed, Tracked
from worker.state.records import LONGEST_WAIT
from worker.states import ACTIVE, Errand, State

FRESH_TO_RUN = timedelta(
    seconds=3
)  # a reading older than this is not relied upon before `running`, which would revive a cancelled one
LOOK_AHEAD = timedelta(seconds=4)  # facts are read shortly before the answer grid's moment
FRESH_TO_ANSWER = LOOK_AHEAD + timedelta(
    seconds=2
)  # nor before an answer leaves; and never one from before the answer was known
DRAINED_POLLS = 2
QUICK_POLL_S = 5.0  # between looks at the queue while work is under way
TOGETHER = 10  # new submissions that are read at once while others are worked on
MANY = 2  # readings due at once that are better served by one listing
UNREAD = (State.RECEIVED, State.ACKNOWLEDGED, State.FAILED, State.CANCELLED)
"""States in which facts are read when they are missing: it is new, its link has expired, or a message came for what was over."""


class Courier:
    """Decides and runs errands to EvalAI.

    Args:
        context: The worker's surroundings.
        client: EvalAI's client.
        budget: How many calls may leave.
        fresh_client: Makes a client with the token that the configuration points to now; asked after a refusal and a reload.
    """

    def __init__(
        self,
        context: Context,
        client: Client,
        budget: Budget,
        *,
        fresh_client: Callable[[Configuration], Client] | None = None,
    ) -> None:
        self._context = context
        self._client = client
        self._fresh_client = fresh_client
        self._stale = False  # the configuration was read again: token and phases may be others
        self._budget = budget
        self._lane: Lane[Any] = Lane("evalai", context.wake)
        self.remote: connection.Remote | None = None
        self.fatal: NeucoError | None = None
        self.reconciled_at: datetime | None = None
        self.polled_at: datetime | None = None
        self.empty_polls = 0  # in a row; an empty short poll does not prove an empty queue
        self._tries: dict[str, int] = {}
        self._not_before: dict[str, datetime] = {}
        self._wanted: int | None = None
        self._led = not context.sharing.shared
        self.last_error: NeucoError | None = None

    @property
    def failing(self) -> bool:
        """Whether the last try of some errand failed."""
        return any(tries > 0 for tries in self._tries.values())

    @property
    def drained(self) -> bool:
        """Whether the listing was compared and the queue was found empty twice (a short poll may miss a message), or others do that."""
        return not self._led or (self.reconciled_at is not None and self.empty_polls >= DRAINED_POLLS)

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._lane.busy

    @property
    def connected(self) -> bool:
        """Whether EvalAI has told us our phases."""
        return self.remote is not None

    def reload(self) -> None:
        """Take up a changed configuration: its token, and phases that EvalAI may have got meanwhile."""
        self._stale = True

    def wants(self, pk: int | None) -> None:
        """Name the submission that is to be scored next: it is read anew and set to running."""
        self._wanted = pk

    def collect(self, now: datetime) -> bool:
        """Take in a finished call."""
        return self._lane.collect(now)

    def step(self, now: datetime) -> bool:
        """Start the next errand, if one is due and the budget allows it."""
        if self._lane.busy or self.fatal is not None or not self._leads(now):
            return False
        if self.remote is None:
            return self._due("connect", now) and self._start(
                "connect", self._read_remote, self._connected, now
            )
        if self._stale and self._due("reconnect", now):
            self._renew_client()
            return self._start("reconnect", self._read_remote, self._reconnected, now)
        if self.reconciled_at is None and self._reconcile(now):
            return True  # what changed while no worker ran decides everything that follows
        return (
            self._answers(now)
            or self._running(now)
            or self._new_facts(now)
            or self._deletions(now)
            or self._reconcile(now)
            or self._poll(now)
        )

    def _leads(self, now: datetime) -> bool:
        """Tell whether calls to EvalAI are ours to make; whoever becomes the courier looks at everything anew."""
        leads = self._context.sharing.leads(COURIER, now)
        if leads and not self._led:
            self.reconciled_at, self.polled_at, self.empty_polls = None, None, 0
            with self._context.store.write() as tx:
                for owed in tx.owed(Errand.POST):
                    if owed.sent_at is not None:  # by our predecessor, perhaps
                        tx.note(owed.submission, read_at=None)
            self._context.log.info("This worker calls EvalAI from now on.", event_key="courier.led")
        self._led = leads
        return leads

    # the errands, most urgent first

    def _answers(self, now: datetime) -> bool:
        due: list[tuple[Owed, Tracked]] = []
        stale: list[Tracked] = []
        with self._context.store.read() as tx:
            for owed in tx.owed(Errand.POST):
                known = tx.get(owed.submission)
                if known is None or self._waits(owed, now, ahead=LOOK_AHEAD) or _disputed(known):
                    continue
                decided = owed.created_at if owed.created_at <= now else now - FRESH_TO_ANSWER
                if not _fresh(known, max(decided, now - FRESH_TO_ANSWER), now):
                    stale.append(known)
                elif not self._waits(owed, now):
                    due.append((owed, known))
        if due:
            return self._post(*due[0], now)
        return bool(stale) and self._read(stale, now, answer=True)

    def _post(self, owed: Owed, known: Tracked, now: datetime) -> bool:
        if not self._budget.allows(now, answer=True):
            return False
        if known.answer is None or known.phase is None or known.phase_pk is None:
            raise RuntimeError(f"submission {known.pk} owes an answer that was never decided")
        answer = Answer.from_json(known.answer)
        setup = self._context.configuration.phases.get(known.phase)
        if setup is None:
            with self._context.store.write() as tx:
                intake.hold(tx, known, *intake.unconfigured(known), now=now)
            return True
        self._context.checkpoint("before post intent")
        with self._context.store.write() as tx:
            tx.sending(owed.id, now=now)
        phase_pk = known.phase_pk

        silent = self.remote is not None and phase_pk in self.remote.silent

        def call() -> None:
            if answer.status == "finished" and answer.value is not None:
                self._client.finish(
                    known.pk,
                    phase_pk,
                    stdout="" if silent else answer.stdout,
                    split=setup.split,
                    result={setup.metric: answer.value},
                )
            else:
                self._client.fail(known.pk, phase_pk, stderr="" if silent else answer.stderr)

        def done(_: object, at: datetime) -> None:
            with self._context.store.write() as tx:
                tx.settled(owed.id, now=at)
                target = State.POSTED if answer.status == "finished" else State.FAILED
                tx.move(
                    known.pk,
                    known.state,
                    target,
                    answered_at=at,
                    read_at=at,
                    remote_status=answer.status,
                    posted=known.answer,
                )
                if answer.status == "finished":
                    intake.supersede_older(tx, known.pk, now=at)
                tx.resolve_alert(f"post:{known.pk}", now=at)
                tx.resolve_alert(f"hold:{known.pk}", now=at)
            self._context.log.info(
                "Answer posted.", event_key="post.done", submission=known.pk, status=answer.status
            )

        def failed(error: NeucoError, at: datetime) -> None:
            later = self._context.retry_at(at, owed.tries)
            grid = self._context.configuration.submission.answer_grid
            with self._context.store.write() as tx:
                tx.postpone(
                    owed.id,
                    not_before=release_at(later, running_at=known.running_at, grid_s=grid),
                    error=error.code,
                )
                # Whether it was applied is unknown: the next try reads the submission first.
                tx.note(known.pk, read_at=None)
            if isinstance(error, Rejected):
                self._context.trouble(f"post:{known.pk}", error, now=at)

        return self._start("post", call, done, now, failed=failed, pk=known.pk, answer=True)

    def _running(self, now: datetime) -> bool:
        with self._context.store.read() as tx:
            if self._wanted is None:
                self._wanted = self._context.sharing.wanted(tx, now)
            if self._wanted is None:
                return False
            known = tx.get(self._wanted)
        if known is None or known.state is not State.FETCHED or _disputed(known) or known.waits(now):
            self._wanted = None
            return False
        if not _fresh(known, now - FRESH_TO_RUN, now):
            return self._read([known], now)
        if known.remote_status == "running" and known.running_at is not None:
            with self._context.store.write() as tx:
                tx.move(known.pk, State.FETCHED, State.SCORING)
            self._wanted = None
            return True

        def done(facts: Submission, at: datetime) -> None:
            with self._context.store.write() as tx:
                tx.note(known.pk, remote_status=facts.status)
                tx.resolve_alert(f"read:{known.pk}", now=at)
                tx.move(known.pk, State.FETCHED, State.SCORING, running_at=at)
            self._wanted = None

        return self._start(
            "running",
            lambda: self._client.set_running(known.pk),
            done,
            now,
            failed=lambda error, at: self._postpone(known, error, at),
            pk=known.pk,
        )

    def _new_facts(self, now: datetime) -> bool:
        with self._context.store.read() as tx:
            unread = [
                known for known in tx.submissions(UNREAD) if known.read_at is None and not known.waits(now)
            ]
        if len(unread) < TOGETHER and self.empty_polls == 0 and self._work_in_hand():
            return False  # messages still come: reading them together takes one call
        return bool(unread) and self._read(unread, now)

    def _read(self, submissions: list[Tracked], now: datetime, *, answer: bool = False) -> bool:
        """Read facts anew: one by its own address, several by one listing."""
        missed = [known for known in submissions if known.tries > 0]
        if not missed and len(crowd := self._crowd(submissions)) >= MANY:
            times = [known.submitted_at for known in crowd if known.submitted_at is not None]
            read_before = len(times) == len(crowd)
            after = min(times) - timedelta(seconds=1) if read_before else None
            status = None if read_before else "submitted"
            return self._start(
                "listing",
                lambda: self._client.submissions(status=status, submitted_after=after),
                lambda listed, at: self._listed(listed, at, expected=submissions),
                now,
                answer=answer,
            )
        known = (missed or submissions)[0]

        def failed(error: NeucoError, at: datetime) -> None:
            if error.code == "evalai.not_found":
                with self._context.store.write() as tx:
                    tx.note(known.pk, deleted=True, read_at=at)
                    if known.state in ACTIVE:
                        intake.cancel(tx, known, "not found at EvalAI", now=at)
                return
            self._postpone(known, error, at)
            with self._context.store.write() as tx:
                for owed in tx.owed(Errand.POST, known.pk):
                    tx.postpone(owed.id, not_before=self._context.retry_at(at, owed.tries), error=error.code)

        return self._start(
            "read",
            lambda: self._client.submission(known.pk),
            self._took,
            now,
            failed=failed,
            pk=known.pk,
            answer=answer,
        )

    def _crowd(self, submissions: list[Tracked]) -> list[Tracked]:
        """Return these and all others that will have to be read soon: one listing serves them all."""
        wanted = {known.pk: known for known in submissions}
        if all(known.submitted_at is not None for known in submissions):
            with self._context.store.read() as tx:
                soon = tx.submissions([State.ACKNOWLEDGED, State.FETCHED, State.SCORED, State.REJECTED])
            wanted |= {known.pk: known for known in soon if known.submitted_at is not None}
        return list(wanted.values())

    def _deletions(self, now: datetime) -> bool:
        with self._context.store.read() as tx:
            due = [owed for owed in tx.owed(Errand.DELETE) if not self._waits(owed, now)]
        if not due:
            return False
        owed = due[0]

        def done(_: object, at: datetime) -> None:
            with self._context.store.write() as tx:
                tx.settled(owed.id, now=at)

        def failed(error: NeucoError, at: datetime) -> None:
            # An unknown handle answers 500 for ever; the message then comes back under a newer one.
            with self._context.store.write() as tx:
                if owed.tries >= 5 and not isinstance(error, (Throttled, TokenRefused)):
                    tx.settled(owed.id, now=at)
                else:
                    tx.postpone(owed.id, not_before=self._context.retry_at(at, owed.tries), error=error.code)

        receipt = owed.receipt or ""
        return self._start(
            "delete",
            lambda: self._client.delete_message(receipt),
            done,
            now,
            failed=failed,
            pk=owed.submission,
        )

    def _reconcile(self, now: datetime) -> bool:
        every = seconds(self._context.configuration.evalai.reconcile_every)
        if self.reconciled_at is not None and now - every < self.reconciled_at <= now:
            return False
        if not self._due("reconcile", now) or self._context.mode() == "drain":
            return False

        def done(listed: list[Submission], at: datetime) -> None:
            self._listed(listed, at, expected=[])
            self.reconciled_at = at
            with self._context.store.write() as tx:
                tx.set_fact("reconciled_at", at.isoformat())

        return self._start("reconcile", self._client.submissions, done, now)

    def _poll(self, now: datetime) -> bool:
        if self._context.mode() == "drain":
            return False
        every = self._context.configuration.evalai.poll_every
        if self.empty_polls < DRAINED_POLLS:
            every = 0.0 if self.empty_polls == 0 else 1.0
        elif self._work_waits():
            every = min(every, QUICK_POLL_S)
        if self.polled_at is not None and now - seconds(every) < self.polled_at <= now:
            return False
        if not self._due("poll", now):
            return False

        def done(message: Message | None, at: datetime) -> None:
            self.polled_at = at
            if message is None:
                self.empty_polls += 1
            else:
                self.empty_polls = 0
            with self._context.store.write() as tx:
                tx.set_fact("polled_at", at.isoformat())
                if message is None:
                    return
                if message.challenge_pk not in (None, self._context.configuration.evalai.challenge):
                    text = (
                        f"The queue holds a message for challenge {message.challenge_pk}, which is not ours. "
                        "It is left there. Check evalai.queue and evalai.challenge."
                    )
                    tx.raise_alert("queue.foreign", "queue.foreign", text, now=at)
                    self.empty_polls = 1
                    return
                self._context.checkpoint("before message taken")
                intake.take_message(tx, message, now=at)

        return self._start("poll", self._client.receive, done, now)

    # what the errands share

    def _read_remote(self) -> connection.Remote:
        return connection.read_remote(self._client, self._context.configuration)

    def _connected(self, remote: connection.Remote, at: datetime) -> None:
        error = connection.unknown_phases(self._context.configuration, remote.phases)
        if error is not None:
            raise error
        self.remote, self._stale = remote, False
        self._context.log.info("Connected to EvalAI.", event_key="evalai.connected", at=at.isoformat())

    def _reconnected(self, remote: connection.Remote, at: datetime) -> None:
        self.remote, self._stale = remote, False
        self.reconciled_at = None  # what was held for its phase may be taken up now
        error = connection.unknown_phases(self._context.configuration, remote.phases)
        if error is None:
            self._context.over("evalai.phases", now=at)
        else:  # a slip in a reload must not end a daemon that runs
            self._context.trouble("evalai.phases", error, now=at)

    def _renew_client(self) -> None:
        """Take up the token that the configuration points to now; without a readable one the old one is tried on."""
        if self._fresh_client is None:
            return
        with contextlib.suppress(NeucoError):
            fresh = self._fresh_client(self._context.configuration)
            self._client.close()
            self._client = fresh

    def _took(self, facts: Submission, at: datetime) -> None:
        with self._context.store.write() as tx:
            self._take(tx, facts, at)
            tx.resolve_alert(f"read:{facts.pk}", now=at)

    def _take(self, tx: Any, facts: Submission, at: datetime) -> None:
        challenge = self._context.configuration.evalai.challenge
        intake.take_facts(tx, facts, challenge=challenge, phases=self._phases(), now=at)

    def _phases(self) -> dict[int, str]:
        ours = self._context.configuration.phases
        theirs = self.remote.phases if self.remote is not None else {}
        return {pk: name for pk, name in theirs.items() if name in ours}

    def _listed(self, listed: list[Submission], at: datetime, *, expected: list[Tracked]) -> None:
        phases = self._phases()
        with self._context.store.write() as tx:
            rows = {row.pk: row for row in tx.submissions()}
            news = [facts for facts in listed if intake.is_news(rows.get(facts.pk), facts, phases=phases)]
            for facts in news:
                intake.link_rerun(tx, facts)
            for facts in news:
                self._take(tx, facts, at)
            for known in expected:
                if all(facts.pk != known.pk for facts in listed):
                    # Not in the listing: asked for by its own address next time.
                    tx.note(known.pk, tries=known.tries + 1)

    def _postpone(self, known: Tracked, error: NeucoError, at: datetime) -> None:
        with self._context.store.write() as tx:
            tx.note(known.pk, not_before=self._context.retry_at(at, known.tries), tries=known.tries + 1)
        if isinstance(error, OrganizerError) and not isinstance(error, TokenRefused):
            self._context.trouble(f"read:{known.pk}", error, now=at)

    def _work_in_hand(self) -> bool:
        with self._context.store.read() as tx:
            return bool(tx.submissions([State.ACKNOWLEDGED, State.FETCHED, State.SCORING]))

    def _work_waits(self) -> bool:
        with self._context.store.read() as tx:
            return bool(tx.submissions([State.RECEIVED, State.ACKNOWLEDGED, State.FETCHED, State.SCORING]))

    def _due(self, name: str, now: datetime) -> bool:
        moment = self._not_before.get(name)
        return moment is None or not now < moment <= now + LONGEST_WAIT

    def _waits(self, owed: Owed, now: datetime, *, ahead: timedelta = timedelta()) -> bool:
        """Tell whether it is too early; a moment beyond back-off and grid is from before the clock was set back."""
        grid = seconds(self._context.configuration.submission.answer_grid)
        return now + ahead < owed.not_before <= now + LONGEST_WAIT + grid

    def _start(
        self,
        name: str,
        call: Callable[[], Any],
        done: Callable[[Any, datetime], None],
        now: datetime,
        *,
        failed: Callable[[NeucoError, datetime], None] | None = None,
        pk: int | None = None,
        answer: bool = False,
    ) -> bool:
        if not self._budget.allows(now, answer=answer) or not self._due("all", now):
            return False
        if self._tries.get("all"):
            self._renew_client()
        self._budget.spend(now)
        if pk is not None:
            with self._context.store.write() as tx:
                tx.count_call(pk)

        def work() -> Any:
            self._context.checkpoint(f"before call {name}")
            result = call()
            self._context.checkpoint(f"after call {name}")
            return result

        def succeed(result: Any, at: datetime) -> None:
            self._tries.pop(name, None)
            self._not_before.pop(name, None)
            self._tries.pop("all", None)
            self._not_before.pop("all", None)
            self.last_error = None
            self._context.over("evalai.unreachable", now=at)
            self._context.over("evalai.token", now=at)
            try:
                done(result, at)
            except OrganizerError as error:
                self.fatal = error

        def fail(error: NeucoError, at: datetime) -> None:
            self._failed(name, error, at, failed)

        self._lane.start(work, done=succeed, failed=fail)
        return True

    def _failed(
        self,
        name: str,
        error: NeucoError,
        at: datetime,
        failed: Callable[[NeucoError, datetime], None] | None,
    ) -> None:
        self.last_error = error
        tries = self._tries.get(name, 0)
        self._tries[name] = tries + 1
        self._context.log.warning(error.sentence, event_key=error.code, errand=name, tries=tries + 1)
        if isinstance(error, Throttled):
            self._budget.close(at, at + timedelta(seconds=max(1.0, error.retry_after_s)))
        elif isinstance(error, TokenRefused):
            self._tries["all"] = self._tries.get("all", 0) + 1
            self._not_before["all"] = self._context.retry_at(at, self._tries["all"] - 1)
            self._context.trouble("evalai.token", error, now=at)
        elif isinstance(error, OrganizerError) and name == "connect":
            self.fatal = error
        elif tries + 1 >= 3 and isinstance(error, InfrastructureError):
            self._context.trouble("evalai.unreachable", error, now=at)
        if failed is not None:
            failed(error, at)
        else:
            self._not_before[name] = self._context.retry_at(at, tries)


def _fresh(known: Tracked, since: datetime, now: datetime) -> bool:
    """Tell whether it was read since a moment; a reading from the future is from before the clock was set back."""
    return known.read_at is not None and since <= known.read_at <= now


def _disputed(known: Tracked) -> bool:
    """Tell whether what EvalAI says of it does not fit together: no answer leaves before that is mended."""
    return (known.hold or "").startswith("facts.")
