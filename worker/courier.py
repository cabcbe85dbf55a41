"""The courier: which errand to EvalAI comes next, and what follows from it.

What is due is read from the database at each step, in the order: answers, the submission about to be scored, facts of new ones, deletions,
reconciliation, the queue. Errands that change something at EvalAI or its queue stand here, those that only ask in :mod:`worker.readings`,
and how a call is made in :mod:`worker.line`. Every errand is one call, but for the first words with EvalAI.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from scoring.errors import NeucoError
from worker import intake
from worker.answers import Answer, release_at
from worker.budget import Budget
from worker.configuration import Configuration
from worker.context import Context, seconds
from worker.evalai import Client, Message, Rejected, Submission, Throttled, TokenRefused
from worker.hosts import Hosts
from worker.line import Line
from worker.readings import Readings
from worker.sharing import COURIER
from worker.state import Owed, Tracked
from worker.state.records import LONGEST_WAIT
from worker.states import ACTIVE, COUNTED, Errand, State

FRESH_TO_RUN = timedelta(
    seconds=3
)  # a reading older than this is not relied upon before `running`, which would revive a cancelled one
LOOK_AHEAD = timedelta(seconds=4)  # facts are read shortly before the answer grid's moment
FRESH_TO_ANSWER = LOOK_AHEAD + timedelta(
    seconds=2
)  # nor before an answer leaves; and never one from before the answer was known
DRAINED_POLLS = 2
STUCK_TRIES = 3  # of one answer in vain, before a person is told
EMPTY_POLL_AGAIN_S = (
    1.0  # a short poll samples SQS's servers: one that finds nothing may have missed a message
)
ANNOUNCED_WITHIN = timedelta(minutes=10)  # EvalAI sends a submission's message at once; what is older lost it
CALLS_AHEAD = 2.5  # what a submission that waits will cost until it is answered: running, the answer, its part of the listings
QUEUE_SHARE = (
    0.25  # of a minute's calls the queue gets where more submissions wait than the rest is enough for
)


class Courier:
    """Decides which errand to EvalAI comes next.

    Args:
        context: The worker's surroundings.
        client: EvalAI's client.
        budget: How many calls may leave.
        fresh_client: See :class:`worker.line.Line`.
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
        self._budget = budget
        self._line = Line(context, client, budget, fresh_client=fresh_client)
        self._readings = Readings(context, self._line)
        self._hosts = Hosts(context, self._line)
        self.polled_at: datetime | None = None
        self.empty_polls = 0  # in a row; an empty short poll does not prove an empty queue
        self.to_the_end = False  # whether the queue is read until it is empty, whatever is expected of it
        self._stale_message = False  # the last message told nothing new: others of its kind may lie behind it
        self._wanted: int | None = None
        self._led = not context.sharing.shared

    @property
    def failing(self) -> bool:
        """Whether the last try of some errand failed."""
        return self._line.failing

    @property
    def last_error(self) -> NeucoError | None:
        """How the last call failed, None after one that succeeded."""
        return self._line.last_error

    @property
    def fatal(self) -> NeucoError | None:
        """What makes going on pointless, if anything: EvalAI's challenge is not the configured one."""
        return self._line.fatal

    @property
    def reconciled_at(self) -> datetime | None:
        """When the listing was last compared with what we know."""
        return self._readings.reconciled_at

    @property
    def drained(self) -> bool:
        """Whether the listing was compared and the queue was found empty twice (a short poll may miss one), or neither is ours to do."""
        looked = self.reconciled_at is not None and self.empty_polls >= DRAINED_POLLS
        return looked or not self._led or self._context.mode() == "drain"

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._line.busy

    @property
    def connected(self) -> bool:
        """Whether EvalAI has told us our phases."""
        return self._readings.remote is not None

    def reload(self) -> None:
        """Take up a changed configuration: its token, and phases that EvalAI may have got meanwhile."""
        self._readings.reload()

    def wants(self, pk: int | None) -> None:
        """Name the submission that is to be scored next: it is read anew and set to running."""
        self._wanted = pk

    def collect(self, now: datetime) -> bool:
        """Take in a finished call."""
        return self._line.collect(now)

    def step(self, now: datetime) -> bool:
        """Start the next errand, if one is due and the budget allows it."""
        if self._line.busy or self.fatal is not None or not self._leads(now):
            return False
        if self._readings.outdated(now):
            return self._readings.connect(now)
        if self.reconciled_at is None and self._readings.reconcile(now):
            return True  # what changed while no worker ran decides everything that follows
        return (
            self._hosts.step(self._readings.remote, now, scored=True)
            or self._answers(now)
            or self._running(now)
            or self._readings.new(now)
            or self._hosts.step(self._readings.remote, now)
            or self._readings.reconcile(now)
            or self._deletions(now)
            or self._poll(now)
        )

    def _leads(self, now: datetime) -> bool:
        """Tell whether calls to EvalAI are ours to make; whoever becomes the courier looks at everything anew."""
        leads = self._context.sharing.leads(COURIER, now)
        if leads and not self._led:
            self._readings.reconciled_at, self.polled_at, self.empty_polls = None, None, 0
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
        return bool(stale) and self._readings.read(stale, now, answer=True)

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

        silent = self._readings.remote is not None and phase_pk in self._readings.remote.silent

        def call(client: Client) -> None:
            if answer.status == "finished" and answer.value is not None:
                client.finish(
                    known.pk,
                    phase_pk,
                    stdout="" if silent else answer.stdout,
                    split=setup.split,
                    result={setup.metric: answer.value},
                )
            else:
                client.fail(known.pk, phase_pk, stderr="" if silent else answer.stderr)

        def done(_: object, at: datetime) -> None:
            told = {
                "answered_at": at,
                "read_at": at,
                "remote_status": answer.status,
                "posted": known.answer,
            }
            with self._context.store.write() as tx:
                tx.settled(owed.id, now=at)
                current = tx.get(known.pk)
                if current is not None and current.answer != known.answer:
                    # A rescore changed the answer while the old one was on its way: the new one follows.
                    tx.note(known.pk, **told)
                    if current.state in COUNTED:  # by another worker, and now perhaps under the old answer
                        tx.move(known.pk, current.state, State.SCORED)
                    tx.owe(Errand.POST, known.pk, now=at)
                else:
                    target = State.POSTED if answer.status == "finished" else State.FAILED
                    tx.move(known.pk, known.state, target, **told)
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
            stuck = owed.tries >= STUCK_TRIES and self._line.silent_since == at  # EvalAI answers all but this
            if isinstance(error, Rejected) or stuck:
                self._context.trouble(f"post:{known.pk}", error, now=at)

        return self._line.start("post", call, done, now, failed=failed, pk=known.pk, answer=True)

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
            return self._readings.read([known], now)
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

        return self._line.start(
            "running",
            lambda client: client.set_running(known.pk),
            done,
            now,
            failed=lambda error, at: self._readings.put_off(known, error, at),
            pk=known.pk,
        )

    def _deletions(self, now: datetime) -> bool:
        with self._context.store.read() as tx:
            due = [owed for owed in tx.owed(Errand.DELETE) if not self._waits(owed, now)]
        if not due or not self._to_spare(now):
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
        return self._line.start(
            "delete",
            lambda client: client.delete_message(receipt),
            done,
            now,
            failed=failed,
            pk=owed.submission,
        )

    def _poll(self, now: datetime) -> bool:
        if self._context.mode() == "drain":
            return False
        if not self._poll_is_due(now):
            return False
        if not self._line.due("poll", now):
            return False

        def done(message: Message | None, at: datetime) -> None:
            self.polled_at = at
            if message is None:
                self.empty_polls += 1
            else:
                self.empty_polls = 0
            self._stale_message = False
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
                self._stale_message = not intake.take_message(tx, message, now=at)

        return self._line.start("poll", Client.receive, done, now)

    def _poll_is_due(self, now: datetime) -> bool:
        """Tell whether the queue is to be looked at: now and then, and at once while messages are expected and calls to spare."""
        since = None if self.polled_at is None else now - self.polled_at
        if since is None or not timedelta() <= since < seconds(self._context.configuration.evalai.poll_every):
            return True
        again = self.empty_polls == 0 or seconds(EMPTY_POLL_AGAIN_S) <= since
        return (
            again and self.empty_polls < DRAINED_POLLS and self._expects_messages(now) and self._to_spare(now)
        )

    def _expects_messages(self, now: datetime) -> bool:
        """Tell whether the queue has more for us: a listing showed submissions without a message, or the last one told nothing new."""
        if self.to_the_end or self._stale_message:
            return True
        with self._context.store.read() as tx:
            return tx.unannounced(since=now - ANNOUNCED_WITHIN)

    def _to_spare(self, now: datetime) -> bool:
        """Tell whether a call may go to the queue: what waits to be begun and answered in the next minute goes first."""
        with self._context.store.read() as tx:
            counts = tx.counts()
        waiting = sum(counts.get(state.value, 0) for state in ACTIVE)
        most = (1 - QUEUE_SHARE) * self._budget.per_minute
        return self._budget.allows(now, keep=int(min(most, CALLS_AHEAD * waiting)))

    def _waits(self, owed: Owed, now: datetime, *, ahead: timedelta = timedelta()) -> bool:
        """Tell whether it is too early; a moment beyond back-off and grid is from before the clock was set back."""
        grid = seconds(self._context.configuration.submission.answer_grid)
        return now + ahead < owed.not_before <= now + LONGEST_WAIT + grid


def _fresh(known: Tracked, since: datetime, now: datetime) -> bool:
    """Tell whether it was read since a moment; a reading from the future is from before the clock was set back."""
    return known.read_at is not None and since <= known.read_at <= now


def _disputed(known: Tracked) -> bool:
    """Tell whether what EvalAI says of it does not fit together: no answer leaves before that is mended."""
    return (known.hold or "").startswith("facts.")
