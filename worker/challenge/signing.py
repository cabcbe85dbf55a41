"""Signatures: distinguish what the challenge has published from what somebody else has pushed.

The challenge has one key, a file that ``init`` makes. So its fingerprint is known before anything is published, and can be told where
nobody else can write. The state keeps the public half, which is also in ``commitment.json``.

Signatures are made and read here, so neither ssh-keygen nor any configuration of git is involved. Signed is the commit object, which
names its files by their hash and the commit before it. So a signature covers every file and the whole history, and cannot be copied to
another commit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from scoring.documents import UNREADABLE, canonical
from scoring.errors import OrganizerError
from worker.challenge.configuration import Configuration
from worker.challenge.secrets import RESTORE_KEY, SIGNING_KEY, read_bytes
from worker.state import Transaction

_FACT = "signing_key"  # the public half
HOME = "home"  # a fact: the state's file
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


def read_signer(configuration: Configuration) -> Signer:
    """Read the key that the configuration names.

    Raises:
        OrganizerError: As :func:`worker.challenge.secrets.read_bytes`.
    """
    return Signer(read_bytes(configuration.signing_key, SIGNING_KEY))


def signer(tx: Transaction, configuration: Configuration) -> Signer:
    """Return the challenge's key. The state remembers the first one, and accepts no other; and it remembers its own place.

    Raises:
        OrganizerError: As :func:`check_signer`.
    """
    key = check_signer(tx, configuration)
    tx.set_fact(_FACT, key.public)
    if configuration.database_file is not None:
        tx.set_fact(HOME, str(configuration.database_file))
    return key


def check_signer(tx: Transaction, configuration: Configuration) -> Signer:
    """Return the challenge's key, if this state may sign with it.

    Raises:
        OrganizerError: If the file cannot be read or has another key than the one with which the challenge has begun, or the state is a
            copy of one that is still there.
    """
    key, here, home = first_signer(tx, configuration), configuration.database_file, tx.fact(HOME)
    if here and home and os.access(home, os.F_OK) and not here.samefile(home):
        raise OrganizerError(
            f"{here} is a copy of {home}, which is still there. A copy signs nothing, because the original would then be behind.",
            hint="Use the original. To go on with the copy instead, stop the original's worker and move its folder away.",
            code="state.copy",
        )
    return key


def first_signer(tx: Transaction, configuration: Configuration) -> Signer:
    """Return the key that the configuration names, if the challenge began with it, whether or not this state may sign.

    Raises:
        OrganizerError: If the file cannot be read or has another key.
    """
    key = read_signer(configuration)
    if (known := tx.fact(_FACT)) not in (None, key.public):
        raise OrganizerError(
            f"{SIGNING_KEY} is not the key with which this challenge began; that has the fingerprint {fingerprint(known)}.",
            hint=f"Name the right file. {RESTORE_KEY}",
            code="secret.other_key",
        )
    return key


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


COMMITMENT = "commitment"  # a kind of signed document


def challenge_key(public: bytes | None) -> str | None:
    """Return the challenge's key: the one that has signed the first commitment in a public list that is signed; None if there is none."""
    try:
        return next(filter(None, map(key_of, json.loads(public or b"[]"))), None)
    except UNREADABLE:
        return None


def key_of(entry: Mapping[str, Any]) -> str | None:
    """Return the key that a public commitment names, if that key has signed it; otherwise None."""
    key = entry.get("key")
    body = {name: value for name, value in entry.items() if name != "signature"}
    return key if isinstance(key, str) and is_signed(key, COMMITMENT, body, entry.get("signature")) else None


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


def fingerprint(public: str) -> str:
    """Return the fingerprint of a key, given in hex, as ssh-keygen prints it."""
    hashed = base64.b64encode(hashlib.sha256(_public(public)).digest())
    return f"SHA256:{hashed.decode().rstrip('=')}"


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
