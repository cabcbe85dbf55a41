"""Estimate how far a board depends on the random splits, by a seeded bootstrap over folds.

Fold indices are resampled once per row set. All tasks and entries of a row set share them, because they share the splits; different row
sets are resampled independently. Folds with the same test part, which few groups have, say little more than one of them: they are drawn
together. If a failed fold is drawn, its cell uses the other drawn folds. Each replicate recomputes quality scores,
weights and ranks with the code of the official ranking.

The bootstrap covers the variation over random splits, and the training noise within them. It does not cover two things. The K training sets
overlap, so the variation over fresh data is larger than resampling of folds can show. And choosing the best of several submissions favors
lucky ones.

The interval of mean Q is studentized (bootstrap-t), because the plain percentile interval is too narrow. The population standard deviation
in Q is biased low, and in every resample a second time; in simulations with known truth, the percentile interval covered 82-90 % instead of
95 % at K = 200, and almost nothing at K = 4. Dividing each replicate's error by its own standard error (from Q's influence function)
corrects this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.dynamic_rank import (
    Floats,
    pushed,
    ranks_of,
    task_ranks,
    task_weights,
    weighted_ranks,
)
from scoring.metrics import quality_of_moments

CHUNK = 100  # most replicates at a time; 100 teams x 20 tasks x 200 folds then take less than 200 MB
# OpenBLAS uses several threads for products of at least this size. Boards are made while scoring keeps every core busy, and waiting for a
# thread without a core cost ten times what it saved, so products are cut to stay below.
SERIAL_PRODUCT = 2**18  # multiply-adds
GROUP = 10  # entries whose influences are computed at a time; 50 replicates of 200 folds then fit into a core's cache
CONFIDENCE = 0.95
DIGITS = 6  # of Q in a replicate; smaller differences are rounding errors, and must not decide ranks where folds have few different scores
LEAST_ERROR = 1e-9  # a standard error up to this is a rounding error: the drawn folds do not vary
LEAST_VARIANCE = 1e-12  # the same of a variance, as a share of the largest squared deviation of the cell


@dataclass(frozen=True, kw_only=True)
class FoldTable:
    """Fold scores of P entries in T tasks.

    Attributes:
        row_sets: T row-set hashes; tasks with equal ones share splits.
        folds: T arrays of P x K scores, NaN where a fold failed; K is the same within a row set.
        seed: Text that, with the row-set hash, seeds the resampling. It is made from the phase, not the scores, so that all boards of a
            phase use the same replicates, and the figures of unchanged teams change only with the weights.
        test_parts: Row-set hash to the number of each fold's test part; empty or missing if no two folds have the same one.
    """

    row_sets: tuple[str, ...]
    folds: tuple[Floats, ...]
    seed: str
    test_parts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """The results of the bootstrap, with entries in the order of the table.

    Attributes:
        q_intervals: 95 % interval of mean Q; None if there are too few folds.
        rank_intervals: Smallest and largest rank after cutting 2.5 % of the replicates, rounded down, off each end.
        p_first: Share of replicates in which the entry has rank 1 (ties count for each).
        p_top3: Share of replicates in which it has a rank from 1 to 3.
        beats: P x P shares of replicates in which the row's entry has a strictly better weighted rank than the column's.
    """

    q_intervals: tuple[tuple[float, float] | None, ...]
    rank_intervals: tuple[tuple[int, int], ...]
    p_first: tuple[float, ...]
    p_top3: tuple[float, ...]
    beats: Floats


def bootstrap(
    table: FoldTable,
    *,
    epsilon: float,
    weighs: NDArray[np.bool_],
    numbered: NDArray[np.bool_],
    ghost_task: float = 0.0,
    replicates: int,
) -> Uncertainty:
    """Resample folds and rank every replicate; every cell needs a finite score."""
    row_sets = _row_sets(table)
    entries, tasks = len(weighs), len(table.folds)
    observed = _evaluate(row_sets, None, epsilon, tasks)
    means, errors = np.empty((2, replicates, entries))
    ranks = np.empty((replicates, entries), np.int32)
    beats, apart = np.zeros((entries, entries)), ~(weighs | numbered)
    drawn = [row_set.draw(f"bootstrap 1\0{table.seed}", replicates) for row_set in row_sets]
    for part in _chunks(replicates, row_sets):
        cells, squared_error = _evaluate(row_sets, [counts[part] for counts in drawn], epsilon, tasks)
        means[part], errors[part] = cells.mean(axis=1).T, np.sqrt(squared_error).T
        # Entries are next to each other in memory, because sorting them is what takes time.
        quality = np.round(cells, DIGITS).transpose(2, 1, 0).copy().swapaxes(1, 2)  # R x P x T
        weights = task_weights(quality, weighs, ghost_task)
        weighted = weighted_ranks(task_ranks(quality, weighs), weights)
        ranks[part] = ranks_of(weighted, quality, weights, weighs=weighs, numbered=numbered)
        better = weighted[:, :, None] < weighted[:, None, :]
        for index in np.flatnonzero(apart).tolist():
            others = pushed(weighted, quality, weights, index)[:, ~apart]
            better[:, index, ~apart] = weighted[:, [index]] < others
            better[:, ~apart, index] = others < weighted[:, [index]]
        # Bytes hold sums up to CHUNK, and need no conversion.
        beats += better.view(np.uint8).sum(axis=0, dtype=np.uint8)
    cut = int(replicates * (1 - CONFIDENCE) / 2)
    ordered = np.sort(ranks, axis=0)
    fewest = np.min([row_set.fewest for row_set in row_sets], axis=0)
    return Uncertainty(
        q_intervals=tuple(
            studentized(
                float(observed[0][index].mean()),
                float(np.sqrt(observed[1][index, 0])),
                means[:, index],
                errors[:, index],
                fewest=int(fewest[index]),
            )
            for index in range(entries)
        ),
        rank_intervals=tuple(zip(ordered[cut].tolist(), ordered[-1 - cut].tolist(), strict=True)),
        p_first=tuple((ranks <= 1).mean(axis=0).tolist()),
        p_top3=tuple((ranks <= 3).mean(axis=0).tolist()),
        beats=beats / replicates,
    )


def studentized(
    value: float, error: float, drawn: Floats, drawn_errors: Floats, *, fewest: int
) -> tuple[float, float] | None:
    """Return the ends of the 95 % interval of a value, from R replicates with their standard errors.

    Replicates whose drawn folds do not vary have no standard error, and are left out.

    Args:
        value: The observed value.
        error: Its standard error.
        drawn: R values.
        drawn_errors: Their standard errors; not finite where a replicate has no value.
        fewest: The smallest number of finite folds of a task.

    Returns:
        None if there are fewer than three folds, or if more than half of the replicates are left out.
    """
    if fewest < 3:  # of two folds, the replicates that vary are all alike
        return None
    if error <= LEAST_ERROR:
        return (value, value)
    usable = np.isfinite(drawn) & (drawn_errors > LEAST_ERROR)
    if usable.sum() * 2 < len(usable):
        return None
    ratios = (drawn[usable] - value) / drawn_errors[usable]
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return (value - float(high) * error, value - float(low) * error)


def standard_errors(table: FoldTable, epsilon: float) -> Floats:
    """Return the standard error of each cell's quality score over the splits, P x T, from Q's influence function."""
    alone = (
        make_row_set(name, [0], [folds], table.test_parts.get(name, ()))
        for name, folds in zip(table.row_sets, table.folds, strict=True)
    )
    squared = [_evaluate([cells], None, epsilon, 1)[1] for cells in alone]
    return np.asarray(np.sqrt(np.concatenate(squared, axis=1)))


def tie_groups(numbered: Sequence[bool], beats: Floats, apart: Sequence[bool]) -> tuple[int, ...]:
    """Put adjacent entries that cannot be told apart into groups.

    From the top of the board down, an entry joins the group above it unless that group's first entry beats it in at least 95 % of the
    replicates. An entry without a number never begins a group: if it does not join the group above, it belongs to the next one below. One
    that is apart joins the first group whose first entry does not beat it.

    Args:
        numbered: Whether each entry competes, in board order.
        beats: From :class:`Uncertainty`, in board order.
        apart: Whether each entry is apart, see :mod:`leaderboard.ranking.dynamic_rank`; these are the last ones.

    Returns:
        Each entry's 1-based group.
    """
    groups: list[int] = []
    firsts: list[int] = []
    for index, competes in enumerate(numbered):
        beaten = (beats[firsts, index] >= CONFIDENCE).tolist()
        if competes and (not beaten or beaten[-1]):
            firsts.append(index)
            groups.append(len(firsts))
        elif apart[index]:
            groups.append([*beaten, False].index(False) + 1)
        else:
            groups.append(len(firsts) + (not beaten or beaten[-1]))
    return tuple(groups)


@dataclass(frozen=True, kw_only=True)
class RowSet:
    """The scores of one row set's tasks, centered and rounded to a grid on which sums are exact.

    Sums of grid values times small counts need no rounding, so replicates have the same bits in whatever order a linear-algebra library
    adds, and two entries with equal fold scores tie in every replicate.
    """

    name: str
    columns: tuple[int, ...]
    folds: int  # K
    center: Floats  # P x T
    powers: Floats  # P x 3T x D, sums over the folds of each test part: squared scores, scores, and 1 for finite folds; 0 for failed ones
    least_variance: Floats  # P x T; a variance up to this is a rounding error

    @property
    def test_parts(self) -> int:
        """The number D of test parts."""
        return int(self.powers.shape[-1])

    @property
    def fewest(self) -> Floats:
        """The smallest number of test parts with a finite fold of each entry's cells, P."""
        finite = self.powers[:, 2 * len(self.columns) :] > 0
        return np.asarray(finite.sum(axis=-1).min(axis=-1))

    def draw(self, use: str, replicates: int) -> NDArray[np.uint16]:
        """Return how often each of the D test parts, with all of its folds, is drawn in each replicate for a use: R x D counts."""
        return counted_draws(f"{use}\0{self.name}\0{self.folds}", self.test_parts, replicates)

    def quality(self, moments: FoldMoments, epsilon: float) -> Floats:
        """Return Q of each cell, P x T x R."""
        return quality_of_moments(self.center[..., None] + moments.shift, np.sqrt(moments.variance), epsilon)


def counted_draws(text: str, number: int, replicates: int) -> NDArray[np.uint16]:
    """Draw so many times as there are things, and return how often each was drawn, R x N; the text decides what is drawn."""
    digest = hashlib.sha256(text.encode()).digest()
    # RandomState, because its stream never changes; Generator's may change with NumPy.
    random = np.random.RandomState(np.frombuffer(digest, np.uint32))
    places = random.randint(0, number, size=(replicates, number)) + number * np.arange(replicates)[:, None]
    counts = np.bincount(places.ravel(), minlength=replicates * number)
    return counts.reshape(replicates, number).astype(np.uint16)


def _row_sets(table: FoldTable) -> list[RowSet]:
    columns: dict[str, list[int]] = {}
    for column, name in enumerate(table.row_sets):
        columns.setdefault(name, []).append(column)
    return [
        make_row_set(name, of, [table.folds[column] for column in of], table.test_parts.get(name, ()))
        for name, of in sorted(columns.items())
    ]


def make_row_set(
    name: str, columns: Sequence[int], folds: Sequence[Floats], test_parts: Sequence[int]
) -> RowSet:
    """Arrange the P x K scores of one or more tasks on one row set."""
    scores = np.stack(folds, axis=1)  # P x T x K
    parts = np.unique(test_parts or range(scores.shape[-1]), return_inverse=True)[1]
    scores, parts = scores[..., np.argsort(parts, kind="stable")], np.sort(parts)
    finite = np.isfinite(scores)
    number = finite.sum(axis=-1)
    center = np.where(finite, scores, 0.0).sum(axis=-1) / number
    centered = np.where(finite, scores - center[..., None], 0.0)
    first = _on_grid(centered)
    second = _on_grid(first**2)
    powers = np.concatenate([second, first, finite], axis=1)
    return RowSet(
        name=name,
        columns=tuple(columns),
        folds=len(parts),
        center=center,
        powers=np.add.reduceat(powers, np.flatnonzero(np.diff(parts, prepend=-1)), axis=-1),
        least_variance=LEAST_VARIANCE * second.max(axis=-1),
    )


def _on_grid(values: Floats) -> Floats:
    """Round to multiples of a power of two that is large enough for sums of K counted values to fit into 53 bits."""
    largest = np.abs(values).max(axis=-1, keepdims=True) * values.shape[-1]
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, 52 - exponent)), exponent - 52))


def _evaluate(
    row_sets: Sequence[RowSet], drawn: Sequence[NDArray[np.uint16]] | None, epsilon: float, tasks: int
) -> tuple[Floats, Floats]:
    """Return quality scores, P x T x R, and squared standard errors of mean Q, P x R; without ``drawn``, the observed ones (R = 1)."""
    entries = len(row_sets[0].center)
    replicates = 1 if drawn is None else len(drawn[0])
    quality, squared_error = np.empty((entries, tasks, replicates)), np.zeros((entries, replicates))
    for position, row_set in enumerate(row_sets):
        counts = np.ones((1, row_set.test_parts)) if drawn is None else drawn[position].astype(np.float64)
        moments = fold_moments(row_set, counts)
        quality[:, list(row_set.columns)] = row_set.quality(moments, epsilon)
        squared_error += _squared_error(row_set, counts, moments, epsilon) / tasks**2
    return quality, squared_error


@dataclass(frozen=True, kw_only=True)
class FoldMoments:
    """Number, mean (of centered scores) and population variance of each cell's drawn finite folds, P x T x R."""

    number: Floats
    shift: Floats
    variance: Floats


def fold_moments(row_set: RowSet, counts: Floats) -> FoldMoments:
    """Return the moments over drawn folds, from R x D counts of test parts.

    If all drawn folds of a cell have failed, it keeps its observed moments in that replicate.
    """
    second, first, number = np.split(np.matmul(row_set.powers, counts.T), 3, axis=1)
    lost = number == 0
    number[lost] = 1
    shift = first / number
    variance = second / number - shift**2
    variance[variance <= row_set.least_variance[..., None]] = 0.0
    if lost.any():
        squares, _, finite = np.split(row_set.powers.sum(axis=-1, keepdims=True), 3, axis=1)
        variance = np.where(lost, squares / finite, variance)
    return FoldMoments(number=number, shift=shift, variance=variance)


def influence_coefficients(row_set: RowSet, moments: FoldMoments, epsilon: float) -> Floats:
    """Return the coefficients of the row set's powers in its influences, P x R x 3T.

    Times ``powers``, they say how far each draw of a test part moves the sum of Q over the row set's tasks, P x R x D. With x a fold's
    score minus the mean, v the variance and s its root, a fold moves Q by slope * x - bend * (x**2 - v), where slope = 100 e / (s + e) and
    bend = 50 e * mean / (s (s + e)**2). Tasks on one row set are summed within each fold first, and folds within each test part, so that
    their correlation counts.
    """
    number, shift, variance = moments.number, moments.shift, moments.variance
    mean, std = row_set.center[..., None] + shift, np.sqrt(variance)
    slope = 100.0 * epsilon / (std + epsilon)
    bend = np.divide(50.0 * epsilon * mean, std * (std + epsilon) ** 2, out=np.zeros_like(std), where=std > 0)
    # As a polynomial of the centered scores: bent * x**2 + sloped * x + constant, each over the number of folds.
    bent = -bend / number
    sloped = (slope + 2.0 * bend * shift) / number
    constant = (-slope * shift - bend * shift**2 + bend * variance) / number
    return np.concatenate([bent, sloped, constant], axis=1).swapaxes(1, 2)


def _squared_error(row_set: RowSet, counts: Floats, moments: FoldMoments, epsilon: float) -> Floats:
    """Return the squared standard error of the row set's sum of Q, P x R."""
    roots, entries = np.sqrt(counts), len(row_set.center)
    coefficients = influence_coefficients(row_set, moments, epsilon)
    errors = np.empty((entries, len(counts)))
    for start in range(0, entries, GROUP):
        some = slice(start, start + GROUP)
        influences = np.matmul(coefficients[some], row_set.powers[some])
        influences *= roots
        errors[some] = np.vecdot(influences, influences)
    return errors


def _chunks(replicates: int, row_sets: Sequence[RowSet]) -> Iterator[slice]:
    widest = max(row_set.powers[0].size for row_set in row_sets)
    size = min(CHUNK, max(10, SERIAL_PRODUCT // widest))
    for start in range(0, replicates, size):
        yield slice(start, min(start + size, replicates))
