"""A drand chain for practice: its signing key is public, so its rounds come as fast as a rehearsal needs them, and prove nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from worker.fairness.drand import DOMAIN, Chain, recursion_as_before, value_of

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
    with _Server(chain, clock, off_by) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    def __init__(self, chain: Chain, clock: Callable[[], datetime], off_by: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.chain, self.clock, self.off_by = chain, clock, off_by

    def answer(self, path: str) -> bytes | None:
        """Return drand's answer about a round; None if it belongs to another chain or does not exist yet."""
        folder, _, number = path.removeprefix("/").partition("/public/")
        belongs = folder == self.chain.hash and number.isdigit()
        if not belongs or self.chain.made_at(int(number)) > self.clock():
            return None
        signature = sign(int(number) + self.off_by)
        body = {"round": int(number), "randomness": value_of(signature), "signature": signature}
        return json.dumps(body).encode()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Respond as drand's servers do."""
        body = self.server.answer(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing."""
