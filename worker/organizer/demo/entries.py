"""The participants of the demo and their submissions."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import replace

from worker.organizer.demo import data, methods
from worker.organizer.demo.data import PhaseData
from worker.organizer.rehearsal.entries import HOST, Entry, csv_of, spoilt

METHODS: Mapping[str, Callable[[methods.Images], methods.Embeddings]] = {
    "raw pixels": methods.raw_pixels,
    "raw pixels, in a hurry": methods.raw_pixels,
    "pixels as shares of ink": methods.pixel_shares,
    "principal components": methods.principal_components,
    "random projection": methods.random_projection,
    "random features": methods.random_features,
    "pooled means": methods.pooled_means,
    "quiet experiment with edges": methods.edges,
    "Baseline mean embeddings": methods.quadrant_means,
    "Baseline random embeddings": methods.noise,
}
"""How the images become embeddings in each method."""
PIXELS = Entry(team="Pixel Pushers", method="raw pixels")
PCA = Entry(
    team="Eigendigits",
    method="principal components",
    project_url="https://example.org/eigendigits/code",
    publication_url="https://example.org/eigendigits/paper.pdf",
)
PROJECTION = Entry(team="Random Walkers", method="random projection")
FEATURES = Entry(team="Random Walkers", method="random features", file_name="embeddings.csv.gz")
POOLED = Entry(team="Pool Party", method="pooled means", project_url="https://example.org/pool-party")
PRIVATE = Entry(team="Pool Party", method="quiet experiment with edges", public=False)
BROKEN = Entry(team="Last Minute", method="raw pixels, in a hurry", good=False)
CORRECTED = Entry(team="Last Minute", method="pixels as shares of ink")
BASELINE_MEAN = Entry(team=HOST, method="Baseline mean embeddings")
BASELINE_RANDOM = Entry(team=HOST, method="Baseline random embeddings")

PHASES: dict[str, tuple[Entry, ...]] = {
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
        codename: tuple(replace(entry, content=file(entry, phase)) for entry in PHASES[codename])
        for codename, phase in zip(PHASES, data.load(), strict=True)
    }


def file(entry: Entry, phase: PhaseData) -> bytes:
    """Make the file that is submitted to a phase."""
    content = csv_of(phase.ids, METHODS[entry.method](phase.images))
    if not entry.good:
        content = spoilt(content, nan=((10, 3), (11, 7)), missing=2)
    return gzip.compress(content, mtime=0) if entry.file_name.endswith(".gz") else content
