"""The demo: a new challenge about handwritten digits, rehearsed with the submissions of several participants."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from leaderboard.git import Repository
from worker.challenge.configuration import load
from worker.organizer import demo_data, scaffold
from worker.organizer.configuration_text import with_values
from worker.organizer.demo_data import DIMENSION
from worker.organizer.rehearsal import Rehearsal, RehearsalFolder, rehearse, removed_if_refused
from worker.organizer.rehearsal.entries import HOST, RehearsalEntry, csv_of, spoilt

SUBMISSIONS: tuple[tuple[RehearsalEntry, Callable[[demo_data.Images], demo_data.Embeddings]], ...] = (
    (RehearsalEntry(team=HOST, method="Baseline mean embeddings"), demo_data.quadrant_means),
    (RehearsalEntry(team=HOST, method="Baseline random embeddings"), demo_data.noise),
    (RehearsalEntry(team="Pixel Pushers", method="raw pixels"), demo_data.raw_pixels),
    (RehearsalEntry(team="Random Walkers", method="random projection"), demo_data.random_projection),
    (
        RehearsalEntry(
            team="Pool Party", method="pooled means", project_url="https://example.org/pool-party"
        ),
        demo_data.pooled_means,
    ),
    (RehearsalEntry(team="Last Minute", method="raw pixels, in a hurry", good=False), demo_data.raw_pixels),
    (RehearsalEntry(team="Pool Party", method="quiet experiment with edges", public=False), demo_data.edges),
    (
        RehearsalEntry(
            team="Eigendigits",
            method="principal components",
            project_url="https://example.org/eigendigits/code",
            publication_url="https://example.org/eigendigits/paper.pdf",
        ),
        demo_data.principal_components,
    ),
    (
        RehearsalEntry(team="Random Walkers", method="random features", file_name="embeddings.csv.gz"),
        demo_data.random_features,
    ),
    (RehearsalEntry(team="Last Minute", method="pixels as shares of ink"), demo_data.pixel_shares),
)
"""The submissions in order, and how the images become their embeddings.

The last submission of the Random Walkers counts. Last Minute correct their file and get exactly the score of the Pixel Pushers, because
all teams share their splits.
"""
ONLY_IN_DEV = ("random projection", "pixels as shares of ink")
"""The methods that are not submitted to eval, where the faulty file is not corrected."""


def entries() -> dict[str, tuple[RehearsalEntry, ...]]:
    """Make the submissions to each phase."""
    dev, last = demo_data.load()
    made = [(entry, make) for entry, make in SUBMISSIONS if entry.method not in ONLY_IN_DEV]
    return {
        codename: tuple(
            replace(entry, content=file(entry, make(phase.images), phase.ids)) for entry, make in chosen
        )
        for codename, phase, chosen in (("dev", dev, SUBMISSIONS), ("eval", last, made))
    }


def file(entry: RehearsalEntry, embeddings: demo_data.Embeddings, ids: Sequence[str]) -> bytes:
    """Make the file that is submitted."""
    content = csv_of(ids, embeddings)
    if not entry.good:
        content = spoilt(content, nan=((10, 3), (11, 7)), missing=2)
    return gzip.compress(content, mtime=0) if entry.file_name.endswith(".gz") else content


CHALLENGE = scaffold.NewChallenge(
    title="Handwritten digits (demo)", phases={"dev": 40, "eval": 200}, dim=DIMENSION
)
SETTINGS: dict[tuple[str, ...], object] = {
    # values are shown as they are, and at once
    ("phases", "dev", "selection"): "last",
    ("phases", "eval", "shown"): "at_once",
    ("scoring", "learning_rate"): 0.01,  # larger than usual, because few images mean few steps
    ("fairness", "publish_files"): "top:1",
}


def run_demo(
    path: Path, *, folds: int | None, tell: Callable[[str], object]
) -> tuple[RehearsalFolder, Rehearsal]:
    """Create the challenge in a folder, rehearse it, and check out its leaderboard.

    Args:
        path: A new or empty folder.
        folds: Largest number of splits in each phase; None for all.
        tell: Called with a sentence about each step.

    Raises:
        OrganizerError: If the folder is in use.
        InfrastructureError: If nothing changes any more.
    """
    with removed_if_refused(path):
        scaffold.create(path, CHALLENGE, now=datetime.now(UTC))
        tell(f"A hidden-task challenge runs in {path}.")
        file = path / "challenge.yaml"
        file.write_text(with_values(file.read_text(encoding="utf-8"), SETTINGS), encoding="utf-8")
        folder = RehearsalFolder(path=path / "rehearsal")
        rehearsal = rehearse(load(file), entries(), folds=folds, keep=folder.path, tell=tell)
        Repository(path).run(
            "clone", "--quiet", "--origin=origin", "--template=", str(folder.repository), "leaderboard"
        )
    return folder, rehearsal
