"""Secrets: how they are found, and how they stay hidden."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import shlex
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from scoring.documents import contents, expanded
from scoring.errors import OrganizerError
from scoring.randomness import phase_key

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_BYTES = 32
SECRET, SIGNING_KEY = "challenge.secret", "challenge.signing_key"
SECRET_FILE, KEY_FILE = "challenge.secret", "signing.key"
"""What `init`, backups and installations call the two files."""
_MAKE = "`python3 -c 'import secrets; print(secrets.token_hex(32))'`"
RESTORE = (
    "If it is lost, restore it from the backup, because nobody can make the same one again. Without a backup, make another one with"
    f" {_MAKE}. Its splits are different, so phases with scores must then be scored again with `neuco-worker challenge apply`."
)
RESTORE_KEY = (
    "If it is lost, restore it from the backup, because nobody can make the same one again. Only a challenge that has published nothing can"
    f" take another one, made with {_MAKE}."
)
_LOST = {SECRET: RESTORE, SIGNING_KEY: RESTORE_KEY}


def resolve(reference: str, *, base: Path, key: str) -> SecretStr:
    """Read the secret to which a configuration value refers.

    Args:
        reference: ``env:NAME``, ``file:PATH`` (relative to ``base``) or ``credential:NAME`` (systemd's credentials directory).
        base: Folder of the configuration file.
        key: Configuration key, for the message.

    Raises:
        OrganizerError: If the form is unknown, or there is no such secret. The message names the place, never the content.
    """
    kind, _, name = reference.partition(":")
    if kind == "env" and _ENVIRONMENT_NAME.fullmatch(name):
        if value := os.environ.get(name, "").strip():
            return SecretStr(value)
        raise _missing(
            f"{key} points to the environment variable {name}, which is not set.",
            f"Set it (export {name}=…) or point {key} to a file with file:PATH.",
        )
    if kind in ("file", "credential") and name:
        return SecretStr(_content(place(reference, base=base, key=key), key))
    raise OrganizerError(
        f"{key} must say where the secret is, instead of containing it.",
        hint="Write env:NAME, file:PATH or credential:NAME.",
        code="secret.form",
    )


def place(reference: str, *, base: Path, key: str) -> Path:
    """Return the path to which a configuration value refers.

    Args:
        reference: ``file:PATH``, a bare path, or ``credential:NAME``, a file that systemd gave this service.
        base: Folder of the configuration file.
        key: Configuration key, for the message.

    Raises:
        OrganizerError: If this process was given no such credential.
    """
    kind, _, name = reference.partition(":")
    if kind != "credential":
        return located(name if kind == "file" else reference, base=base)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or Path(name).name != name:
        raise _missing(
            f"{key} names the systemd credential {name}, but this process did not receive it.",
            "Start the worker from its unit or with `neuco-challenge`, which pass the credential. Or name another place, as described"
            " in docs/configuration.md.",
        )
    return Path(folder) / name


def located(path: str | Path, *, base: Path) -> Path:
    """Return the absolute path without links; a loop of links stays, for which Path.resolve raises a RuntimeError."""
    return Path(os.path.realpath(base / expanded(path)))


def _missing(sentence: str, hint: str) -> OrganizerError:
    return OrganizerError(sentence, hint=hint, code="secret.missing")


def _content(path: Path, key: str) -> str:
    try:
        value = contents(path).decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        value = ""
    if value:
        return value
    is_credential = _is_credential(path)
    sentence = (
        f"{key} names the systemd credential {path.name}, which is missing or empty."
        if is_credential
        else f"{key} points to {path}, which is empty or cannot be read."
    )
    if key in _LOST:
        place = f"/etc/neuco-worker/NAME/credentials/{path.name}" if is_credential else path
        raise _missing(sentence, f"Check who can read {place}. {_LOST[key]}")
    raise _missing(
        sentence,
        f"Pass it to the service with `sudo neuco-challenge NAME credential {path.name}`, then restart the service."
        if is_credential
        else "Write the secret into the file, and make it readable for this user.",
    )


def _is_credential(path: Path) -> bool:
    """Return whether a file is a credential that systemd (or `neuco-challenge` on its behalf) gave this process."""
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    return credentials is not None and path.parent == Path(credentials)


def make(path: Path) -> None:
    """Write a challenge's secret or its signing key: 32 random bytes; an existing file is never replaced."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{secrets.token_hex(_KEY_BYTES)}\n")
    except BaseException as error:
        path.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # a write that fails does not name it
        raise


def read_bytes(path: Path, key: str) -> bytes:
    """Read a challenge's secret or its signing key: 32 random bytes in hex.

    Args:
        path: The file.
        key: Configuration key, for the message.

    Raises:
        OrganizerError: If the file is missing, readable by others, or has other content.
    """
    text = _content(path, key)
    # systemd grants access by an ACL, which shows as a group permission; its folder is closed to all other users
    if not _is_credential(path) and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise OrganizerError(
            f"{path} can be read by other users, who would then know every split or sign as the challenge.",
            hint=f"Run: chmod 600 {shlex.quote(str(path))}",
            code="secret.mode",
        )
    try:
        content = bytes.fromhex(text)
    except ValueError:
        content = b""
    if len(content) != _KEY_BYTES:
        raise OrganizerError(
            f"{path} must contain 32 bytes, written as 64 hexadecimal digits.",
            hint=_LOST[key],
            code="secret.form",
        )
    return content


def split_key(secret: bytes, codename: str, beacon: str | None) -> bytes:
    """Return the key from which a phase's seeds derive."""
    return mixed_key(phase_key(secret, codename), beacon)


def mixed_key(key: bytes, beacon: str | None) -> bytes:
    """Mix a public value into a phase key, if there is one: HMAC-SHA256(key, value)."""
    return key if beacon is None else hmac.digest(key, beacon.encode(), "sha256")


def value_of(signature: str) -> str:
    """Return the value of a round of drand, in hex: the hash of its signature."""
    return hashlib.sha256(bytes.fromhex(signature)).hexdigest()


def public_value(entries: Iterable[Mapping[str, Any]], codename: str) -> str | None:
    """Return the public value that was drawn for a phase and is mixed into its key, by the public commitments; the newest counts."""
    signatures = [str(entry["drawn"][codename]) for entry in entries if codename in entry["drawn"]]
    return value_of(signatures[-1]) if signatures else None
