"""The record of a phase: ids, hidden tasks with their labels, protocol, engine and rules, in one document named by its hash.

Scores, answers, boards and reveals are made from records, never from files. The bytes of a document are canonical, so equal records have
equal hashes on every machine. A record contains hidden labels, and must be kept secret.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leaderboard import PhaseRules
from scoring.documents import canonical
from scoring.errors import InfrastructureError
from scoring.protocol import Protocol, Recipe
from scoring.tasks import Task, TaskType

KEPT = 8  # records in memory


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PhaseRecord:
    """Everything that decides the scores and boards of a phase. Its repr shows nothing, because it contains hidden labels.

    Attributes:
        ids: Public ids, sorted by their UTF-8 bytes.
        tasks: Hidden tasks with their labels, sorted by name.
        protocol: The settings that decide a score.
        engine: The engine that trains the probes.
        rules: The settings that decide a board.
    """

    ids: tuple[str, ...]
    tasks: tuple[Task, ...]
    protocol: Protocol
    engine: str
    rules: PhaseRules

    @property
    def codename(self) -> str:
        """EvalAI's codename of the phase."""
        return self.protocol.phase

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Task identifier to version."""
        return {task.name: task.version for task in self.tasks}

    @property
    def document(self) -> bytes:
        """The canonical bytes, which are large and not kept.

        Tasks name their rows by position in the id list; tasks with equal row sets share one list of positions, and the groups.
        """
        position = {identifier: row for row, identifier in enumerate(self.ids)}
        rows = {task.row_set: task.ids for task in self.tasks}
        groups = {task.row_set: task.groups for task in self.tasks if task.groups}
        return canonical(
            {
                "ids": self.ids,
                "row_sets": {name: [position[name] for name in ids] for name, ids in rows.items()},
                **({"groups": groups} if groups else {}),
                "tasks": [
                    {
                        "name": task.name,
                        "type": task.type.value,
                        "package": task.package,
                        "version": task.version,
                        "row_set": task.row_set,
                        "labels": task.labels.tolist(),
                    }
                    for task in self.tasks
                ],
                "protocol": asdict(self.protocol),
                "engine": self.engine,
                "rules": self.rules.model_dump(mode="json"),
            }
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of the document."""
        return hashlib.sha256(self.document).hexdigest()

    @cached_property
    def packed(self) -> bytes:
        """The document in compressed form, as it is stored and passed to a child."""
        return gzip.compress(self.document, compresslevel=6, mtime=0)

    def scores_as(self, protocol_hash: str, versions: Mapping[str, str]) -> bool:
        """Return whether scores by this protocol and these versions of tasks are scores by this record."""
        return (self.protocol.hash, dict(self.versions)) == (protocol_hash, dict(versions))


_kept: dict[str, PhaseRecord] = {}  # by hash, the last used at the end


def kept(name: str, load: Callable[[str], bytes], *, anew: bool = False) -> PhaseRecord:
    """Return the record with a hash, which is loaded and parsed only if it is none of those used last.

    Most steps need one, and loading a large one takes about a second, which a step must not take.

    Args:
        name: The hash.
        load: Returns what is stored.
        anew: Whether a record that was used last must still be what is stored; one that is damaged is used no longer.

    Raises:
        InfrastructureError: As :func:`unpack`.
    """
    record = _kept.pop(name, None)
    if record is None or (anew and load(name) != record.packed):
        record = unpack(load(name), name)
    _kept[name] = record
    for oldest in list(_kept)[:-KEPT]:
        del _kept[oldest]
    return record


def unpack(packed: bytes, name: str) -> PhaseRecord:
    """Parse a compressed record.

    Args:
        packed: As in :attr:`PhaseRecord.packed`.
        name: The hash that it must have.

    Raises:
        InfrastructureError: If it is damaged.
    """
    try:
        document = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        document = b""
    if hashlib.sha256(document).hexdigest() != name:
        raise InfrastructureError(
            "The record of a phase is damaged. Its content does not match its hash.",
            hint="Restore the last backup: `neuco-worker challenge restore ARCHIVE DIRECTORY`.",
            code="record.damaged",
        )
    record = _parse(json.loads(document))
    # Both are known here, and take as long to compute as to parse.
    vars(record).update(hash=name, packed=packed)
    return record


def _parse(document: Mapping[str, Any]) -> PhaseRecord:
    ids = tuple(document["ids"])
    rows = {name: tuple(ids[row] for row in positions) for name, positions in document["row_sets"].items()}
    protocol = dict(document["protocol"])
    return PhaseRecord(
        ids=ids,
        tasks=tuple(
            Task(
                name=task["name"],
                type=TaskType(task["type"]),
                ids=rows[task["row_set"]],
                labels=np.array(task["labels"], dtype=np.float64),
                version=task["version"],
                row_set=task["row_set"],
                package=task["package"],
                groups=tuple(document.get("groups", {}).get(task["row_set"], ())),
            )
            for task in document["tasks"]
        ),
        protocol=Protocol(**{**protocol, "recipe": Recipe(**protocol["recipe"])}),
        engine=document["engine"],
        rules=PhaseRules.model_validate(document["rules"]),
    )
