"""Authors: find out which submissions are the organizers' own, and whether the author of each belongs to its team.

Whether a submission is the organizers' own is decided once, by a list of the hosts that was read after it was sent, and stays so when
somebody leaves or joins the hosts. EvalAI gives a submission's author by number, but hosts and the members of teams by name. Only the
listing of a phase, which gives authors by name, connects the two. So each submission is looked up there once, many new ones together, while
EvalAI shows it as it was first seen: somebody may have changed it meanwhile. A lookup delays nothing: until one succeeds, a submission is
a participant's, and an author counts as a member of the team.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from scoring.errors import NeucoError, OrganizerError
from scoring.printable import name_some
from worker.challenge.context import Context, Job
from worker.evalai import Author, Client
from worker.intake import holds, senders
from worker.intake.calls import Call, CallRunner
from worker.intake.session import BATCH_WINDOW, OVERLAP, Session
from worker.runtime.acts import Result
from worker.state import COUNTED, UNSCORED, State, SubmissionRow, Transaction

HOSTS = Job("hosts", lambda _: 6 * 3600)  # reads the members if there is no new author
KNOWN_HOSTS = "hosts"  # the fact with their names, and when these were read
AUTHORS = "authors"  # the fact with the names of all authors, see `_author`
PAGES = "author_pages"  # the fact with the next page of each phase's listing that is being read
CHANGED = "evalai.hosts_changed"
UNLISTED_FOR = timedelta(minutes=10)  # until a submission that no page showed is looked up again
NOT_A_MEMBER = "its author was not a member of the team"
TAKEN_OFF = (
    "It was scored before this could be checked, and was taken off the board. If the team did send it, put it back with"
    " `neuco-worker challenge disqualify {} --undo`."
)


def next_lookup(
    context: Context,
    session: Session,
    runner: CallRunner,
    tx: Transaction,
    now: datetime,
    *,
    unknown: list[SubmissionRow],
    urgent: bool = False,
    chosen: SubmissionRow | None = None,
) -> Call[Any] | None:
    """Return the next call, if one is needed: for the hosts' names, or for those of new authors.

    Args:
        context: The worker's surroundings.
        session: The session with EvalAI.
        runner: The runner of the calls, which knows which of them failed recently.
        tx: The state.
        now: The time.
        unknown: As :func:`unknown_authors`.
        urgent: Whether to ask only for authors of scored submissions, whose boards come next, and of the one that is scored next.
            Other authors wait a while, so that several are looked up together.
        chosen: The submission that is scored next.
    """
    if session.remote is None or session.remote.host_team_pk is None:
        return None
    if urgent:
        first = {row.pk for row in unknown if row.state is State.SCORED or (chosen and row.pk == chosen.pk)}
        if not first:
            return None
        unknown = sorted(unknown, key=lambda row: row.pk not in first)
    elif all(row.state in UNSCORED and now - BATCH_WINDOW < row.first_seen_at <= now for row in unknown):
        unknown = []  # so that new authors are looked up together
    hosts, names = (tx.document(KNOWN_HOSTS), tx.document(AUTHORS)) if unknown else ({}, {})
    newer = any(
        row.by_host is None and not is_older(row, hosts) and row.first_seen_at <= now for row in unknown
    )
    if context.timetable.due(HOSTS) or newer:
        read = ReadHosts(context=context, session=session, team_pk=session.remote.host_team_pk)
        return read if runner.due(read.name, now) else None
    unnamed = [row for row in unknown if row.by_member is None or _author(row) not in names]
    if not unnamed or not runner.due(FindAuthors.name, now):
        return None
    phase_pk = unnamed[0].phase_pk or 0
    wanted = {row.pk: row for row in unnamed if row.phase_pk == unnamed[0].phase_pk}
    page, newest = _place(tx, phase_pk)
    if max(wanted) > newest:
        page = 1
    if urgent and page > 1:
        return None
    return FindAuthors(
        context=context,
        session=session,
        phase_pk=phase_pk,
        wanted=wanted,
        names=names,
        page=page,
    )


def unknown_authors(session: Session, tx: Transaction, now: datetime) -> list[SubmissionRow]:
    """Return the submissions whose author is unknown, except those that no page showed a while ago."""
    unlisted = {pk for pk, moment in session.unseen.items() if moment <= now < moment + UNLISTED_FOR}
    return [row for row in _undecided(tx) if row.pk not in unlisted]


def _undecided(tx: Transaction) -> list[SubmissionRow]:
    """Return the submissions whose author is unknown, and that EvalAI shows as they were first seen."""
    return [
        row
        for row in tx.authors_unknown()
        if {"team": row.team_key, "phase": row.phase_pk, "author": row.created_by, "deleted": False}.items()
        <= row.at_evalai.items()
    ]


def _place(tx: Transaction, phase_pk: int) -> tuple[int, int]:
    """Return which page of a phase's listing is read next, and the newest submission that was looked for on the pages before."""
    page, newest = tx.document(PAGES).get(str(phase_pk), (1, 0))
    return page, newest


def _author(row: SubmissionRow) -> str:
    """Return team and number of an author: anybody may write another number there for a moment, so only a name among the team's counts."""
    return f"{row.team_key}:{row.created_by}"


@dataclass(kw_only=True, eq=False, repr=False)
class HostsCall(Call[Result]):
    """A call that finds out who the hosts are; nothing waits for it."""

    unhurried: ClassVar[bool] = True

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Raise an alert if failures go on."""
        if self.is_told(error, self.retry.tries):
            trouble = OrganizerError(
                f"The hosts of the challenge cannot be read from EvalAI: {error.sentence}",
                hint="The worker tries again. Until then, no new submission counts as the organizers' own.",
                code="evalai.hosts_unknown",
            )
            tx.report(f"evalai.{self.name}", trouble, now=now)


@dataclass(kw_only=True, eq=False, repr=False)
class ReadHosts(HostsCall[frozenset[str]]):
    """Read the hosts' names.

    Attributes:
        team_pk: The host team.
    """

    name = "hosts"
    team_pk: int

    def perform(self, resource: Client) -> frozenset[str]:
        """Ask for the team."""
        return resource.host_names(self.team_pk)

    def outcome(self, tx: Transaction, result: frozenset[str], now: datetime) -> None:
        """Record who the hosts are, and tell if others joined or left."""
        before = frozenset(tx.document(KNOWN_HOSTS).get("names", result))
        tx.set_fact(KNOWN_HOSTS, json.dumps({"names": sorted(result), "read_at": self.began_at.isoformat()}))
        if result != before:
            _tell_of_change(tx, joined=result - before, left=before - result, now=now)
        _decide(tx, _undecided(tx))

    def recorded(self, result: frozenset[str], now: datetime) -> None:
        """Note when they were read."""
        self.context.timetable.done(HOSTS, now)


def _tell_of_change(tx: Transaction, *, joined: frozenset[str], left: frozenset[str], now: datetime) -> None:
    names, own = tx.document(AUTHORS), [row for row in tx.submissions() if row.own]
    sentences = []
    for name in sorted(left):
        sent = [str(row.pk) for row in own if names.get(_author(row)) == name]
        stay = (
            f"; what this account sent as a host stays the organizers' own: {name_some(sent, 20)}"
            if sent
            else ""
        )
        sentences.append(f"{name!r} left the challenge's hosts at EvalAI{stay}.")
    sentences += [
        f"{name!r} joined the challenge's hosts at EvalAI; only what this account sends from now on is the organizers' own."
        for name in sorted(joined)
    ]
    tx.raise_alert(CHANGED, CHANGED, " ".join(sentences), now=now, happened=True)


@dataclass(kw_only=True, eq=False, repr=False)
class FindAuthors(HostsCall["dict[int, Author]"]):
    """Find the authors of submissions by name, and the members of their teams, on a page of a phase's listing, newest first.

    What is not there is looked for on the next pages, with a call for each. The next page is recorded, so that a restart repeats none.

    Attributes:
        phase_pk: The phase.
        wanted: Submissions of the authors, all to this phase, by pk.
        names: The names of authors that are known.
        page: The page.
    """

    name = "authors"
    phase_pk: int
    wanted: Mapping[int, SubmissionRow]
    names: Mapping[str, str]
    page: int

    def perform(self, resource: Client) -> dict[int, Author]:
        """Read the page; return submission to author, for all that are listed with the author who was first seen.

        A name that is new for a number counts only if EvalAI still shows the same number after the page was read.
        """
        listed = resource.authors(self.phase_pk, page=self.page)
        names = {pk: self.names.get(_author(row)) for pk, row in self.wanted.items() if pk in listed}
        sent = [self.wanted[pk].submitted_at for pk, name in names.items() if not name]
        times = [moment for moment in sent if moment is not None]
        after = resource.submissions(submitted_after=min(times) - OVERLAP) if times else []
        authors = {read.pk: read.created_by for read in after}
        for pk, name in names.items():
            is_author = listed[pk].user == name if name else authors.get(pk) == self.wanted[pk].created_by
            if not is_author:
                del listed[pk]
        return listed

    def outcome(self, tx: Transaction, result: dict[int, Author], now: datetime) -> None:
        """Record which submissions are the hosts', and whose authors belong to their teams; what is not listed is read again."""
        self._turn_page(tx, result)
        found = {
            _author(row): result[pk].user
            for pk, row in self.wanted.items()
            if pk in result and result[pk].team == row.team and result[pk].is_member
        }
        tx.set_fact(AUTHORS, json.dumps(tx.document(AUTHORS) | found, sort_keys=True))
        _decide(tx, _undecided(tx))
        for pk, row in self.wanted.items():
            if pk in result:
                _compare_team(tx, row, result[pk], now=now)
                if row.by_member is None and (fresh := tx.known(pk)).by_member:
                    senders.check(tx, fresh, result, now=now)
            elif not result:
                tx.note(pk, read_at=None)

    def recorded(self, result: dict[int, Author], now: datetime) -> None:
        """Note what no page showed, or only with another name of its team, which can change again and again."""
        for pk, row in self.wanted.items():
            if not result or (pk in result and result[pk].team != row.team):
                self.session.unseen[pk] = now

    def _turn_page(self, tx: Transaction, result: dict[int, Author]) -> None:
        """Record which page comes next: the second if a new submission is not on the first; none if all were found, or after the last."""
        page, newest = _place(tx, self.phase_pk)
        pages, missing = tx.document(PAGES), self.wanted.keys() - result.keys()
        pages.pop(str(self.phase_pk), None)
        if result and missing:
            page = 2 if max(missing) > newest else max(page, self.page + 1)
            renamed = [pk for pk, row in self.wanted.items() if pk in result and result[pk].team != row.team]
            newest = min(
                [max([newest, *self.wanted]), *(pk - 1 for pk in renamed)]
            )  # these are looked for again
            pages[str(self.phase_pk)] = page, newest
        tx.set_fact(PAGES, json.dumps(pages))


def _compare_team(tx: Transaction, row: SubmissionRow, author: Author, *, now: datetime) -> None:
    """Record whether a submission's author belongs to its team: if not, it is put on hold, or taken off the board once it was scored."""
    if author.team != row.team:
        tx.note(row.pk, read_at=None)  # it was moved, or its team has a new name
        return
    tx.note(row.pk, by_member=author.is_member)
    if author.is_member:
        return
    fresh = tx.known(row.pk)
    tx.note(row.pk, by_host=False)  # somebody has written a host's number there
    error = holds.not_a_member(fresh)
    if fresh.state in UNSCORED:
        holds.hold(tx, fresh, error, now=now)
    elif fresh.excluded is None and not fresh.insisted:
        tx.note(row.pk, excluded=NOT_A_MEMBER)
        tx.request_publish()
        tx.raise_alert(
            f"sender:{row.pk}",
            error.code,
            f"{error.sentence} {TAKEN_OFF.format(row.pk)}",
            now=now,
            happened=True,
        )


def _decide(tx: Transaction, submissions: Iterable[SubmissionRow]) -> None:
    """Record of submissions whether a host sent them, if the list of hosts is newer, and their authors' names are known; for good."""
    hosts, names = tx.document(KNOWN_HOSTS), tx.document(AUTHORS)
    for row in submissions:
        name = names.get(_author(row))
        if row.by_host is None and name is not None and is_older(row, hosts):
            tx.note(row.pk, by_host=name in hosts["names"])
            if row.state in COUNTED:
                tx.request_publish()  # the board may be wrong about it


def is_older(row: SubmissionRow, hosts: Mapping[str, Any]) -> bool:
    """Return whether the hosts were read after a submission was sent."""
    return "read_at" in hosts and row.first_seen_at <= datetime.fromisoformat(hosts["read_at"])
