"""The draw of a rehearsal: as in the real challenge, a round is named, awaited and mixed in, but within seconds."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask import Flask, abort

from worker.challenge.secrets import value_of
from worker.challenge.sections import Beacon
from worker.fairness.drand import DOMAIN, Chain, recursion_as_before
from worker.sandbox import Listener

NAME = "a practice chain"
KEY = 20250611
"""The signing key, which is not secret."""


def practice_chain(*, genesis: int, period_s: int = 1) -> Chain:
    """Return a chain whose rounds :func:`sign` signs.

    Args:
        genesis: Seconds since 1970 at which its first round is made.
        period_s: Seconds between two rounds.
    """
    with recursion_as_before():
        from py_ecc.bls.point_compression import compress_G2
        from py_ecc.optimized_bls12_381.optimized_curve import G2, multiply

    first, second = compress_G2(multiply(G2, KEY))
    public_key = first.to_bytes(48, "big") + second.to_bytes(48, "big")
    return Chain(
        name=NAME,
        hash=hashlib.sha256(public_key).hexdigest(),
        public_key=public_key.hex(),
        genesis=genesis,
        period_s=period_s,
    )


def sign(number: int) -> str:
    """Return the signature of a round, in hex."""
    with recursion_as_before():
        from py_ecc.bls.hash_to_curve import hash_to_G1
        from py_ecc.bls.point_compression import compress_G1
        from py_ecc.optimized_bls12_381.optimized_curve import multiply

    message = hash_to_G1(hashlib.sha256(number.to_bytes(8, "big")).digest(), DOMAIN, hashlib.sha256)  # type: ignore[arg-type]
    return compress_G1(multiply(message, KEY)).to_bytes(48, "big").hex()


@contextmanager
def served(
    chain: Chain, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), off_by: int = 0
) -> Iterator[str]:
    """Serve a chain on loopback as drand's servers do: a round from its moment on, 404 before; yield the address.

    Args:
        chain: The chain.
        clock: Returns the time.
        off_by: Number of rounds by which its answers are wrong.
    """
    application = Flask("drand")

    @application.get(f"/{chain.hash}/public/<int:number>")
    def answer(number: int) -> dict[str, Any]:
        if chain.made_at(number) > clock():
            abort(404)
        signature = sign(number + off_by)
        return {"round": number, "randomness": value_of(signature), "signature": signature}

    with closing(Listener(application)) as server:
        yield server.url


# long enough to push the commitment that names a round; after that, the worker names a later one
NOTICE_S = 10.0


@contextmanager
def practised(beacon: Beacon, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the settings for a practice draw, which are valid while the context is open.

    Args:
        beacon: The organizer's ``fairness.beacon``.
        folder: Where the practice chain is described.
    """
    if beacon == "none":
        yield {"beacon": beacon}
        return
    chain = practice_chain(genesis=int(time.time()) - 1)
    described = folder / "practice_chain.json"
    described.write_text(json.dumps(chain.to_json()), encoding="utf-8")
    with served(chain) as address:
        yield {
            "beacon": beacon,
            "beacon_notice": NOTICE_S,
            "drand_chain": str(described),
            "drand_servers": [address],
        }
