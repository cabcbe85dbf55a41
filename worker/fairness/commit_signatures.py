"""Signatures of commits in OpenSSH's format (SSHSIG), as ``git commit -S`` makes them with an SSH key and ``git verify-commit`` reads them.

They are made and read here, so neither ssh-keygen nor any configuration of git is involved. Signed is the commit object, which names its
files by their hash and the commit before it. So a signature covers every file and the whole history, and cannot be copied to another
commit.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass

from worker.fairness.signing import Signer, is_signature

_MAGIC, _KIND, _NAMESPACE, _HASH = b"SSHSIG", b"ssh-ed25519", b"git", b"sha512"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
_LINE = 70  # characters in a line of ssh-keygen's


@dataclass(frozen=True)
class CommitSigner:
    """Signs commits with a challenge's key, and recognizes them."""

    key: Signer

    def sign(self, payload: bytes) -> bytes:
        """Return the signature of a commit object."""
        return _armored(self.key.public, self.key.sign_bytes(_signed(payload)))

    def has_signed(self, payload: bytes, signature: bytes) -> bool:
        """Return whether a signature of a commit object was made with this key."""
        return signing_key(payload, signature) == self.key.public


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
