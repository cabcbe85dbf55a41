"""The branch `files`: the contents that reveals have published, part by part.

Before a reveal, they are prepared in a folder of the state directory, in which they stay. The worker pushes each part that the branch
lacks, and all of them again if somebody else has changed the branch. The next push of the board names the commit of this branch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from leaderboard.git import Files, Published, Publisher
from scoring.errors import NeucoError, OrganizerError
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context
from worker.fairness.disclosure import BRANCH, FILES_FACT
from worker.publishing.pushing import OVERWRITTEN, place
from worker.runtime import Act
from worker.state import ALERT_AFTER_TRIES, Transaction

FAILING = "leaderboard.files"
FOLDER = "published"


@dataclass(frozen=True, kw_only=True)
class PushedFiles:
    """The branch as this worker left it or has seen it.

    Attributes:
        commit: The newest commit with parts that the worker pushed; None if there is none.
        tip: The tip that the worker saw last.
        parts: The parts that need not be pushed.
    """

    commit: str | None = None
    tip: str | None = None
    parts: tuple[str, ...] = ()


def folder(configuration: Configuration, phase: str) -> Path:
    """Return where the contents of a phase are: in a folder each, with its parts."""
    return configuration.state_dir / FOLDER / phase


def prepared_bytes(configuration: Configuration) -> int:
    """Return how much all contents take together."""
    return sum(part.stat().st_size for part in (configuration.state_dir / FOLDER).glob("*/*/*"))


def known(tx: Transaction, configuration: Configuration) -> PushedFiles:
    """Return what is known of the branch in the configured repository."""
    document = tx.document(FILES_FACT)
    if document.get("place") != place(configuration):
        return PushedFiles()
    return PushedFiles(commit=document["commit"], tip=document["tip"], parts=tuple(document["parts"]))


def missing(tx: Transaction, configuration: Configuration) -> list[Path]:
    """Return the parts of revealed phases that the branch lacks."""
    found = list((configuration.state_dir / FOLDER).glob("*/*/*"))
    pushed = set(known(tx, configuration).parts) if found else set()
    lacking = {part.name: part for part in found if part.name not in pushed}
    revealed = tx.revealed() if lacking else []
    return [part for _, part in sorted(lacking.items()) if part.parent.parent.name in revealed]


def compare(tx: Transaction, configuration: Configuration, tip: str | None, *, now: datetime) -> None:
    """Have all parts pushed again if the branch is not where the worker left it.

    Args:
        tx: The transaction.
        configuration: Names the repository.
        tip: The tip of the branch now; None if there is no such branch.
        now: The time.
    """
    before = known(tx, configuration)
    if tip == before.tip:
        return
    if before.commit is not None:
        tx.raise_alert(
            f"{OVERWRITTEN}:{BRANCH}",
            OVERWRITTEN,
            f"Someone else changed or removed the branch `{BRANCH}` of the leaderboard's repository. The worker restores the files there."
            " Find out who it was, and allow only the worker's account to push to the branch.",
            now=now,
            happened=True,
        )
    _record(tx, configuration, PushedFiles(commit=before.commit, tip=tip))


def _record(tx: Transaction, configuration: Configuration, files: PushedFiles) -> None:
    tx.set_fact(FILES_FACT, json.dumps({"place": place(configuration), **asdict(files)}))


def _added(files: Files, _existing: Files, _own: Files) -> Files:
    """Return the files to add, whatever is there."""
    return files


class PushPart(Act[Publisher, tuple[str | None, Published]]):
    """Push one part to the branch, unless it is there already.

    Args:
        context: The worker's surroundings.
        part: The part.
        last: Whether it is the only one that the branch lacks.
        tries: How often in a row this failed.
    """

    name = "files"
    what: ClassVar[str] = "The push of a published file"
    time_out_s = 130.0

    def __init__(self, context: Context, part: Path, *, last: bool, tries: int) -> None:
        self._context = context
        self._configuration = context.configuration  # a later one may name another repository
        self._part = part
        self._last = last
        self._tries = tries

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Look up the newest commit that the worker knows to be its own."""
        self._commit = known(tx, self._configuration).commit

    def perform(self, resource: Publisher) -> tuple[str | None, Published]:
        """Return the tip of the branch before the push, and what the push did."""
        before = resource.tip_of(BRANCH)
        branch, files = resource.for_branch(BRANCH), {self._part.name: self._part.read_bytes()}
        words = f"Publish {self._part.name}\n"
        sign = self._context.signer.sign_commit
        pushed = branch.publish(partial(_added, files), words, sign=sign, last=self._commit)
        if self._last:
            branch.discard()
        return before, pushed

    def outcome(self, tx: Transaction, result: tuple[str | None, Published], now: datetime) -> None:
        """Record what the branch has, and publish its name with the last part."""
        configuration, (before, pushed) = self._configuration, result
        if pushed.rewritten or before != pushed.own:  # the tip may be ours from a push whose end was lost
            compare(tx, configuration, before, now=now)
        parts = (*known(tx, configuration).parts, self._part.name)
        _record(tx, configuration, PushedFiles(commit=pushed.commit, tip=pushed.commit, parts=parts))
        if self._last:
            tx.resolve_alert(FAILING)
            tx.request_publish()

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell the organizer if it keeps failing."""
        if isinstance(error, OrganizerError) or self._tries + 1 >= ALERT_AFTER_TRIES:
            tx.report(FAILING, error, now=now)

    def give_up(self, resource: Publisher) -> None:
        """Kill git and all its child processes; this publisher accepts no more work."""
        resource.stop()
