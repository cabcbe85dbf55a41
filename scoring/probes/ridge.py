"""The ridge probe: a closed form for all folds, penalties and tasks of a row set, without a fit per fold and task.

Rows are turned into coordinates in which their Gram matrix is diagonal; this changes neither distances nor predictions. A fold's training
part has this Gram matrix less that of its test part, centered. Its inverse, with any penalty added to the diagonal, gives the coefficients
of every task, and its trace the degrees of freedom. Where test parts are large, one decomposition of the downdated matrix serves all
penalties; where they are small, the inverse follows from a matrix of the size of the test part (Woodbury's identity). Values so large that
rounding in the Gram matrix could reach a penalty are fitted by the singular values of each training part, from its QR decomposition.

The intercept is not penalized. The penalty is chosen per fold and task on the training part alone, by generalized cross-validation
(Golub, Heath and Wahba, 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from scoring.probes.linear import TrainingParameters
from scoring.probes.measures import score
from scoring.probes.probe import Fold, FoldResult, Probe, ProbeInput
from scoring.tasks import TaskType

ALPHAS = tuple(10.0**exponent for exponent in range(-1, 6))
SMALLEST = 1e-11  # relative to the greatest eigenvalue; anything less may be rounding

Penalty = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class RidgeParameters(TrainingParameters):
    """The penalties. The linear probe's parameters have no effect, so that one configuration works for both."""

    alphas: tuple[Penalty, ...] = Field(
        ALPHAS, min_length=1, description="a list of numbers above 0, such as [1, 10]"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Decomposition:
    """A row set with the targets of its tasks, for all folds and penalties.

    Attributes:
        rows: float64, n x r, centered rows in coordinates in which their Gram matrix is diagonal.
        spectrum: float64, the r eigenvalues of the Gram matrix; empty if rounding in them could reach a penalty: the coordinates are then
            those of the embeddings.
        targets: float64, n x C, the columns of all tasks.
        products: The rows times the centered targets, r x C.
    """

    rows: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    targets: NDArray[np.float64]
    products: NDArray[np.float64]

    @property
    def is_diagonal(self) -> bool:
        """Whether the coordinates are those of the eigenvalues."""
        return bool(len(self.spectrum) == self.rows.shape[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """The fit of all targets to a training part, at one penalty; ``criteria`` are those of generalized cross-validation, C."""

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    criteria: NDArray[np.float64]

    def predict(self, rows: NDArray[np.float64], columns: slice) -> NDArray[np.float64]:
        """Return the predictions of one task, given as its columns."""
        return np.asarray(rows @ self.weights[:, columns] + self.intercepts[columns])


class RidgeProbe(Probe):
    """Ridge regression; classifications use one target of -1 and 1 per class. There are no epochs, so there are no losses."""

    parameters = RidgeParameters
    hidden = ()
    shares_folds = True

    @property
    def _alphas(self) -> list[float]:
        return sorted(set(self.params.alphas))

    def hyperparameters(self, folds: Sequence[FoldResult]) -> Mapping[str, object]:
        """See :meth:`scoring.probes.probe.Probe.hyperparameters`."""
        return {"alphas": self._alphas}

    @contextmanager
    def fitter(
        self, tasks: Sequence[ProbeInput], folds: int, *, details: bool
    ) -> Iterator[Callable[[Fold], list[FoldResult]]]:
        """See :meth:`scoring.probes.probe.Probe.fitter`.

        Folds already run in threads; BLAS's own threads would make them ten times slower (measured).
        """
        with threadpool_limits(limits=1, user_api="blas"):
            parts = _decompose(tasks, self._alphas[0])
            yield lambda fold: self._fit(tasks, parts, fold, details=details)

    def refit(self, data: ProbeInput) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Fit all rows, with the penalty that generalized cross-validation selects."""
        parts, rows = _decompose([data], self._alphas[0]), np.arange(len(data.rows))
        fits = _fits(parts, self._alphas, rows, rows[:0])
        chosen = min(fits, key=lambda fit: float(fit.criteria.sum()))
        mean = data.rows.mean(axis=0, dtype=np.float64)
        weights = chosen.weights.T
        if parts.is_diagonal:
            along = parts.rows @ (chosen.weights / parts.spectrum[:, np.newaxis])
            weights = along.T @ (data.rows - mean)
        bias = chosen.intercepts - weights @ mean
        return [(weights.astype(np.float32), bias.astype(np.float32))]

    def _fit(
        self, tasks: Sequence[ProbeInput], parts: Decomposition, fold: Fold, *, details: bool
    ) -> list[FoldResult]:
        fits = list(_fits(parts, self._alphas, fold.train, fold.test))
        train = fold.train if details else fold.train[:0]
        held, trained = parts.rows[fold.test], parts.rows[train]
        results, end = [], 0
        for data in tasks:
            columns = slice(end, end + data.outputs)
            end = columns.stop
            best = int(np.argmin([fit.criteria[columns].sum() for fit in fits]))
            predictions = [_outputs(data, fit.predict(held, columns)) for fit in fits]
            history = [score(data.kind, tried, data.targets[fold.test]) for tried in predictions]
            results.append(
                FoldResult(
                    score=history[best],
                    test=fold.test,
                    predictions=predictions[best],
                    train=train,
                    train_predictions=_outputs(data, fits[best].predict(trained, columns)),
                    history=tuple(history),
                )
            )
        return results


def _decompose(tasks: Sequence[ProbeInput], penalty: float) -> Decomposition:
    """Decompose the rows of tasks that share them; ``penalty`` is the least one."""
    centered = tasks[0].rows.astype(np.float64)
    centered -= centered.mean(axis=0)
    samples, dim = centered.shape
    wide = dim >= samples
    spectrum, vectors = np.linalg.eigh(centered @ centered.T if wide else centered.T @ centered)
    kept = spectrum > SMALLEST * max(float(spectrum[-1]), np.finfo(np.float64).tiny)
    spectrum, vectors = spectrum[kept], vectors[:, kept]
    if SMALLEST * spectrum[-1:].sum() > penalty:
        rows, spectrum = centered, spectrum[:0]
    else:
        rows = vectors * np.sqrt(spectrum) if wide else centered @ vectors
    targets = np.hstack(
        [
            data.columns if data.kind is TaskType.REGRESSION else np.where(data.columns > 0.5, 1.0, -1.0)
            for data in tasks
        ]
    )
    products = rows.T @ (targets - targets.mean(axis=0))
    return Decomposition(rows=rows, spectrum=spectrum, targets=targets, products=products)


def _fits(
    parts: Decomposition, alphas: Sequence[float], train: NDArray[np.integer], test: NDArray[np.integer]
) -> Iterator[Fit]:
    """Fit the training part at each penalty; no array is as long as the training part, except targets."""
    count, held = len(train), parts.rows[test]
    targets = parts.targets[train]
    mean = targets.mean(axis=0)
    center = -held.sum(axis=0) / count  # of the training part, because all rows together sum to 0
    if not parts.is_diagonal:
        yield from _exact_fits(parts, alphas, train, center, mean)
        return
    squares = np.sum((targets - mean) ** 2, axis=0)
    products = parts.products - held.T @ (parts.targets[test] - mean)
    removed = np.vstack([held, np.sqrt(count) * center])
    for alpha, (weights, trace) in zip(
        alphas, _solutions(parts.spectrum, removed, products, alphas), strict=True
    ):
        residuals = squares - np.sum(products * weights, axis=0) - alpha * np.sum(weights**2, axis=0)
        left = count - 1 - len(parts.spectrum) + alpha * trace  # samples less degrees of freedom
        yield Fit(
            weights=weights,
            intercepts=mean - center @ weights,
            criteria=count * np.maximum(residuals, 0.0) / max(left, 1e-9 * count) ** 2,
        )


def _exact_fits(
    parts: Decomposition,
    alphas: Sequence[float],
    train: NDArray[np.integer],
    center: NDArray[np.float64],
    mean: NDArray[np.float64],
) -> Iterator[Fit]:
    """Fit the training part at each penalty by its singular values, which takes longer than a Gram matrix, but squares no rounding.

    All that its rows and targets decide is in their triangular factor, which is made of a few rows at a time.
    """
    count, dim = len(train), len(center)
    step = 1000 + 2 * dim
    factor = np.empty((0, dim + len(mean)))
    for start in range(0, count, step):
        part = train[start : start + step]
        more = np.hstack([parts.rows[part] - center, parts.targets[part] - mean])
        factor = np.asarray(np.linalg.qr(np.vstack([factor, more]), mode="r"))
    rows, targets = factor[:, :dim], factor[:, dim:]
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(sizes > sizes[0] * max(count, dim) * np.finfo(np.float64).eps))
    left, sizes, right = left[:, :rank], sizes[:rank, np.newaxis], right[:rank]
    along, free = left.T @ targets, count - 1 - rank
    outside = np.sum((targets - left @ along) ** 2, axis=0) * (free > 0)
    for alpha in alphas:
        weights = right.T @ (sizes / (sizes**2 + alpha) * along)
        shrunk = alpha / (sizes**2 + alpha)
        residuals = outside + np.sum((shrunk * along) ** 2, axis=0)
        yield Fit(
            weights=weights,
            intercepts=mean - center @ weights,
            criteria=count * (np.sqrt(residuals) / (free + shrunk.sum())) ** 2,
        )


def _solutions(
    spectrum: NDArray[np.float64],
    removed: NDArray[np.float64],
    products: NDArray[np.float64],
    alphas: Sequence[float],
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Yield ``inverse @ products`` and the trace of ``inverse`` for each penalty.

    The inverse is that of ``diag(spectrum + alpha) - removed.T @ removed``.
    """
    if len(alphas) * len(removed) ** 2 * sum(removed.shape) > 3 * len(spectrum) ** 3:  # as measured
        values, vectors = np.linalg.eigh(np.diag(spectrum) - removed.T @ removed)
        turned = vectors.T @ products
        for alpha in alphas:
            inverse = 1.0 / (np.maximum(values, 0.0) + alpha)
            yield vectors @ (inverse[:, np.newaxis] * turned), float(inverse.sum())
        return
    for alpha in alphas:
        inverse = 1.0 / (spectrum + alpha)
        half, whole = removed * np.sqrt(inverse), removed * inverse
        middle = np.linalg.inv(np.eye(len(removed)) - half @ half.T)
        weights = inverse[:, np.newaxis] * products + whole.T @ (middle @ (whole @ products))
        yield weights, float(inverse.sum() + np.sum(middle * (whole @ whole.T)))


def _outputs(data: ProbeInput, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
    return data.shaped(predictions if data.kind is TaskType.REGRESSION else decided_by_sign(predictions))


def decided_by_sign(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values as logits. Outputs that are all in [0, 1] would count as probabilities, with the threshold at one half."""
    return np.where(values > 0, values + 1.0, values - 1.0)
