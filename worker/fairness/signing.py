"""Signatures: distinguish what the challenge has published from what somebody else has pushed.

The key is made when it is first needed. It is in the database, and so in backups and with every worker that may lead. Its
public half is in ``commitment.json``; each new key is signed by the one before it.

They are made and read here, so neither ssh-keygen nor any configuration of git is involved. Signed is the commit object, which names its
files by their hash and the commit before it. So a signature covers every file and the whole history, and cannot be copied to another
commit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from worker.challenge.canonical import canonical
from worker.state import Transaction

_FACT = "signing_key"
CHECKED = 16384  # signatures whose check is cached: a year of hourly lines, in as many versions of the log as others have pushed


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
        return self._key.sign(_message(domain, document)).hex()

    def sign_commit(self, payload: bytes) -> bytes:
        """Return the signature of a commit object, as git writes it. Its format excludes that it is taken for one of a document."""
        return _armored(self.public, self._key.sign(_signed(payload)))

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


@lru_cache(maxsize=CHECKED)
def is_signature(public: str, message: bytes, signature: bytes) -> bool:
    """Return whether the private half of a key has signed bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, message)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _message(domain: str, document: Any) -> bytes:
    return f"neuco-worker/{domain}\n".encode() + canonical(document)


COMMITMENT, SUCCESSION = "commitment", "succession"  # kinds of signed documents


def keys_of(public: bytes | None) -> tuple[str, ...]:
    """Return the keys that a public list of commitments names, see :func:`keys_in`; none if it is not such a list."""
    try:
        return keys_in(json.loads(public or b"[]"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ()


def keys_in(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the keys that public commitments name, in their order.

    The first commitment with a key defines the challenge's, and every other key must be signed with the one before it; otherwise anyone
    with write access could add a key. A replaced key can no longer sign a commitment or another key.
    """
    return tuple(dict.fromkeys(key for key in signers(entries) if key is not None))


def signers(entries: Iterable[Mapping[str, Any]]) -> Iterator[str | None]:
    """Yield the key of each public commitment, in their order; None if it is not signed with the challenge's key of its time."""
    keys: list[str] = []
    for entry in entries:
        key = key_of(entry, keys)
        if key is not None and key not in keys:
            keys.append(key)
        yield key


def key_of(entry: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return an entry's key if the newest known key has signed it, or has signed the new key that did; otherwise None."""
    key = entry.get("key")
    body = {name: value for name, value in entry.items() if name != "signature"}
    if not isinstance(key, str) or not is_signed(key, COMMITMENT, body, entry.get("signature")):
        return None
    if not keys or key == keys[-1]:
        return key
    is_new = key not in keys and is_signed(keys[-1], SUCCESSION, key, entry.get("succession"))
    return key if is_new else None


_MAGIC, _KIND, _NAMESPACE, _HASH = b"SSHSIG", b"ssh-ed25519", b"git", b"sha512"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
_LINE = 70  # characters in a line of ssh-keygen's


def signing_key(payload: bytes, signature: bytes) -> str | None:
    """Return the key, in hex, that has signed a commit object; None if the signature is not one of ours or is invalid."""
    try:
        blob = base64.b64decode(b"".join(signature.splitlines()[1:-1]), validate=True)
    except ValueError:
        return None
    start = len(_MAGIC) + 4 + 4 + 4 + len(_KIND) + 4
    public, made = blob[start : start + 32].hex(), blob[-64:]
    genuine = signature == _armored(public, made) and is_signature(public, _signed(payload), made)
    return public if genuine else None


def openssh(public: str) -> str:
    """Return a key, given in hex, as a line of OpenSSH's files."""
    return f"{_KIND.decode()} {base64.b64encode(_public(public)).decode()}"


def _public(public: str) -> bytes:
    return _string(_KIND) + _string(bytes.fromhex(public))


def _signed(payload: bytes) -> bytes:
    hashed = hashlib.sha512(payload).digest()
    return _MAGIC + b"".join(map(_string, (_NAMESPACE, b"", _HASH, hashed)))


def _armored(public: str, signature: bytes) -> bytes:
    made = _string(_KIND) + _string(signature)
    parts = (_public(public), _NAMESPACE, b"", _HASH, made)
    text = base64.b64encode(_MAGIC + (1).to_bytes(4, "big") + b"".join(map(_string, parts))).decode()
    return (_BEGIN + re.sub(f"(.{{1,{_LINE}}})", r"\1\n", text) + _END).encode()


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content
