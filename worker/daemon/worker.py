"""The daemon: one step, repeated.

:meth:`Worker.step` never sleeps and never blocks. Slow work runs in acts (threads for calls, downloads and pushes) and in
children (processes for evaluations), and a step only starts them and collects their results. The time is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from scoring.errors import NeucoError
from worker.answers.turns import is_early
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context, Job, Timetable, seconds
from worker.challenge.setups import all_differences, read_secret
from worker.challenge.signing import signer
from worker.daemon.alerts import Alerting
from worker.evalai import Budget, Client
from worker.evaluation.stage import Evaluation
from worker.fairness.beacon import DRAWS, BeaconFetcher
from worker.fairness.published import UNCOMPARED
from worker.fairness.recording import record_phases
from worker.fairness.register import RegisterReplay
from worker.fetching.housekeeping import HOUSEKEEPING, remove_old_files
from worker.fetching.stage import Fetching
from worker.intake import Intake
from worker.intake.waiting import tell_of_pause
from worker.publishing import Publishing
from worker.runtime import storage
from worker.runtime.acts import Stage, begin
from worker.runtime.storage import FileStore
from worker.state import ACTIVE, DECIDED, Outcome, State, Store, Transaction

JOBS = (*Intake.jobs, DRAWS, HOUSEKEEPING)
"""The regular jobs."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What is left to do, for `once`.

    Attributes:
        active: Submissions that still need an answer, but no person's help.
        stuck: Submissions that wait for a person, or for the next try after a failure.
        paused: Submissions that wait for the end of a pause.
        board: Whether the repository may be behind.
    """

    active: int
    stuck: int
    paused: int
    board: bool

    @property
    def nothing(self) -> bool:
        """Whether everything is done."""
        return not (self.active or self.stuck or self.paused or self.board)


class Worker:
    """Everything that one daemon does.

    Attributes:
        problem: Why the state cannot be written; None while it can.
        stepped_at: When the last step was completed, so that one that hangs can be detected.

    Args:
        configuration: The checked configuration.
        store: Durable state.
        client: EvalAI's client.
        now: Time of the start.
        random: Source of jitter.
        wake: Called when something slow has finished, possibly from another thread.
        checkpoint: See :class:`worker.challenge.context.Context`.
        fresh_client: See :class:`worker.intake.calls.CallRunner`.
    """

    def __init__(
        self,
        configuration: Configuration,
        store: Store,
        client: Client,
        *,
        now: datetime,
        random: Random,
        wake: Callable[[], None] = lambda: None,
        checkpoint: Callable[[str], None] = lambda _: None,
        fresh_client: Callable[[Configuration], Client],
    ) -> None:
        self.files = FileStore(configuration.state_dir)
        with store.lead(now) as tx:  # first: from here on, every write checks that this worker still leads
            recover(tx, self.files, now)
            key = signer(tx, configuration)
        self.files.clear_temporary()
        record_phases(store, configuration, key, now=now)
        self.context = Context(
            configuration=configuration,
            store=store,
            signer=key,
            random=random,
            wake=wake,
            timetable=Timetable(JOBS),
            checkpoint=checkpoint,
        )
        self.budget = Budget(configuration.evalai.requests_per_minute)
        self.intake = Intake(self.context, client, self.budget, fresh_client=fresh_client)
        self.fetching = Fetching(self.context, self.files)
        replay = RegisterReplay()
        self.evaluation = Evaluation(self.context, self.files, replay)
        self.publishing = Publishing(self.context, replay)
        self.beacon = BeaconFetcher(self.context)
        self.alerting = Alerting(self.context)
        self.problem: NeucoError | None = None
        self.stepped_at = now
        self._log_differences()

    def step(self, now: datetime) -> bool:
        """Record what has ended, and begin what is then due; return whether the next step should follow at once."""
        self.intake.calls.collect(now)
        self.publishing.collect(now)
        # With a wrong clock nothing is registered or signed, because its time cannot be corrected.
        exact = bool(self.intake.calls.clock_agrees)
        moved = exact and self.evaluation.runner.look(now)
        self.fetching.runner.collect(now)
        self.alerting.collect(now)
        stages: tuple[Stage, ...] = (self.fetching, self.intake, self.alerting)
        if exact:
            self.beacon.collect(now)
            stages = (self.evaluation, *stages, self.publishing, self.beacon)
        moved |= begin(self.context.store, now, *stages)
        if not moved and not self.busy:
            remove_old_files(self.context, self.files, now)
        if self.problem is not None and storage.fault(self.context.configuration.state_dir) is None:
            self.problem = None
            self.alerting.state_written()
        return moved

    def failed(self, error: NeucoError, now: datetime) -> NeucoError:
        """Report that the state failed during a step; return the cause, which is the disk's error if the disk is to blame.

        The alert is sent without the state. :attr:`problem` keeps the error until a step succeeds and the state can be written again.
        """
        self.problem = storage.fault(self.context.configuration.state_dir) or error
        self.alerting.state_failed(self.problem, now)
        return self.problem

    @property
    def busy(self) -> bool:
        """Whether something slow is under way."""
        stages = (self.intake, self.fetching, self.evaluation, self.publishing, self.beacon)
        return any(stage.busy for stage in stages)

    def reload(self, configuration: Configuration, *, now: datetime) -> None:
        """Apply a changed configuration; work that has begun ends under the old one.

        Raises:
            NeucoError: As :func:`worker.fairness.recording.record_phases`; then nothing of the new configuration is applied.
        """
        record_phases(self.context.store, configuration, self.context.signer, now=now)
        self.context.configuration = configuration
        self.budget.per_minute = configuration.evalai.requests_per_minute
        self.intake.reload()
        self.publishing.reload()
        self._log_differences()

    def stop(self, now: datetime) -> None:
        """End children and pushes without losing anything; the process may exit afterwards."""
        self.publishing.stop()
        self.fetching.runner.stop()  # the next worker begins the download again
        try:
            self.evaluation.runner.stop(now)  # what it had begun is done again after the next start
        except NeucoError as error:
            # The database is full; the next start finds the attempt still open and marks it dead.
            self.context.log.error(error.sentence, event_key=error.code)

    def waiting(self, now: datetime) -> Waiting:
        """Count what is left to do; before a phase opens, only answers that are decided are."""
        configuration = self.context.configuration
        with self.context.store.read() as tx:
            active = [
                row
                for row in tx.submissions(ACTIVE)
                if row.state in DECIDED or row.by_host is None or not is_early(configuration, row, now)
            ]
            paused = tx.is_paused("pause")
        stuck = {row.pk for row in active if row.hold is not None or row.tries > 0}
        held_back = {State.FETCHED, State.SCORING} if paused else set()
        waiting = {row.pk for row in active if row.state in held_back} - stuck
        return Waiting(
            active=len(active) - len(stuck) - len(waiting),
            stuck=len(stuck),
            paused=len(waiting),
            board=self.publishing.behind(),
        )

    def _log_differences(self) -> None:
        """Log which phases run with other content than their files and settings have now."""
        configuration = self.context.configuration
        with self.context.store.read() as tx:
            for difference in all_differences(tx, configuration, read_secret(configuration)):
                text = f"{difference.sentence} {difference.hint}"
                self.context.log.warning(text, event_key="phase.differs", phase=difference.phase)


def recover(tx: Transaction, files: FileStore, now: datetime) -> None:
    """Record that the previous leader's work has ended; it is done again, or checked again where EvalAI may already have it.

    Args:
        tx: The transaction in which this process becomes the leader.
        files: This machine's stored files; the previous leader may have run on another machine.
        now: The time.
    """
    tx.end_attempts(Outcome.DEAD, now=now)
    for row in tx.submissions([State.SCORING]):
        tx.move(row.pk, State.SCORING, State.FETCHED)
    for row in tx.submissions([State.FETCHED]):
        if files.find(row.file_hash) is None:
            tx.move(row.pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None)
    for row in tx.submissions(DECIDED):
        if row.sent_at is not None:  # EvalAI may have the answer
            tx.note(row.pk, read_at=None)
    tx.release()  # a restart tries again at once
    tx.resolve_alert("reload")  # it has read the configuration anew
    tell_of_pause(tx, now=now)  # `once` ends before it reads the phases if it receives nothing
    tx.set_fact(UNCOMPARED, "true")
    tx.request_publish()


def intervals(configuration: Configuration) -> dict[Job, timedelta]:
    """Return the time between two runs of each regular job."""
    return {job: seconds(job.every_s(configuration)) for job in JOBS}


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
