"""The child process that reads one submitted file and scores it.

Participants' files are parsed only here. The order contains everything: the child needs no configuration, no database and no token. The
order names the contents whose cells are stored already, so that equal content is not scored twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from scoring.inputs.limits import largest_expanded

if TYPE_CHECKING:  # only the daemon needs them; loading them would cost each child 0.4 s
    from scoring.inputs.embeddings import Embeddings
    from worker.challenge.configuration import Configuration
    from worker.challenge.setups import PhaseSetup


class EvaluationOrder(TypedDict):
    """What to read and score, sent through a pipe because it contains the phase key. With ``keep``, the content is also written there."""

    file: str
    ids: list[str]
    embedding_dim: int
    record: str
    record_hash: str
    tasks: list[str]
    complete: list[str]
    key: str
    max_expanded_bytes: int
    engine: dict[str, Any]
    keep: NotRequired[str]


class EvaluationResult(TypedDict):
    """What was read and scored; no scorecard if the content was known or only to be kept."""

    content_hash: str
    notes: list[str]
    zarr_suffix_removed: bool
    scorecard: dict[str, object] | None


class WarningHandler(logging.Handler):
    """Sends warnings to the worker, for its log.

    Args:
        say: Sends a message.
    """

    def __init__(self, say: Callable[..., None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Send one."""
        self._say(kind="log", sentence=record.getMessage())


def order_for(
    setup: PhaseSetup,
    configuration: Configuration,
    file: Path,
    *,
    folder: Path,
    tasks: Sequence[str],
    complete: Sequence[str] = (),
) -> EvaluationOrder:
    """Write the phase's record to the child's folder, which is removed when the child has ended, and return the order.

    The child reads the record only after the participant's file, so that no hidden task is in memory while that file is parsed.

    Args:
        setup: The phase.
        configuration: The checked configuration.
        file: The submitted file.
        folder: The child's folder.
        tasks: The tasks to score it on.
        complete: Contents that have all their cells: such a file is read but not scored. Cells that are stored while the child runs are
            scored twice, which does no harm, because the first ones are kept.
    """
    record = folder / "record"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    record.touch(mode=0o600)
    record.write_bytes(setup.record.packed)
    return {
        "file": str(file),
        "ids": list(setup.record.ids),
        "embedding_dim": setup.record.protocol.embedding_dim,
        "record": str(record),
        "record_hash": setup.record.hash,
        "tasks": list(tasks),
        "complete": list(complete),
        "key": setup.key.hex(),
        "max_expanded_bytes": largest_expanded(configuration.submission.max_megabytes),
        "engine": configuration.scoring.engine_options(),
    }


def main(order: EvaluationOrder, say: Callable[..., None]) -> EvaluationResult:
    """Read the file, and score it unless its content is known.

    Raises:
        ParticipantError: If the file is wrong.
        InfrastructureError: If the record is damaged.
    """
    from scoring.inputs.tables import read_submission

    ids, columns = tuple(order["ids"]), order["embedding_dim"]
    say(kind="stage", stage="reading")
    embeddings = read_submission(
        Path(order["file"]), ids, columns, max_expanded_bytes=order["max_expanded_bytes"]
    )
    say(kind="stage", stage="scoring")
    skipped = "keep" in order or embeddings.content_hash in order["complete"]
    if "keep" in order:
        _keep(embeddings, Path(order["keep"]))
    return {
        "content_hash": embeddings.content_hash,
        "notes": list(embeddings.notes),
        "zarr_suffix_removed": embeddings.zarr_suffix_removed,
        "scorecard": None if skipped else _score(order, embeddings, say),
    }


def _keep(embeddings: Embeddings, folder: Path) -> None:
    from scoring.inputs.embeddings import canonical_parts
    from worker.fairness.disclosure import write_parts

    write_parts(canonical_parts(embeddings.ids, embeddings.matrix), embeddings.content_hash, folder)


def _score(order: EvaluationOrder, embeddings: Embeddings, say: Callable[..., None]) -> dict[str, object]:
    logging.getLogger("scoring").addHandler(WarningHandler(say))
    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from worker.challenge.records import unpack

    record = unpack(Path(order["record"]).read_bytes(), order["record_hash"])
    scorecard = score_embeddings(
        embeddings,
        tuple(task for task in record.tasks if task.name in order["tasks"]),
        record.protocol,
        bytes.fromhex(order["key"]),
        engine=make_engine(record.engine, **order["engine"]),
    )
    return scorecard.to_json()
