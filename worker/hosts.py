"""Hosts: which submissions are the organizers' own.

EvalAI tells a submission's author by number and the members of the host team by name. One listing joins the two: that of a phase, which
tells authors by name. So an author is looked up once, with the first submission, and all at once where many are new. What cannot be read
delays nothing: until it can, a team that is called as EvalAI calls those of hosts counts as theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from scoring.errors import NeucoError, OrganizerError
from worker.connection import Remote
from worker.context import Context
from worker.evalai import Account, Client, Throttled, TokenRefused
from worker.line import Line
from worker.readings import TOGETHER
from worker.state import Tracked, Transaction
from worker.state.records import is_host_team
from worker.states import COUNTED, State

FRESH_FOR = timedelta(minutes=10)  # the members, when an author is new
READ_EVERY = timedelta(hours=6)  # the members, when nobody is
PAGES = 4  # of a listing that are read at once
VAIN_TRIES = 3  # then the organizer is told
KNOWN_HOSTS = "hosts"
UNSCORED = frozenset({State.RECEIVED, State.ACKNOWLEDGED, State.FETCHED, State.SCORING})


class Hosts:
    """Finds out who the challenge's hosts are, and which submissions are theirs.

    Args:
        context: The worker's surroundings.
        line: To EvalAI.
    """

    def __init__(self, context: Context, line: Line) -> None:
        self._context = context
        self._line = line
        self._remote: Remote | None = None
        self._account: Account | None = None  # whose token ours is
        self._read_at: datetime | None = None
        self._again_at: datetime | None = None  # after a failure
        self._vain = 0  # failures in a row, of the errand that failed last
        self._failing = ""
        self._hidden: set[int] = set()  # authors that no page has shown: their teams are asked for

    def step(self, remote: Remote | None, now: datetime, *, scored: bool = False) -> bool:
        """Make the next call, if one is needed: for the hosts' names, or for those of new authors.

        Args:
            remote: What EvalAI says of our challenge, the host team's number in it; without that nothing is asked.
            now: The time.
            scored: Whether it is asked only if a submission is scored: its board follows. Else authors wait for company for a while.
        """
        if remote is not self._remote:  # at a start, and after a reload: the token may be another host's
            self._remote, self._account, self._read_at, self._again_at = remote, None, None, None
        if remote is None or remote.host_team_pk is None:
            return False
        if self._again_at is not None and now < self._again_at <= now + READ_EVERY:
            return False
        team_pk = remote.host_team_pk
        with self._context.store.read() as tx:
            unknown = tx.authors_unknown()
        if scored:
            unknown.sort(key=lambda known: known.state is not State.SCORED)
            if not unknown or unknown[0].state is not State.SCORED:
                return False
        elif all(_waits_for_company(known, now) for known in unknown):
            unknown = []
        account = self._account
        age = FRESH_FOR if unknown else READ_EVERY
        if self._read_at is None or not now - age < self._read_at <= now:
            return self._line.start(
                "hosts",
                lambda client: (client.host_names(team_pk), account or client.account()),
                lambda read, at: self._take_hosts(read[0], read[1], at),
                now,
                failed=lambda error, at: self._put_off("hosts", error, at),
            )
        return bool(unknown) and self._look_up(unknown, now)

    def _take_hosts(self, names: frozenset[str], account: Account, at: datetime) -> None:
        """Record who the hosts are. If others joined or left, all authors are looked up again."""
        self._succeeded("hosts", at)
        self._read_at, self._account = at, account
        with self._context.store.write() as tx:
            numbers = _numbers(tx)
            if set(numbers) != names:
                tx.forget_hosts()
                numbers = {name: numbers.get(name) for name in names}
            if account.name in numbers:
                numbers[account.name] = account.pk
            _keep(tx, numbers)
            _decide(tx, tx.authors_unknown(), {account.pk: account.name}, numbers)

    def _look_up(self, unknown: list[Tracked], now: datetime) -> bool:
        with self._context.store.read() as tx:
            numbers = _numbers(tx)
        if None not in numbers.values():  # every host's number is known, so nobody has to be asked for
            with self._context.store.write() as tx:
                _decide(tx, unknown, {known.created_by: "" for known in unknown}, numbers)
            return True
        phase_pk = unknown[0].phase_pk or 0
        there = [known for known in unknown if known.phase_pk == phase_pk]
        hidden = [known for known in there if known.created_by in self._hidden]
        alone = len({known.created_by for known in there}) == 1
        if hidden or alone:
            one = (hidden or there)[0]
            return self._ask(phase_pk, [one], now, team=one.team or "")
        return self._ask(phase_pk, there, now)

    def _ask(self, phase_pk: int, wanted: list[Tracked], now: datetime, *, team: str | None = None) -> bool:
        authors = {known.pk: known.created_by for known in wanted}

        def call(client: Client) -> dict[int | None, str]:
            names: dict[int | None, str] = {}
            for page in range(1, PAGES + 1):
                listed = client.authors(phase_pk, page=page, team=team)
                names |= {authors[pk]: name for pk, name in listed.items() if pk in authors}
                if not listed or len(names) == len(set(authors.values())):
                    break
            return names

        def done(names: Mapping[int | None, str], at: datetime) -> None:
            self._succeeded("authors", at)
            missing = [known for known in wanted if known.created_by not in names]
            with self._context.store.write() as tx:
                numbers = _numbers(tx)
                for known in wanted:
                    name = names.get(known.created_by, "")
                    if name in numbers:
                        numbers[name] = known.created_by
                _keep(tx, numbers)
                _decide(tx, wanted, names, numbers)
                if team is not None:  # EvalAI does not list it: its team's name must do
                    for known in missing:
                        _settle(tx, known, host=is_host_team(known.team))
            if team is None:
                self._hidden |= {known.created_by for known in missing if known.created_by is not None}

        return self._line.start(
            "authors", call, done, now, failed=lambda error, at: self._put_off("authors", error, at)
        )

    def _succeeded(self, errand: str, at: datetime) -> None:
        if self._failing in ("", errand):
            self._vain, self._again_at, self._failing = 0, None, ""
            self._context.over("evalai.hosts", now=at)

    def _put_off(self, errand: str, error: NeucoError, at: datetime) -> None:
        """Try again, ever more rarely; nothing waits for it."""
        self._failing = errand
        self._again_at = at + timedelta(minutes=min(60, 2**self._vain))
        self._vain = min(self._vain + 1, 10)
        if isinstance(error, TokenRefused | Throttled):
            return
        if isinstance(error, OrganizerError) or self._vain >= VAIN_TRIES:
            trouble = OrganizerError(
                f"Who the challenge's hosts are cannot be read: {error.sentence}",
                cure="Until it can, only submissions of teams called Host_<number>_Team count as the organizers' own.",
                code="evalai.hosts_unknown",
            )
            self._context.trouble("evalai.hosts", trouble, now=at)


def _waits_for_company(known: Tracked, now: datetime) -> bool:
    return known.state in UNSCORED and now - TOGETHER < known.first_seen_at <= now


def _numbers(tx: Transaction) -> dict[str, int | None]:
    """Return the hosts' names with their numbers, as far as they are known."""
    numbers: dict[str, int | None] = json.loads(tx.fact(KNOWN_HOSTS) or "{}")
    return numbers


def _keep(tx: Transaction, numbers: Mapping[str, int | None]) -> None:
    tx.set_fact(KNOWN_HOSTS, json.dumps(numbers, sort_keys=True))


def _decide(
    tx: Transaction,
    submissions: Iterable[Tracked],
    names: Mapping[int | None, str],
    numbers: Mapping[str, int | None],
) -> None:
    """Record of submissions by authors with these names whether a host sent them."""
    hosts = {number for number in numbers.values() if number is not None}
    for known in submissions:
        if known.created_by in hosts or known.created_by in names:
            _settle(tx, known, host=known.created_by in hosts)


def _settle(tx: Transaction, known: Tracked, *, host: bool) -> None:
    if known.created_by is None:
        return
    tx.set_host(known.created_by, host=host)
    if known.state in COUNTED:
        tx.ask_for_round()  # the board may have shown it otherwise
