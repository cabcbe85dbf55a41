"""Public random values: fetch the value that phases wait for once it exists, check it, and mix it into their splits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar
from urllib.parse import urlsplit

import requests
import urllib3

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.challenge.context import Context
from worker.challenge.files import read_secret
from worker.evalai import Retry
from worker.fairness import commitments, draws
from worker.fairness.commitments import commit
from worker.fairness.drand import Chain, is_signed, value_of
from worker.fairness.draws import Draw
from worker.runtime import Act, Runner
from worker.runtime.user_agent import USER_AGENT
from worker.state import Transaction

UNREACHABLE = "beacon.unreachable"
TIME_OUT_S = 10.0  # for one server
LARGEST = 10_000  # bytes of a response


class FetchRound(Act[requests.Session, str]):
    """Fetch a round's signature.

    Args:
        context: The worker's surroundings.
        awaited: The draws that wait for it: at least one, and all of the same round.
    """

    name = "drand"
    what: ClassVar[str] = "The request for a round of drand"
    time_out_s = 60.0

    def __init__(self, context: Context, awaited: Sequence[Draw]) -> None:
        self._context = context
        self._awaited = {draw.phase: draw for draw in awaited}
        self._draw = awaited[0]

    def perform(self, resource: requests.Session) -> str:
        """Ask one server after another; a response must be signed by the chain."""
        chain, number = self._draw.chain, self._draw.round
        if chain is None or number is None:
            raise ValueError("a draw without a round")
        servers = self._context.configuration.fairness.drand_servers
        for server in servers:
            signature = _signature(_ask(resource, server, chain, number))
            if signature is not None and is_signed(chain, number, signature):
                return signature
        hosts = ", ".join(urlsplit(server).netloc for server in servers)
        raise InfrastructureError(
            f"No server of {chain.name} returned round {number} ({hosts}).",
            cure="The worker tries again. If a firewall blocks these servers, list others in fairness.drand_servers. Every answer is"
            " checked, so any mirror is safe.",
            code=UNREACHABLE,
        )

    def outcome(self, tx: Transaction, result: str, now: datetime) -> None:
        """Mix the value in, except where another commitment has meanwhile changed what a phase waits for."""
        open_ones = draws.waiting(commitments.public(tx))
        round_value = {"round": self._draw.round, "signature": result, "value": value_of(result)}
        phases = [name for name in self._awaited if open_ones.get(name) == self._awaited[name]]
        if not phases:
            return
        commitments.mix_in(
            tx,
            read_secret(self._context.configuration),
            dict.fromkeys(phases, round_value),
            reason=f"round {self._draw.round} of {self._draw.source} was mixed in",
            now=now,
        )
        tx.resolve_alert(UNREACHABLE, now=now)
        tx.request_publish()

    def recorded(self, result: str, now: datetime) -> None:
        """Log which phases the round decides."""
        sentence = f"Round {self._draw.round} of {self._draw.source} decides the splits of {', '.join(self._awaited)}."
        self._context.log.info(sentence, event_key="beacon.drawn")

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell the organizer; the phases wait."""
        self._context.report(tx, UNREACHABLE, error, now=now)


def drand_session() -> requests.Session:
    """Return a session for drand's servers that ignores proxies and credentials of the environment."""
    session = requests.Session()
    session.trust_env = False
    session.headers["User-Agent"] = USER_AGENT
    return session


def latest_round(session: requests.Session, server: str, chain: Chain) -> bool:
    """Return whether a server returns the newest round of the chain; the round is not checked."""
    return _signature(_ask(session, server, chain, "latest")) is not None


def _ask(session: requests.Session, server: str, chain: Chain, number: int | str) -> bytes:
    """Return a server's response about a round, empty after a failure. It is unchecked: the caller checks it."""
    try:
        with session.get(
            f"{server.rstrip('/')}/{chain.hash}/public/{number}",
            timeout=TIME_OUT_S,
            allow_redirects=False,
            stream=True,
        ) as response:
            if response.status_code != requests.codes.ok:
                return b""
            return bytes(response.raw.read(LARGEST, decode_content=True))
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError):
        return b""


def _signature(content: bytes) -> str | None:
    try:
        return str(json.loads(content)["signature"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


NEAR, LATEST = timedelta(minutes=15), timedelta(minutes=1)
LOOK_EVERY = timedelta(seconds=60)  # a command may have committed meanwhile
_PUSHED = "commitments_pushed"


def record_commitments(tx: Transaction, listed: bytes | None, *, now: datetime) -> None:
    """Record how many commitments are public, and since when."""
    number = len(json.loads(listed or b"[]"))
    if number > pushed_commitments(tx)[0]:
        tx.set_fact(_PUSHED, json.dumps([number, now.isoformat()]))


def pushed_commitments(tx: Transaction) -> tuple[int, datetime | None]:
    """Return how many commitments are public, and since when there are so many."""
    number, since = json.loads(tx.fact(_PUSHED) or "[0, null]")
    return int(number), None if since is None else datetime.fromisoformat(since)


class BeaconFetcher:
    """Fetches the public values that phases wait for.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._session = drand_session()
        self._runner: Runner[requests.Session] = Runner(
            "drand", context.store, wake=context.wake, checkpoint=context.checkpoint
        )
        self._retry = Retry()
        self._look_at: datetime | None = None
        self.awaited: datetime | None = None

    @property
    def busy(self) -> bool:
        """Whether a value is being fetched."""
        return self._runner.busy

    def is_near(self, now: datetime) -> bool:
        """Return whether an awaited value is due soon, so that it is worth waiting for."""
        return self.awaited is not None and now - LATEST < self.awaited < now + NEAR

    def reload(self) -> None:
        """Look for awaited values at once."""
        self._look_at = None

    def step(self, now: datetime) -> bool:
        """Fetch the next value that is due; return whether anything moved."""
        ended = self._runner.collect(now)
        if ended is not None:
            self._look_at = None
            if ended.error is None:
                self._retry.clear()
            else:
                self._retry.failed(now, again_at=self._context.retry_at(now, self._retry.tries))
            return True
        if (
            self._runner.busy
            or not self._retry.due(now)
            or (self._look_at is not None and now < self._look_at)
        ):
            return False
        with self._context.store.read() as tx:
            awaited = sorted(draws.waiting(commitments.public(tx)).values(), key=lambda draw: draw.at)
            pushed, since = pushed_commitments(tx)
        self.awaited = awaited[0].at if awaited else None
        self._look_at = now + LOOK_EVERY
        for draw in awaited:
            if draw.at > now:
                self._look_at = min(self._look_at, draw.at)
            elif draw.chain is None:
                self._ask_for(draw, now)
            else:
                together = [other for other in awaited if other.round == draw.round]
                in_time = pushed >= draw.sequence and since is not None and since < draw.at
                return self._draw(together, now) if in_time else self._name_again(together, now)
        return False

    def _draw(self, together: Sequence[Draw], now: datetime) -> bool:
        return self._runner.start(FetchRound(self._context, together), self._session, now)

    def _name_again(self, together: Sequence[Draw], now: datetime) -> bool:
        """Name a later round, because the commitment to this one was not public before the round existed."""
        configuration, chain = self._context.configuration, together[0].chain
        notice = timedelta(seconds=configuration.fairness.beacon_notice)
        draw = None if chain is None else draws.name(draws.DRAND, chain, now, notice=notice)
        if draw is None:
            return False
        secret = read_secret(configuration)
        with self._context.store.write() as tx:
            commit(
                tx,
                secret,
                (),
                draws=dict.fromkeys((waiting.phase for waiting in together), draw),
                reason=f"the commitment before was not published before round {together[0].round} was made",
                now=now,
            )
            tx.request_publish()
        self._look_at = None
        return True

    def _ask_for(self, draw: Draw, now: datetime) -> None:
        """Ask the organizer for the value, which is due."""
        error = OrganizerError(
            f"Phase {draw.phase} is waiting for the value of {draw.source}, which was due on {draw.at:%Y-%m-%d at %H:%M} UTC.",
            cure="Run `neuco-worker challenge apply --beacon VALUE`. Until then, nothing is scored in the phase.",
            code=draws.AWAITED,
        )
        self._context.raise_alert(draws.alert_key(draw.phase), error, now=now)
