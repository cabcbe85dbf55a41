"""Signatures: distinguish what the challenge has published from what somebody else has pushed.

The key is made when it is first needed. It is in the database, and so in backups and with every worker that may lead. Its
public half is in ``commitment.json``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from worker.challenge.canonical import canonical
from worker.state import Transaction

_FACT = "signing_key"


@dataclass(frozen=True)
class Signer:
    """An Ed25519 key that signs documents. Its repr shows nothing.

    Attributes:
        seed: The private half, 32 bytes.
    """

    seed: bytes = field(repr=False)

    @property
    def public(self) -> str:
        """The public half, in hex."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, domain: str, document: Any) -> str:
        """Sign a JSON value as a document of one kind, so that the signature is invalid for other kinds; 64 bytes in hex."""
        return self.sign_bytes(_message(domain, document)).hex()

    def sign_bytes(self, message: bytes) -> bytes:
        """Sign bytes whose format excludes that they are taken for a document; 64 bytes."""
        return self._key.sign(message)

    @property
    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)


def signer(tx: Transaction) -> Signer:
    """Return the challenge's key; the first call makes it."""
    seed = tx.fact(_FACT)
    return renew(tx) if seed is None else Signer(bytes.fromhex(seed))


def renew(tx: Transaction) -> Signer:
    """Make a new key that signs from now on."""
    fresh = Ed25519PrivateKey.generate().private_bytes_raw()
    tx.set_fact(_FACT, fresh.hex())
    return Signer(fresh)


def is_signed(public: str, domain: str, document: Any, signature: object) -> bool:
    """Return whether the private half of a key has signed a document; False if the key or the signature is malformed."""
    try:
        return is_signature(public, _message(domain, document), bytes.fromhex(str(signature)))
    except (ValueError, TypeError):
        return False


def is_signature(public: str, message: bytes, signature: bytes) -> bool:
    """Return whether the private half of a key has signed bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, message)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _message(domain: str, document: Any) -> bytes:
    return f"neuco-worker/{domain}\n".encode() + canonical(document)
