"""Authors: find out which submissions are the organizers' own, and whether the author of each belongs to its team.

EvalAI gives a submission's author by number, but the members of teams by name. Only the listing of a phase, which gives authors by name,
connects the two. So an author is looked up once for each team, with the first submission, and many new authors are looked up together. A
failed reading delays nothing: until it succeeds, a team with a name like those that EvalAI gives to host teams counts as the hosts', and
an author counts as a member of the team.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any, ClassVar

from scoring.errors import NeucoError, OrganizerError
from worker.challenge.context import Context
from worker.challenge.timetable import Job
from worker.evalai import Account, Author, Client, Throttled, TokenRefused
from worker.intake import facts
from worker.intake.calls import Call, CallRunner
from worker.intake.session import TOGETHER, Remote, Session
from worker.runtime import Result
from worker.state import COUNTED, State, SubmissionRow, Transaction, is_host_team

HOSTS = Job("hosts", lambda _: 6 * 3600)  # reads the members if there is no new author
FRESH_FOR = timedelta(minutes=10)  # age of the list of members that is good enough for a new author
VAIN_TRIES = 3  # after which the organizer is told
KNOWN_HOSTS = "hosts"  # the fact with their names and their numbers, where those are known
STRANGER = "its author was not a member of the team"
TAKEN_OFF = (
    "It was answered before this could be checked, and was taken off the board. If the team did send it, put it back with"
    " `neuco-worker challenge disqualify --undo`."
)
UNSCORED = frozenset({State.RECEIVED, State.ACKNOWLEDGED, State.FETCHED, State.SCORING})


class Hosts:
    """Decides which lookup comes next: the hosts' names, or the authors of submissions.

    Args:
        context: The worker's surroundings.
        session: The session with EvalAI.
        runner: The runner of the calls, which knows which of them failed recently.
    """

    def __init__(self, context: Context, session: Session, runner: CallRunner) -> None:
        self.context = context
        self._session = session
        self.runner = runner
        self._remote: Remote | None = None
        self.account: Account | None = None  # owner of our token

    def next_call(self, tx: Transaction, now: datetime, *, scored: bool = False) -> Call[Any] | None:
        """Return the next call, if one is needed: for the hosts' names, or for those of new authors.

        Args:
            tx: The state.
            now: The time.
            scored: Whether to ask only for authors of scored submissions, whose boards come next. Other authors wait a while, so that
                several are looked up together.
        """
        remote = self._session.remote
        # at the start and after a reload: the token may belong to another host
        if remote is not self._remote:
            self._remote, self.account = remote, None
            self.context.timetable.ask(HOSTS)
        if remote is None or remote.host_team_pk is None:
            return None
        unknown = tx.authors_unknown()
        if scored:
            unknown.sort(key=lambda row: row.state is not State.SCORED)
            if not unknown or unknown[0].state is not State.SCORED:
                return None
        elif all(row.state in UNSCORED and now - TOGETHER < row.first_seen_at <= now for row in unknown):
            unknown = []  # so that new authors are looked up together
        if self.context.timetable.due(HOSTS) or (unknown and not self._fresh(now)):
            return ReadHosts(self, remote.host_team_pk) if self.runner.due(ReadHosts.name, now) else None
        if not unknown or not self.runner.due(FindAuthors.name, now):
            return None
        return FindAuthors(self, [row for row in unknown if row.phase_pk == unknown[0].phase_pk])

    def _fresh(self, now: datetime) -> bool:
        """Return whether the members were read recently enough to compare a new author with them."""
        read_at = self.context.timetable.done_at(HOSTS)
        return read_at is not None and now - FRESH_FOR < read_at <= now


class HostsCall(Call[Result]):
    """A call that finds out who the hosts are; nothing waits for it.

    Args:
        hosts: What is known of the hosts.
    """

    unhurried: ClassVar[bool] = True

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Raise an alert if failures go on."""
        if isinstance(error, TokenRefused | Throttled):
            return
        if isinstance(error, OrganizerError) or self._hosts.runner.tries(self.name) + 1 >= VAIN_TRIES:
            trouble = OrganizerError(
                f"The hosts of the challenge cannot be read from EvalAI: {error.sentence}",
                cure="The worker tries again. Until then, only submissions of teams named Host_<number>_Team count as the organizers' own.",
                code="evalai.hosts_unknown",
            )
            self._hosts.context.report(tx, f"evalai.{self.name}", trouble, now=now)


class ReadHosts(HostsCall[tuple[frozenset[str], Account]]):
    """Read the hosts' names, and who owns our token.

    Args:
        hosts: What is known of the hosts.
        team_pk: The host team.
    """

    name = "hosts"

    def __init__(self, hosts: Hosts, team_pk: int) -> None:
        super().__init__(hosts)
        self._team_pk = team_pk
        self._account = hosts.account

    def perform(self, resource: Client) -> tuple[frozenset[str], Account]:
        """Ask for the team, and the first time for our own account."""
        return resource.host_names(self._team_pk), self._account or resource.account()

    def outcome(self, tx: Transaction, result: tuple[frozenset[str], Account], now: datetime) -> None:
        """Record who the hosts are. If others joined or left, all authors are looked up again."""
        names, account = result
        tx.resolve_alert(f"evalai.{self.name}")
        numbers = tx.document(KNOWN_HOSTS)
        if set(numbers) != names:
            tx.forget_hosts()
            numbers = {name: numbers.get(name) for name in names}
        if account.name in numbers:
            numbers[account.name] = account.pk
        _keep(tx, numbers)
        _decide(tx, tx.authors_unknown(), {account.pk: account.name}, numbers)

    def recorded(self, result: tuple[frozenset[str], Account], now: datetime) -> None:
        """Note when they were read, and who owns our token."""
        self._hosts.account = result[1]
        self._hosts.context.timetable.done(HOSTS, now)


class FindAuthors(HostsCall["dict[int, Author]"]):
    """Find the authors of submissions by name, and the members of their teams, in a phase's listing.

    Args:
        hosts: What is known of the hosts.
        wanted: Submissions of the authors, all to one phase.
    """

    name = "authors"

    def __init__(self, hosts: Hosts, wanted: Sequence[SubmissionRow]) -> None:
        super().__init__(hosts)
        self._phase_pk = wanted[0].phase_pk or 0
        self._wanted = {row.pk: row for row in wanted}

    def perform(self, resource: Client) -> dict[int, Author]:
        """Read pages until every submission was found or no page is left; return submission to author."""
        # Not by team: a submission that names another team by now would be missing, and so be believed.
        authors: dict[int, Author] = {}
        for page in count(1):
            listed = resource.authors(self._phase_pk, page=page)
            authors |= {pk: author for pk, author in listed.items() if pk in self._wanted}
            if not listed or len(authors) == len(self._wanted):
                break
        return authors

    def outcome(self, tx: Transaction, result: dict[int, Author], now: datetime) -> None:
        """Record which submissions are the hosts', and whose authors belong to their teams; one that EvalAI does not list is believed."""
        tx.resolve_alert(f"evalai.{self.name}")
        numbers = tx.document(KNOWN_HOSTS)
        for pk, author in result.items():
            if author.user in numbers:
                numbers[author.user] = self._wanted[pk].created_by
        _keep(tx, numbers)
        users = {self._wanted[pk].created_by: author.user for pk, author in result.items()}
        _decide(tx, [self._wanted[pk] for pk in result], users, numbers)
        for pk, row in self._wanted.items():
            if pk in result:
                _compare_team(tx, row, result[pk], now=now)
            else:
                _settle(tx, row, host=is_host_team(row.team))
                tx.note(pk, by_member=True)


def _compare_team(tx: Transaction, row: SubmissionRow, author: Author, *, now: datetime) -> None:
    """Record whether a submission's author belongs to its team: if not, it is put on hold, or taken off the board once it was answered.

    If EvalAI lists it under another team by now, nothing follows from that team's members: it is believed, and the change is told.
    """
    if author.team != row.team:
        moved = row.at_evalai.get("team") != row.team_key
        tx.note(row.pk, **{"by_member": True} if moved else {"read_at": None})  # it may only have a new name
        return
    tx.note(row.pk, by_member=author.is_member)
    fresh = tx.get(row.pk)
    if author.is_member or fresh is None:
        return
    stranger = facts.stranger(fresh)
    if fresh.posted is None:
        facts.hold(tx, fresh, stranger, now=now)
    elif fresh.excluded is None:
        tx.note(row.pk, excluded=STRANGER)
        tx.request_publish()
        tx.raise_alert(f"sender:{row.pk}", stranger.code, f"{stranger.sentence} {TAKEN_OFF}", now=now)


def _keep(tx: Transaction, numbers: Mapping[str, int | None]) -> None:
    tx.set_fact(KNOWN_HOSTS, json.dumps(numbers, sort_keys=True))


def _decide(
    tx: Transaction,
    submissions: Iterable[SubmissionRow],
    names: Mapping[int | None, str],
    numbers: Mapping[str, int | None],
) -> None:
    """Record for submissions by authors with these names whether a host sent them."""
    hosts = {number for number in numbers.values() if number is not None}
    for row in submissions:
        if row.created_by in hosts or row.created_by in names:
            _settle(tx, row, host=row.created_by in hosts)


def _settle(tx: Transaction, row: SubmissionRow, *, host: bool) -> None:
    if row.created_by is None:
        return
    tx.set_host(row.created_by, host=host)
    if row.state in COUNTED:
        tx.request_publish()  # the board may be wrong about it
