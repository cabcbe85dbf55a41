"""The ridge probe: a closed form for all folds from one decomposition of one Gram matrix, without a fit per fold.

The fit without a test part T follows exactly from the fit to all rows. With the hat matrix H of the latter, the prediction for T by the fit
without T is ``y_T - (I - H_TT)^-1 (y_T - (H y)_T)``, and a fit to all rows with these predictions in place of ``y_T`` equals the fit
without T. Centered rows decompose as ``U S V'``, so for any penalty ``H = 1/n + U diag(s^2 / (s^2 + alpha)) U'``, with an intercept that is
not penalized. U comes from the smaller Gram matrix, N x N or n x n; each fold needs one solve of the size of its test part.

The penalty is chosen per fold on the training part alone, by generalized cross-validation (Golub, Heath and Wahba, 1979).
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
SMALLEST = 1e-11  # relative to the greatest eigenvalue; anything less is rounding

Penalty = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class RidgeParameters(TrainingParameters):
    """The penalties. The linear probe's parameters have no effect, so that one configuration works for both."""

    alphas: tuple[Penalty, ...] = Field(
        ALPHAS, min_length=1, description="a list of numbers above 0, such as [1, 10]"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Decomposition:
    """The decomposition of the rows, for all folds and penalties.

    Attributes:
        basis: float64, n x (r + 1), orthonormal columns: the constant, then the left singular vectors of the centered rows.
        spectrum: float64, r + 1 eigenvalues of the Gram matrix; that of the constant has no meaning.
        targets: float64, n x C.
        projected: The targets in coordinates of the basis, (r + 1) x C.
    """

    basis: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    targets: NDArray[np.float64]
    projected: NDArray[np.float64]

    def shrinkage(self, alpha: float) -> NDArray[np.float64]:
        """Return the diagonal of the hat matrix in this basis."""
        factors = self.spectrum / (self.spectrum + alpha)
        factors[0] = 1.0
        return factors


class RidgeProbe(Probe):
    """Ridge regression; classifications use one target of -1 and 1 per class. There are no epochs, so there are no losses."""

    parameters = RidgeParameters
    hidden = ()

    @property
    def _alphas(self) -> list[float]:
        return sorted(set(self.params.alphas))

    def hyperparameters(self, folds: Sequence[FoldResult]) -> Mapping[str, object]:
        """See :meth:`scoring.probes.probe.Probe.hyperparameters`."""
        return {"alphas": self._alphas}

    @contextmanager
    def fitter(
        self, data: ProbeInput, folds: int, *, details: bool
    ) -> Iterator[Callable[[Fold], FoldResult]]:
        """See :meth:`scoring.probes.probe.Probe.fitter`.

        Folds already run in threads; BLAS's own threads would make them ten times slower (measured).
        """
        with threadpool_limits(limits=1, user_api="blas"):
            parts = _decompose(data)
            yield lambda fold: self._fit(data, parts, fold, details=details)

    def refit(self, data: ProbeInput) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Fit all rows, with the penalty that generalized cross-validation selects."""
        parts = _decompose(data)
        nothing, mean = np.empty(0, dtype=np.int32), data.rows.mean(axis=0, dtype=np.float64)
        chosen = min(self._trials(parts, nothing), key=lambda trial: trial.criterion)
        along = parts.basis[:, 1:] @ (chosen.coefficients[1:] / parts.spectrum[1:, np.newaxis])
        weights = along.T @ (data.rows - mean)
        bias = parts.targets.mean(axis=0) - weights @ mean
        return [(weights.astype(np.float32), bias.astype(np.float32))]

    def _fit(self, data: ProbeInput, parts: Decomposition, fold: Fold, *, details: bool) -> FoldResult:
        trials = self._trials(parts, fold.test)
        chosen = min(trials, key=lambda trial: trial.criterion)
        train = fold.train if details else fold.train[:0]
        history = [
            score(data.kind, _outputs(data, trial.predictions), data.targets[fold.test]) for trial in trials
        ]
        return FoldResult(
            score=history[trials.index(chosen)],
            test=fold.test,
            predictions=_outputs(data, chosen.predictions),
            train=train,
            train_predictions=_outputs(data, parts.basis[train] @ chosen.coefficients),
            history=tuple(history),
        )

    def _trials(self, parts: Decomposition, test: NDArray[np.int32]) -> list[_Trial]:
        return [_trial(parts, parts.shrinkage(alpha), test) for alpha in self._alphas]


def _decompose(data: ProbeInput) -> Decomposition:
    """Decompose rows once for all folds and penalties."""
    centered = data.rows.astype(np.float64)
    centered -= centered.mean(axis=0)
    samples, dim = centered.shape
    wide = dim >= samples
    spectrum, vectors = np.linalg.eigh(centered @ centered.T if wide else centered.T @ centered)
    kept = spectrum > SMALLEST * max(float(spectrum[-1]), np.finfo(np.float64).tiny)
    spectrum = spectrum[kept]
    directions = vectors[:, kept] if wide else (centered @ vectors[:, kept]) / np.sqrt(spectrum)
    basis = np.hstack([np.full((samples, 1), samples**-0.5), directions])
    targets = data.columns if data.kind is TaskType.REGRESSION else np.where(data.columns > 0.5, 1.0, -1.0)
    return Decomposition(
        basis=basis,
        spectrum=np.concatenate([[1.0], spectrum]),
        targets=targets,
        projected=basis.T @ targets,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Trial:
    predictions: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    criterion: float


def _trial(parts: Decomposition, shrinkage: NDArray[np.float64], test: NDArray[np.int32]) -> _Trial:
    """Fit without the test part at one penalty, in coordinates of the basis, so that no array is as long as the training part."""
    basis, truth, projected = parts.basis[test], parts.targets[test], parts.projected
    count = len(parts.targets) - len(test)
    scaled = basis * shrinkage
    hat = scaled @ basis.T
    rest = np.eye(len(basis)) - hat
    predictions = truth - np.linalg.solve(rest, truth - scaled @ projected)
    completed = projected + basis.T @ (predictions - truth)
    coefficients = shrinkage[:, np.newaxis] * completed
    # Training residuals: |y_R|^2 - 2 y_R.f_R + |f_R|^2, where sums over R are sums over all rows less those over T.
    total = np.sum(parts.targets**2) - np.sum(truth**2)
    cross = projected - basis.T @ truth
    fitted = np.sum(coefficients**2) - np.sum(predictions**2)
    residual = max(float(total - 2 * np.sum(coefficients * cross) + fitted), 0.0)
    # Degrees of freedom of the fit without T: tr H_RR + tr (I - H_TT)^-1 H_TR H_RT
    product = (basis * shrinkage**2) @ basis.T - hat @ hat
    freedom = float(shrinkage.sum() - np.trace(hat) + np.trace(np.linalg.solve(rest, product)))
    left = max(count - freedom, 1e-9 * count)
    return _Trial(
        predictions=predictions,
        coefficients=coefficients,
        criterion=count * residual / left**2,
    )


def _outputs(data: ProbeInput, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
    return data.shaped(predictions if data.kind is TaskType.REGRESSION else decided_by_sign(predictions))


def decided_by_sign(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values as logits. Outputs that are all in [0, 1] would count as probabilities, with the threshold at one half."""
    return np.where(values > 0, values + 1.0, values - 1.0)
