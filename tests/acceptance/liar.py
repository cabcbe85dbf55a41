"""The liar's kit: a whole public repository, made with the product's own functions from any events that its organizers invent.

An organizer has the secret, the key and the software. A lie therefore starts at the source, as an event that never happened, or that
happened differently or at another time. Everything that is published is made from it: commitments, log, chain, signatures, boards, pages,
reveals and commits. Only a check of something that organizers cannot make consistent with the lie can find it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from leaderboard import Board, PhaseSite, Site, Terms
from leaderboard.ranking import board as boards
from leaderboard.rendering import render
from scoring.documents import canonical
from scoring.inputs.embeddings import Embeddings
from scoring.inputs.tables import read_submission
from tests.acceptance.fair_challenge import PHASES, Fair, revealed, with_reveal
from tests.worker.harness.commits import sign_head
from tests.worker.harness.harness import DIM, IDS, clean_environment, git
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import recorded
from worker.challenge.signing import Signer
from worker.fairness import commitments, events, receipts
from worker.fairness.decisions import public_decisions
from worker.fairness.documents import FORMAT
from worker.fairness.manifests import Manifest
from worker.fairness.replay import ChallengeReplay, PhaseReplay
from worker.verify.public import PublicRepository, opened

BEGUN = datetime.fromisoformat("2023-09-15T12:00:00+00:00")
"""An hour after the round of drand in liar_draws.py."""
EVERY = timedelta(hours=1)


@dataclass
class Told:
    """An event as the organizers report it.

    Attributes:
        fields: The event's content.
        nonce: The nonce of its commitment.
        line: Number of the line of the log that holds its commitment; None for the line that is due.
        whole: Whether the reveal opens the whole event, not only a part of it.
        left_out: Whether the reveal omits it.
        only_in: The only phase whose reveal has it; None for each phase that it concerns.
        qualifies: Whether the opened part shows whose it is.
    """

    fields: dict[str, Any]
    nonce: str
    line: int | None = None
    whole: bool = True
    left_out: bool = False
    only_in: str | None = None
    qualifies: bool = False

    @property
    def at(self) -> datetime:
        """The time of the event."""
        return datetime.fromisoformat(self.fields["at"])

    @property
    def commitment(self) -> str:
        """Its commitment in the log."""
        return _committed(canonical(self.fields), self.nonce)

    def opening(self) -> dict[str, Any]:
        """Return its opening in the reveal."""
        nonce = bytes.fromhex(self.nonce)
        if self.whole:
            return events.opened(self.fields, nonce)
        form = events.QualifyingEvent if self.qualifies else events.ClosedEvent
        return events.opened_in_part(self.fields, nonce, form)


@cache
def _committed(fields: bytes, nonce: str) -> str:
    """Commit to an event, which most lies leave as it is."""
    return events.commitment_of(json.loads(fields), bytes.fromhex(nonce))


@dataclass
class Story:
    """Everything that the organizers know about a challenge and can change.

    Attributes:
        signer: The challenge's key.
        site: Title and link of the pages.
        readme: README.md of the honest challenge.
        entries: The public commitments.
        reveals: Phase to the document of its reveal; its long lists are made again.
        hidden: Phase to the other files of its reveal: ids, labels, the list of contents.
        events: The events, oldest first.
        contents: Name of a part to the content in it.
        records: Phase to its record, which is not published.
        embeddings: Content hash to the submitted embeddings, which are not published.
        revealed: The phases that are revealed.
        revealed_at: The claimed time of the reveal.
        log: The times of the lines of the log.
        closed_told: The closing time of all phases that the page states instead of the registered ones.
        on_boards: Changes the boards of a phase after they were made.
        on_files: Changes the files before they are committed.
        on_lines: Changes the body of a line before it is chained.
    """

    signer: Signer
    site: Site
    readme: bytes
    entries: list[dict[str, Any]]
    reveals: dict[str, dict[str, Any]]
    hidden: dict[str, dict[str, bytes]]
    events: list[Told]
    contents: dict[str, bytes]
    records: dict[str, PhaseRecord]
    embeddings: dict[str, Embeddings]
    revealed: tuple[str, ...] = PHASES
    revealed_at: datetime = BEGUN
    log: list[datetime] = field(default_factory=list)
    closed_told: datetime | None = None
    on_boards: Callable[[list[Board]], list[Board]] = list
    on_files: Callable[[dict[str, bytes]], dict[str, bytes]] = dict
    on_lines: Callable[[dict[str, Any]], dict[str, Any]] = dict

    def of(self, kind: str, phase: str = "dev") -> list[Told]:
        """Return the events of a kind in a phase."""
        return [
            event for event in self.events if event.fields["kind"] == kind and event.fields["phase"] == phase
        ]

    def about(self, submission: int) -> list[Told]:
        """Return the events about a submission."""
        return [event for event in self.events if event.fields.get("submission") == submission]

    def sent_by(self, team: str, phase: str = "dev") -> list[int]:
        """Return the public submissions of a team, in the order in which they were scored."""
        teams = {
            event.fields["submission"]: event.fields["team"]
            for event in reversed(self.events)
            if "team" in event.fields
        }
        scores = [event.fields for event in self.of(events.SCORE, phase) if event.fields["public_at_first"]]
        return [fields["submission"] for fields in scores if teams[fields["submission"]] == team]

    def drop(self, dropped: Iterable[Told]) -> None:
        """Remove events as if they had never happened."""
        gone = list(dropped)
        self.events = [event for event in self.events if event not in gone]

    def add(self, fields: Mapping[str, Any], at: datetime, **more: Any) -> Told:
        """Add an event."""
        number = hashlib.sha256(f"{len(self.events)}".encode()).hexdigest()
        added = Told(fields={**copy.deepcopy(dict(fields)), "at": at.isoformat()}, nonce=number, **more)
        self.events = sorted([*self.events, added], key=lambda event: event.at)
        return added

    def recommit(self, change: Callable[[dict[str, Any], dict[str, Any]], object], *, first: int = 0) -> None:
        """Change what commitments hide and announce of phases from a place on, and make hashes and signatures fit."""
        for place, entry in enumerate(self.entries[first:], first):
            for phase in PHASES:
                manifest, announced = self.reveals[phase]["manifests"][str(place + 1)], entry["phases"][phase]
                change(manifest, announced)
                announced["manifest"] = Manifest.model_validate(manifest).hash
        self.sign_entries()

    def sign_entries(self) -> None:
        """Sign the commitments as they are."""
        self.entries = [commitments.signed(entry, self.signer) for entry in self.entries]

    def lines(self, until: datetime | None = None) -> list[dict[str, Any]]:
        """Return the public log, chained and signed."""
        made: list[dict[str, Any]] = []
        previous = receipts.GENESIS
        placed: dict[int, list[str]] = {}
        for event in self.events:
            placed.setdefault(event.line or self.due(event.at), []).append(event.commitment)
        for number, made_at in enumerate(self.log, 1):
            if until is not None and made_at > until:
                break
            listed = placed.get(number, [])
            filling = _fillers(number)[: max(0, receipts.SMALLEST_BATCH - len(listed))]
            body = self.on_lines(
                {
                    "format": FORMAT,
                    "sequence": number,
                    "made_at": made_at.isoformat(timespec="seconds"),
                    "restored": None,
                    "previous": previous,
                    "entries": sorted([*listed, *filling]),
                }
            )
            previous = receipts.chained(body)
            made.append({**body, "head": previous, "signature": self.signer.sign(receipts.BATCH, previous)})
        return made

    def due(self, moment: datetime) -> int:
        """Return the number of the line that is due after a moment, or 0 if the log has no such line."""
        return next((number for number, made_at in enumerate(self.log, 1) if made_at >= moment), 0)

    def replay(self, until: datetime | None = None) -> ChallengeReplay:
        """Return what follows from the events, without those that the reveal omits."""
        included = [
            event for event in self.events if not event.left_out and (until is None or event.at <= until)
        ]
        replay = ChallengeReplay()
        for event in included:
            taking = replay if event.only_in is None else replay[event.only_in]
            taking.take(events.parse(_readable_fields(event)))
        return replay

    def boards(self, phase: str, until: datetime | None = None) -> list[Board]:
        """Make the boards of a phase as the worker does: at every event, until the phase is closed."""
        return self._boards(self.replay(until)[phase], until)

    def _boards(self, replay: PhaseReplay, until: datetime | None) -> list[Board]:
        history = list[Board]()
        moments = sorted({event.at for event in self.events if until is None or event.at <= until})
        for moment in moments:
            decided = replay.decisions.at(moment)
            closed = None if decided is None else decided.closed_at
            if closed is not None and moment > closed:
                continue
            snapshot = replay.snapshot(moment)
            if snapshot is None:
                continue
            following = boards.next_board(snapshot, history[-1:], at=moment)
            history += [] if following is None else [following]
        return self.on_boards(history)

    def publish(self, until: datetime | None = None) -> PublicRepository:
        """Return everything that is public at a moment; by default at the end, with the reveals."""
        self.events.sort(key=lambda event: event.at)
        lines, sites = self.lines(until), []
        shown = self.revealed if until is None else ()
        entries = [
            entry
            for entry in self.entries
            if until is None or datetime.fromisoformat(entry["made_at"]) <= until
        ]
        files: dict[str, bytes] = {commitments.PATH: json.dumps(entries, indent=1).encode()}
        files[receipts.PATH] = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        repository = PublicRepository(files=files, contents=lambda name: self.contents.get(name, b""))
        replay = self.replay(until)
        begun = [name for name in PHASES if replay[name].decisions.events]
        for name in begun:
            snapshot, history = replay[name].snapshot(replay[name].end), self._boards(replay[name], until)
            assert snapshot is not None
            decisions, only_if_shown = public_decisions(replay[name])
            sites.append(
                PhaseSite(
                    codename=name,
                    rules=snapshot.rules,  # as its board uses them
                    history=tuple(history),
                    revealed=name in shown,
                    closed_at=self.closed_told or replay[name].closed_at,
                    methods=replay[name].methods,
                    terms=Terms(embedding_dim=entries[-1]["phases"][name]["embedding_dim"]),
                    decisions=decisions,
                    only_if_shown=only_if_shown,
                )
            )
            if name in shown:
                repository = with_reveal(
                    repository, self._reveal(name, history), f"reveal/{name}/reveal.json"
                )
                repository = replace(repository, files={**repository.files, **self.hidden[name]})
        access = entries[0]["access"] if entries else ""
        logged_at = repository.log[-1].made_at if repository.log else None
        site = replace(self.site, phases=tuple(sites), access=access, logged_at=logged_at)
        rendered = render(site, readme=self.readme)
        files = self.on_files({**repository.files, **rendered})
        return replace(repository, files=files)

    def _reveal(self, phase: str, history: list[Board]) -> dict[str, Any]:
        opened_ = [
            event
            for event in self.events
            if event.fields["phase"] in (phase, None)
            and event.only_in in (phase, None)
            and not event.left_out
        ]
        return {
            **self.reveals[phase],
            "revealed_at": self.revealed_at.isoformat(timespec="seconds"),
            "fillers": {str(number): filler_key(number).hex() for number in range(1, len(self.log) + 1)}
            if self.revealed == PHASES
            else None,
            "register": [event.opening() for event in opened_],
            "boards": [board.made_at.isoformat() for board in history],
        }

    def receipt(self, submission: int) -> dict[str, Any]:
        """Return the receipt that a submission's team was shown."""
        score = next(event for event in self.about(submission) if event.fields["kind"] == events.SCORE)
        before = [line for line in self.lines() if datetime.fromisoformat(line["made_at"]) <= score.at]
        body = {
            "format": FORMAT,
            "submission": submission,
            "q_mean": score.fields["q_mean"],
            "counts": score.fields["counts"],
            "nonce": score.nonce,
            "commitment": score.commitment,
            "challenge": self.entries[-1]["commitment"],
            "batch": len(before),
            "chain": before[-1]["head"] if before else receipts.GENESIS,
            "key": self.signer.public,
        }
        return {**body, "signature": self.signer.sign(receipts.RECEIPT, body)}


def _readable_fields(event: Told) -> dict[str, Any]:
    """Return the readable fields of an event."""
    opening = event.opening()
    return opening["fields"] if event.whole else {name: value for name, (value, _) in opening["open"].items()}


def filler_key(number: int) -> bytes:
    """Return the key of a line's fillers."""
    return hashlib.sha256(f"line {number}".encode()).digest()


@cache
def _fillers(number: int) -> tuple[str, ...]:
    """Return the filler entries of a line without events."""
    return tuple(receipts.filler(filler_key(number), place) for place in range(receipts.SMALLEST_BATCH))


def honest(fair: Fair) -> Story:
    """Return the true story of a fully revealed challenge, with its moments one hour apart."""
    with opened(str(fair.board)) as public:
        page = json.loads(public.files["leaderboard/dev.json"])
        reveals = {name: revealed(public, f"reveal/{name}/reveal.json") for name in PHASES}
        hidden = {
            name: {
                path: content
                for path, content in public.files.items()
                if path.startswith((f"reveal/{name}/labels/", f"reveal/{name}/ids"))
            }
            for name in PHASES
        }
        parts = git(fair.board, "ls-tree", "--name-only", "files").split()
        contents = {name: public.contents(name) for name in parts}
        entries = [_begun(entry, fair.signer) for entry in json.loads(public.files[commitments.PATH])]
        readme = public.files["README.md"]
    with closing(fair.harness.store()) as store, store.read() as tx:
        happened = list(tx.events())
        records = {name: recorded(tx, name) for name in PHASES}
    files = fair.harness.state.glob("files/*/*")
    submitted = [read_submission(file, IDS, DIM, max_expanded_bytes=10**7) for file in files]
    moments = sorted({event.fields["at"] for event in happened})
    reported = [Told(fields=_dated(event.fields, moments), nonce=event.nonce) for event in happened]
    public_ = {event.fields["entry"] for event in reported if event.fields.get("public_at_first") is True}
    for event in reported:
        event.whole = "entry" not in event.fields or event.fields["entry"] in public_
    return Story(
        signer=fair.signer,
        site=Site(
            title=page["challenge"],
            link=page["link"],
            phases=(),
            committed=True,
            software=commitments.SOFTWARE,
        ),
        readme=readme,
        entries=entries,
        reveals=reveals,
        hidden=hidden,
        events=reported,
        contents=contents,
        records=records,
        embeddings={submission.content_hash: submission for submission in submitted},
        revealed_at=BEGUN + (len(moments) + 1) * EVERY,
        log=[BEGUN + number * EVERY for number in range(1, len(moments) + 2)],
    )


def _begun(entry: Mapping[str, Any], signer: Signer) -> dict[str, Any]:
    changes = {"made_at": BEGUN.isoformat(timespec="seconds"), "receipts_every": EVERY.total_seconds()}
    return commitments.signed({**entry, **changes}, signer)


def _dated(fields: Mapping[str, Any], moments: list[str]) -> dict[str, Any]:
    at = BEGUN + moments.index(fields["at"]) * EVERY + EVERY / 2
    dated = {**copy.deepcopy(dict(fields)), "at": at.isoformat()}
    if "submitted_at" in dated:  # in the order of the numbers, and before anything is scored
        dated["submitted_at"] = (BEGUN + timedelta(seconds=dated["submission"] % 1000)).isoformat()
    if dated.get("closed_at") is not None:
        dated["closed_at"] = (at - timedelta(seconds=1)).isoformat()
    return dated


class Git:
    """A git repository with versions of a challenge's public files.

    Args:
        folder: Folder of the repository.
        signer: Signs the commits.
        clone_of: What it clones; by default, it begins empty.
    """

    def __init__(self, folder: Path, signer: Signer, clone_of: Path | None = None) -> None:
        self.folder = folder
        self.signer = signer
        folder.mkdir()
        if clone_of is None:
            self.git("init", "-q", "-b", "main")
        else:
            self.git("clone", "-q", "-b", "main", str(clone_of), ".")

    def git(self, *arguments: str, **environment: str) -> str:
        """Run git as Mallory, and return what it prints."""
        identity = ("-c", "user.name=Mallory", "-c", "user.email=m@example.org")
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        environment = {**clean_environment(), **environment}
        done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files: Mapping[str, bytes | None]) -> str:
        """Write and remove files, commit, and return the commit's hash."""
        for path, content in files.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True) if content is None else place.write_bytes(content)
        self.git("add", "-A")
        self.git("commit", "-qm", "mine")
        return self.git("rev-parse", "HEAD")

    def push(self, repository: PublicRepository, *, signed: bool = True) -> None:
        """Replace all files of the repository, and commit them."""
        before = dict.fromkeys(self.git("ls-files").split())
        self.commit({**before, **repository.files})
        if signed:
            sign_head(self.folder, self.signer)

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        return (self.folder / path).read_bytes()

    def write(self, *contents: bytes) -> list[str]:
        """Write commit objects of any form, make the last one the newest commit, and return their hashes."""
        places = [self.folder.parent / f"commit {number}" for number in range(len(contents))]
        for place, content in zip(places, contents, strict=True):
            place.write_bytes(content)
        options = ("-t", "commit", "-w", "--literally")
        names = self.git("hash-object", *options, *map(str, places)).split()
        self.git("update-ref", "HEAD", names[-1])
        return names

    def blob(self, commit: str, path: str) -> bytes | None:
        """Return a file's content in a commit; None if it is not there."""
        command = ["git", "-C", str(self.folder), "cat-file", "blob", f"{commit}:{path}"]
        done = subprocess.run(command, check=False, env=clean_environment(), capture_output=True)
        return done.stdout if done.returncode == 0 else None

    @contextmanager
    def checked(self) -> Iterator[PublicRepository]:
        """Open the repository as a verifier does."""
        with opened(str(self.folder)) as repository:
            yield repository
