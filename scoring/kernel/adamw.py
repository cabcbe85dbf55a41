"""AdamW with torch's defaults (betas 0.9 and 0.999, weight decay 0.01), in one pass over weights, gradients and moments."""

# ruff: noqa: PLR0917 - compiled functions take plain positional arguments

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scoring.jit import compiled
from scoring.kernel.simd import LANES, difference, fused, load, product, quotient, root, spread, store

# 1 - beta in float64, as torch computes it; float32(1) - float32(0.999) is off by 1.3e-5 (relative)
_BETA_1_REST = np.float32(0.1)
_BETA_2 = np.float32(0.999)
_BETA_2_REST = np.float32(0.001)
_EPSILON = np.float32(1e-8)
_WEIGHT_DECAY = 0.01


@compiled
def adamw_step(
    weights: NDArray[np.float32],
    gradients: NDArray[np.float32],
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    step: int,
    learning_rate: float,
) -> None:
    """Take one AdamW step on all tasks and clear the gradients."""
    correction = math.sqrt(1.0 - 0.999**step)
    decay = spread(np.float32(1.0 - learning_rate * _WEIGHT_DECAY))
    rate = spread(np.float32(-learning_rate / (1.0 - 0.9**step)))
    inverse = spread(np.float32(1.0 / correction))
    epsilon = spread(_EPSILON)
    beta_1_rest = spread(_BETA_1_REST)
    beta_2 = spread(_BETA_2)
    beta_2_rest = spread(_BETA_2_REST)
    zero = spread(np.float32(0.0))
    for j in range(0, len(weights), LANES):
        g = load(gradients, j)
        store(gradients, j, zero)
        m = load(first, j)
        m = fused(beta_1_rest, difference(g, m), m)
        store(first, j, m)
        v = fused(product(g, g), beta_2_rest, product(load(second, j), beta_2))
        store(second, j, v)
        change = quotient(product(rate, m), fused(root(v), inverse, epsilon))
        store(weights, j, fused(load(weights, j), decay, change))
