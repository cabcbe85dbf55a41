"""The limits of the machine: multiply-adds and row reads per second, measured with the kernel's own functions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numba
import numpy as np

from scoring.kernel import aligned
from scoring.kernel.simd import LANES, fused, load, spread, total


@numba.njit(nogil=True)
def _multiply(rounds: int, values: np.ndarray) -> float:
    """Run ten independent chains of multiply-adds in registers."""
    x = load(values, 0)
    a = spread(np.float32(0.0))
    b, c, d, e, f, g, h, i, j = a, a, a, a, a, a, a, a, a
    for _ in range(rounds):
        a = fused(a, x, x)
        b = fused(b, x, x)
        c = fused(c, x, x)
        d = fused(d, x, x)
        e = fused(e, x, x)
        f = fused(f, x, x)
        g = fused(g, x, x)
        h = fused(h, x, x)
        i = fused(i, x, x)
        j = fused(j, x, x)
    return (
        total(a)
        + total(b)
        + total(c)
        + total(d)
        + total(e)
        + total(f)
        + total(g)
        + total(h)
        + total(i)
        + total(j)
    )


@numba.njit(nogil=True)
def _read(rows: np.ndarray, width: int, order: np.ndarray, rounds: int) -> float:
    """Add up rows in a given order: four streams, one multiply-add per load."""
    one = spread(np.float32(1.0))
    a = spread(np.float32(0.0))
    b, c, d = a, a, a
    for _ in range(rounds):
        for row in order:
            start = np.int64(row) * width
            for j in range(0, width, 4 * LANES):
                a = fused(load(rows, start + j), one, a)
                b = fused(load(rows, start + j + LANES), one, b)
                c = fused(load(rows, start + j + 2 * LANES), one, c)
                d = fused(load(rows, start + j + 3 * LANES), one, d)
    return total(a) + total(b) + total(c) + total(d)


def multiply_add_rate(threads: int) -> float:
    """Return the peak of float32 multiply-adds in FLOP/s over all threads."""
    rounds = 10_000_000
    values = np.full(LANES, 0.5, dtype=np.float32)
    _multiply(1, values)
    return threads * rounds * 10 * LANES * 2 / _together(threads, lambda: _multiply(rounds, values))


def read_rate(threads: int, samples: int, dim: int) -> float:
    """Return bytes per second over all threads, reading rows of an n x N matrix in random order."""
    rows = aligned((samples, dim))
    rows[:] = 1
    order = np.random.default_rng(0).permutation(samples)
    rounds = max(1, int(4e9 / rows.nbytes))
    _read(rows.reshape(-1), dim, order[:1], 1)
    return (
        threads
        * rounds
        * rows.nbytes
        / _together(threads, lambda: _read(rows.reshape(-1), dim, order, rounds))
    )


def _together(threads: int, work: Callable[[], object]) -> float:
    crew = [threading.Thread(target=work) for _ in range(threads)]
    begun = time.perf_counter()
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return time.perf_counter() - begun
