"""What a challenge requires of a submission, read from its published files, in a git repository or a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from leaderboard.git import cloned, plain_folder
from scoring.documents import UNREADABLE
from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.printable import duration_of
from scoring.protocol import MOST_NUMBERS, ids_hash

COMMITMENTS, LOG, REVEAL = "commitment.json", "receipts.jsonl", "reveal/{}/reveal.json"
MISSED = 3  # lines of the log, after which it is late


def list_path(phase: str) -> str:
    """Return the path of a phase's published id list."""
    return f"ids/{phase}.txt"


def announced(entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return each phase's protocol from the public commitments; the newest counts."""
    return {phase: protocol for entry in entries for phase, protocol in entry["phases"].items()}


Read = Callable[[str], bytes | None]


@contextmanager
def opened(place: str) -> Iterator[Read]:
    """Open a challenge's published files.

    Args:
        place: Any git URL, a clone or a bare repository, or a folder with the files.

    Yields:
        A function that returns a file by its path, None if there is none.

    Raises:
        OrganizerError: If there is nothing to read.
    """
    folder = plain_folder(place)
    if folder is not None:
        yield lambda path: (folder / path).read_bytes() if (folder / path).is_file() else None
        return
    with cloned(place, shallow=True) as clone:
        files = clone.repository.files(clone.tip)
        yield lambda path: clone.repository.content(files[path].name) if path in files else None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a submission must have.

    Attributes:
        ids: The ids, one row for each.
        embedding_dim: Numbers per row.
        phase: Codename of the phase that requires it; empty if the participant gave the requirements.
    """

    ids: tuple[str, ...]
    embedding_dim: int
    phase: str = ""


def asked_by(read: Read, phase: str | None) -> Asked:
    """Return what a phase requires.

    Args:
        read: Returns a published file by its path, None if there is none.
        phase: Codename; None for the only one.

    Raises:
        OrganizerError: If the files do not say it, or contradict each other.
    """
    content = read(COMMITMENTS)
    if content is None:
        raise _not_published(f"There is no {COMMITMENTS}.", "Name the challenge's leaderboard repository.")
    try:
        protocols = announced(json.loads(content))
        name = _chosen(list(protocols), phase)
        dim, name_of_list = int(protocols[name]["embedding_dim"]), str(protocols[name]["ids_hash"])
        if not 1 <= dim <= MOST_NUMBERS:
            raise ValueError
    except UNREADABLE:
        raise _not_published(f"{COMMITMENTS} cannot be read.", "Use --ids and --dim.") from None
    listed = read(list_path(name))
    if listed is None:
        raise _not_published(
            f"The ids of phase {name} are not published yet. They are published when the first submission has been scored.",
            f"Use --ids with the id list from the organizers, and --dim {dim}.",
        )
    # Git may have written this folder with the line ends of another system.
    ids = tuple(filter(None, listed.replace(b"\r\n", b"\n").decode("utf-8", "replace").split("\n")))
    if ids_hash(ids) != name_of_list:
        raise _not_published(
            f"{list_path(name)} does not match the id list in {COMMITMENTS}.",
            "Tell the organizers. Until then use --ids and --dim.",
        )
    return Asked(ids=ids, embedding_dim=dim, phase=name)


def last_written(read: Read, now: datetime) -> tuple[str, bool]:
    """Say when the challenge last wrote into its public log, which grows at a fixed interval, and whether it is silent.

    Once everything is revealed, the log rests. Signatures are not checked; ``verify`` does that.

    Args:
        read: Returns a published file by its path, None if there is none.
        now: The time, aware.

    Raises:
        OrganizerError: If the files do not say it.
    """
    try:
        entries = json.loads(read(COMMITMENTS) or b"")
        first = entries[0]
        lines = (read(LOG) or b"").splitlines()
        last = json.loads(lines[-1])["made_at"] if lines else first["made_at"]
        at, every = datetime.fromisoformat(last), timedelta(seconds=float(first["receipts_every"]))
        age = now - at
        is_over = age > MISSED * every and all(read(REVEAL.format(phase)) for phase in entries[-1]["phases"])
    except UNREADABLE:
        raise _not_published(
            f"{COMMITMENTS} and {LOG} cannot be read.", "Name the challenge's leaderboard repository."
        ) from None
    what = (
        "The last line of the public log" if lines else "The public log has no line yet. The first commitment"
    )
    old = duration_of(max(0.0, age.total_seconds()))  # this machine's clock may be behind
    sentence = f"{what} is {old} old ({at:%Y-%m-%d %H:%M} UTC). "
    if is_over:
        return f"{sentence}Everything has been revealed.", False
    return f"{sentence}A line comes every {duration_of(every.total_seconds())}.", age > MISSED * every


def asked(ids: Path | None, dim: int | None, challenge: str | None, phase: str | None) -> Asked:
    """Return what the options of a command require.

    Raises:
        OrganizerError: If they do not say it, or say it twice; or as :func:`asked_by`.
    """
    if challenge is not None and ids is None and dim is None:
        with opened(challenge) as read:
            return asked_by(read, phase)
    if challenge is None and phase is None and ids is not None and dim is not None:
        return Asked(ids=read_ids(ids), embedding_dim=dim)
    if challenge is None and ids is not None and dim is not None:
        raise _not_published(
            "--phase names a phase of the challenge, which is not given.",
            "Add --challenge URL instead of --ids and --dim, or remove --phase.",
            code="validate.usage",
        )
    lacks = "--dim N" if ids is not None else "--ids FILE"
    raise _not_published(
        "The ids and the number of columns are not given, or given twice."
        if challenge is not None or (ids is None) == (dim is None)
        else f"{lacks} is missing.",
        "Use --challenge URL (with --phase NAME if there are several phases), or --ids FILE and --dim N.",
        code="validate.usage",
    )


def _chosen(names: list[str], phase: str | None) -> str:
    if phase is None and len(names) == 1:
        return names[0]
    if phase in names:
        return str(phase)
    if not names:
        raise _not_published(f"There is no phase in {COMMITMENTS}.", "Use --ids and --dim.")
    sentence = (
        "The challenge has several phases." if phase is None else f"The challenge has no phase {phase}."
    )
    raise _not_published(sentence, f"Add --phase with one of: {', '.join(names)}.", code="validate.phase")


def _not_published(sentence: str, hint: str, *, code: str = "validate.challenge") -> OrganizerError:
    return OrganizerError(sentence, hint=hint, code=code)
