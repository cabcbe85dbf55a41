"""Measure memory and time of ``challenge verify`` on a repository with a long history.

Run with ``python -m tests.benchmarks.bench_verify``; ``--versions 300`` is quicker. The repository is one that an honest challenge
of format 1 leaves: a commit per board and batch of receipts, the phase revealed in the last one. Only the scores are made up. The promise
is less than 300 MB for 1,500 versions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from leaderboard import Board, Entry, PhaseSite, PhaseSnapshot, Site
from leaderboard.ranking import next_board, to_json
from leaderboard.rendering import render, update_history
from scoring.protocol import Protocol, ids_hash
from scoring.randomness import phase_key, secret_commitment
from scoring.tasks import Task, TaskType, make_task
from worker.challenge.records import PhaseRecord, PhaseRules
from worker.fairness import commitments, receipts

START = datetime(2026, 1, 1, tzinfo=UTC)
PHASE, TITLE, SECRET = "dev", "Benchmark", bytes(range(32))
IDS = tuple(f"image_{number:04d}" for number in range(200))
REPLICATES = 8  # of the bootstrap: intervals are none of verification's business in format 1


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the challenge is."""

    versions: int = 1500
    teams: int = 30
    tasks: int = 6
    folds: int = 40


def make_repository(folder: Path, size: Size) -> Path:
    """Write a bare repository as an honest challenge of this size leaves it, and return it."""
    record = _record(size)
    manifest = commitments.phase_manifest(record)
    opened = commitments.opening(SECRET, {PHASE: manifest})
    public = {
        "format": 1,
        "sequence": 1,
        "made_at": START.isoformat(),
        "reason": "the challenge begins",
        "commitment": commitments.commitment_of(opened),
        "beacon": None,
        "phases": {PHASE: commitments.announced_protocol(manifest["protocol"])},
        "software": f"neuco-worker {version('neuco-worker')}",
    }
    entries, boards = _scores(record, size)
    lines = _log(entries)
    rules = record.rules.for_board(epsilon=record.protocol.recipe.epsilon, chosen={})
    site = Site(
        title=TITLE,
        phases=(PhaseSite(codename=PHASE, title=PHASE, rules=rules, history=tuple(boards), revealed=True),),
    )
    reveal = {
        "format": 1,
        "phase": PHASE,
        "revealed_at": (boards[-1].made_at + timedelta(hours=1)).isoformat(timespec="seconds"),
        "commitments": [{"sequence": 1, "opening": opened, "manifest": manifest}],
        "rules": asdict(rules) | {"hidden_teams": []},
        "entries": entries,
        "boards": [json.loads(to_json(board)) for board in boards],
        "key": phase_key(SECRET, PHASE).hex(),
        "labels": "published",
    }
    listed = (json.dumps([public], indent=1) + "\n").encode()
    shown = {**render(site, readme=None), **_revealed(record, reveal)}
    history = update_history(None, site).splitlines(keepends=True)
    bare = folder / "board.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    with subprocess.Popen(
        ["git", "-C", str(bare), "fast-import", "--quiet"], stdin=subprocess.PIPE
    ) as importer:
        assert importer.stdin is not None
        # All versions of a file one after the other, so that git keeps the differences alone.
        for first, pieces in ((0, lines), (len(boards), history)):
            for number in range(1, len(boards) + 1):
                importer.stdin.write(_blob(first + number, b"".join(pieces[:number])))
        for number, board in enumerate(boards, 1):
            marked = {receipts.PATH: number, "leaderboard/history.jsonl": len(boards) + number}
            files = {commitments.PATH: listed, **(shown if number == len(boards) else {})}
            importer.stdin.write(_commit(marked, files, board.made_at))
    assert importer.returncode == 0
    return bare


def _record(size: Size) -> PhaseRecord:
    random = np.random.default_rng(0)
    tasks: list[Task] = []
    for number in range(size.tasks):
        kind = TaskType.CLASSIFICATION if number % 2 else TaskType.REGRESSION
        labels = random.integers(0, 2, len(IDS)) if number % 2 else random.normal(size=len(IDS)).round(4)
        rows = [
            (row, name, float(label)) for row, (name, label) in enumerate(zip(IDS, labels, strict=True), 2)
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
        rules=PhaseRules(
            selection="last",
            visibility="at_submission",
            eligible_if_scored_in=None,
            baselines=(),
            baselines_weigh=True,
            ghost_task=0.0,
            decimals=3,
            hidden_teams=(),
        ),
    )


def _scores(record: PhaseRecord, size: Size) -> tuple[list[dict[str, Any]], list[Board]]:
    """Make up scores, one submission an hour, with the board after each."""
    random = np.random.default_rng(1)
    standing: dict[int, Entry] = {}
    entries: list[dict[str, Any]] = []
    boards: list[Board] = []
    for number in range(1, size.versions + 1):
        team, at = number % size.teams + 1, START + timedelta(hours=number)
        level = 0.3 + 0.2 * random.random()
        folds = {
            task.name: tuple((level + 0.05 * random.standard_normal(size.folds)).clip(0, 1).tolist())
            for task in record.tasks
        }
        made = {
            "submission": number,
            "phase": PHASE,
            "content_hash": f"{number:064x}",
            "protocol_hash": record.protocol.hash,
            "scored_at": at.isoformat(),
            "cells": {
                task.name: {"version": task.version, "folds": list(folds[task.name])} for task in record.tasks
            },
        }
        nonce = random.bytes(32)
        entries.append(
            {
                "submission": number,
                "team": f"Team {team}",
                "method": "",
                "record": made,
                "nonce": nonce.hex(),
                "commitment": receipts.commitment_of(made, nonce),
            }
        )
        standing[team] = Entry(
            submission=number,
            team_key=team,
            team=f"Team {team}",
            method="",
            submitted_at=at,
            public=True,
            baseline=False,
            scores=folds,
        )
        snapshot = PhaseSnapshot(
            codename=PHASE,
            title=PHASE,
            rules=record.rules.for_board(epsilon=record.protocol.recipe.epsilon, chosen={}),
            row_sets=record.row_sets,
            entries=tuple(standing.values()),
        )
        board = next_board(snapshot, boards[-1:], at=at + timedelta(minutes=1), replicates=REPLICATES)
        assert board is not None
        boards.append(board)
    return entries, boards


def _log(entries: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Make the public log: a batch for each entry."""
    random = np.random.default_rng(2)
    lines, previous = [], receipts.GENESIS
    for number, entry in enumerate(entries, 1):
        filling = [random.bytes(32).hex() for _ in range(receipts.SMALLEST_BATCH - 1)]
        body = {
            "format": 1,
            "sequence": number,
            "made_at": (START + timedelta(hours=number, minutes=2)).isoformat(),
            "previous": previous,
            "receipts": sorted([str(entry["commitment"]), *filling]),
        }
        previous = receipts.chained(previous, body)
        lines.append((json.dumps({**body, "head": previous}) + "\n").encode())
    return lines


def _revealed(record: PhaseRecord, reveal: Mapping[str, Any]) -> dict[str, bytes]:
    folder = f"reveal/{PHASE}"
    files = {
        commitments.reveal_path(PHASE): commitments.reveal_text(reveal).encode(),
        f"{folder}/ids.txt": "".join(f"{name}\n" for name in record.ids).encode(),
    }
    for task in record.tasks:
        rows = "".join(
            f"{name},{float(label)!r}\n" for name, label in zip(task.ids, task.labels, strict=True)
        )
        files[f"{folder}/labels/{task.name}__{task.type.value}.csv"] = f"id,label\n{rows}".encode()
    return files


def _blob(mark: int, content: bytes) -> bytes:
    return b"blob\nmark :%d\ndata %d\n%b\n" % (mark, len(content), content)


def _commit(marked: Mapping[str, int], files: Mapping[str, bytes], at: datetime) -> bytes:
    """Return what ``git fast-import`` reads for one commit."""
    head = f"commit refs/heads/main\ncommitter b <b@example.org> {int(at.timestamp())} +0000\ndata 2\nb\n"
    parts = [head.encode()]
    parts += [
        b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(content), content)
        for path, content in files.items()
    ]
    parts += [b"M 100644 :%d %b\n" % (mark, path.encode()) for path, mark in marked.items()]
    return b"".join(parts)


# What a process and its children took at most; asked of a small process, because a child begins with what its parent took.
_MEASURE = """
import json, resource, subprocess, sys
out = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE).stdout
print(json.dumps([json.loads(out), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""


def verified(repository: Path) -> tuple[dict[str, Any], float, float]:
    """Verify a repository in a process of its own; return its report, peak memory in MB and seconds."""
    worker = os.fspath(Path(sys.executable).with_name("neuco-worker"))
    command = [worker, "challenge", "verify", str(repository), "--json"]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _MEASURE, *command], capture_output=True, check=True)
    seconds = time.perf_counter() - start
    report, kilobytes = json.loads(done.stdout)
    return report, kilobytes * 1024 / 1e6, seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=Size.versions)
    parser.add_argument("--teams", type=int, default=Size.teams)
    parser.add_argument(
        "--keep", type=Path, help="Folder for the repository; what is there already is measured."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        repository = folder / "board.git"
        if not repository.exists():
            make_repository(folder, Size(versions=options.versions, teams=options.teams))
        report, megabytes, seconds = verified(repository)
    sys.stdout.write(
        f"{options.versions} versions, {options.teams} teams: {megabytes:.0f} MB, {seconds:.1f} s, {report['verdict']}\n"
    )


if __name__ == "__main__":
    main()
