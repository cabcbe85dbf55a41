"""A drand chain of the tests' own: its key is known, so any round can be signed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from worker.fairness.drand import DOMAIN, Chain, recursion_as_before

with recursion_as_before():
    from py_ecc.bls.hash_to_curve import hash_to_G1
    from py_ecc.bls.point_compression import compress_G1, compress_G2
    from py_ecc.optimized_bls12_381 import G2, multiply

KEY = 20250611


def chain(*, genesis: int, period_s: int = 1) -> Chain:
    """Return a chain whose rounds :func:`sign` signs."""
    first, second = compress_G2(multiply(G2, KEY))
    public_key = first.to_bytes(48, "big") + second.to_bytes(48, "big")
    return Chain(
        name="a chain for tests",
        hash=hashlib.sha256(public_key).hexdigest(),
        public_key=public_key.hex(),
        genesis=genesis,
        period_s=period_s,
    )


def sign(number: int) -> str:
    """Return a round's signature."""
    message = hash_to_G1(hashlib.sha256(number.to_bytes(8, "big")).digest(), DOMAIN, hashlib.sha256)
    return compress_G1(multiply(message, KEY)).to_bytes(48, "big").hex()


@contextmanager
def served(
    chain: Chain, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), off_by: int = 0
) -> Iterator[str]:
    """Serve a chain on loopback as drand's servers do: a round from its moment on, 404 before; yield the address.

    Args:
        chain: Which.
        clock: Tells the time.
        off_by: By how many rounds its answers are wrong.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            folder, _, number = self.path.removeprefix("/").partition("/public/")
            known = folder == chain.hash and number.isdigit()
            if not known or chain.made_at(int(number)) > clock():
                self.send_error(404)
                return
            signature = sign(int(number) + off_by)
            value = hashlib.sha256(bytes.fromhex(signature)).hexdigest()
            body = json.dumps({"round": int(number), "randomness": value, "signature": signature}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def drawing(folder: Path, rounds: Chain, *servers: str, notice_s: float) -> dict[str, Any]:
    """Return the settings of a challenge that draws from a chain."""
    path = folder / "chain.json"
    path.write_text(json.dumps(rounds.to_json()))
    settings = {
        "beacon": "drand",
        "beacon_notice": notice_s,
        "drand_chain": str(path),
        "drand_servers": list(servers),
    }
    return {"fairness": settings}
