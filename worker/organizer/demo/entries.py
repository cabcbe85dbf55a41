"""The participants of the demo and their submissions."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass

from worker.organizer.demo import data, methods
from worker.organizer.demo.data import PhaseData
from worker.organizer.rehearsal.entries import HOST, Entry
from worker.organizer.rehearsal.files import csv_of, spoilt

Method = Callable[[methods.Images], methods.Embeddings]


@dataclass(frozen=True, kw_only=True)
class DemoEntry:
    """One submission.

    Attributes:
        method_name: What the participant calls the method.
        method: How images become embeddings.
        project_url: The participant's link to the code.
        publication_url: The participant's link to the paper.
        public: Whether it counts for the leaderboard.
        broken: Whether the file is damaged before it is submitted.
    """

    team: str
    method_name: str
    method: Method
    project_url: str = ""
    publication_url: str = ""
    file_name: str = "embeddings.csv"
    public: bool = True
    broken: bool = False

    def file(self, phase: PhaseData) -> bytes:
        """Make the file that is submitted."""
        content = csv_of(phase.ids, self.method(phase.images))
        if self.broken:
            content = spoilt(content, nan=((10, 3), (11, 7)), missing=2)
        return gzip.compress(content, mtime=0) if self.file_name.endswith(".gz") else content

    def submission(self, phase: PhaseData) -> Entry:
        """Make the submission to a phase."""
        return Entry(
            team=self.team,
            method=self.method_name,
            content=self.file(phase),
            file_name=self.file_name,
            project_url=self.project_url,
            publication_url=self.publication_url,
            public=self.public,
            good=not self.broken,
        )


PIXELS = DemoEntry(team="Pixel Pushers", method_name="raw pixels", method=methods.raw_pixels)
PCA = DemoEntry(
    team="Eigendigits",
    method_name="principal components",
    method=methods.principal_components,
    project_url="https://example.org/eigendigits/code",
    publication_url="https://example.org/eigendigits/paper.pdf",
)
PROJECTION = DemoEntry(
    team="Random Walkers", method_name="random projection", method=methods.random_projection
)
FEATURES = DemoEntry(
    team="Random Walkers",
    method_name="random features",
    method=methods.random_features,
    file_name="embeddings.csv.gz",
)
POOLED = DemoEntry(
    team="Pool Party",
    method_name="pooled means",
    method=methods.pooled_means,
    project_url="https://example.org/pool-party",
)
PRIVATE = DemoEntry(
    team="Pool Party",
    method_name="quiet experiment with edges",
    method=methods.edges,
    public=False,
)
BROKEN = DemoEntry(
    team="Last Minute",
    method_name="raw pixels, in a hurry",
    method=methods.raw_pixels,
    broken=True,
)
CORRECTED = DemoEntry(team="Last Minute", method_name="pixels as shares of ink", method=methods.pixel_shares)
BASELINE_MEAN = DemoEntry(team=HOST, method_name="Baseline mean embeddings", method=methods.quadrant_means)
BASELINE_RANDOM = DemoEntry(team=HOST, method_name="Baseline random embeddings", method=methods.noise)

PHASES: dict[str, tuple[DemoEntry, ...]] = {
    "dev": (
        BASELINE_MEAN,
        BASELINE_RANDOM,
        PIXELS,
        PROJECTION,
        POOLED,
        BROKEN,
        PRIVATE,
        PCA,
        FEATURES,
        CORRECTED,
    ),
    "eval": (BASELINE_MEAN, BASELINE_RANDOM, PIXELS, POOLED, BROKEN, PRIVATE, PCA, FEATURES),
}
"""The submissions to each phase, in order.

In dev, the Random Walkers submit twice, and their last submission counts. Last Minute correct their file and get exactly the score of the
Pixel Pushers, because all teams share their splits. In eval, the faulty file is not corrected.
"""


def entries() -> dict[str, tuple[Entry, ...]]:
    """Make the submissions to each phase."""
    return {
        codename: tuple(entry.submission(phase) for entry in PHASES[codename])
        for codename, phase in zip(PHASES, data.load(), strict=True)
    }
