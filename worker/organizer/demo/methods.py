"""Honest methods of different quality that turn an 8 x 8 image into 64 numbers.

Each gets only the phase's public images (n x 8 x 8), and returns n x 64 float32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from worker.organizer.demo.data import BLACK

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
