"""The demo's challenge: handwritten digits as public data, hidden tasks about them, and honest methods to embed them.

The ids are hashes of the pixels, so their order reveals nothing, and any range of sorted ids is a random sample.

Each method gets only the phase's public images (n x 8 x 8), and returns n x 64 float32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from worker.organizer import shipped

DEV_IDS = 697  # of the 1,797; the others belong to the last phase
LOOPS = (0, 6, 8, 9)  # digits drawn with a closed loop
BLACK = 16  # value of a pixel full of ink


@dataclass(frozen=True, kw_only=True, eq=False)
class PhaseData:
    """The contents of a phase.

    Attributes:
        ids: Public ids, sorted.
        images: What participants get, n x 8 x 8, one per id.
        tasks: The hidden tasks: file name to the labels of the ids that it has.
    """

    ids: tuple[str, ...]
    images: NDArray[np.float64]
    tasks: Mapping[str, Mapping[str, float]]

    def files(self, codename: str) -> dict[str, bytes]:
        """Return the public id list, sorted, because the order of labels would reveal them, and the label files, by path."""
        texts = {f"ids/{codename}.txt": [f"{identifier}\n" for identifier in self.ids]}
        for name, labels in self.tasks.items():
            rows = (f"{identifier},{label:.10g}\n" for identifier, label in labels.items())
            texts[f"tasks/{codename}/{name}"] = ["id,label\n", *rows]
        return {name: "".join(lines).encode() for name, lines in texts.items()}


def load() -> tuple[PhaseData, PhaseData]:
    """Load the digits and divide them into a dev and an eval phase, with different images, and fewer tasks in dev.

    In each phase, two overlapping row sets together contain every id.
    """
    with np.load(shipped("config/demo/digits.npz")) as archive:
        images, digits = archive["images"], archive["digits"]
    ids = np.array([f"img_{hashlib.sha256(image.tobytes()).hexdigest()[:12]}" for image in images])
    order = np.argsort(ids)
    ids, images, digits = ids[order], images[order].astype(np.float64), digits[order].astype(np.int64)
    labels = {
        "even__cls.csv": digits % 2 == 0,
        "high__cls.csv": digits >= 5,
        "loop__cls.csv": np.isin(digits, LOOPS),
        "digit__regr.csv": digits,
        "ink__regr.csv": (images > BLACK / 2).mean(
            axis=(1, 2)
        ),  # share of the area that is more black than white
        # row of the center of mass, 0 at the top
        "height__regr.csv": images.sum(axis=2) @ np.arange(images.shape[1]) / images.sum(axis=(1, 2)),
    }

    def phase(rows: slice, tasks: Mapping[str, slice]) -> PhaseData:
        return PhaseData(
            ids=tuple(ids[rows].tolist()),
            images=images[rows],
            tasks={
                name: dict(
                    zip(
                        ids[rows][part].tolist(), labels[name][rows][part].astype(float).tolist(), strict=True
                    )
                )
                for name, part in tasks.items()
            },
        )

    first, last = slice(0, 450), slice(250, None)
    dev = {"even__cls.csv": first, "digit__regr.csv": last, "ink__regr.csv": last}
    first, last = slice(0, 800), slice(500, None)
    late = {"ink__regr.csv": last, "height__regr.csv": last}
    return phase(slice(0, DEV_IDS), dev), phase(
        slice(DEV_IDS, None), {name: late.get(name, first) for name in labels}
    )


DIMENSION = 64
Images = NDArray[np.float64]
Embeddings = NDArray[np.float32]


def raw_pixels(images: Images) -> Embeddings:
    """Return the 64 pixels as they are."""
    return images.reshape(len(images), DIMENSION).astype(np.float32)


def pixel_shares(images: Images) -> Embeddings:
    """Return the 64 pixels as fractions of black: the raw pixels on another scale, which must make no difference."""
    return raw_pixels(images / BLACK)


def principal_components(images: Images) -> Embeddings:
    """Rotate the pixels to their principal components, and scale all components to the same spread.

    Components that hardly vary (pixels that are always white) stay near zero, because scaling them would only amplify noise.
    """
    pixels = images.reshape(len(images), DIMENSION)
    centred = pixels - pixels.mean(axis=0)
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    # The library's sign of a direction is arbitrary, so make its largest entry positive.
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(len(directions)), largest])[:, None]
    spread = spread / np.sqrt(len(images))
    return np.asarray(centred @ directions.T / (spread + 1.0), dtype=np.float32)


def random_features(images: Images) -> Embeddings:
    """Project the pixels on 64 random directions and keep positive values, like a random hidden layer."""
    rng = np.random.default_rng(64)
    pixels = images.reshape(len(images), DIMENSION)
    pixels = pixels - pixels.mean(axis=0)
    return np.asarray(np.maximum(pixels @ rng.normal(size=(DIMENSION, DIMENSION)) / 8, 0), dtype=np.float32)


def random_projection(images: Images) -> Embeddings:
    """Project the pixels on 16 random directions, repeated four times to fill 64 numbers."""
    rng = np.random.default_rng(16)
    pixels = images.reshape(len(images), DIMENSION)
    return np.tile(pixels @ rng.normal(size=(DIMENSION, 16)) / 8, 4).astype(np.float32)


def pooled_means(images: Images) -> Embeddings:
    """Average blocks of 2 x 2 pixels, repeated four times to fill 64 numbers with the 16 means."""
    return np.tile(_means(images, 2), 4).astype(np.float32)


def quadrant_means(images: Images) -> Embeddings:
    """Average the four quadrants, repeated sixteen times to fill 64 numbers with the 4 means."""
    return np.tile(_means(images, 4), 16).astype(np.float32)


def edges(images: Images) -> Embeddings:
    """Subtract from each pixel its right neighbor, which is white beyond the border."""
    return np.asarray(np.diff(images, axis=2, append=0).reshape(len(images), DIMENSION), dtype=np.float32)


def noise(images: Images) -> Embeddings:
    """Ignore the images and return random numbers."""
    return np.random.default_rng(0).normal(size=(len(images), DIMENSION)).astype(np.float32)


def _means(images: Images, block: int) -> NDArray[np.float64]:
    side = images.shape[1] // block
    return np.asarray(
        images.reshape(len(images), side, block, side, block).mean(axis=(2, 4)).reshape(len(images), -1)
    )
