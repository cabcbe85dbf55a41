"""A revealed phase: what its organizers published of it, read from the public files.

Nothing here is trusted. A document without the promised form raises one of ``UNREADABLE``, which counts as a contradiction.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from leaderboard import Board, Rules, Selection
from leaderboard.ranking import append_board, from_json
from scoring.protocol import Protocol
from scoring.tasks import TaskType
from worker.fairness import commitments, events, id_lists, parts, pseudonyms, receipts
from worker.fairness.events import PhaseEvent, ScoreEvent
from worker.fairness.fold import PhaseFold
from worker.fairness.verify.promises import Promise, protocol_of, read_promises
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed

UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, csv.Error)
"""Exceptions that reading a document of unexpected form may raise."""


class RevealedPhase:
    """The document of one revealed phase.

    Args:
        repository: The public files.
        name: Phase codename.
        entries: The public commitments.
        chain: The lines of the receipts log.
    """

    def __init__(
        self,
        repository: PublicRepository,
        name: str,
        entries: list[dict[str, Any]],
        chain: list[dict[str, Any]],
    ) -> None:
        self.repository = repository
        self.name = name
        self.public = entries
        self.chain = chain
        self._folds = _Folds(repository)

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The content of ``reveal.json``."""
        found: Mapping[str, Any] = self.repository.json(commitments.reveal_path(self.name))
        return found

    def parts(self, name: str) -> list[str]:
        """Return the paths of the parts of a long list."""
        folder = f"reveal/{self.name}"
        return [parts.path_of(self.repository.files, folder, part) for part in self.document["parts"][name]]

    def _each(self, name: str) -> Iterator[str]:
        """Yield the text of each element of a long list; together, parsed, they would take twenty times the memory of the files."""
        for path in self.parts(name):
            yield from parts.lines_of(self.repository.files[path])

    @property
    def revealed_at(self) -> datetime:
        """When it was revealed, according to its organizers."""
        return datetime.fromisoformat(self.document["revealed_at"])

    @cached_property
    def promises(self) -> list[Promise]:
        """All commitments, oldest first, with what was revealed of them."""
        return list(read_promises(self.public, self.document["commitments"], self.name))

    @property
    def waits(self) -> bool:
        """Whether a commitment followed its reveal, so that it waits for another reveal."""
        return any(
            promise.opening is None and promise.made_at >= self.revealed_at for promise in self.promises
        )

    @property
    def latest(self) -> Promise:
        """The last commitment about this phase, which has its present tasks."""
        return [promise for promise in self.promises if promise.manifest][-1]

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The phase's latest manifest."""
        return self.latest.manifest or {}

    @property
    def protocol(self) -> Protocol:
        """The protocol of the latest manifest."""
        return protocol_of(self.manifest)

    @cached_property
    def _manifests(self) -> Mapping[str, Mapping[str, Any]]:
        """Hash of a protocol to the latest manifest that commits to it."""
        promised = (promise.manifest for promise in self.promises)
        return {manifest["protocol_hash"]: manifest for manifest in promised if manifest}

    def protocol_of(self, record: ScoreEvent | PhaseEvent) -> Protocol:
        """Return the protocol of a record's scores.

        Raises:
            LookupError: If no commitment has it.
        """
        return protocol_of(self._manifests[record.protocol])

    def types_of(self, record: ScoreEvent) -> Mapping[str, TaskType]:
        """Return the types of the tasks that were committed to with a record's protocol; of equal names, the latest counts."""
        promised = (promise.manifest for promise in self.promises)
        return {
            task["identifier"]: TaskType(task["type"])
            for manifest in promised
            if manifest and manifest["protocol_hash"] == record.protocol
            for task in manifest["tasks"]
        }

    @property
    def key(self) -> bytes:
        """The revealed key of its splits, without a beacon."""
        return bytes.fromhex(self.document["key"])

    @property
    def ids(self) -> tuple[str, ...]:
        """The public ids."""
        return id_lists.read(self.repository.files[f"reveal/{self.name}/ids.txt"])

    @property
    def with_labels(self) -> bool:
        """Whether label rows were published, and not only their hashes."""
        return bool(self.document["labels"] == "published")

    @property
    def label_files(self) -> dict[str, bytes]:
        """The published label files: name to content."""
        folder = f"reveal/{self.name}/labels/"
        return {
            path.removeprefix(folder): self.repository.files[path]
            for path in self.repository.files
            if path.startswith(folder)
        }

    def each_opening(self) -> Iterator[Mapping[str, Any]]:
        """Yield the opening of each event of its register, in their order."""
        for text in self._each("register"):
            yield json.loads(text)

    @cached_property
    def events(self) -> list[tuple[str, events.Event]]:
        """The events of its register with their commitments."""
        opened = []
        for opening in self.each_opening():
            commitment, fields = events.read_opening(opening)
            opened.append((commitment, fields, pseudonyms.hidden(opening, fields)))
        return [(commitment, events.parse(fields)) for commitment, fields in pseudonyms.filled(opened)]

    @cached_property
    def fold(self) -> PhaseFold:
        """What follows from its events, as far as they were opened."""
        fold = PhaseFold(self.name, self._folds)
        for _, event in self.events:
            fold.take(event)
        return fold

    @cached_property
    def rules(self) -> Rules:
        """The rules of boards, with Q by the last committed protocol, whatever is said about it later."""
        document = dict(self.document["rules"])
        document["selection"] = Selection(document["selection"])
        document["hidden_teams"] = frozenset(document["hidden_teams"])
        document["chosen"] = {int(team): submission for team, submission in document["chosen"].items()}
        return Rules(**{**document, "epsilon": self.protocol.recipe.epsilon})

    def each_board(self) -> Iterator[str]:
        """Yield every board that was ever published, oldest first, as JSON with everything that is known of it."""
        yield from self._each("boards")

    @cached_property
    def boards(self) -> tuple[Board, ...]:
        """Every board that was ever published, oldest first, with figures only for the last one."""
        boards: list[Board] = []
        for board in self.each_board():
            append_board(boards, from_json(board))
        return tuple(boards)

    @property
    def records(self) -> Mapping[int, list[ScoreEvent]]:
        """Submission to its open registered scores, oldest first."""
        return {history.events[0].submission: history.events for history in self.fold.scores.values()}

    def records_of(self, content_hash: str) -> list[ScoreEvent]:
        """Return the records of all submissions with a content."""
        return [record for same in self.records.values() for record in same if record.content == content_hash]

    def consistent(self, check: str, sentence: str) -> Verdict:
        """Return the verdict that something of this phase follows from what was published."""
        return consistent(check, f"{sentence[:1].upper()}{sentence[1:]}.", phase=self.name)

    def contradicted(self, check: str, sentence: str) -> Verdict:
        """Return the verdict that something of this phase contradicts what was published."""
        return contradicted(check, f"{sentence[:1].upper()}{sentence[1:]}.", phase=self.name)

    def believed(self, check: str, sentence: str) -> Verdict:
        """Return the verdict that something of this phase must be trusted."""
        return believed(check, f"{sentence[:1].upper()}{sentence[1:]}.", phase=self.name)

    def not_revealed(self, check: str, sentence: str) -> Verdict:
        """Return the verdict that something of this phase cannot be checked yet."""
        return not_revealed(check, f"{sentence[:1].upper()}{sentence[1:]}.", phase=self.name)


class _Folds(Mapping[str, PhaseFold]):
    """The folds of all revealed phases, each made when it is first needed."""

    def __init__(self, repository: PublicRepository) -> None:
        self._repository = repository

    def __getitem__(self, name: str) -> PhaseFold:
        if name not in revealed_phases(self._repository):
            raise KeyError(name)
        return read_phase(self._repository, name).fold

    def __iter__(self) -> Iterator[str]:
        return iter(revealed_phases(self._repository))

    def __len__(self) -> int:
        return len(revealed_phases(self._repository))


def label_rows(content: bytes) -> list[tuple[str, float]]:
    """Return the rows of a published label file: id and label."""
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))[1:]
    return [(identifier, float(label)) for identifier, label in rows]


def revealed_phases(repository: PublicRepository) -> list[str]:
    """Return the phases that were revealed."""
    return sorted(
        path.split("/")[1]
        for path in repository.files
        if path.startswith("reveal/") and path.endswith("/reveal.json") and path.count("/") == 2
    )


def read_phase(repository: PublicRepository, name: str) -> RevealedPhase:
    """Read one revealed phase with the public promises, once only, because its documents are large."""
    if name not in repository.read:
        repository.read[name] = RevealedPhase(
            repository, name, public_commitments(repository), list(repository.lines(receipts.PATH))
        )
    phase: RevealedPhase = repository.read[name]
    return phase


def public_commitments(repository: PublicRepository) -> list[dict[str, Any]]:
    """Return the public list of commitments; an empty one if the file is no list."""
    try:
        entries = repository.json(commitments.PATH)
    except UNREADABLE:
        return []
    return entries if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries) else []


def phases(repository: PublicRepository) -> list[str]:
    """Return every phase that was ever committed to or revealed."""
    found = dict.fromkeys(revealed_phases(repository))
    for entry in public_commitments(repository):
        announced = entry.get("phases")
        found |= dict.fromkeys(map(str, announced) if isinstance(announced, dict) else ())
    return list(found)
