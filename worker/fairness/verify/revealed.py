"""Revealed phases: what their organizers published, read from the public files once, and what follows from it.

Nothing here is trusted. A document of another form than promised is a contradiction.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from leaderboard import Board, PhaseSite, Rules, Site
from leaderboard.ranking import append_board, assess, following_board, order
from leaderboard.rendering import HistoryLine, Row, file_stems, public_rows
from scoring.errors import OrganizerError
from scoring.printable import printable
from scoring.protocol import Protocol
from scoring.tasks import TaskType
from worker.fairness import commitments, events, id_lists, membership, receipts
from worker.fairness.documents import Malformed, parsed, read
from worker.fairness.events import RENAMED, ChallengeEvent, Event, PhaseEvent, ScoreEvent
from worker.fairness.fold import PhaseFold
from worker.fairness.manifests import Manifest
from worker.fairness.receipts import Line
from worker.fairness.reveals import Reveal, lines_of, path_of, reveal_path
from worker.fairness.verify.commits import HISTORY
from worker.fairness.verify.promises import Promise, read_promises
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed

UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, csv.Error)
"""Exceptions that reading a document of unexpected form may raise."""


@dataclass(frozen=True, kw_only=True)
class RevealedPhase:
    """The documents of a revealed phase.

    Attributes:
        repository: The public files.
        name: Codename.
        public: The public commitments.
        chain: The lines of the public log.
        document: The content of ``reveal.json``.
        promises: All commitments, oldest first, with what was revealed of them.
        ids: The public ids.
        labels: The rows of the published label files: name of the file to id and label.
        events: The events of its register with their commitments.
        fold: What follows from these events, as far as they were opened.
    """

    repository: PublicRepository
    name: str
    public: list[dict[str, Any]]
    chain: list[Line]
    document: Reveal
    promises: list[Promise]
    ids: tuple[str, ...]
    labels: Mapping[str, list[tuple[str, float]]]
    events: list[tuple[str, Event]]
    fold: PhaseFold

    @property
    def revealed_at(self) -> datetime:
        """When it was revealed, according to its organizers."""
        return self.document.revealed_at

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
    def with_labels(self) -> bool:
        """Whether label rows were published, and not only their hashes."""
        return self.document.labels == "published"

    @property
    def label_files(self) -> dict[str, bytes]:
        """The published label files: name to content."""
        return label_files(self.repository, self.name)

    def each_opening(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield place and opening of each event of its register, in their order."""
        return each_opening(self.repository, self.document)

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

    @cached_property
    def boards(self) -> tuple[Board, ...]:
        """The boards that follow from the register at the moments of the published ones, the last one with its figures.

        Raises:
            LookupError: If there were no rules at one of these moments.
            ValueError: If entries cannot be compared.
        """
        boards: list[Board] = []
        quality: Mapping[tuple[int, str], Mapping[str, float]] = {}
        moments = self.document.boards
        for number, moment in enumerate(moments, 1):
            snapshot = self.fold.snapshot(moment)
            if snapshot is None:
                raise LookupError(f"board {number} is from before the rules")
            replicates = snapshot.rules.replicates
            try:
                ranked = (
                    assess(snapshot, replicates=replicates) if number == len(moments) else order(snapshot)
                )
            except OrganizerError as error:
                raise ValueError(str(error)) from None
            before = boards[-1] if boards else None
            append_board(
                boards, following_board(snapshot, ranked, before, quality, at=moment, replicates=replicates)
            )
            quality = {} if ranked is None else ranked.row_quality
        return tuple(boards)

    @cached_property
    def final_rows(self) -> tuple[Row, ...]:
        """The rows of the board that follows from the register when the phase was closed or, if it is open, revealed."""
        snapshot = self.fold.snapshot(self.fold.closed_at)
        if snapshot is None:
            return ()
        board = following_board(snapshot, order(snapshot), None, {}, at=self.fold.closed_at, replicates=0)
        return public_rows(board, self.rules)

    @cached_property
    def history(self) -> list[tuple[HistoryLine, bytes]]:
        """The lines of the published history about it, oldest first, each without its rows, but with its text.

        Raises:
            Malformed: If one of them is not exactly such a line.
        """
        texts = enumerate(self.repository.files.get(HISTORY, b"").splitlines(), 1)
        lines = ((read(HistoryLine, text, f"{HISTORY}, line {number}"), text) for number, text in texts)
        stem = self.stem
        return [(line.model_copy(update={"changed": ()}), text) for line, text in lines if line.phase == stem]

    @cached_property
    def published(self) -> list[tuple[HistoryLine, bytes]]:
        """These lines without those of boards from before a restore that are unknown to the restored state."""
        restored_at = self.fold.restored_at
        if restored_at is None:
            return self.history
        moments = enumerate(self.document.boards, 1)
        known = {(number, moment.replace(microsecond=0)) for number, moment in moments}
        return [
            (line, text)
            for line, text in self.history
            if line.made_at >= restored_at or (line.sequence, line.made_at) in known
        ]

    @property
    def later(self) -> list[HistoryLine]:
        """The lines of boards that were made after the reveal."""
        return [line for line, _ in self.published[len(self.document.boards) :]]

    @property
    def stem(self) -> str:
        """The stem of its files' names."""
        return file_stems(Site(title="", phases=(self.site(()),)))[self.name]

    def site(self, history: Sequence[Board]) -> PhaseSite:
        """Return it as a part of the page, with some of its boards."""
        return PhaseSite(codename=self.name, title=self.name, rules=self.rules, history=tuple(history))

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


@dataclass(frozen=True, kw_only=True)
class Reveals:
    """What was revealed in a repository, by phase.

    Attributes:
        phases: The phases whose documents have the promised form.
        malformed: Where a document of another phase has another form, and which.
    """

    phases: dict[str, RevealedPhase]
    malformed: dict[str, str]


def read_reveals(repository: PublicRepository) -> Reveals:
    """Read everything that was revealed, once only, because the documents are large."""
    if not repository.read:
        repository.read.append(_reveals(repository))
    read_once: Reveals = repository.read[0]
    return read_once


def _reveals(repository: PublicRepository) -> Reveals:
    read_phases: dict[str, RevealedPhase] = {}
    malformed: dict[str, str] = {}
    folds: dict[str, PhaseFold] = {}
    for name in revealed_phases(repository):
        try:
            read_phases[name] = _read_phase(repository, name, folds)
        except UNREADABLE as error:
            malformed[name] = str(error)
    for name, phase in list(read_phases.items()):  # once all folds are complete
        try:
            _ = phase.rules, phase.boards, phase.history
        except UNREADABLE as error:
            malformed[name] = str(error)
            del read_phases[name]
    return Reveals(phases=read_phases, malformed=malformed)


def _read_phase(repository: PublicRepository, name: str, folds: dict[str, PhaseFold]) -> RevealedPhase:
    """Read a phase, and add its fold to those to which the rules of another one may refer."""
    path, entries = reveal_path(name), public_commitments(repository)
    document = read(Reveal, repository.files[path], path)
    if document.phase != name:
        raise Malformed(f"{path}: phase: is {document.phase}")
    promises = list(read_promises(entries, document.commitments, name))
    if not any(promise.manifest for promise in promises):
        raise Malformed(f"{path}: commitments: there is no commitment to its tasks")
    opened = _events(repository, document)
    fold = PhaseFold(name, folds)
    for _, event in opened:
        fold.take(event)
    folds[name] = fold
    return RevealedPhase(
        repository=repository,
        name=name,
        public=entries,
        chain=public_log(repository),
        document=document,
        promises=promises,
        ids=id_lists.read(repository.files[f"reveal/{name}/ids.txt"]),
        labels={
            file: _label_rows(content, f"reveal/{name}/labels/{file}")
            for file, content in label_files(repository, name).items()
        },
        events=opened,
        fold=fold,
    )


def each_opening(repository: PublicRepository, document: Reveal) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and opening of each event of a register; together they would take twenty times the memory of the files."""
    for part in document.parts:
        path = path_of(repository.files, f"reveal/{document.phase}", part)
        for number, line in enumerate(lines_of(repository.files[path]), 1):
            place = f"{path}, line {number}"
            yield place, parsed(line, place)


def _events(repository: PublicRepository, document: Reveal) -> list[tuple[str, Event]]:
    """Return the events of a register with their commitments; those with a hidden name have the pseudonym that a later note gives."""
    register: list[tuple[str, Event]] = []
    hidden: list[tuple[int, str, events.Fields, tuple[str, ...]]] = []
    removed: dict[int, str] = {}
    for place, opening in each_opening(repository, document):
        with _where(place):
            commitment, fields = events.read_opening(opening)
            if names := membership.hidden(opening, fields):
                hidden.append((len(register), place, fields, names))
                fields = membership.filled(fields, names, {fields["team_key"]: ""})
            register.append((commitment, event := events.parse(fields)))
            if isinstance(event, ChallengeEvent) and event.what == RENAMED:
                removed[event.team_key or 0] = event.pseudonym or ""
    for number, place, without_name, names in hidden:
        with _where(place):
            renamed = events.parse(membership.filled(without_name, names, removed))
        register[number] = register[number][0], renamed
    return register


def label_files(repository: PublicRepository, phase: str) -> dict[str, bytes]:
    """Return the published label files of a phase: name to content."""
    folder = f"reveal/{phase}/labels/"
    return {
        path.removeprefix(folder): repository.files[path]
        for path in repository.files
        if path.startswith(folder)
    }


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
    names = dict.fromkeys(revealed_phases(repository))
    for entry in public_commitments(repository):
        names |= dict.fromkeys(entry["phases"])
    return list(names)
