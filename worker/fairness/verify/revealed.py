"""A revealed phase: what its organizers published of it, read from the public files.

Nothing here is trusted. :attr:`RevealedPhase.malformed` says whether a document has another form than promised, which is a contradiction.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any

from leaderboard import Board, Rules
from leaderboard.ranking import append_board, from_json
from scoring.printable import printable
from scoring.protocol import Protocol
from scoring.tasks import TaskType
from worker.fairness import commitments, events, id_lists, parts, pseudonyms, receipts
from worker.fairness.disclosure import Part
from worker.fairness.documents import Malformed, parsed, read
from worker.fairness.events import PhaseEvent, ScoreEvent
from worker.fairness.fold import PhaseFold
from worker.fairness.manifests import Manifest
from worker.fairness.receipts import Line
from worker.fairness.reveals import Reveal, reveal_path
from worker.fairness.verify.promises import Promise, read_promises
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
        chain: list[Line],
    ) -> None:
        self.repository = repository
        self.name = name
        self.public = entries
        self.chain = chain
        self._folds = _Folds(repository)

    @cached_property
    def malformed(self) -> str | None:
        """Return where one of its documents has another form than it must have, and which; None if none has."""
        try:
            if self.document.phase != self.name:
                return f"{reveal_path(self.name)}: phase: is {self.document.phase}"
            if not any(promise.manifest for promise in self.promises):
                return f"{reveal_path(self.name)}: commitments: there is no commitment to its tasks"
            _ = self.rules, self.boards, self.ids, self.labels
        except UNREADABLE as error:
            return str(error)
        return None

    @cached_property
    def document(self) -> Reveal:
        """The content of ``reveal.json``."""
        path = reveal_path(self.name)
        return read(Reveal, self.repository.files[path], path)

    def parts(self, listed: Sequence[Part]) -> list[str]:
        """Return the paths of the parts of a long list."""
        return [parts.path_of(self.repository.files, f"reveal/{self.name}", part) for part in listed]

    def _each(self, listed: Sequence[Part]) -> Iterator[tuple[str, str]]:
        """Yield place and text of each element of a long list; together, parsed, they would take twenty times the memory of the files."""
        for path in self.parts(listed):
            for number, line in enumerate(parts.lines_of(self.repository.files[path]), 1):
                yield f"{path}, line {number}", line

    @property
    def revealed_at(self) -> datetime:
        """When it was revealed, according to its organizers."""
        return self.document.revealed_at

    @cached_property
    def promises(self) -> list[Promise]:
        """All commitments, oldest first, with what was revealed of them."""
        return list(read_promises(self.public, self.document.commitments, self.name))

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
    def manifests(self) -> list[Manifest]:
        """Its manifests, oldest first."""
        return [promise.manifest for promise in self.promises if promise.manifest is not None]

    @property
    def manifest(self) -> Manifest:
        """The phase's latest manifest."""
        return self.manifests[-1]

    @property
    def protocol(self) -> Protocol:
        """The protocol of the latest manifest."""
        return self.manifest.protocol.protocol

    @cached_property
    def _manifests(self) -> Mapping[str, Manifest]:
        """Hash of a protocol to the latest manifest that commits to it."""
        return {manifest.protocol_hash: manifest for manifest in self.manifests}

    def protocol_of(self, record: ScoreEvent | PhaseEvent) -> Protocol:
        """Return the protocol of a record's scores.

        Raises:
            LookupError: If no commitment has it.
        """
        return self._manifests[record.protocol].protocol.protocol

    def types_of(self, record: ScoreEvent) -> Mapping[str, TaskType]:
        """Return the types of the tasks that were committed to with a record's protocol; of equal names, the latest counts."""
        return {
            task.identifier: TaskType(task.type)
            for manifest in self.manifests
            if manifest.protocol_hash == record.protocol
            for task in manifest.tasks
        }

    @property
    def key(self) -> bytes:
        """The revealed key of its splits, without a beacon."""
        return bytes.fromhex(self.document.key)

    @property
    def ids(self) -> tuple[str, ...]:
        """The public ids."""
        return id_lists.read(self.repository.files[f"reveal/{self.name}/ids.txt"])

    @property
    def with_labels(self) -> bool:
        """Whether label rows were published, and not only their hashes."""
        return self.document.labels == "published"

    @property
    def label_files(self) -> dict[str, bytes]:
        """The published label files: name to content."""
        folder = f"reveal/{self.name}/labels/"
        return {
            path.removeprefix(folder): self.repository.files[path]
            for path in self.repository.files
            if path.startswith(folder)
        }

    @cached_property
    def labels(self) -> Mapping[str, list[tuple[str, float]]]:
        """The rows of the published label files: name of the file to id and label."""
        return {
            name: _label_rows(content, f"reveal/{self.name}/labels/{name}")
            for name, content in self.label_files.items()
        }

    def each_opening(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield place and opening of each event of its register, in their order."""
        for place, text in self._each(self.document.parts["register"]):
            yield place, parsed(text, place)

    @cached_property
    def events(self) -> list[tuple[str, events.Event]]:
        """The events of its register with their commitments."""
        opened = []
        for place, opening in self.each_opening():
            with _where(place):
                commitment, shown = events.read_opening(opening)
                opened.append((commitment, shown, pseudonyms.hidden(opening, shown)))
        parsed = []
        for number, (commitment, fields) in enumerate(pseudonyms.filled(opened), 1):
            with _where(f"register of {self.name}, event {number}"):
                parsed.append((commitment, events.parse(fields)))
        return parsed

    @cached_property
    def fold(self) -> PhaseFold:
        """What follows from its events, as far as they were opened."""
        fold = PhaseFold(self.name, self._folds)
        for _, event in self.events:
            fold.take(event)
        return fold

    @cached_property
    def rules(self) -> Rules:
        """The last registered rules of boards.

        Raises:
            LookupError: If no rules are registered.
        """
        snapshot = self.fold.snapshot(self.fold.end)
        if snapshot is None:
            raise LookupError("no rules are registered")
        return snapshot.rules

    def each_board(self) -> Iterator[str]:
        """Yield every board that was ever published, oldest first, as JSON with everything that is known of it."""
        for _, text in self._each(self.document.parts["boards"]):
            yield text

    @cached_property
    def boards(self) -> tuple[Board, ...]:
        """Every board that was ever published, oldest first, with figures only for the last one."""
        boards: list[Board] = []
        for place, text in self._each(self.document.parts["boards"]):
            with _where(place):
                append_board(boards, from_json(text))
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


def _label_rows(content: bytes, path: str) -> list[tuple[str, float]]:
    """Return the rows of a published label file: id and label."""
    with _where(path):
        rows = list(csv.reader(io.StringIO(content.decode(), newline="")))[1:]
        return [(identifier, float(label)) for identifier, label in rows]


@contextmanager
def _where(place: str) -> Iterator[None]:
    """Name the place of anything that cannot be read."""
    try:
        yield
    except Malformed:
        raise
    except UNREADABLE as error:
        raise Malformed(f"{place}: {printable(str(error).splitlines()[0])}") from None


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
            repository, name, public_commitments(repository), public_log(repository)
        )
    phase: RevealedPhase = repository.read[name]
    return phase


def readable_phases(repository: PublicRepository) -> list[RevealedPhase]:
    """Return the revealed phases whose documents have the promised form; the others are contradicted."""
    phases_ = (read_phase(repository, name) for name in revealed_phases(repository))
    return [phase for phase in phases_ if phase.malformed is None]


def public_commitments(repository: PublicRepository) -> list[dict[str, Any]]:
    """Return the public list of commitments; an empty one if it is malformed."""
    try:
        return commitments.read_commitments(repository.files.get(commitments.PATH, b""))
    except Malformed:
        return []


def public_log(repository: PublicRepository) -> list[Line]:
    """Return the lines of the public log; none if one is malformed."""
    try:
        return receipts.read_log(repository.files.get(receipts.PATH, b""))
    except Malformed:
        return []


def phases(repository: PublicRepository) -> list[str]:
    """Return every phase that was ever committed to or revealed."""
    found = dict.fromkeys(revealed_phases(repository))
    for entry in public_commitments(repository):
        found |= dict.fromkeys(entry["phases"])
    return list(found)
