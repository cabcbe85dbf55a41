"""A drand chain of the tests' own: its key is known, so any round can be signed."""

from __future__ import annotations

import hashlib

from py_ecc.bls.hash_to_curve import hash_to_G1
from py_ecc.bls.point_compression import compress_G1, compress_G2
from py_ecc.optimized_bls12_381 import G2, multiply

from worker.fairness.drand import DOMAIN, Chain

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
