"""The fuzz targets: one function per kind of untrusted bytes, each with a property that must hold.

A function takes bytes and raises if the property fails: another exception than our errors, foreign text in a message, or a value that later
code cannot store. The fuzzer itself watches memory, hangs and crashes.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from leaderboard import PhaseSite, Rules, Site
from leaderboard.git.clone import BareClone
from leaderboard.git.remote import CloneDamaged, Remote, TipMoved, sort_fault
from leaderboard.rendering import update_history
from leaderboard.rendering.files import update_readme
from leaderboard.rendering.shown import shown_phases
from scoring.errors import NeucoError, OrganizerError, ParticipantError
from scoring.inputs.submission import read_submission
from worker.challenge import configuration
from worker.evalai import records as evalai_records
from worker.evalai.errors import failure, parse

IDS = tuple(f"s{number:03d}" for number in range(12))
DIM = 4
CEILING = 1 << 20  # bytes that a file may expand to
LARGEST = 2**63 - 1  # what a database column holds
FORBIDDEN = set("<>&\\`$")  # markup, in a message that is shown on a web page


@cache
def scratch() -> Path:
    """Return a file of this process for readers that need one, in memory if the system has such a folder."""
    folder = Path("/dev/shm")
    return (folder if folder.is_dir() else Path("/tmp")) / f"neuco-fuzz-{os.getpid()}"


def read(data: bytes) -> None:
    """A submission gives a complete finite matrix, or a refusal in our own words."""
    path = scratch()
    path.write_bytes(data)
    try:
        embeddings = read_submission(path, IDS, DIM, max_expanded_bytes=CEILING)
    except ParticipantError as error:
        _check_message(error)
        return
    finally:
        path.unlink(missing_ok=True)
    if embeddings.matrix.shape != (len(IDS), DIM) or not np.isfinite(embeddings.matrix).all():
        raise AssertionError("a matrix that is not whole or not finite")
    for note in embeddings.notes:
        if not note.isascii() or not note.isprintable() or set(note) & FORBIDDEN:
            raise AssertionError(f"foreign text in a note: {note!r}")


def _check_message(error: ParticipantError) -> None:
    message = error.message
    printable = all(line.isprintable() for line in message.split("\n"))
    if not 0 < len(message) <= 2000 or not message.isascii() or not printable:
        raise AssertionError(f"a message that cannot be shown: {message!r}")
    if set(message) & FORBIDDEN or "Traceback" in message or str(scratch()) in message:
        raise AssertionError(f"foreign text in a message: {message!r}")


def read_gzip(data: bytes) -> None:
    """As :func:`read`; data that does not begin like gzip is compressed first, so that its checksums are right."""
    if not data.startswith(b"\x1f\x8b"):
        packer = zlib.compressobj(level=1, wbits=31)
        data = packer.compress(data) + packer.flush()
    read(data)


def read_zip(data: bytes) -> None:
    """As :func:`read`; data that does not begin like a zip becomes the name, attributes and content of a member."""
    read(data if data.startswith(b"PK") else _zip_of(data))


def _zip_of(data: bytes) -> bytes:
    head, content = data[:24].ljust(24, b"\0"), data[24:]
    (attributes,) = struct.unpack("<I", head[:4])
    name = head[8:24].split(b"\0")[0].decode("latin-1") or "table.csv"
    member = zipfile.ZipInfo(name)
    member.external_attr = attributes
    member.compress_type = zipfile.ZIP_DEFLATED if head[4] & 1 else zipfile.ZIP_STORED
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member, content)
        if head[5] & 1:
            archive.writestr("__MACOSX/._table.csv", head)
    return packed.getvalue()


def read_npz(data: bytes) -> None:
    """As :func:`read`; data that does not begin like a zip becomes the arrays of one."""
    if not data.startswith(b"PK"):
        cut = int.from_bytes(data[:2], "little")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("ids.npy", data[2 : 2 + cut])
            archive.writestr("embeddings.npy", data[2 + cut :])
        data = packed.getvalue()
    read(data)


def read_parquet(data: bytes) -> None:
    """As :func:`read`; data that does not begin like Parquet becomes the footer of a file."""
    if not data.startswith(b"PAR1"):
        data = b"PAR1" + data + struct.pack("<I", len(data)) + b"PAR1"
    read(data)


READERS: tuple[Callable[[Any], Any], ...] = (
    evalai_records.read_message,
    partial(evalai_records.parse, evalai_records.Submission, record="submission"),
    partial(evalai_records.parse, evalai_records.Challenge, record="challenge"),
    partial(evalai_records.parse, evalai_records.Phase, record="phase"),
    partial(evalai_records.parse, evalai_records.PhaseSplit, record="phase split"),
    partial(evalai_records.parse, evalai_records.DatasetSplit, record="dataset split"),
)


def evalai(data: bytes) -> None:
    """EvalAI's answers become records of storable values, or one of our errors."""
    status = (200, 400, 401, 403, 404, 406, 429, 500)[data[0] % 8] if data else 200
    with contextlib.suppress(NeucoError):
        error = failure(status=status, headers={}, body=data[1:], what="fuzz")
        if error is not None and not error.message.isprintable():
            raise AssertionError(f"an error that no log line holds: {error.message!r}")
    try:
        document = parse(data[1:])
    except ValueError:
        return
    for reader in READERS:
        try:
            record = reader(document)
        except NeucoError:
            continue
        check_storable(record)


def check_storable(value: Any) -> None:
    """Check that a database column holds a value."""
    if is_dataclass(value):
        for field in fields(value):
            check_storable(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            check_storable(item)
    elif isinstance(value, str):
        if "\0" in value:
            raise AssertionError("a text with NUL")
        value.encode()
    elif isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        raise AssertionError("a number that no column holds")
    elif isinstance(value, datetime) and value.tzinfo is None:
        raise AssertionError("a naive date")


def settings(data: bytes) -> None:
    """A configuration file is accepted, or refused by an organizer's error of readable length."""
    path = scratch().with_suffix(".yaml")
    path.write_bytes(data)
    try:
        configuration.load(path)
    except OrganizerError as error:
        if not error.sentence:
            raise AssertionError("a refusal without words") from error
    finally:
        path.unlink(missing_ok=True)


class _Replay:
    """Takes the place of the git program, and returns given answers."""

    url = "file:///nowhere"

    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers

    def run(self, *arguments: str, **_: object) -> bytes:
        """Return the next answer."""
        return self._answers.pop(0) if self._answers else b""


def git(data: bytes) -> None:
    """Output of git becomes files, a tip, or one of the publisher's errors; its error messages become one of our errors."""
    first, _, second = data.partition(b"\xff\xff")
    clone = BareClone(Path("/nowhere"), _Replay([first, second]), branch="main")  # type: ignore[arg-type]
    with contextlib.suppress(CloneDamaged):
        for content in clone.files("0" * 40, ("README.md",), ("leaderboard",)).values():
            if not isinstance(content, bytes):
                raise AssertionError("content that is no bytes")
    message = data.decode(errors="replace")
    for verb in ("push", "fetch"):
        error = sort_fault(Remote(url="https://example.org/a"), verb, message)
        if not isinstance(error, NeucoError | TipMoved):
            raise AssertionError(f"not sorted: {error!r}")
        if isinstance(error, NeucoError) and message in error.message and len(data) > 40:
            raise AssertionError("foreign text in a message")


@cache
def _site() -> Site:
    phase = PhaseSite(codename="dev", title="dev", rules=Rules(), history=())
    return Site(title="Fuzz", phases=(phase,))


def repository(data: bytes) -> None:
    """With any content of the repository, the README keeps its text, a second rendering changes nothing, and the history only grows."""
    phases = shown_phases(_site())
    try:
        once = update_readme(data, _site().title, phases)
        if update_readme(once, _site().title, phases) != once:
            raise AssertionError("the README changes without a change")
        update_history(data, _site())
    except NeucoError:
        return


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "csv": read,
    "gzip": read_gzip,
    "zip": read_zip,
    "npz": read_npz,
    "parquet": read_parquet,
    "evalai": evalai,
    "configuration": settings,
    "git": git,
    "repository": repository,
}

READING_TARGETS = ("csv", "gzip", "zip", "npz", "parquet")
