"""Secrets: how they are found, and how they stay hidden."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from scoring.errors import OrganizerError
from scoring.randomness import phase_key

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEX_SECRET_BYTES = 32


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
        value = os.environ.get(name, "").strip()
        if not value:
            raise OrganizerError(
                f"{key} points to the environment variable {name}, which is not set.",
                cure=f"Set it (export {name}=…) or point {key} to a file with file:PATH.",
                code="secret.missing",
            )
        return SecretStr(value)
    if kind in ("file", "credential") and name:
        return SecretStr(_read(_place(reference, base, key), key))
    raise OrganizerError(
        f"{key} must say where the secret is, instead of containing it.",
        cure="Write env:NAME, file:PATH or credential:NAME.",
        code="secret.form",
    )


def credential_path(name: str, *, key: str) -> Path:
    """Return the path of a credential that systemd gave this service.

    Args:
        name: As in the unit's LoadCredential=.
        key: Configuration key, for the message.

    Raises:
        OrganizerError: If this process was given none.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or Path(name).name != name:
        raise OrganizerError(
            f"{key} names the systemd credential {name}, but this process did not receive it.",
            cure="Start the worker from its unit or with `neuco-challenge`, which pass the credential. Or name another place, as described"
            " in docs/configuration.md.",
            code="secret.missing",
        )
    return Path(folder) / name


def resolve_path(reference: str, *, base: Path, key: str) -> Path:
    """Find the file to which a configuration value refers, for programs that read it themselves.

    Args:
        reference: ``file:PATH``, a bare path, or ``credential:NAME``.
        base: Folder of the configuration file.
        key: Configuration key, for the message.

    Raises:
        OrganizerError: If there is no such file.
    """
    path = _place(reference, base, key)
    if not path.is_file():
        raise OrganizerError(
            f"{key} points to {path}, which is not a file.",
            cure="Create the file, or correct the key.",
            code="secret.missing",
        )
    return path.resolve()


def _place(reference: str, base: Path, key: str) -> Path:
    kind, _, name = reference.partition(":")
    if kind == "credential":
        return credential_path(name, key=key)
    return base / Path(name if kind == "file" else reference).expanduser()


def _read(path: Path, key: str) -> str:
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise OrganizerError(
            f"{key} points to {path}, which cannot be read.",
            cure="Create the file, and make it readable for this user.",
            code="secret.missing",
        ) from None
    if not value and _handed_over(path):
        credential = path.name
        cure = (
            "Copy the challenge's secret to /etc/neuco-worker/NAME/credentials/challenge.secret"
            if key == "challenge.secret"
            else f"Pass it to the service with `sudo neuco-challenge NAME credential {credential}`"
        )
        raise OrganizerError(
            f"{key} names the systemd credential {credential}, which is missing or empty.",
            cure=f"{cure}, then restart the service.",
            code="secret.missing",
        )
    if not value:
        raise OrganizerError(
            f"{key} points to {path}, which is empty.",
            cure="Write the secret into the file.",
            code="secret.missing",
        )
    return value


def _handed_over(path: Path) -> bool:
    """Return whether a file is a credential that systemd (or `neuco-challenge` on its behalf) gave this process."""
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    return credentials is not None and path.parent == Path(credentials)


def read_challenge_secret(path: Path) -> bytes:
    """Read the challenge secret: 32 random bytes in hex.

    Raises:
        OrganizerError: If the file is missing, readable by others, or has other content.
    """
    text = _read(path, "challenge.secret")
    # systemd grants access by an ACL, which shows as a group permission; its folder is closed to all other users
    if not _handed_over(path) and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise OrganizerError(
            f"{path} can be read by other users, who would then know every split.",
            cure=f"Run: chmod 600 {path}",
            code="secret.mode",
        )
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != _HEX_SECRET_BYTES:
        raise OrganizerError(
            f"{path} must contain 32 bytes, written as 64 hexadecimal digits.",
            cure="Create one with `neuco-worker init`, or: python3 -c 'import secrets; print(secrets.token_hex(32))'",
            code="secret.form",
        )
    return secret


def split_key(secret: bytes, codename: str, beacon: str | None) -> bytes:
    """Return the key from which a phase's seeds derive."""
    return mixed_key(phase_key(secret, codename), beacon)


def mixed_key(key: bytes, beacon: str | None) -> bytes:
    """Mix a public value into a phase key, if there is one: HMAC-SHA256(key, value)."""
    if beacon is None:
        return key
    return hmac.new(key, beacon.encode(), hashlib.sha256).digest()


def public_value(entries: Iterable[Mapping[str, Any]], codename: str) -> str | None:
    """Return the public value that was drawn for a phase and is mixed into its key, by the public commitments; the newest counts."""
    value: str | None = None
    for entry in entries:
        if codename in entry["drawn"]:
            value = str(entry["drawn"][codename]["value"])
    return value
