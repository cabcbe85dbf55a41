"""Public random values: fetch the value that phases wait for once it exists, check it, and mix it into their splits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar
from urllib.parse import urlsplit

import requests
import urllib3

from scoring.documents import UNREADABLE
from scoring.errors import InfrastructureError, NeucoError
from worker.challenge.context import Context, Job, seconds
from worker.challenge.setups import read_secret
from worker.evalai import Retry
from worker.fairness import commitments
from worker.fairness.drand import Chain, is_signed
from worker.runtime.acts import Act, Runner, Start
from worker.runtime.http import HttpSession, no_credentials
from worker.state import Transaction

UNREACHABLE = "beacon.unreachable"
TIME_OUT_S = 10.0  # for one server
LARGEST = 10_000  # bytes of a response


class FetchRound(Act[requests.Session, str]):
    """Fetch a round's signature.

    Args:
        context: The worker's surroundings.
        awaited: The draws that wait for it, all of one round.
    """

    name = "drand"
    what: ClassVar[str] = "The request for a round of drand"
    time_out_s = 60.0

    def __init__(self, context: Context, awaited: Sequence[commitments.Draw]) -> None:
        self._context = context
        self._draw = awaited[0]
        self._awaited = {draw.phase: draw for draw in awaited}

    def perform(self, resource: requests.Session) -> str:
        """Ask one server after another; a response must be signed by the chain."""
        chain, number = self._draw.chain, self._draw.round
        servers = self._context.configuration.fairness.drand_servers
        for server in servers:
            signature = ask(resource, server, chain, number)
            self.computing = True  # 0.2 seconds for the pairing
            if signature is not None and is_signed(chain, number, signature):
                return signature
            self.computing = False
        hosts = ", ".join(urlsplit(server).netloc for server in servers)
        raise InfrastructureError(
            f"No server of {chain.name} returned round {number} ({hosts}).",
            hint="The worker tries again. If a firewall blocks these servers, list others in fairness.drand_servers. Every answer is"
            " checked, so any mirror is safe.",
            code=UNREACHABLE,
        )

    def outcome(self, tx: Transaction, result: str, now: datetime) -> None:
        """Mix the value in, except where another commitment has meanwhile changed what a phase waits for."""
        tx.resolve_alert(UNREACHABLE)
        waiting = commitments.waiting(tx)
        phases = [name for name, draw in self._awaited.items() if waiting.get(name) == draw]
        if not phases:
            return
        commitments.mix_in(
            tx,
            self._context.signer,
            read_secret(self._context.configuration),
            phases,
            result,
            reason=f"round {self._draw.round} of {self._draw.chain.name} was mixed in",
            now=now,
        )
        tx.request_publish()

    def recorded(self, result: str, now: datetime) -> None:
        """Say what the splits follow from."""
        sentence = f"Round {self._draw.round} of {self._draw.chain.name} is recorded; splits that waited for it follow from it."
        self._context.log.info(sentence, event_key="beacon.drawn", phases=list(self._awaited))

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell the organizer; the phases wait."""
        tx.report(UNREACHABLE, error, now=now)


def ask(session: requests.Session, server: str, chain: Chain, number: int | str) -> str | None:
    """Return the signature of a round, or of the "latest" one, as a server gives it, unchecked; None if it gives none."""
    try:
        with session.get(
            f"{server.rstrip('/')}/{chain.hash}/public/{number}",
            timeout=TIME_OUT_S,
            allow_redirects=False,
            auth=no_credentials,
            stream=True,
        ) as response:
            response.raise_for_status()
            return str(json.loads(response.raw.read(LARGEST, decode_content=True))["signature"])
    except (OSError, urllib3.exceptions.HTTPError, *UNREADABLE):
        return None


NEAR, OVERDUE = timedelta(minutes=15), timedelta(minutes=1)
DRAWS = Job("draws", lambda _: 20)
"""Looks for draws to which a command has committed meanwhile."""
PUBLIC_SINCE = "commitments_public_since"
"""The fact that says when each commitment was pushed."""


class BeaconFetcher:
    """Fetches the public values that phases wait for.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._session = HttpSession()
        self._runner: Runner[requests.Session] = Runner(
            "drand", context.store, wake=context.wake, checkpoint=context.checkpoint
        )
        self._retry = Retry()
        self.awaited: datetime | None = None

    @property
    def busy(self) -> bool:
        """Whether a value is being fetched."""
        return self._runner.busy

    def is_near(self, now: datetime) -> bool:
        """Return whether an awaited value is due soon, so that it is worth waiting for."""
        return self.awaited is not None and now - OVERDUE < self.awaited < now + NEAR

    def collect(self, now: datetime) -> None:
        """Process the result of a request."""
        ended = self._runner.collect(now)
        if ended is None:
            return
        if ended.error is None:
            self._retry = Retry()
        else:
            self._retry.failed(now, again_at=self._context.retry_at(now, self._retry.tries))

    def starts(self, tx: Transaction, now: datetime) -> Iterator[Start]:
        """Yield the start of the request for the next value that is due, or the naming of a later round."""
        exists = self.awaited is not None and self.awaited <= now and self._retry.due(now)
        if self._runner.busy or not (exists or self._context.timetable.due(DRAWS)):
            return
        awaited = sorted(commitments.waiting(tx).values(), key=lambda draw: draw.at)
        public_since = json.loads(tx.fact(PUBLIC_SINCE) or "[]")
        self.awaited = awaited[0].at if awaited else None
        self._context.timetable.done(DRAWS, now)
        if not awaited or awaited[0].at > now:
            return
        draw = awaited[0]
        together = [other for other in awaited if (other.chain, other.round) == (draw.chain, draw.round)]
        newest = max(other.sequence for other in together)
        since = public_since[newest - 1 : newest]
        if not since:  # a round that is named now would be too late again, unless a push succeeds soon
            return
        if datetime.fromisoformat(since[0]) >= draw.at:
            yield partial(self._name_again, together, now)
        else:
            yield partial(self._runner.start, FetchRound(self._context, together), self._session, now)

    def _name_again(self, together: Sequence[commitments.Draw], now: datetime) -> bool:
        """Name a later round, as the commitment to this one was not public before the round existed; each further time twice as late."""
        notice = self._context.configuration.fairness.beacon_notice
        phases = [waiting.phase for waiting in together]
        with self._context.store.write() as tx:
            entries = commitments.public(tx)
            waiting = commitments.waiting(tx)
            if any(waiting.get(draw.phase) != draw for draw in together):  # a command has named another one
                return False
            named = max(sum(phase in entry.draws for entry in entries) for phase in phases)
            draw = commitments.next_round(together[0].chain, now + seconds(notice * 2 ** (named - 1)))
            commitments.commit(
                tx,
                self._context.signer,
                (),
                draws=dict.fromkeys(phases, draw),
                reason=f"the commitment before was not published before round {together[0].round} was made",
                now=now,
            )
            tx.request_publish()
        return True
