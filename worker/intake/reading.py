"""What EvalAI says of our challenge and of submissions, read again before anything relies on it.

A single submission is read by its own address, several by one listing, which costs one call however many there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.context import Job
from worker.evalai import Client, NotFound, NotPermitted, Submission
from worker.fetching import uploads
from worker.intake import facts, holds, waiting
from worker.intake.calls import Call
from worker.intake.phases import record_terms
from worker.intake.session import OVERLAP, RemoteChallenge, Session, phase_faults, read_remote
from worker.state import ACTIVE, ANSWERED, Transaction

RECONCILE = Job("reconcile", lambda configuration: configuration.evalai.reconcile_every)
RECENT = Job("recent", lambda _: 30)  # finds uploads without a message soon, because anybody may edit them
PHASES_LACKING = "evalai.phases_lacking"  # the key of an alert


def our_phases(configuration: Configuration, session: Session) -> dict[int, str]:
    """Return the phases that both the configuration and EvalAI have now, pk to codename."""
    theirs = session.remote.phases if session.remote is not None else {}
    return {pk: name for pk, name in theirs.items() if name in configuration.phases}


def news(
    tx: Transaction,
    listed: list[Submission],
    *,
    challenge: int,
    phases: Mapping[int, str],
    asked_at: datetime,
) -> list[Submission]:
    """Return the submissions that must be processed one by one; record together that the others that still wait are unchanged."""
    rows = tx.get_many([read.pk for read in listed])
    changed, unchanged = [], {}
    for read in listed:
        row = rows.get(read.pk)
        if row is None or not facts.is_unchanged(row, read, challenge=challenge, phases=phases):
            changed.append(read)
        elif row.state in ACTIVE:
            unchanged[read.pk] = read.input_file
    tx.seen(unchanged, asked_at=asked_at)
    return changed


@dataclass(kw_only=True, eq=False, repr=False)
class Connect(Call[RemoteChallenge]):
    """Read the challenge at the start, and again after a reload.

    If it does not fit the configuration, a worker that starts ends; one that runs goes on, with an alert.

    Attributes:
        configuration: The configuration with which it is compared; a reload may follow meanwhile.
    """

    name = "connect"
    configuration: Configuration

    def perform(self, resource: Client) -> RemoteChallenge:
        """Read challenge, phases and splits: several requests."""
        with resource.keeping():
            return read_remote(resource, self.configuration)

    def outcome(self, tx: Transaction, result: RemoteChallenge, now: datetime) -> None:
        """Check the phases.

        Raises:
            OrganizerError: At the start, if the configuration names a phase that EvalAI does not have.
        """
        record_terms(tx, self.context.configuration, result.listed, now=now)
        fault = next(phase_faults(self.context.configuration, result.phases), None)
        if fault is None:
            tx.resolve_alert(PHASES_LACKING)
        elif self.session.remote is None:
            raise fault
        else:
            tx.report(PHASES_LACKING, fault, now=now)

    def recorded(self, result: RemoteChallenge, now: datetime) -> None:
        """Keep the phases in the session, and look at all submissions, because one that is on hold for its phase may continue now."""
        self.session.remote = result
        self.session.outdated = self.configuration is not self.context.configuration  # reloaded meanwhile
        self.context.timetable.ask(RECONCILE)
        self.context.log.info("Connected to EvalAI.", event_key="evalai.connected", at=now.isoformat())


@dataclass(kw_only=True, eq=False, repr=False)
class ReadSubmission(Call[Submission]):
    """Read one submission.

    Attributes:
        pk: The submission.
        elsewhere: Whether it is refused because somebody has moved it to another challenge.
    """

    name = "read"
    pk: int
    elsewhere: bool = field(init=False, default=False)

    def perform(self, resource: Client) -> Submission:
        """Ask for it by its number; EvalAI refuses it in the same words if this account is no host any more."""
        try:
            return resource.submission(self.pk)
        except NotPermitted as refusal:
            resource.phases()
            self.elsewhere = True
            raise NotFound(refusal.sentence) from None

    def outcome(self, tx: Transaction, result: Submission, now: datetime) -> None:
        """Process the facts."""
        facts.take_facts(
            tx,
            result,
            challenge=self.context.configuration.evalai.challenge,
            phases=our_phases(self.context.configuration, self.session),
            asked_at=self.began_at,
            now=now,
        )
        tx.resolve_alert(f"read:{result.pk}")

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Delay the submission and its answer, unless EvalAI does not have it any more, or somebody has moved it to another challenge."""
        row, elsewhere = tx.known(self.pk), self.elsewhere
        if isinstance(error, NotFound):
            tx.note(self.pk, read_at=self.began_at)
            tx.resolve_alert(f"read:{self.pk}")
            if row.state in ANSWERED:  # nothing else is tried
                tx.note(self.pk, tries=0, not_before=None)
            facts.follow_absence(tx, row, elsewhere=elsewhere, now=now)
            if elsewhere and row.evalai_shows is None and row.message_phase and row.excluded is None:
                tx.report(f"hold:{row.pk}", holds.hidden(row), now=now)
            return
        super().failure(tx, error, now)


@dataclass(kw_only=True, eq=False, repr=False)
class ListSubmissions(Call[list[Submission]]):
    """Read several submissions, and everything else that the same listing shows.

    Attributes:
        expected: The submissions for which it is made, by pk.
        since: List only those submitted later, and shortly before.
    """

    name = "listing"
    expected: Collection[int] = ()
    since: datetime | None = None

    def perform(self, resource: Client) -> list[Submission]:
        """Request the listing."""
        return resource.submissions(submitted_after=None if self.since is None else self.since - OVERLAP)

    def outcome(self, tx: Transaction, result: list[Submission], now: datetime) -> None:
        """Process what has changed."""
        challenge = self.context.configuration.evalai.challenge
        phases, asked_at = our_phases(self.context.configuration, self.session), self.began_at
        changed = []
        for start in range(0, len(result), facts.PORTION):
            portion = result[start : start + facts.PORTION]
            changed += news(tx, portion, challenge=challenge, phases=phases, asked_at=asked_at)
        for read in changed:
            facts.link_rerun(tx, read)
        for read in changed:
            facts.take_facts(tx, read, challenge=challenge, phases=phases, asked_at=asked_at, now=now)
        tx.resolve_alert(f"evalai.{ListSubmissions.name}")  # the whole listing has everything that one had

    def recorded(self, result: list[Submission], now: datetime) -> None:
        """Note that it was done: every listing shows the latest submissions; and which of those expected it lacks."""
        self.context.timetable.done(RECENT, now)
        self.session.missed |= set(self.expected) - {read.pk for read in result}


class Reconcile(ListSubmissions):
    """Compare the whole listing with the database, in case the queue or the worker has lost something."""

    name = "reconcile"

    def outcome(self, tx: Transaction, result: list[Submission], now: datetime) -> None:
        """Process what has changed, and report what only the whole listing shows."""
        super().outcome(tx, result, now)
        tx.set_fact("reconciled_at", now.isoformat())
        self.session.unlisted = facts.unlisted(tx, {read.pk for read in result}, since=self.began_at)
        facts.tell_of_earlier(tx, now=now)
        uploads.tell_of_old(tx, now=now)
        waiting.tell(tx, self.context.configuration, now=now)

    def recorded(self, result: list[Submission], now: datetime) -> None:
        """Note when it was done."""
        super().recorded(result, now)
        self.context.timetable.done(RECONCILE, now)
