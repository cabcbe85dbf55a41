"""The participants of the demo and their submissions."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass

from worker.organizer.demo import methods
from worker.organizer.demo.data import PhaseData
from worker.organizer.demo.files import csv_of, spoilt

HOSTS = "Host_1_Team"  # EvalAI's name for the team through which hosts submit
Method = Callable[[methods.Images], methods.Embeddings]


@dataclass(frozen=True, kw_only=True)
class DemoEntry:
    """One submission.

    Attributes:
        user: The account that submits, which is the only member of ``team``.
        method_name: What the participant calls the method.
        method: How images become embeddings.
        project_url: The participant's link to the code.
        publication_url: The participant's link to the paper.
        public: Whether it counts for the leaderboard.
        broken: Whether the file is damaged before it is submitted.
    """

    team: str
    user: str
    method_name: str
    method: Method
    project_url: str = ""
    publication_url: str = ""
    file_name: str = "embeddings.csv"
    public: bool = True
    broken: bool = False

    def file(self, phase: PhaseData) -> bytes:
        """Make the file that is submitted."""
        data = csv_of(phase.ids, self.method(phase.images))
        if self.broken:
            data = spoilt(data, nan=((10, 3), (11, 7)), missing=2)
        return gzip.compress(data, mtime=0) if self.file_name.endswith(".gz") else data


PIXELS = DemoEntry(team="Pixel Pushers", user="ada", method_name="raw pixels", method=methods.raw_pixels)
PCA = DemoEntry(
    team="Eigendigits",
    user="karl",
    method_name="principal components",
    method=methods.principal_components,
    project_url="https://example.org/eigendigits/code",
    publication_url="https://example.org/eigendigits/paper.pdf",
)
PROJECTION = DemoEntry(
    team="Random Walkers", user="emmy", method_name="random projection", method=methods.random_projection
)
FEATURES = DemoEntry(
    team="Random Walkers",
    user="emmy",
    method_name="random features",
    method=methods.random_features,
    file_name="embeddings.csv.gz",
)
POOLED = DemoEntry(
    team="Pool Party",
    user="sofia",
    method_name="pooled means",
    method=methods.pooled_means,
    project_url="https://example.org/pool-party",
)
PRIVATE = DemoEntry(
    team="Pool Party",
    user="sofia",
    method_name="quiet experiment with edges",
    method=methods.edges,
    public=False,
)
BROKEN = DemoEntry(
    team="Last Minute",
    user="emil",
    method_name="raw pixels, in a hurry",
    method=methods.raw_pixels,
    broken=True,
)
CORRECTED = DemoEntry(
    team="Last Minute", user="emil", method_name="pixels as shares of ink", method=methods.pixel_shares
)
BASELINE_MEAN = DemoEntry(
    team=HOSTS, user="host", method_name="Baseline mean embeddings", method=methods.quadrant_means
)
BASELINE_RANDOM = DemoEntry(
    team=HOSTS, user="host", method_name="Baseline random embeddings", method=methods.noise
)

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


def teams() -> dict[str, str]:
    """Return each participant team with its member."""
    return {entry.team: entry.user for entries in PHASES.values() for entry in entries if entry.team != HOSTS}
