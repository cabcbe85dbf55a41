"""Contents that a reveal has laid out to be published: the next push puts them on a branch of their own.

They wait in a folder of the state directory, one folder each, and leave it when they are pushed. So a push that failed goes on where it
was, and each takes a limited time.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from leaderboard.git import Files, Publisher
from worker.challenge.configuration import Configuration
from worker.fairness.disclosure import BRANCH

FOLDER, ELSEWHERE = "published", "published-elsewhere"
AT_ONCE_BYTES = 150_000_000  # in one push of the board, which waits for them


def outbox(configuration: Configuration) -> Path:
    """Return the folder in which contents wait."""
    return configuration.state_dir / FOLDER


def elsewhere(configuration: Configuration) -> Path:
    """Return the folder of the contents that the organizers bring to another place themselves: the branch would become too large."""
    return configuration.state_dir / ELSEWHERE


def waiting(configuration: Configuration) -> list[Path]:
    """Return what waits: a folder for each content, named by its hash."""
    folder = outbox(configuration)
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def push_contents(publisher: Publisher, configuration: Configuration) -> None:
    """Push what waits, each content with a commit of its own, so that no more than one is in memory.

    Raises:
        NeucoError: As :meth:`leaderboard.git.publisher.Publisher.publish`.
    """
    contents, pushed = waiting(configuration), 0
    if not contents:
        return
    beside = publisher.beside(BRANCH)
    for folder in contents:
        if pushed >= AT_ONCE_BYTES:
            return
        parts = {part.name: part.read_bytes() for part in folder.iterdir()}
        beside.publish(_Parts(parts).files, f"Publish the content {folder.name[:12]}\n")
        shutil.rmtree(folder)
        pushed += sum(map(len, parts.values()))
    beside.discard()


@dataclass(frozen=True)
class _Parts:
    parts: Files

    def files(self, _existing: Files) -> Files:
        """Return the files to add to those in the branch."""
        return self.parts
