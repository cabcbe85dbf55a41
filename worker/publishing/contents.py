"""Contents that a reveal has prepared for publication: the next push puts them on a branch of their own.

Each waits in a folder of its own in the state directory, which is removed when the content is pushed. So a failed push continues where it
stopped, and each push takes a limited time.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from leaderboard.git import Files, Publisher
from worker.challenge.configuration import Configuration
from worker.fairness.commit_signatures import CommitSigner
from worker.fairness.disclosure import BRANCH
from worker.fairness.signing import Signer

FOLDER = "published"
AT_ONCE_BYTES = 150_000_000  # in one push, because the push of the board waits for it


def outbox(configuration: Configuration) -> Path:
    """Return the folder in which contents wait."""
    return configuration.state_dir / FOLDER


def waiting(configuration: Configuration) -> list[Path]:
    """Return the waiting contents: a folder for each, named by its hash."""
    folder = outbox(configuration)
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def push_contents(publisher: Publisher, configuration: Configuration, signer: Signer) -> None:
    """Push the waiting contents, each in a commit of its own, so that only one is in memory at a time.

    Raises:
        NeucoError: As :meth:`leaderboard.git.publisher.Publisher.publish`.
    """
    contents, pushed = waiting(configuration), 0
    if not contents:
        return
    branch = publisher.for_branch(BRANCH)
    for folder in contents:
        if pushed >= AT_ONCE_BYTES:
            return
        parts = {part.name: part.read_bytes() for part in folder.iterdir()}
        branch.publish(
            _Parts(parts).files, f"Publish the content {folder.name[:12]}\n", signer=CommitSigner(signer)
        )
        shutil.rmtree(folder)
        pushed += sum(map(len, parts.values()))
    branch.discard()


@dataclass(frozen=True)
class _Parts:
    parts: Files

    def files(self, _existing: Files, _own: Files) -> Files:
        """Return the files to add to those in the branch."""
        return self.parts
