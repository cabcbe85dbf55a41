"""A round of drand: fetch it from one of the servers, check it, and mix it into the splits of the phases that wait for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar
from urllib.parse import urlsplit

import requests
import urllib3

from scoring.errors import InfrastructureError, NeucoError
from worker.challenge.context import Context
from worker.challenge.files import read_secret
from worker.fairness import commitments, draws
from worker.fairness.drand import Chain, is_signed, value_of
from worker.fairness.draws import Draw
from worker.runtime import Act
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
        open_ones = draws.waiting(tx.public_commitments())
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
