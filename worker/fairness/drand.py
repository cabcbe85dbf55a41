"""drand: a public source of random values that nobody can know before their moment, and everybody can check afterwards.

A network of independent parties signs the number of each round with a shared key (BLS on the curve BLS12-381, signatures in G1); the value
is the hash of the signature. Anyone who knows the public key can check a round without a server. See https://drand.love/docs/specification.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from leaderboard.documents import Document, Number, Positive
from scoring.errors import OrganizerError
from worker.fairness.documents import Hash, Malformed, read

DOMAIN = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
PUBLIC_KEY_BYTES, SIGNATURE_BYTES = 96, 48
CHECKED = 64  # rounds whose check is cached


class Chain(Document):
    """One sequence of rounds, of the scheme ``bls-unchained-g1-rfc9380``.

    Attributes:
        name: Its name for people.
        hash: Its name on the servers, in hex.
        public_key: A point of G2, compressed, in hex.
        genesis: Seconds since 1970 at which round 1 is made.
        period_s: Seconds between two rounds.
    """

    name: str
    hash: Hash
    public_key: Annotated[str, Field(pattern="^[0-9a-f]{192}$")]
    genesis: Number
    period_s: Positive

    def round_after(self, moment: datetime) -> int:
        """Return the first round that is made at a moment or later."""
        seconds = (moment - datetime.fromtimestamp(self.genesis, UTC)).total_seconds()
        return max(1, -int(-seconds // self.period_s) + 1)

    def made_at(self, number: int) -> datetime:
        """Return when a round is made."""
        return datetime.fromtimestamp(self.genesis, UTC) + timedelta(seconds=(number - 1) * self.period_s)


QUICKNET = Chain(
    name="drand quicknet",
    hash="52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
    public_key=(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb"
        "5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    ),
    genesis=1692803367,
    period_s=3,
)
"""The League of Entropy's chain."""


def read_chain(path: Path) -> Chain:
    """Read an organizer's own chain.

    Raises:
        OrganizerError: If the file is missing, or does not describe a chain.
    """
    try:
        return read(Chain, path.read_bytes(), str(path))
    except (OSError, Malformed):
        raise OrganizerError(
            f"{path} does not describe a drand chain.",
            hint="Write a JSON object with name, hash, public_key, genesis and period_s, or remove fairness.drand_chain to use"
            " drand's own chain.",
            code="beacon.chain",
        ) from None


@contextmanager
def recursion_as_before() -> Iterator[None]:
    """Restore the interpreter's recursion limit, which py_ecc raises on import: deeply nested JSON would then crash the process."""
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@lru_cache(maxsize=CHECKED)
def is_signed(chain: Chain, number: int, signature: str) -> bool:
    """Return whether a round's signature is the chain's; a check takes a fifth of a second, so it is cached for phases with the same round.

    Args:
        chain: The chain.
        number: The round.
        signature: A point of G1, compressed, in hex.
    """
    # Loaded here, because the import takes a third of a second.
    with recursion_as_before():
        from py_ecc.bls.hash_to_curve import hash_to_G1
        from py_ecc.bls.point_compression import decompress_G1, decompress_G2
        from py_ecc.bls.typing import G1Compressed, G2Compressed
        from py_ecc.optimized_bls12_381.optimized_curve import G2, curve_order, is_inf, multiply, neg
        from py_ecc.optimized_bls12_381.optimized_pairing import final_exponentiate, pairing

    try:
        key, point = bytes.fromhex(chain.public_key), bytes.fromhex(signature)
        if (len(key), len(point)) != (PUBLIC_KEY_BYTES, SIGNATURE_BYTES):
            return False
        half = PUBLIC_KEY_BYTES // 2
        public = decompress_G2(
            G2Compressed((int.from_bytes(key[:half], "big"), int.from_bytes(key[half:], "big")))
        )
        signed = decompress_G1(G1Compressed(int.from_bytes(point, "big")))
        if is_inf(signed) or not is_inf(multiply(signed, curve_order)):
            return False  # not in the group, so that the pairing would prove nothing
        message = hash_to_G1(hashlib.sha256(number.to_bytes(8, "big")).digest(), DOMAIN, hashlib.sha256)  # type: ignore[arg-type]
        # Two pairings are equal if their quotient is one. The slow last step is left to the quotient.
        quotient = pairing(public, message, False) * pairing(G2, neg(signed), False)
        return bool(final_exponentiate(quotient) == quotient.one())
    except (ValueError, OverflowError):
        return False
