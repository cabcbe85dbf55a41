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
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

from leaderboard import Board, PhaseRules, PhaseSite
from leaderboard.ranking import append_board, assess, following_board, order
from leaderboard.rendering import HistoryLine, Row, public_rows
from scoring.documents import UNREADABLE
from scoring.errors import OrganizerError
from scoring.inputs.tables import LabelRow
from scoring.printable import printable
from scoring.protocol import Protocol
from scoring.randomness import secret_commitment
from scoring.tasks import Task, TaskType, make_task
from worker.challenge.secrets import mixed_key, value_of
from worker.fairness import events, id_lists
from worker.fairness.disclosure import Reveal, register_path, reveal_path
from worker.fairness.documents import Malformed, parsed, read
from worker.fairness.events import Event, ScoreEvent
from worker.fairness.manifests import AnnouncedPhase, Commitment, Manifest, protocol_of
from worker.fairness.places import Placed, places
from worker.fairness.replay import PhaseReplay
from worker.verify.public import PublicRepository


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One public commitment to a phase and what the reveal opens of it.

    Attributes:
        public: The entry of ``commitment.json``.
        announced: What it announces of the phase.
        manifest: What it hides of the phase.
        protocol: The phase's protocol.
        key: The key of its seeds: the revealed one, mixed with the beacon if there was one by then.
    """

    public: Commitment
    announced: AnnouncedPhase
    manifest: Manifest
    protocol: Protocol
    key: bytes

    @property
    def is_opened(self) -> bool:
        """Whether the revealed key is the one that was committed to."""
        return secret_commitment(self.key) == self.manifest.secret_commitment


def _promises(entries: Sequence[Commitment], document: Reveal) -> Iterator[Promise]:
    """Yield the opened commitments to a phase, oldest first."""
    phase, key = document.phase, bytes.fromhex(document.key)
    beacon = None
    for entry in entries:
        beacon = value_of(entry.drawn[phase]) if phase in entry.drawn else beacon
        announced, manifest = entry.phases.get(phase), document.manifests.get(str(entry.sequence))
        if announced is not None and manifest is not None:
            yield Promise(
                public=entry,
                announced=announced,
                manifest=manifest,
                protocol=protocol_of(phase, announced, manifest),
                key=mixed_key(key, beacon),
            )


@dataclass(frozen=True, kw_only=True)
class RevealedPhase:
    """The documents of a revealed phase.

    Attributes:
        repository: The public files.
        name: Codename.
        document: The content of ``reveal.json``.
        promises: The opened commitments to it, oldest first.
        ids: The public ids.
        labels: The rows of the published label files: by the name of the file.
        events: The events of its register with their commitments.
        replay: What follows from these events, as far as they were opened.
    """

    repository: PublicRepository
    name: str
    document: Reveal
    promises: list[Promise]
    ids: tuple[str, ...]
    labels: Mapping[str, list[LabelRow]]
    events: list[tuple[str, Event]]
    replay: PhaseReplay

    @property
    def latest(self) -> Promise:
        """The last of these commitments, which has its present tasks."""
        return self.promises[-1]

    @property
    def manifest(self) -> Manifest:
        """The phase's latest manifest."""
        return self.latest.manifest

    @property
    def protocol(self) -> Protocol:
        """The phase's latest protocol."""
        return self.latest.protocol

    @cached_property
    def promised(self) -> Mapping[str, Promise]:
        """The newest commitment to each protocol, by its hash."""
        return {promise.protocol.hash: promise for promise in self.promises}

    @cached_property
    def types(self) -> Mapping[str, TaskType]:
        """The types of the tasks that were committed to, by their version."""
        return {
            task.version: TaskType(task.type) for promise in self.promises for task in promise.manifest.tasks
        }

    @property
    def scored_at(self) -> datetime | None:
        """When the first score was made, whether or not it is open; None if there is none."""
        return next((event.at for _, event in self.events if event.kind == events.SCORE), None)

    @property
    def with_labels(self) -> bool:
        """Whether label rows were published, and not only their hashes."""
        return self.document.labels == "published"

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of the published labels, with the version numbers of their packages; none if only hashes are published.

        Raises:
            Malformed: If they are not valid tasks.
        """
        ids, tasks = frozenset(self.ids), []
        for task in sorted(self.manifest.tasks if self.with_labels else (), key=attrgetter("identifier")):
            rows = self.labels.get(task.file, [])
            try:
                plain = make_task(task.identifier, TaskType(task.type), rows, ids, source=task.file)
            except OrganizerError as error:
                raise Malformed(f"the published labels cannot be read: {error.sentence}") from None
            tasks.append(plain.of_package(task.package))
        return tuple(tasks)

    @cached_property
    def rules(self) -> PhaseRules:
        """The last registered rules of boards.

        Raises:
            LookupError: If no rules are registered.
        """
        rules = self.replay.rules(self.replay.end)
        if rules is None:
            raise LookupError("no rules are registered")
        return rules

    @cached_property
    def boards(self) -> tuple[Board, ...]:
        """The boards that follow from the register at the moments of the published ones, the last one with its figures.

        Raises:
            LookupError: If there were no rules at one of these moments.
            ValueError: If entries cannot be compared.
        """
        boards: list[Board] = []
        moments = self.document.boards
        for number, moment in enumerate(moments, 1):
            snapshot = self.replay.snapshot(moment)
            if snapshot is None:
                raise LookupError(f"board {number} is from before the rules")
            try:
                ranked = assess(snapshot) if number == len(moments) else order(snapshot)
            except OrganizerError as error:
                raise ValueError(error.sentence) from None
            before = boards[-1] if boards else None
            append_board(boards, following_board(snapshot, ranked, before, at=moment))
        return tuple(boards)

    @cached_property
    def places(self) -> Mapping[str, Placed]:
        """The place of each open entry."""
        return places(self.replay, self.replay.end)

    @cached_property
    def final_rows(self) -> Mapping[int, Row]:
        """Submission to row of the last board."""
        rows = public_rows(self.boards[-1], self.rules.rounding) if self.boards else ()
        return {row.submission: row for row in rows}

    @cached_property
    def published(self) -> list[tuple[HistoryLine, bytes]]:
        """Its lines of the published history, without those of boards from before a restore that are unknown to the restored state."""
        restored_at, moments = self.replay.restored_at, enumerate(self.document.boards, 1)
        boards_known = {(number, moment.replace(microsecond=0)) for number, moment in moments}
        return [
            (line, text)
            for line, text in self.repository.boards(self.name)
            if restored_at is None
            or line.made_at >= restored_at
            or (line.sequence, line.made_at) in boards_known
        ]

    @property
    def site(self) -> PhaseSite:
        """The phase as a part of the page."""
        return PhaseSite(codename=self.name, rules=self.rules, history=self.boards)

    @property
    def records(self) -> Mapping[int, list[ScoreEvent]]:
        """Submission to its open registered scores, oldest first."""
        return {history.events[0].submission: history.events for history in self.replay.scores.values()}

    def records_of(self, content_hash: str) -> list[ScoreEvent]:
        """Return the records of all submissions with a content."""
        return [record for same in self.records.values() for record in same if record.content == content_hash]


@dataclass(frozen=True, kw_only=True)
class Reveals:
    """What was revealed in a repository, by phase.

    Attributes:
        phases: The phases whose documents have the promised form.
        malformed: Where a document of another phase has another form, and which.
    """

    phases: dict[str, RevealedPhase]
    malformed: dict[str, str]


@lru_cache(maxsize=2)
def read_reveals(repository: PublicRepository) -> Reveals:
    """Read everything that was revealed, once only, because the documents are large."""
    read_phases: dict[str, RevealedPhase] = {}
    malformed: dict[str, str] = {}
    replays: dict[str, PhaseReplay] = {}
    for name in repository.revealed:
        try:
            read_phases[name] = _read_phase(repository, name, replays)
        except UNREADABLE as error:
            malformed[name] = str(error)
    for name, phase in list(read_phases.items()):  # once all replays are complete
        try:
            _ = phase.rules, phase.boards, phase.published
        except UNREADABLE as error:
            malformed[name] = str(error)
            del read_phases[name]
    return Reveals(phases=read_phases, malformed=malformed)


def _read_phase(repository: PublicRepository, name: str, replays: dict[str, PhaseReplay]) -> RevealedPhase:
    """Read a phase, and add its replay to those to which the rules of another one may refer."""
    path, folder = reveal_path(name), f"reveal/{name}/labels/"
    document = read(Reveal, repository.files[path], path)
    if document.phase != name:
        raise Malformed(f"{path}: phase: is {document.phase}")
    promises = list(_promises(repository.commitments, document))
    if not promises:
        raise Malformed(f"{path}: manifests: there is no commitment to its tasks")
    opened = _events(repository, document)
    replay = PhaseReplay(name, replays)
    for _, event in opened:
        replay.take(event)
    replays[name] = replay
    return RevealedPhase(
        repository=repository,
        name=name,
        document=document,
        promises=promises,
        ids=id_lists.read(_file(repository, f"reveal/{name}/ids.txt")),
        labels={
            file: _label_rows(repository.files[f"{folder}{file}"], f"{folder}{file}")
            for file in (task.file for task in promises[-1].manifest.tasks)
            if f"{folder}{file}" in repository.files
        },
        events=opened,
        replay=replay,
    )


def _file(repository: PublicRepository, path: str) -> bytes:
    """Return a file that a revealed phase must have."""
    if path not in repository.files:
        raise Malformed(f"{path} is missing")
    return repository.files[path]


def each_opening(repository: PublicRepository, document: Reveal) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and opening of each event of a register; together they would take twenty times the memory of the files."""
    for part in range(1, document.parts + 1):
        path = register_path(document.phase, part)
        for number, line in enumerate(io.BytesIO(_file(repository, path)), 1):
            place = f"{path}, line {number}"
            yield place, parsed(line, place)


def _events(repository: PublicRepository, document: Reveal) -> list[tuple[str, Event]]:
    """Return the events of a register with their commitments."""
    register: list[tuple[str, Event]] = []
    for place, opening in each_opening(repository, document):
        with _where(place):
            commitment, fields = events.read_opening(opening)
            register.append((commitment, events.parse(fields)))
    return register


def _label_rows(content: bytes, path: str) -> list[LabelRow]:
    """Return the rows of a published label file, with labels as numbers."""
    with _where(path):
        header, *lines = csv.reader(io.StringIO(content.decode(), newline=""))
        rows = [LabelRow(number, line[0], float(line[1]), *line[2:]) for number, line in enumerate(lines, 2)]
        columns = ["id", "label", "group"] if any(row.group for row in rows) else ["id", "label"]
        if header != columns or not all(all(line) and len(line) == len(columns) for line in lines):
            raise ValueError("is not a table of id, label and, if there are groups, group")
        return rows


@contextmanager
def _where(place: str) -> Iterator[None]:
    """Name the place of anything that cannot be read."""
    try:
        yield
    except UNREADABLE as error:
        raise Malformed(f"{place}: {printable(str(error).splitlines()[0])}") from None
