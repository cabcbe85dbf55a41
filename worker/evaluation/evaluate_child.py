"""The child that reads one submitted file and scores it.

Parsing of participants' files happens only here. The order holds everything: no configuration, no database, no token. It names the contents
whose cells are stored already, so equal content is not scored twice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from scoring.inputs.limits import largest_expanded

if TYPE_CHECKING:  # the daemon's; loading them would cost each child 0.4 s
    from scoring.inputs.embeddings import Embeddings
    from worker.challenge.configuration import Configuration
    from worker.challenge.setups import PhaseSetup

RECORD = "record"
STATM = Path("/proc/self/statm")


class Order(TypedDict):
    """What to read and score; JSON, for a pipe (it holds the phase key). With ``keep`` it is also written there, to be published."""

    file: str
    ids: list[str]
    embedding_dim: int
    record: str
    record_hash: str
    tasks: list[str]
    complete: list[str]
    key: str
    max_expanded_bytes: int
    threads: int | Literal["auto"]
    ray_address: str
    keep: NotRequired[str]


class Result(TypedDict):
    """What was read and scored; no scorecard if the content was known. Parts if it was to be kept."""

    content_hash: str
    notes: list[str]
    zarr_suffix_removed: bool
    scorecard: dict[str, object] | None
    parts: list[dict[str, Any]]


def order_for(
    setup: PhaseSetup,
    configuration: Configuration,
    file: Path,
    *,
    folder: Path,
    tasks: Sequence[str],
    complete: Sequence[str] = (),
) -> Order:
    """Lay the phase's record into the child's folder, and write the order.

    The record is only read once the participant's file was: what reads that file knows no hidden task.

    Args:
        setup: The phase.
        configuration: The checked configuration.
        file: The submitted file.
        folder: The child's.
        tasks: What to score it on.
        complete: Contents that have all their cells: such a file is read and not scored. Cells that come to exist while the child runs are
            scored twice, which does no harm: the first ones stay.
    """
    return {
        "file": str(file),
        "ids": list(setup.ids),
        "embedding_dim": setup.protocol.embedding_dim,
        "record": str(_hand_over(setup, folder)),
        "record_hash": setup.record.hash,
        "tasks": list(tasks),
        "complete": list(complete),
        "key": setup.key.hex(),
        "max_expanded_bytes": largest_expanded(configuration.submission.max_megabytes),
        "threads": configuration.scoring.threads,
        "ray_address": configuration.scoring.ray_address,
    }


def _hand_over(setup: PhaseSetup, folder: Path) -> Path:
    """Write a phase's record for its child alone; the child's folder is removed when the child has ended."""
    place = folder / RECORD
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.touch(mode=0o600)
        place.write_bytes(setup.record.packed)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return place


def resident_bytes() -> int:
    """Measure this process's memory; 0 where the system does not tell."""
    try:
        return int(STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def prepare() -> None:
    """Load what reading and scoring will need: numba and its compiled kernels take most of a small submission's time."""
    from scoring.warm import warm

    warm()


def main(order: Order, say: Callable[..., None]) -> Result:
    """Read the file, and score it unless its content is known.

    Raises:
        ParticipantError: If the file is wrong.
        InfrastructureError: If the record is damaged.
    """
    from scoring.inputs.submission import read_submission

    ids, columns = tuple(order["ids"]), order["embedding_dim"]
    say(kind="stage", stage="reading", memory_bytes=resident_bytes())
    embeddings = read_submission(
        Path(order["file"]), ids, columns, max_expanded_bytes=order["max_expanded_bytes"]
    )
    say(kind="stage", stage="scoring")
    known = "keep" in order or embeddings.content_hash in order["complete"]
    return {
        "content_hash": embeddings.content_hash,
        "notes": list(embeddings.notes),
        "zarr_suffix_removed": embeddings.zarr_suffix_removed,
        "scorecard": None if known else _score(order, embeddings),
        "parts": _keep(embeddings, Path(order["keep"])) if "keep" in order else [],
    }


def _keep(embeddings: Embeddings, folder: Path) -> list[dict[str, Any]]:
    from scoring.inputs.embeddings import canonical_parts
    from worker.fairness.disclosure import write_parts

    return write_parts(canonical_parts(embeddings.ids, embeddings.matrix), embeddings.content_hash, folder)


def _score(order: Order, embeddings: Embeddings) -> dict[str, object]:
    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from worker.challenge.records import unpack

    record = unpack(Path(order["record"]).read_bytes(), order["record_hash"])
    scorecard = score_embeddings(
        embeddings,
        tuple(task for task in record.tasks if task.name in order["tasks"]),
        record.protocol,
        bytes.fromhex(order["key"]),
        engine=make_engine(record.engine, threads=order["threads"], ray_address=order["ray_address"]),
    )
    return scorecard.to_json()
