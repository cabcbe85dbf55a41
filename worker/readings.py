"""Readings: what EvalAI says of our challenge and of submissions, asked for anew before anything relies on it.

One submission is read by its own address; several by one listing, which costs one call however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from scoring.errors import NeucoError, OrganizerError
from worker import connection, intake, uploads
from worker.context import Context, seconds
from worker.evalai import Client, Submission, TokenRefused
from worker.line import Line
from worker.state import Tracked, Transaction
from worker.states import ACTIVE, Errand, State

TOGETHER = timedelta(seconds=10)  # so long new submissions gather for one listing while others are worked on
MANY = 2  # readings due at once that are better served by one listing
PORTION = 200  # listed submissions that are compared with what we know at a time
UNREAD = (State.RECEIVED, State.ACKNOWLEDGED, State.FAILED, State.CANCELLED)
"""States in which facts are read when they are missing: it is new, its link has expired, or a message came for what was over."""


class Readings:
    """Asks EvalAI for facts and hands them to the intake.

    Args:
        context: The worker's surroundings.
        line: To EvalAI.
    """

    def __init__(self, context: Context, line: Line) -> None:
        self._context = context
        self._line = line
        self._stale = False  # the configuration was read again: token and phases may be others
        self.remote: connection.Remote | None = None
        self.reconciled_at: datetime | None = None

    def reload(self) -> None:
        """Take up a changed configuration: its token, and phases that EvalAI may have got meanwhile."""
        self._stale = True
        self._line.reload()

    def outdated(self, now: datetime) -> bool:
        """Tell whether our challenge must be asked about before anything else."""
        return self.remote is None or (self._stale and self._line.due("reconnect", now))

    def connect(self, now: datetime) -> bool:
        """Ask what EvalAI says of our challenge, at start and after a reload."""
        if self.remote is None:
            return self._line.due("connect", now) and self._line.start(
                "connect", self._read_remote, self._connected, now
            )
        return self._line.start("reconnect", self._read_remote, self._reconnected, now)

    def new(self, now: datetime) -> bool:
        """Read what is new or must be looked at again; what has just come waits for more of its kind while others are worked on."""
        with self._context.store.read() as tx:
            unread = [known for known in tx.submissions(UNREAD, unread=True) if not known.waits(now)]
        if all(now - TOGETHER < known.first_seen_at <= now for known in unread) and self._work_in_hand():
            return False
        return bool(unread) and self.read(unread, now)

    def read(self, submissions: list[Tracked], now: datetime, *, answer: bool = False) -> bool:
        """Read facts anew: one by its own address; several, or one that has just come and may have company, by one listing."""
        missed = [known for known in submissions if known.tries > 0]
        crowd = self._crowd(submissions)
        if not missed and (len(crowd) >= MANY or crowd[0].state is State.RECEIVED):
            times = [known.submitted_at for known in crowd if known.submitted_at is not None]
            read_before = len(times) == len(crowd)
            after = min(times) - timedelta(seconds=1) if read_before else None
            status = None if read_before else "submitted"
            return self._line.start(
                "listing",
                lambda client: client.submissions(status=status, submitted_after=after),
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
            self.put_off(known, error, at)
            with self._context.store.write() as tx:
                for owed in tx.owed(Errand.POST, known.pk):
                    tx.postpone(owed.id, not_before=self._context.retry_at(at, owed.tries), error=error.code)

        return self._line.start(
            "read",
            lambda client: client.submission(known.pk),
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

    def reconcile(self, now: datetime) -> bool:
        """Compare the whole listing with what we know, if that is due: the safety net for whatever queue or we have lost."""
        every = seconds(self._context.configuration.evalai.reconcile_every)
        if self.reconciled_at is not None and now - every < self.reconciled_at <= now:
            return False
        if not self._line.due("reconcile", now) or self._context.mode() == "drain":
            return False

        def done(listed: list[Submission], at: datetime) -> None:
            self._listed(listed, at, expected=[])
            self.reconciled_at = at
            with self._context.store.write() as tx:
                tx.set_fact("reconciled_at", at.isoformat())
                intake.count_lost(tx, listed, now=at)
                uploads.tell_of_old(tx, now=at)

        return self._line.start("reconcile", Client.submissions, done, now)

    def put_off(self, known: Tracked, error: NeucoError, at: datetime) -> None:
        """Let a submission wait after a failed call about it."""
        with self._context.store.write() as tx:
            tx.note(known.pk, not_before=self._context.retry_at(at, known.tries), tries=known.tries + 1)
        if isinstance(error, OrganizerError) and not isinstance(error, TokenRefused):
            self._context.trouble(f"read:{known.pk}", error, now=at)

    # what follows

    def _read_remote(self, client: Client) -> connection.Remote:
        return connection.read_remote(client, self._context.configuration)

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
            news = []
            for start in range(0, len(listed), PORTION):
                news += self._news(tx, listed[start : start + PORTION], at, phases)
            for facts in news:
                intake.link_rerun(tx, facts)
            for facts in news:
                self._take(tx, facts, at)
            found = {facts.pk for facts in listed}
            for known in expected:
                if known.pk not in found:
                    # Not in the listing: asked for by its own address next time.
                    tx.note(known.pk, tries=known.tries + 1)

    def _news(
        self, tx: Transaction, listed: list[Submission], at: datetime, phases: Mapping[int, str]
    ) -> list[Submission]:
        """Return what has to be taken one by one; what is as it was is recorded in one stroke."""
        challenge = self._context.configuration.evalai.challenge
        rows = tx.known([facts.pk for facts in listed])
        news, unchanged = [], {}
        for facts in listed:
            known = rows.get(facts.pk)
            if not intake.is_news(known, facts, phases=phases):
                continue
            if known is not None and intake.is_unchanged(known, facts, challenge=challenge, phases=phases):
                unchanged[facts.pk] = str(facts.input_file)
            else:
                news.append(facts)
        tx.seen(unchanged, now=at)
        return news

    def _work_in_hand(self) -> bool:
        with self._context.store.read() as tx:
            return bool(tx.submissions([State.ACKNOWLEDGED, State.FETCHED, State.SCORING]))
