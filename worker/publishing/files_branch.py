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

from leaderboard.git import OWN_FILES, OWN_FOLDERS, Files, Published, Publisher
from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.fairness.disclosure import BRANCH, FILES_FACT
from worker.publishing.pushing import OVERWRITTEN, PushAct, place
from worker.state import Transaction

FAILING = "leaderboard.files"
FOLDER = "published"


@dataclass(frozen=True, kw_only=True)
class PushedFiles:
    """The branch as this worker left it or has seen it.

    Attributes:
        commit: The newest commit with parts that the worker pushed; None if there is none.
        parts: The parts that need not be pushed.
    """

    commit: str | None = None
    parts: tuple[str, ...] = ()


def folder(configuration: Configuration, phase: str) -> Path:
    """Return where the contents of a phase are: in a folder each, with its parts."""
    return configuration.state_dir / FOLDER / phase


def prepared(configuration: Configuration) -> list[Path]:
    """Return the parts of all contents."""
    return list((configuration.state_dir / FOLDER).glob("*/*/*"))


def prepared_bytes(configuration: Configuration) -> int:
    """Return how much all contents take together."""
    return sum(part.stat().st_size for part in prepared(configuration))


def known(tx: Transaction, configuration: Configuration) -> PushedFiles:
    """Return what is known of the branch in the configured repository."""
    document = tx.document(FILES_FACT)
    if document.get("place") != place(configuration):
        return PushedFiles()
    return PushedFiles(commit=document["commit"], parts=tuple(document["parts"]))


def missing(tx: Transaction, configuration: Configuration) -> list[Path]:
    """Return the parts of revealed phases that the branch lacks."""
    found = prepared(configuration)
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
    if tip == before.commit or not before.parts:
        return
    tx.raise_alert(
        f"{OVERWRITTEN}:{BRANCH}",
        OVERWRITTEN,
        f"Someone else changed or removed the branch `{BRANCH}` of the leaderboard's repository. The worker restores the files there."
        " Find out who it was, and allow only the worker's account to push to the branch.",
        now=now,
        happened=True,
    )
    _record(tx, configuration, PushedFiles(commit=before.commit))


def _record(tx: Transaction, configuration: Configuration, files: PushedFiles) -> None:
    tx.set_fact(FILES_FACT, json.dumps({"place": place(configuration), **asdict(files)}))


def _added(files: Files, _existing: Files, _own: Files) -> Files:
    """Return the files to add, whatever is there."""
    return files


@dataclass(kw_only=True, eq=False, repr=False)
class PushPart(PushAct[Published]):
    """Push one part to the branch, unless it is there already.

    Attributes:
        part: The part.
        last: Whether it is the only one that the branch lacks.
    """

    name = "files"
    what: ClassVar[str] = "The push of a published file"
    part: Path
    last: bool

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Look up the newest commit that the worker knows to be its own."""
        self._commit = known(tx, self.configuration).commit

    def perform(self, resource: Publisher) -> Published:
        """Return what the push did."""
        branch, files = resource.for_branch(BRANCH), {self.part.name: self.part.read_bytes()}
        pushed = branch.publish(
            partial(_added, files),
            f"Publish {self.part.name}\n",
            sign=self.context.signer.sign_commit,
            last=self._commit,
            folders=(*OWN_FILES, *OWN_FOLDERS),  # this signature vouches for no page
        )
        if self.last:
            branch.discard()
        return pushed

    def outcome(self, tx: Transaction, result: Published, now: datetime) -> None:
        """Record what the branch has, and publish its name with the last part."""
        configuration = self.configuration
        # A tip that is not the last commit may be ours, from a push whose end was lost.
        if result.rewritten or result.files != result.own:
            compare(tx, configuration, result.files, now=now)
        parts = (*known(tx, configuration).parts, self.part.name)
        _record(tx, configuration, PushedFiles(commit=result.commit, parts=parts))
        if self.last:
            tx.resolve_alert(FAILING)
            tx.request_publish()

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell the organizer if it keeps failing."""
        if self.needs_organizer(error):
            tx.report(FAILING, error, now=now)
