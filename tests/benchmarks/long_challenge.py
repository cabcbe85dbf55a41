"""The repository of a long, honest challenge, to measure verification.

There is one submission per hour, and after each one a batch of the public log, a board and a signed commit. The last commit reveals the
phase. Only the scores are made up.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from leaderboard import Board, PhaseRules, PhaseSite, Site, Terms
from leaderboard.git import with_signature
from leaderboard.ranking import append_board, next_board
from leaderboard.rendering import HISTORY, render, update_history
from leaderboard.rendering.shown import phase_document
from scoring.inputs.tables import LabelRow
from scoring.metrics import mean_quality, quality, shown
from scoring.protocol import Protocol, ids_hash
from scoring.randomness import phase_key, secret_commitment
from scoring.tasks import Task, TaskType, make_task
from worker.challenge.records import PhaseRecord
from worker.challenge.signing import Signer
from worker.fairness import commitments, disclosure, events, manifests, receipts
from worker.fairness.disclosure import reveal_path
from worker.fairness.documents import FORMAT
from worker.fairness.replay import ChallengeReplay

START = datetime(2026, 1, 1, tzinfo=UTC)
PHASE, TITLE, SECRET = "dev", "Benchmark", bytes(range(32))
IDS = tuple(f"image_{number:04d}" for number in range(200))
SIGNER = Signer(bytes(32))
REPLICATES = 100  # of the bootstrap; verification recomputes the one of the last board


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the challenge is; each submission gives a board and a commit."""

    versions: int = 1500
    teams: int = 30
    tasks: int = 6
    folds: int = 40


@dataclass(frozen=True, kw_only=True)
class Story:
    """The history of the challenge.

    Attributes:
        openings: Opening of each event's commitment in the register.
        lines: Lines of the public log.
        fillers: Line to the key of its filler.
        boards: One board per submission; only the last one has figures.
    """

    openings: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    fillers: dict[int, str] = field(default_factory=dict)
    boards: list[Board] = field(default_factory=list)


def make_repository(folder: Path, size: Size) -> Path:
    """Write the bare repository of an honest challenge of this size, and return its path."""
    record = record_of(size)
    announced, manifest = manifests.announce(record)
    public = {
        "format": FORMAT,
        "sequence": 1,
        "made_at": START.isoformat(),
        "reason": "the challenge begins",
        "draws": {},
        "drawn": {},
        "publish_files": "baselines",
        "access": "",
        "receipts_every": 3600.0,
        "phases": {PHASE: announced.to_json()},
        "software": f"neuco-worker {version('neuco-worker')}",
        "key": SIGNER.public,
    }
    public = commitments.signed(public, SIGNER)
    story = _story(record, size)
    history = tuple(story.boards)
    site = Site(
        title=TITLE,
        phases=(
            PhaseSite(
                codename=PHASE,
                rules=record.rules,
                history=history,
                revealed=True,
                terms=Terms(embedding_dim=record.protocol.embedding_dim),
            ),
        ),
        committed=True,
        software=commitments.SOFTWARE,
        logged_at=datetime.fromisoformat(json.loads(story.lines[-1])["made_at"]),
    )
    reveal = {
        "format": FORMAT,
        "phase": PHASE,
        "revealed_at": (history[-1].made_at + timedelta(minutes=5)).isoformat(timespec="seconds"),
        "manifests": {"1": manifest.to_json()},
        "key": phase_key(SECRET, PHASE).hex(),
        "labels": "published",
        "fillers": story.fillers,
    }
    rendered = {**render(site, readme=None), **_revealed(record, reveal, story)}
    history_lines = update_history(None, site).splitlines(keepends=True)
    bare = folder / "board.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    with subprocess.Popen(
        ["git", "-C", str(bare), "fast-import", "--quiet"], stdin=subprocess.PIPE
    ) as importer:
        assert importer.stdin is not None
        listed = (json.dumps([public], indent=1) + "\n").encode()
        for piece in _commits(story, history_lines, listed, rendered, site):
            importer.stdin.write(piece)
    assert importer.returncode == 0
    _sign(bare)
    return bare


def _sign(bare: Path) -> None:
    """Sign all commits of a repository, oldest first."""

    def git(*arguments: str, stdin: bytes = b"") -> bytes:
        command = ["git", "-C", str(bare), *arguments]
        return subprocess.run(command, check=True, input=stdin, stdout=subprocess.PIPE).stdout.strip()

    before, parent = b"", b""
    for commit in git("rev-list", "--reverse", "main").split():
        payload = git("cat-file", "commit", commit.decode()) + b"\n"
        payload = payload.replace(b"parent " + before, b"parent " + parent) if before else payload
        signed = with_signature(payload, SIGNER.sign_commit(payload))
        before, parent = commit, git("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed)
    git("update-ref", "refs/heads/main", parent.decode())


def _commits(
    story: Story, history: Sequence[bytes], listed: bytes, rendered: Mapping[str, bytes], site: Site
) -> Iterator[bytes]:
    """Yield the input of ``git fast-import``: a commit for each board."""
    number = len(story.boards)
    # All versions of a file one after the other, so that git stores only the differences.
    for first, pieces in ((0, story.lines), (number, history)):
        for version_ in range(1, number + 1):
            yield _blob(first + version_, b"".join(pieces[:version_]))
    for version_, board in enumerate(story.boards, 1):
        [phase] = site.phases
        then = replace(phase, history=phase.history[:version_], revealed=False)
        document = {f"leaderboard/{PHASE}.json": phase_document(site, then).file_text().encode()}
        files = {commitments.PATH: listed, **document, **(rendered if version_ == number else {})}
        marked = {receipts.PATH: version_, HISTORY: number + version_}
        yield _commit(marked, files, board.made_at)


def record_of(size: Size) -> PhaseRecord:
    """Make up a phase with tasks of both kinds."""
    random = np.random.default_rng(0)
    tasks: list[Task] = []
    for number in range(size.tasks):
        kind = TaskType.CLASSIFICATION if number % 2 else TaskType.REGRESSION
        labels = random.integers(0, 2, len(IDS)) if number % 2 else random.normal(size=len(IDS)).round(4)
        rows = [
            LabelRow(line, name, float(label))
            for line, (name, label) in enumerate(zip(IDS, labels, strict=True), 2)
        ]
        tasks.append(make_task(f"task{number}", kind, rows, frozenset(IDS), source="benchmark"))
    return PhaseRecord(
        ids=IDS,
        tasks=tuple(tasks),
        protocol=Protocol(
            phase=PHASE,
            folds=size.folds,
            embedding_dim=64,
            ids_hash=ids_hash(IDS),
            secret_commitment=secret_commitment(phase_key(SECRET, PHASE)),
        ),
        engine="local",
        rules=PhaseRules(baselines=(), replicates=REPLICATES),
    )


def _story(record: PhaseRecord, size: Size) -> Story:
    """Make boards and log of the events with the worker's own functions."""
    random = np.random.default_rng(2)
    story, replay = Story(), ChallengeReplay()
    for number, happened in enumerate(events_of(record, size), 1):
        for fields in happened:
            replay.take(events.parse(fields))
        made_at = START + timedelta(hours=number, minutes=1)
        snapshot = replay[PHASE].snapshot(made_at)
        assert snapshot is not None
        board = next_board(snapshot, story.boards[-1:], at=made_at)
        assert board is not None
        append_board(story.boards, board)
        _publish(story, happened, random, made_at=made_at + timedelta(minutes=1))
    return story


def events_of(record: PhaseRecord, size: Size) -> Iterator[list[dict[str, Any]]]:
    """Make up scores, and yield the events of each hour, in which one submission is answered."""
    random = np.random.default_rng(1)
    before = [_decided(record)]
    for number in range(1, size.versions + 1):
        level = 0.3 + 0.2 * random.random()
        folds = {
            task.name: (level + 0.05 * random.standard_normal(size.folds)).clip(0, 1).tolist()
            for task in record.tasks
        }
        at = START + timedelta(hours=number)
        yield [*before, *_happened(record, number, number % size.teams + 1, at, folds)]
        before = []


def _decided(record: PhaseRecord) -> dict[str, Any]:
    return {
        "kind": events.PHASE,
        "phase": PHASE,
        "at": START.isoformat(),
        "record": record.hash,
        "protocol": record.protocol.hash,
        "epsilon": record.protocol.recipe.epsilon,
        "tasks": dict(record.versions),
        "rules": record.rules.model_dump(mode="json"),
        "closed_at": None,
        "reason": "",
    }


def _happened(
    record: PhaseRecord, number: int, team: int, at: datetime, folds: Mapping[str, list[float]]
) -> Iterator[dict[str, Any]]:
    """Yield the events of a submission: it arrived, was scored, and EvalAI received the answer."""
    who = {"entry": f"{number:032x}", "submission": number, "team_key": team}
    facts = {
        **who,
        "team": f"Team {team}",
        "method": "",
        "project_url": None,
        "publication_url": None,
        "submitted_at": at.isoformat(),
        "file": f"{number:064x}",
        "content": None,
        "public_at_first": True,
        "public": True,
        "own": False,
        "answered": False,
        "refused": False,
        "removed": None,
        "superseded_by": None,
        "reason": "",
    }
    cells = {
        task.name: {
            "version": task.version,
            "row_set": task.row_set,
            "test_parts": [],
            "folds": folds[task.name],
        }
        for task in record.tasks
    }
    content = f"{number:064x}"
    q_mean = mean_quality([quality(scores, record.protocol.recipe.epsilon).q for scores in folds.values()])
    score = {
        **who,
        "public_at_first": True,
        "own": False,
        "content": content,
        "protocol": record.protocol.hash,
        "cells": cells,
        "q_mean": shown(q_mean, record.rules.decimals),
        "counts": None,
    }
    steps = (
        (events.SUBMISSION, facts),
        (events.SUBMISSION, {**facts, "content": content}),
        (events.SCORE, score),
        (events.SUBMISSION, {**facts, "content": content, "answered": True}),
    )
    for second, (kind, fields) in enumerate(steps):
        moment = at + timedelta(seconds=second)
        yield {"kind": kind, "phase": PHASE, "at": moment.isoformat(), **fields}


def _publish(
    story: Story, happened: Iterable[Mapping[str, Any]], random: np.random.Generator, *, made_at: datetime
) -> None:
    """Commit to events in the next line of the log."""
    entries = []
    for fields in happened:
        nonce = random.bytes(32)
        entries.append(events.commitment_of(fields, nonce))
        story.openings.append(json.dumps(events.opened(fields, nonce)))
    key = random.bytes(32)
    filling = [receipts.filler(key, place) for place in range(receipts.SMALLEST_BATCH - len(entries))]
    previous = receipts.head_of(story.lines[-1].decode() if story.lines else None)
    body = {
        "format": FORMAT,
        "sequence": len(story.lines) + 1,
        "made_at": made_at.isoformat(timespec="seconds"),
        "restored": None,
        "previous": previous,
        "entries": sorted([*entries, *filling]),
    }
    head = receipts.chained(body)
    signature = SIGNER.sign(receipts.BATCH, head)
    story.lines.append((json.dumps({**body, "head": head, "signature": signature}) + "\n").encode())
    story.fillers[len(story.lines)] = key.hex()


def _revealed(record: PhaseRecord, reveal: Mapping[str, Any], story: Story) -> dict[str, bytes]:
    folder = f"reveal/{PHASE}"
    register = disclosure.register_texts(story.openings)
    lists = {
        "parts": len(register),
        "boards": [board.made_at.isoformat() for board in story.boards],
    }
    files = {
        reveal_path(PHASE): json.dumps({**reveal, **lists}).encode(),
        f"{folder}/ids.txt": "".join(f"{name}\n" for name in record.ids).encode(),
    }
    files |= {disclosure.register_path(PHASE, part): text.encode() for part, text in enumerate(register, 1)}
    for task in record.tasks:
        rows = "".join(
            f"{name},{float(label)!r}\n" for name, label in zip(task.ids, task.labels, strict=True)
        )
        files[f"{folder}/labels/{task.name}__{task.type.value}.csv"] = f"id,label\n{rows}".encode()
    return files


def _blob(mark: int, content: bytes) -> bytes:
    return b"blob\nmark :%d\ndata %d\n%b\n" % (mark, len(content), content)


def _commit(marked: Mapping[str, int], files: Mapping[str, bytes], at: datetime) -> bytes:
    """Return the input of ``git fast-import`` for one commit."""
    head = f"commit refs/heads/main\ncommitter b <b@example.org> {int(at.timestamp())} +0000\ndata 2\nb\n"
    parts = [head.encode()]
    parts += [
        b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(content), content)
        for path, content in files.items()
    ]
    parts += [b"M 100644 :%d %b\n" % (mark, path.encode()) for path, mark in marked.items()]
    return b"".join(parts)
