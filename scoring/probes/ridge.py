"""The ridge probe: a closed form for all folds from one decomposition of one Gram matrix, without a fit per fold.

The fit without a test part T follows exactly from the fit to all rows. With the hat matrix H of the latter, the prediction for T by the fit
without T is ``y_T - (I - H_TT)^-1 (y_T - (H y)_T)``, and a fit to all rows with these predictions in place of ``y_T`` equals the fit
without T. Centered rows decompose as ``U S V'``, so for any penalty ``H = 1/n + U diag(s^2 / (s^2 + alpha)) U'``, with an intercept that is
not penalized. U comes from the smaller Gram matrix, N x N or n x n; each fold needs one solve of the size of its test part.

The penalty is chosen per fold on the training part alone, by generalized cross-validation (Golub, Heath and Wahba, 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.engines import ignore, train_in_order
from scoring.errors import OrganizerError
from scoring.probes.measures import score
from scoring.probes.probe import (
    FoldResult,
    ProbeInput,
    ProbeSettings,
    TaskKind,
    Training,
    checked_parameters,
    number,
    parted,
    shuffle_splits,
)

ALPHAS = tuple(10.0**exponent for exponent in range(-1, 6))
SMALLEST = 1e-11  # relative to the greatest eigenvalue; anything less is rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Decomposition:
    """The decomposition of the rows, for all folds and penalties.

    Attributes:
        basis: float64, n x (r + 1), orthonormal columns: the constant, then the left singular vectors of the centered rows.
        spectrum: float64, r + 1 eigenvalues of the Gram matrix; that of the constant is infinite, because the intercept is not penalized.
    """

    basis: NDArray[np.float64]
    spectrum: NDArray[np.float64]

    def shrinkage(self, alpha: float) -> NDArray[np.float64]:
        """Return the diagonal of the hat matrix in this basis."""
        with np.errstate(invalid="ignore"):
            factors = self.spectrum / (self.spectrum + alpha)
        factors[0] = 1.0
        return factors


class RidgeProbe:
    """Ridge regression; classifications use one target of -1 and 1 per class.

    Args:
        settings: ``alphas``, a list of penalties to choose from, or ``alpha``, a single penalty. The linear probe's training parameters are
            accepted and have no effect, so that one configuration works for both.
    """

    name = "ridge"

    def __init__(self, settings: ProbeSettings) -> None:
        params = checked_parameters(
            settings.params, self.name, ("alpha", "alphas", "batch_size", "epochs", "learning_rate", "device")
        )
        self._settings = settings
        self._alphas = _alphas(params)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Penalties to choose from, in increasing order."""
        return self._alphas

    def train(
        self,
        data: ProbeInput,
        *,
        folds: int,
        details: bool = False,
        progress: Callable[[int], None] = ignore,
    ) -> Training:
        """See :meth:`scoring.probes.probe.Probe.train`; losses are mean squared errors, one for each penalty in increasing order."""
        with single_threaded_blas():
            return self._train(data, folds, details, progress)

    def _train(
        self,
        data: ProbeInput,
        folds: int,
        details: bool,
        progress: Callable[[int], None],
    ) -> Training:
        parts = decompose(data.rows)
        targets = signed_targets(data)
        projected = parts.basis.T @ targets

        def train(split: NDArray[np.int32]) -> FoldResult:
            return _fold(
                data,
                parts,
                split,
                targets=targets,
                projected=projected,
                alphas=self._alphas,
                details=details,
            )

        results = train_in_order(
            train,
            shuffle_splits(len(data.rows), folds, self._settings.seed),
            threads=self._settings.workers,
            finished=lambda _: progress(1),
        )
        return Training(folds=results, hyperparameters={"alphas": list(self._alphas)}, axis="Penalty")

    def parameters(self, dim: int, outputs: int) -> int:
        """Count weights and intercepts."""
        return (dim + 1) * outputs

    def multiply_accumulates(self, dim: int, outputs: int) -> int:
        """Count one operation per weight."""
        return dim * outputs


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep matrix products to one thread; folds already run in threads, and BLAS's own threads would make them ten times slower (measured).

    Without threadpoolctl, which comes with scikit-learn, OPENBLAS_NUM_THREADS=1 does the same.
    """
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def decompose(rows: NDArray[np.float32]) -> Decomposition:
    """Decompose rows once for all folds and penalties."""
    centered = rows.astype(np.float64)
    centered -= centered.mean(axis=0)
    samples, dim = centered.shape
    wide = dim >= samples
    spectrum, vectors = np.linalg.eigh(centered @ centered.T if wide else centered.T @ centered)
    kept = spectrum > SMALLEST * max(float(spectrum[-1]), np.finfo(np.float64).tiny)
    spectrum = spectrum[kept]
    basis = vectors[:, kept] if wide else (centered @ vectors[:, kept]) / np.sqrt(spectrum)
    constant = np.full((samples, 1), samples**-0.5)
    return Decomposition(basis=np.hstack([constant, basis]), spectrum=np.concatenate([[np.inf], spectrum]))


def signed_targets(data: ProbeInput) -> NDArray[np.float64]:
    """Return the targets of the fit, n x C: the labels of a regression, or -1 and 1 for classes."""
    if data.kind is TaskKind.REGRESSION:
        return data.targets.astype(np.float64).reshape(-1, 1)
    if data.kind is TaskKind.MULTICLASS:
        return np.where(data.targets[:, np.newaxis] == np.arange(data.outputs), 1.0, -1.0)
    return np.where(data.targets.reshape(len(data.targets), -1) > 0.5, 1.0, -1.0)


def _fold(
    data: ProbeInput,
    parts: Decomposition,
    split: NDArray[np.int32],
    *,
    targets: NDArray[np.float64],
    projected: NDArray[np.float64],
    alphas: tuple[float, ...],
    details: bool,
) -> FoldResult:
    train, test = parted(split)
    basis, truth = parts.basis[test], targets[test]
    total = float(np.sum(targets[train] ** 2))
    trials = [
        _trial(parts.shrinkage(alpha), basis, truth, projected, total=total, count=len(train))
        for alpha in alphas
    ]
    chosen = min(trials, key=lambda trial: trial.criterion)
    fitted = np.empty((0, targets.shape[1]))
    if details:
        fitted = parts.basis[train] @ chosen.coefficients
    outputs = _outputs(data, chosen.predictions)
    return FoldResult(
        score=score(data.kind, outputs, data.targets[test]),
        test=test,
        predictions=outputs,
        train=train if details else train[:0],
        train_predictions=_outputs(data, fitted),
        history=tuple(
            score(data.kind, _outputs(data, trial.predictions), data.targets[test]) for trial in trials
        ),
        train_losses=tuple(trial.train_error for trial in trials),
        test_losses=tuple(float(np.mean((truth - trial.predictions) ** 2)) for trial in trials),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Trial:
    predictions: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    train_error: float
    criterion: float


def _trial(
    shrinkage: NDArray[np.float64],
    basis: NDArray[np.float64],
    truth: NDArray[np.float64],
    projected: NDArray[np.float64],
    *,
    total: float,
    count: int,
) -> _Trial:
    """Fit without the test part at one penalty, in coordinates of the basis, so that no array is as long as the training part."""
    scaled = basis * shrinkage
    hat = scaled @ basis.T
    rest = np.eye(len(basis)) - hat
    predictions = truth - np.linalg.solve(rest, truth - scaled @ projected)
    completed = projected + basis.T @ (predictions - truth)
    coefficients = shrinkage[:, np.newaxis] * completed
    # Training residuals: |y_R|^2 (the total) - 2 y_R.f_R + |f_R|^2, where sums over R are sums over all rows less those over T.
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
        train_error=residual / (count * truth.shape[1]),
        criterion=count * residual / left**2,
    )


def _outputs(data: ProbeInput, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
    if data.kind is TaskKind.REGRESSION:
        return predictions[:, 0]
    # Outputs that are all in [0, 1] would count as probabilities, with the threshold at one half; with targets of ±1 the sign must decide.
    logits = np.where(predictions > 0, predictions + 1.0, predictions - 1.0)
    return logits[:, 0] if data.kind is TaskKind.BINARY else logits


def _alphas(params: dict[str, object]) -> tuple[float, ...]:
    given = params.get("alphas", ALPHAS)
    if "alpha" in params:
        given = [params["alpha"]]
    if not isinstance(given, (list, tuple)) or not given:
        raise OrganizerError(
            f"probe_params.alphas is {given!r}, not a list of penalties.",
            cure="Write it like [1, 10, 100].",
            code="probe.bad_parameter",
        )
    return tuple(sorted({number({"alphas": value}, "alphas", 1.0) for value in given}))
