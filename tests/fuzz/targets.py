"""The fuzz targets: one function per kind of untrusted bytes, each with a property that must hold.

A function takes bytes and raises if the property fails: another exception than our errors, foreign text in a message, or a value that later
code cannot store. The fuzzer itself watches memory, hangs and crashes.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from leaderboard import PhaseRules, PhaseSite, Site
from leaderboard.rendering import update_history
from leaderboard.rendering.files import update_readme
from leaderboard.rendering.shown import shown_phases
from scoring.errors import NeucoError, OrganizerError, ParticipantError
from scoring.inputs.tables import read_submission
from scoring.printable import printable_lines
from tests.scoring.inputs.both_readers import check_readers
from worker.challenge import configuration
from worker.evalai import records as evalai_records
from worker.evalai.errors import failure

IDS = tuple(f"s{number:03d}" for number in range(12))
DIM = 4
CEILING = 1 << 20  # bytes that a file may expand to
LARGEST = 2**63 - 1  # what a database column holds


@cache
def scratch() -> Path:
    """Return a file of this process for readers that need one, in memory if the system has such a folder."""
    folder = Path("/dev/shm")
    return (folder if folder.is_dir() else Path("/tmp")) / f"neuco-fuzz-{os.getpid()}"


def read(data: bytes) -> None:
    """A submission gives a complete finite matrix, or a refusal in our own words; a CSV file the same with and without the fast reader."""
    check_readers(data, IDS, DIM)
    path = scratch()
    path.write_bytes(data)
    try:
        embeddings = read_submission(path, IDS, DIM, max_expanded_bytes=CEILING)
    except ParticipantError as error:
        _check_text(error.message)
        return
    finally:
        path.unlink(missing_ok=True)
    assert embeddings.matrix.shape == (len(IDS), DIM), "a matrix that is not whole"
    assert np.isfinite(embeddings.matrix).all(), "a matrix that is not finite"
    for note in embeddings.notes:
        _check_text(note)


def _check_text(text: str) -> None:
    is_printable = printable_lines(text) == text and 0 < len(text) <= 2000
    assert is_printable, f"a text that cannot be shown: {text!r}"
    is_foreign = "Traceback" in text or str(scratch()) in text
    assert not is_foreign, f"foreign text: {text!r}"


def packed(magic: bytes, pack: Callable[[bytes], bytes]) -> Callable[[bytes], None]:
    """Return a target that packs data for :func:`read`, unless it begins as the format does, so that its checksums are right."""
    return lambda data: read(data if data.startswith(magic) else pack(data))


def _zip_of(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def _member(data: bytes) -> bytes:
    """Return a zip with a member of which data gives the attributes, the compression, the name and the content."""
    head, content = data[:24].ljust(24, b"\0"), data[24:]
    member = zipfile.ZipInfo(head[8:].split(b"\0")[0].decode("latin-1") or "table.csv")
    member.external_attr = int.from_bytes(head[:4], "little")
    member.compress_type = zipfile.ZIP_DEFLATED if head[4] & 1 else zipfile.ZIP_STORED
    return _zip_of((member, content), *([("__MACOSX/._table.csv", head)] if head[5] & 1 else []))


def _arrays(data: bytes) -> bytes:
    """Return an .npz with two arrays, the first of which has the length in the first two bytes."""
    cut = 2 + int.from_bytes(data[:2], "little")
    return _zip_of(("ids.npy", data[2:cut]), ("embeddings.npy", data[cut:]))


def _parquet(footer: bytes) -> bytes:
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


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
        error = failure(
            status=status, headers={}, body=data[1:], what="fuzz", address="https://evalai.test/api"
        )
        assert error is None or error.message.isprintable(), f"no log line holds {error.message!r}"
    try:
        document = json.loads(data[1:])
    except (ValueError, RecursionError):
        return
    for reader in READERS:
        with contextlib.suppress(NeucoError):
            check_storable(reader(document))


def check_storable(value: Any) -> None:
    """Check that a database column holds a value."""
    for item in value if isinstance(value, tuple) else vars(value).values() if is_dataclass(value) else ():
        check_storable(item)
    if isinstance(value, str):
        assert b"\0" not in value.encode(), "a text with NUL"
    if isinstance(value, int):
        assert -LARGEST <= value <= LARGEST, "a number that no column holds"
    if isinstance(value, datetime):
        assert value.tzinfo is not None, "a naive date"


def settings(data: bytes) -> None:
    """A configuration file is accepted, or refused by an error for organizers."""
    path = scratch().with_suffix(".yaml")
    path.write_bytes(data)
    with contextlib.suppress(OrganizerError):
        configuration.load(path)
    path.unlink()


@cache
def _site() -> Site:
    phase = PhaseSite(codename="dev", rules=PhaseRules(), history=())
    return Site(title="Fuzz", phases=(phase,))


def repository(data: bytes) -> None:
    """With any content of the repository, the README keeps its text, a second rendering changes nothing, and the history only grows."""
    phases = shown_phases(_site())
    with contextlib.suppress(NeucoError):
        once = update_readme(data, _site().title, phases)
        assert update_readme(once, _site().title, phases) == once, "the README changes without a change"
        update_history(data, _site())


READING_TARGETS: dict[str, Callable[[bytes], None]] = {
    "csv": read,
    "gz": packed(b"\x1f\x8b", partial(gzip.compress, mtime=0)),
    "zip": packed(b"PK", _member),
    "npz": packed(b"PK", _arrays),
    "parquet": packed(b"PAR1", _parquet),
}
TARGETS = {**READING_TARGETS, "evalai": evalai, "configuration": settings, "repository": repository}
