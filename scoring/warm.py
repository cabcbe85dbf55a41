"""Compile everything that scoring needs, so that no submission waits for it."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scoring.engine import Unit
from scoring.protocol import Recipe
from scoring.rows import moments


@dataclass(frozen=True, kw_only=True)
class Warmth:
    """What warming up did.

    Attributes:
        directory: Where the compiled code is kept; None if no place was writable, then each process compiles for itself.
        seconds: How long it took; a fraction of a second if everything was there already.
    """

    directory: Path | None
    seconds: float


def warm() -> Warmth:
    """Read a tiny submission and score a tiny unit, which compiles and caches all that these call."""
    started = time.perf_counter()
    from scoring.compiled import DIRECTORY
    from scoring.local import LocalEngine

    _read()

    samples = 20
    generator = np.random.RandomState(0)
    rows = generator.standard_normal((samples, 4)).astype(np.float32)
    moments(rows)
    LocalEngine(threads=1).score(
        Unit(
            rows=rows,
            targets=np.stack([np.arange(samples), np.arange(samples) % 2, np.arange(samples)]).astype(
                np.float32
            ),
            classification=np.array([False, True, False]),
            split_seeds=np.array([1], dtype=np.uint32),
            training_seeds=np.array([2], dtype=np.uint32),
            recipe=Recipe(epochs=1),
        )
    )
    return Warmth(directory=DIRECTORY, seconds=time.perf_counter() - started)


def _read() -> None:
    from scoring.reading import read_submission

    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "tiny.csv"
        table.write_text("id,0,1\na,1.5,-2.5\nb,3.5,4.5\n")
        read_submission(table, ("a", "b"), 2, max_expanded_bytes=1000)
