"""The verdict: does a public repository show a fair challenge?

Everything is recomputed from what was published; nothing is believed because it is written. A verdict is one sentence that a lay person
understands, and is true, false, or "cannot be checked" - which is never taken for true.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from leaderboard.board import from_json
from leaderboard.history import update_history
from leaderboard.ranking import rank
from leaderboard.snapshot import Board, PhaseSite, Rules, Selection, Site
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.quality import mean_quality, quality
from scoring.scorecard import folds_from_json
from scoring.seeds import secret_commitment
from worker.challenge import mixed_key
from worker.fairness import commitments, receipts
from worker.fairness.canonical import canonical, digest
from worker.fairness.public import PublicRepository
from worker.fairness.reveal import only_grew

TOLERANCE_Q = 1e-9
HISTORY = "leaderboard/history.jsonl"
GROWING = (commitments.PATH, receipts.PATH, HISTORY)


class Truth(StrEnum):
    """What a check found."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "cannot be checked"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One check's result, in a sentence."""

    check: str
    truth: Truth
    sentence: str


def true(check: str, sentence: str) -> Verdict:
    """Say that something holds."""
    return Verdict(check=check, truth=Truth.TRUE, sentence=sentence)


def false(check: str, sentence: str) -> Verdict:
    """Say that something is a lie."""
    return Verdict(check=check, truth=Truth.FALSE, sentence=sentence)


def unknown(check: str, sentence: str) -> Verdict:
    """Say that something cannot be told."""
    return Verdict(check=check, truth=Truth.UNKNOWN, sentence=sentence)


def verdicts(repository: PublicRepository) -> Iterator[Verdict]:
    """Check everything that the repository alone can tell, in the order in which it was promised."""
    yield from _history(repository)
    entries = _json(repository, commitments.PATH)
    if not isinstance(entries, list) or not entries:
        yield false("commitment", "There is no commitment.json: nothing was fixed at the start.")
        return
    yield _sequence(entries)
    chain = list(_lines(repository, receipts.PATH))
    yield _chain(chain)
    phases = revealed_phases(repository)
    if not phases:
        yield unknown(
            "reveal", "No phase has been revealed yet: tasks, splits and scores cannot be checked so far."
        )
    for phase in phases:
        yield from PhaseCheck(repository, phase, entries, chain).verdicts()


def revealed_phases(repository: PublicRepository) -> list[str]:
    """Return the phases that were revealed."""
    return sorted(
        path.split("/")[1]
        for path in repository.files
        if path.startswith("reveal/") and path.endswith("/reveal.json")
    )


def _history(repository: PublicRepository) -> Iterator[Verdict]:
    if not repository.with_history:
        yield unknown(
            "history",
            "This is a plain folder: whether its files were changed later can only be seen in the repository.",
        )
        return
    for path in GROWING:
        contents = repository.versions.get(path, [])
        if path == commitments.PATH:
            grew = only_grew([json.loads(content) if content else [] for content in contents])
        else:
            grew = all(later.startswith(earlier) for earlier, later in pairwise(contents))
        if grew:
            yield true("history", f"{path} only ever grew, in all {len(contents)} versions.")
        else:
            yield false(
                "history",
                f"{path} was changed after it was published: an earlier version says something else.",
            )


def _sequence(entries: list[Any]) -> Verdict:
    numbers = [entry.get("sequence") for entry in entries]
    times = [str(entry.get("made_at")) for entry in entries]
    if numbers != list(range(1, len(entries) + 1)) or times != sorted(times):
        return false("commitment", "The commitments are not in order, or one is missing.")
    reasons = "; ".join(str(entry.get("reason")) for entry in entries[1:])
    changed = f" It was renewed {len(entries) - 1} times: {reasons}." if reasons else " It was never changed."
    return true("commitment", f"The challenge was committed to at {times[0]}.{changed}")


def _chain(lines: list[dict[str, Any]]) -> Verdict:
    previous = receipts.GENESIS
    for number, line in enumerate(lines, start=1):
        body = {key: value for key, value in line.items() if key != "head"}
        try:
            intact = (
                line["sequence"] == number
                and line["previous"] == previous
                and line["head"] == receipts.chained(previous, body)
            )
        except (KeyError, ValueError, TypeError):
            intact = False
        if not intact:
            return false(
                "receipts",
                f"The chain of receipts is broken at line {number}: something was changed, dropped or reordered.",
            )
        previous = line["head"]
    if not lines:
        return unknown("receipts", "No receipts have been published yet.")
    return true("receipts", f"The chain of {len(lines)} batches of receipts is unbroken.")


def _json(repository: PublicRepository, path: str) -> Any:
    try:
        return json.loads(repository.files[path])
    except (KeyError, ValueError):
        return None


def _lines(repository: PublicRepository, path: str) -> Iterator[dict[str, Any]]:
    for line in repository.files.get(path, b"").splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            document = {}
        yield document if isinstance(document, dict) else {}


class PhaseCheck:
    """All checks of one revealed phase.

    Args:
        repository: The public files.
        phase: Phase codename.
        entries: The public commitments.
        chain: The lines of the receipts log.
    """

    def __init__(
        self,
        repository: PublicRepository,
        phase: str,
        entries: list[dict[str, Any]],
        chain: list[dict[str, Any]],
    ) -> None:
        self.repository = repository
        self.phase = phase
        self.entries = entries
        self.published = {receipt for line in chain for receipt in line.get("receipts", [])}
        self.document: dict[str, Any] = _json(repository, f"reveal/{phase}/reveal.json") or {}

    def verdicts(self) -> Iterator[Verdict]:
        """Run the checks; a document that cannot be read is a lie, not an accident."""
        for check in (
            self.openings,
            self.key,
            self.labels,
            self.ids,
            self.receipts,
            self.ranks,
            self.board_files,
        ):
            try:
                yield check()
            except (KeyError, ValueError, TypeError, IndexError) as error:
                yield self._false(
                    check.__name__, f"the revealed document cannot be read ({type(error).__name__})"
                )

    @property
    def manifest(self) -> dict[str, Any]:
        """The phase's latest manifest: what its tasks are now."""
        manifests = [item["manifest"] for item in self.document["commitments"] if item["manifest"]]
        latest: dict[str, Any] = manifests[-1]
        return latest

    @property
    def phase_key(self) -> bytes:
        """The key that the seeds derive from: the revealed one, with the beacon if there was one."""
        key = bytes.fromhex(self.document["key"])
        beacons = [entry["beacon"] for entry in self.entries if entry.get("beacon")]
        return mixed_key(key, beacons[-1]) if beacons else key

    @property
    def protocol(self) -> Protocol:
        """The protocol of the latest manifest."""
        fields = dict(self.manifest["protocol"])
        return Protocol(**{**fields, "recipe": Recipe(**fields["recipe"])})

    def _true(self, check: str, sentence: str) -> Verdict:
        return true(f"{self.phase}: {check}", f"Phase {self.phase}: {sentence}.")

    def _false(self, check: str, sentence: str) -> Verdict:
        return false(f"{self.phase}: {check}", f"Phase {self.phase}: {sentence}.")

    def openings(self) -> Verdict:
        """Check that the revealed manifests are those that were committed to."""
        opened = {item["sequence"]: item for item in self.document["commitments"]}
        for entry in self.entries:
            item = opened.get(entry["sequence"])
            if item is None or commitments.commitment_of(item["opening"]) != entry["commitment"]:
                return self._false(
                    "commitment", f"what was revealed does not open commitment {entry['sequence']}"
                )
            manifest = item["manifest"]
            if manifest is None or commitments.phase_commitment(manifest) != item["opening"]["phases"].get(
                self.phase
            ):
                return self._false("commitment", f"the tasks are not those of commitment {entry['sequence']}")
        return self._true(
            "commitment", f"its {len(self.manifest['tasks'])} tasks are those that were committed to"
        )

    def key(self) -> Verdict:
        """Check that the seeds were fixed from the start."""
        if secret_commitment(self.phase_key) != self.manifest["protocol"]["secret_commitment"]:
            return self._false(
                "splits",
                "the revealed key is not the one that was committed to: the splits may have been chosen",
            )
        if self.protocol.hash != self.manifest["protocol_hash"]:
            return self._false("splits", "the protocol is not the one that was committed to")
        return self._true("splits", "the key of its random splits and its protocol were fixed from the start")

    def labels(self) -> Verdict:
        """Check that the published labels are those that were committed to, task by task."""
        if self.document["labels"] != "published":
            return unknown(
                f"{self.phase}: labels",
                f"Phase {self.phase}: labels were released as hashes only; scores are not recomputable.",
            )
        names = {f"{task['identifier']}__{task['type']}.csv": task for task in self.manifest["tasks"]}
        folder = f"reveal/{self.phase}/labels/"
        found = {path.removeprefix(folder) for path in self.repository.files if path.startswith(folder)}
        if found != set(names):
            return self._false("labels", "the label files are not one per task that was committed to")
        for name, task in names.items():
            if not same_labels(self.repository.files[folder + name], task):
                return self._false(
                    "labels", f"the labels of task {task['identifier']} are not those that were committed to"
                )
        return self._true("labels", f"the labels of all {len(names)} tasks are those that were committed to")

    def ids(self) -> Verdict:
        """Check that the id list is the public one."""
        listed = tuple(self.repository.files[f"reveal/{self.phase}/ids.txt"].decode().split("\n"))
        if ids_hash(tuple(item for item in listed if item)) != self.manifest["protocol"]["ids_hash"]:
            return self._false("ids", "the id list is not the one that was committed to")
        return self._true("ids", "the id list is the one that was committed to")

    def receipts(self) -> Verdict:
        """Check that every score was committed to when it was made."""
        tasks = [
            {task["identifier"]: task["version"] for task in item["manifest"]["tasks"]}
            for item in self.document["commitments"]
            if item["manifest"]
        ]
        for entry in self.document["entries"]:
            record = entry["record"]
            commitment = receipts.commitment_of(record, bytes.fromhex(entry["nonce"]))
            if commitment != entry["commitment"] or commitment not in self.published:
                return self._false(
                    "scores",
                    f"the scores of submission {entry['submission']} have no receipt in the public log",
                )
            if record["submission"] != entry["submission"] or record["phase"] != self.phase:
                return self._false(
                    "scores", f"the receipt of submission {entry['submission']} is another submission's"
                )
            versions = {task: cell["version"] for task, cell in record["cells"].items()}
            if versions not in tasks:
                return self._false(
                    "scores", f"submission {entry['submission']} was scored on tasks that nobody committed to"
                )
        return self._true(
            "scores",
            f"the scores of all {len(self.document['entries'])} entries have a receipt in the public log",
        )

    def ranks(self) -> Verdict:
        """Recompute every board that was ever published from the published scores."""
        rules = self._rules()
        boards = self._boards()
        for board in boards:
            fault = self._rank_fault(board, rules)
            if fault:
                return self._false("ranks", f"board {board.sequence}: {fault}")
        return self._true("ranks", f"the ranks of all {len(boards)} boards follow from the published scores")

    def board_files(self) -> Verdict:
        """Check that the boards of the reveal are those that stood in the repository."""
        site = PhaseSite(
            codename=self.phase, title=self.phase, rules=self._rules(), history=tuple(self._boards())
        )
        expected = update_history(None, Site(title="", phases=(site,))).splitlines()
        stem = json.loads(expected[0])["phase"] if expected else self.phase
        shown = [
            line
            for line in self.repository.files.get(HISTORY, b"").splitlines()
            if json.loads(line).get("phase") == stem
        ]
        if shown != expected:
            return self._false("board", "the published history is not that of the revealed boards")
        page = _json(self.repository, f"leaderboard/{stem}.json") or {}
        last = self._boards()[-1] if expected else None
        entries = [
            (entry["submission"], entry["rank_by_mean"], entry["q_mean"]) for entry in page.get("entries", [])
        ]
        if last is not None:
            decimals = self._rules().decimals
            wanted = [
                (
                    row.submission,
                    row.rank_by_mean if row.numbered else None,
                    round(row.q_mean, decimals) + 0.0,
                )
                for row in last.standings
            ]
            ranks = [entry["rank"] for entry in page.get("entries", [])]
            if entries != wanted or ranks != [row.rank if row.numbered else None for row in last.standings]:
                return self._false("board", "the present board is not the last one of its history")
        return self._true(
            "board", "the published history and the present board are those of the revealed boards"
        )

    def _rules(self) -> Rules:
        document = dict(self.document["rules"])
        document["selection"] = Selection(document["selection"])
        document["hidden_teams"] = frozenset(document["hidden_teams"])
        document["chosen"] = {int(team): submission for team, submission in document["chosen"].items()}
        return Rules(**document)

    def _boards(self) -> list[Board]:
        return [from_json(json.dumps(document)) for document in self.document["boards"]]

    def record_for(self, submission: int, made_at: str | None = None) -> Mapping[str, Any] | None:
        """Return the latest record of a submission that existed when a board was made."""
        records = [entry["record"] for entry in self.document["entries"] if entry["submission"] == submission]
        earlier = [record for record in records if made_at is None or record["scored_at"] <= made_at]
        latest: Mapping[str, Any] | None = (earlier or records or [None])[-1]
        return latest

    def _rank_fault(self, board: Board, rules: Rules) -> str | None:
        if not board.standings:
            return None
        table = []
        for standing in board.standings:
            record = self.record_for(standing.submission, board.made_at.isoformat())
            if record is None:
                return f"submission {standing.submission} has no published scores"
            table.append(
                {
                    task: quality(folds_from_json(cell["folds"]), rules.epsilon).q
                    for task, cell in record["cells"].items()
                }
            )
        tasks = sorted(table[0])
        if any(sorted(row) != tasks for row in table):
            return "its entries were scored on different tasks"
        for standing, row in zip(board.standings, table, strict=True):
            if abs(mean_quality([row[task] for task in tasks]) - standing.q_mean) > TOLERANCE_Q:
                return f"mean Q of submission {standing.submission} does not follow from its scores"
        ranking = rank(
            np.array([[row[task] for task in tasks] for row in table]),
            weighs=np.array(
                [rules.baselines_weigh if row.baseline else row.eligible for row in board.standings]
            ),
            numbered=np.array([row.numbered for row in board.standings]),
            ghost_task=rules.ghost_task,
        )
        if list(ranking.ranks) != [row.rank for row in board.standings]:
            return "its ranks do not follow from the scores"
        if list(ranking.ranks_by_mean) != [row.rank_by_mean for row in board.standings]:
            return "its standing by mean Q does not follow from the scores"
        return None


def same_labels(content: bytes, task: Mapping[str, Any]) -> bool:
    """Tell whether a published label file is the one that was committed to."""
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))[1:]
    parsed = canonical([[identifier, float(label)] for identifier, label in rows])
    return digest("labels", bytes.fromhex(task["salt"]), parsed) == str(task["labels"])


def receipt_verdicts(repository: PublicRepository, receipt: Mapping[str, Any]) -> Iterator[Verdict]:
    """Check what a participant was told against the repository: participants are the witnesses."""
    entries = _json(repository, commitments.PATH) or []
    lines = list(_lines(repository, receipts.PATH))
    if receipt.get("challenge") in {entry.get("commitment") for entry in entries}:
        yield true("your receipt", "The commitment in your receipt is in the repository.")
    else:
        yield false(
            "your receipt", "The commitment in your receipt is not in the repository: history was rewritten."
        )
    if receipt.get("chain") in {receipts.GENESIS, *(line.get("head") for line in lines)}:
        yield true(
            "your receipt", "The log of receipts still contains all that was in it when you were answered."
        )
    else:
        yield false("your receipt", "The log of receipts was changed after you were answered.")
    if any(receipt.get("commitment") in line.get("receipts", []) for line in lines):
        yield true("your receipt", "Your score's receipt is in the log.")
    else:
        yield unknown(
            "your receipt", "Your score's receipt is not in the log yet; it comes with the next batch."
        )
