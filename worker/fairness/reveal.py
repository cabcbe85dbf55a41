"""The reveal: after a phase has ended, everything that lets anybody check it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any

from leaderboard.board import from_json, to_json
from scoring.seeds import phase_key
from scoring.tasks import Task, load_tasks
from worker.fairness.commitments import reveal_path, reveal_text
from worker.office import Office
from worker.secrets import read_challenge_secret
from worker.snapshots import make_rules
from worker.state import Transaction

FORMAT = 1
FOLDER = "reveal"


def reveal_files(office: Office, phase: str, *, labels: bool) -> dict[str, str]:
    """Write the files that reveal one phase: path to text.

    The phase's key is an HMAC of the challenge secret, so revealing one phase exposes no other.

    Args:
        office: The challenge.
        phase: Phase codename.
        labels: Whether the label rows are published, or their hashes alone.

    Raises:
        OrganizerError: If the phase does not exist or its files are wrong.
    """
    setup = office.phase(phase)
    configuration = office.configuration
    tasks = load_tasks(configuration.path(setup.settings.tasks), setup.ids)
    secret = read_challenge_secret(configuration.path(configuration.challenge.secret))
    folder = f"{FOLDER}/{phase}"
    with office.store.read() as tx:
        document = _document(tx, office, phase)
    document["key"] = phase_key(secret, phase).hex()
    document["labels"] = "published" if labels else "hashes"
    files = {
        reveal_path(phase): reveal_text(document),
        f"{folder}/ids.txt": "".join(f"{identifier}\n" for identifier in setup.ids),
    }
    if labels:
        for task in tasks:
            files[f"{folder}/labels/{task.name}__{task.type.value}.csv"] = label_csv(task)
    return files


def label_csv(task: Task) -> str:
    """Write a task's parsed rows; parsing them gives the same task version."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "label"])
    writer.writerows(
        (identifier, repr(float(label))) for identifier, label in zip(task.ids, task.labels, strict=True)
    )
    return text.getvalue()


def _document(tx: Transaction, office: Office, phase: str) -> dict[str, Any]:
    boards = [from_json(text) for text in tx.boards(phase)]
    counted = {standing.submission for board in boards for standing in board.standings}
    known = {row.pk: row for row in tx.submissions()}
    entries = [
        {
            "submission": receipt["submission"],
            "team": known[receipt["submission"]].team,
            "method": known[receipt["submission"]].method,
            "record": receipt["record"],
            "nonce": receipt["nonce"],
            "commitment": receipt["commitment"],
        }
        for receipt in tx.receipts()
        if receipt["submission"] in counted and receipt["record"]["phase"] == phase
    ]
    return {
        "format": FORMAT,
        "phase": phase,
        "revealed_at": office.now.isoformat(timespec="seconds"),
        "commitments": [
            {
                "sequence": public["sequence"],
                "opening": private["opening"],
                "manifest": private["manifests"].get(phase),
            }
            for public, private in tx.commitments()
        ],
        "rules": _rules(tx, office, phase),
        "entries": entries,
        "boards": [json.loads(to_json(board)) for board in boards],
    }


def _rules(tx: Transaction, office: Office, phase: str) -> dict[str, Any]:
    rules = asdict(make_rules(office.configuration, phase, chosen=tx.choices(phase)))
    return rules | {
        "hidden_teams": sorted(rules["hidden_teams"]),
        "chosen": {str(team): submission for team, submission in rules["chosen"].items()},
    }
