"""The daemon: one step, repeated.

:meth:`Worker.step` never sleeps and never blocks: slow things happen in acts (threads for calls and pushes) and children (processes for
downloads and evaluations) that are looked after here. The time is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from scoring.errors import NeucoError, OrganizerError
from worker import storage
from worker.challenge import PhaseSetup, is_overtaken, load_phase, tasks_changed
from worker.configuration import Configuration
from worker.context import Context
from worker.daemon.alerts import Alerting
from worker.daemon.jobs import intervals_s
from worker.evalai import Client
from worker.evaluation.outcomes import give_back
from worker.evaluation.stage import Evaluation
from worker.fairness import commitments
from worker.fetching.files import FileStore
from worker.fetching.stage import Fetching
from worker.housekeeping import Housekeeping
from worker.intake import Intake, hold, unconfigured
from worker.publishing import Publishing
from worker.runtime import Timetable
from worker.runtime.cgroup import Delegation
from worker.secrets import read_challenge_secret
from worker.sharing import Alone, Shared, is_dead
from worker.state import Store, Tracked
from worker.states import ACTIVE, Outcome, State

FOLLOW_EVERY = timedelta(seconds=2)
LOOK_AGAIN_EVERY = timedelta(seconds=30)  # into files that were read in vain: reading them takes a while


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What is left to do, for `once` and `status`.

    Attributes:
        active: Submissions that owe an answer and can go on by themselves.
        stuck: Those that wait for a person or after failed tries.
        paused: Those that wait for the end of a pause.
        owed: Rows of the outbox.
        board: Whether the repository may be behind.
    """

    active: int
    stuck: int
    paused: int
    owed: int
    board: bool

    @property
    def nothing(self) -> bool:
        """Whether everything is done."""
        return not (self.active or self.stuck or self.paused or self.owed or self.board)


class Worker:
    """Everything that one daemon does.

    Args:
        configuration: The checked configuration.
        phases: The phases, ready to score.
        store: Durable state.
        client: EvalAI's client.
        now: Time of the start.
        random: Source of jitter.
        name: This worker's name.
        wake: Called when something slow has finished, possibly from another thread.
        checkpoint: See :class:`worker.context.Context`.
        fresh_client: See :class:`worker.intake.calls.CallRunner`.
        cgroup: See :class:`worker.context.Context`.
    """

    def __init__(
        self,
        configuration: Configuration,
        phases: Mapping[str, PhaseSetup],
        store: Store,
        client: Client,
        *,
        now: datetime,
        random: Random,
        name: str,
        wake: Callable[[], None] = lambda: None,
        checkpoint: Callable[[str], None] = lambda _: None,
        fresh_client: Callable[[Configuration], Client] | None = None,
        cgroup: Delegation | None = None,
    ) -> None:
        self.context = Context(
            configuration=configuration,
            phases=phases,
            store=store,
            random=random,
            name=name,
            wake=wake,
            started_at=now,
            timetable=Timetable(intervals_s(configuration)),
            checkpoint=checkpoint,
            cgroup=cgroup,
        )
        self.files = FileStore(configuration.state_dir, own=name.replace("/", "_") if store.shared else None)
        self.sharing = Shared(name, store, self.files) if store.shared else Alone(name)
        self.context.sharing = self.sharing
        self.budget = self.sharing.budget(configuration.evalai.requests_per_minute)
        self.intake = Intake(self.context, client, self.budget, fresh_client=fresh_client)
        self.fetching = Fetching(self.context, self.files)
        self.evaluation = Evaluation(self.context, self.files)
        self.publishing = Publishing(self.context)
        self.alerting = Alerting(self.context)
        self.housekeeping = Housekeeping(self.context, self.files)
        self.problem: NeucoError | None = None
        self._followed_at: datetime | None = None
        self._in_vain: dict[
            str, tuple[Mapping[str, Any], datetime]
        ] = {}  # phase to the record not found in its files
        self._recover(now)

    def step(self, now: datetime) -> bool:
        """Do one iteration; tell whether anything moved, so that another one soon makes sense."""
        moved = self.intake.collect(now)
        moved |= self.publishing.collect(now)
        moved |= self.sharing.step(now)
        moved |= self.evaluation.look(now)
        moved |= self.fetching.step(now)
        self._follow_rescores(now)
        moved |= self._evaluate_next(now)
        moved |= self.intake.step(now)
        moved |= self.publishing.step(now)
        moved |= self.alerting.step(now)
        moved |= self.housekeeping.step(now, idle=not moved and not self.busy)
        if self.problem is not None and storage.trouble(self.context.configuration.state_dir) is None:
            self.problem = None
            self.alerting.calm()
        return moved

    def failed(self, error: NeucoError, now: datetime) -> NeucoError:
        """Tell of what made a step fail, the state itself; return what it comes from: its disk, if it is that.

        It is told without the state; :attr:`problem` has it until a step succeeds and the state can be written to again.
        """
        self.problem = storage.trouble(self.context.configuration.state_dir) or error
        self.alerting.emergency(self.problem, now)
        return self.problem

    @property
    def fatal(self) -> NeucoError | None:
        """What makes going on pointless, if anything: EvalAI's challenge is not the configured one."""
        return self.intake.fatal

    @property
    def busy(self) -> bool:
        """Whether something slow is under way."""
        return self.intake.busy or self.fetching.busy or self.evaluation.busy or self.publishing.busy

    @property
    def late(self) -> bool:
        """Whether something hangs that cannot even be given up."""
        return any(part.late for part in (self.intake, self.publishing, self.alerting, self.housekeeping))

    def reload(
        self, configuration: Configuration, phases: Mapping[str, PhaseSetup], *, now: datetime
    ) -> None:
        """Take up a changed configuration; what is under way ends under the old one.

        Raises:
            OrganizerError: If label files changed while they were read; then nothing is taken up.
        """
        with self.context.store.write() as tx:
            commitments.begin(tx, configuration, phases, now=now)
        self.context.configuration, self.context.phases = configuration, phases
        self.context.timetable.change(intervals_s(configuration))
        self.budget.per_minute = configuration.evalai.requests_per_minute
        self._followed_at, self._in_vain = None, {}
        self.intake.reload()
        self.publishing.reload()

    def stop(self, now: datetime) -> None:
        """End children and pushes without loss; the process may exit afterwards."""
        for part in (self.evaluation, self.fetching):
            try:
                part.stop(now)
            except (
                NeucoError
            ) as error:  # the database is full: the next start finds the attempt open, and dead
                self.context.log.error(error.sentence, event_key=error.code)
        self.publishing.stop()
        try:
            self.sharing.stop(now)
        except NeucoError as error:  # the server is gone: leases end by themselves
            self.context.log.error(error.sentence, event_key=error.code)
        self.files.release()

    def waiting(self, now: datetime) -> Waiting:
        """Count what is left to do."""
        with self.context.store.read() as tx:
            open_ones = tx.submissions(ACTIVE)
            owed = tx.owed()
        late = {row.submission for row in owed if row.tries > 0}
        stuck = {
            known.pk for known in open_ones if known.hold is not None or known.tries > 0 or known.pk in late
        }
        held_back = {State.FETCHED, State.SCORING} if self.context.mode() == "pause" else set()
        paused = {known.pk for known in open_ones if known.state in held_back} - stuck
        return Waiting(
            active=len(open_ones) - len(stuck) - len(paused),
            stuck=len(stuck),
            paused=len(paused),
            owed=len(owed),
            board=self.publishing.due(),
        )

    def _evaluate_next(self, now: datetime) -> bool:
        """Let EvalAI show the next submission as running, then start its child."""
        if self.evaluation.busy or self.context.mode() == "pause":
            return False
        pk = self.evaluation.head(now)
        if pk is None:
            return False
        with self.context.store.read() as tx:
            known = tx.get(pk)
        if known is not None and known.state is State.SCORING:
            return self._unchanged(known, now) and self.evaluation.start(known, now)
        if self.sharing.claim(pk, now):
            self.intake.wants(pk)
        return False

    def _unchanged(self, known: Tracked, now: datetime) -> bool:
        """Check that a phase's scores still stand on the same tasks and protocol; else hold its submissions."""
        setup = self.context.phases.get(known.phase or "")
        if setup is None:  # the phase was taken out of the configuration
            with self.context.store.write() as tx:
                tx.move(known.pk, State.SCORING, State.FETCHED)
                hold(tx, known, *unconfigured(known), now=now)
            return False
        with self.context.store.read() as tx:
            record = tx.phase_record(setup.codename)
        if record is not None and (setup.is_recorded(record) or self._follow(setup.codename, record, now)):
            return True
        with self.context.store.write() as tx:
            error = tasks_changed(setup.codename, elsewhere=self.sharing.shared)
            give_back(tx, known, error, Outcome.ORGANIZER, retry_at=self.context.retry_at(now, known.tries))
        self.context.trouble(self.sharing.here(f"tasks:{setup.codename}"), error, now=now)
        return False

    def _follow_rescores(self, now: datetime) -> None:
        """Read a phase again whose scores stand on other tasks than we know: a rescore has taken them up while we ran."""
        if self._followed_at is not None and now - FOLLOW_EVERY < self._followed_at <= now:
            return
        self._followed_at = now
        with self.context.store.read() as tx:
            records = {name: tx.phase_record(name) for name in self.context.phases}
            raised = {alert.key for alert in tx.alerts()}
        behind = set()
        for name, setup in self.context.phases.items():
            record, alert = records[name], self.sharing.here(f"tasks:{name}")
            sure = record is not None and setup.is_recorded(record) and name not in self.context.doubted
            if record is None or sure or self._follow(name, record, now):
                if alert in raised:
                    self.context.over(alert, now=now)
                continue
            behind.add(name)
            with self.context.store.read() as tx:
                overtaken = is_overtaken(tx, setup)
            if overtaken or self.sharing.shared:
                self.context.trouble(alert, tasks_changed(name, elsewhere=self.sharing.shared), now=now)
        if self.sharing.shared:
            self._leave_to_others(frozenset(behind), now)

    def _leave_to_others(self, phases: frozenset[str], now: datetime) -> None:
        """Fetch and score nothing of phases whose right files another machine has, or its configuration alone: its worker can."""
        with self.context.store.read() as tx:
            waiting = tx.submissions([State.ACKNOWLEDGED, State.FETCHED])
        unknown = {known.phase for known in waiting if known.phase is not None} - set(self.context.phases)
        for name in unknown - self.context.behind:
            error = OrganizerError(
                f"Submissions to phase {name} wait, and this machine's configuration does not name it.",
                cure="Configure it as on the machine that does, and reload; until then that one scores them.",
                code="facts.phase_unconfigured",
            )
            self.context.trouble(self.sharing.here(f"phase:{name}"), error, now=now)
        for name in self.context.behind - phases - unknown:
            self.context.over(self.sharing.here(f"phase:{name}"), now=now)
        self.context.behind = phases | unknown
        if self.context.behind:
            with self.context.store.write() as tx:
                self.sharing.hand_back(tx, self.context.behind, now)

    def _follow(self, name: str, record: Mapping[str, Any], now: datetime) -> bool:
        """Take a phase's files up if they are what the record names."""
        old, tried_at = self._in_vain.get(name, (None, now))
        if record == old and now - LOOK_AGAIN_EVERY < tried_at <= now:
            return False
        self._in_vain[name] = (record, now)
        configuration = self.context.configuration
        with self.context.store.read() as tx:
            beacon = tx.beacon()
        try:
            secret = read_challenge_secret(configuration.path(configuration.challenge.secret))
            fresh = load_phase(configuration, name, secret, beacon)
        except OrganizerError:
            return False
        if not fresh.is_recorded(record):
            return False
        self.context.phases = {**self.context.phases, name: fresh}
        self.context.doubted.discard(name)
        del self._in_vain[name]
        return True

    def _recover(self, now: datetime) -> None:
        """Take over what a killed predecessor left: its open attempts are dead, its waits are over."""
        with self.context.store.write() as tx:
            self.sharing.recover(tx, now)
            tx.release_all()
            tx.request_publish()
            tx.set_fact("started_at", now.isoformat())
            commitments.begin(tx, self.context.configuration, self.context.phases, now=now)
        self.files.clear_temporary(is_dead)


def make_client(configuration: Configuration, **options: Any) -> Client:
    """Make the client that the configuration describes.

    Raises:
        OrganizerError: If the token is missing.
    """
    evalai = configuration.evalai
    token = configuration.secret(evalai.token, "evalai.token").get_secret_value()
    return Client(
        server=evalai.server, token=token, challenge=evalai.challenge, queue=evalai.queue, **options
    )
