"""The support vector probe: polynomial kernels with a search over settings, like NeuCo-Bench's.

NeuCo-Bench searches with scikit-optimize's BayesSearchCV; this probe draws ``n_iter`` settings at random from the same ranges, so its
scores are similar, not equal. As in NeuCo-Bench, each fold keeps the best score that any setting reached on its test part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.engines import ignore, train_in_order
from scoring.errors import OrganizerError
from scoring.probes.fold_record import FoldRecord
from scoring.probes.probe import (
    FoldResult,
    ProbeInput,
    ProbeSettings,
    TaskKind,
    Training,
    checked_parameters,
    shuffle_splits,
)

PARAMETERS = (
    "C_start_end",
    "epsilon_list",
    "kernel_degree_list",
    "kernel_gamma_start_end",
    "kernel_coef0_start_end",
    "opt_params",
)
OPTIONS = ("n_iter", "random_state", "n_jobs", "verbose", "n_points", "optimizer_kwargs")
ITERATIONS = 50  # BayesSearchCV's default


class SvmProbe:
    """scikit-learn's SVR and SVC with a polynomial kernel.

    Args:
        settings: ``C_start_end`` ([1e-6, 10]) and ``kernel_gamma_start_end``: ranges, drawn log-uniformly; ``kernel_coef0_start_end``:
            range, drawn uniformly; ``kernel_degree_list`` ([1]) and, for regressions, ``epsilon_list``: choices;
            ``opt_params``: ``n_iter`` (50) and ``random_state`` (the run's seed); BayesSearchCV's other options are accepted and ignored.

    Raises:
        ImportError: If scikit-learn is not installed.
        OrganizerError: If a parameter is wrong.
    """

    name = "svm"

    def __init__(self, settings: ProbeSettings) -> None:
        import sklearn  # noqa: F401 - fails now, not after the first task

        params = checked_parameters(settings.params, self.name, PARAMETERS)
        options = params.get("opt_params") or {}
        if not isinstance(options, Mapping):
            raise _wrong("opt_params", options, "keys with values, such as n_iter: 50")
        options = checked_parameters(options, "svm (opt_params)", OPTIONS)
        self._settings = settings
        self._degrees = _choices(params, "kernel_degree_list", [1], whole=True)
        self._epsilons = _choices(params, "epsilon_list", None)
        self._c = _range(params, "C_start_end", (1e-6, 10.0), positive=True)
        self._gamma = _range(params, "kernel_gamma_start_end", None, positive=True)
        self._coef0 = _range(params, "kernel_coef0_start_end", None)
        for key, searched in (
            ("kernel_gamma_start_end", self._gamma),
            ("kernel_coef0_start_end", self._coef0),
        ):
            if searched is not None and 1 in (self._degrees or ()):
                raise OrganizerError(
                    f"probe_params.{key} cannot be searched while kernel_degree_list contains 1.",
                    cure=f"Remove 1 from kernel_degree_list, or remove {key}.",
                    code="probe.bad_parameter",
                )
        self._iterations = _whole(options, "n_iter", ITERATIONS, low=1)
        self._random_state = _whole(options, "random_state", settings.seed, low=0)

    def train(
        self,
        data: ProbeInput,
        *,
        folds: int,
        details: bool = False,
        progress: Callable[[int], None] = ignore,
    ) -> Training:
        """See :meth:`scoring.probes.probe.Probe.train`; losses are mean squared errors or shares of wrong classes, one for each setting."""
        tried = self._draw(data.kind)
        rows = data.rows.astype(np.float64)
        stop = np.zeros(1, dtype=np.uint8)

        def train(split: NDArray[np.int32]) -> FoldResult:
            return _fold(data, rows, split, tried, stop, details=details)

        results = train_in_order(
            train,
            shuffle_splits(len(rows), folds, self._settings.seed),
            threads=self._settings.workers,
            stop=stop,
            finished=lambda _: progress(1),
        )
        return Training(
            folds=results,
            hyperparameters={**_best(tried, results), "n_iter": self._iterations, "search": "random"},
            axis="Hyperparameter setting",
        )

    def parameters(self, dim: int, outputs: int) -> None:
        """Return None, because the number of support vectors depends on the data."""

    def multiply_accumulates(self, dim: int, outputs: int) -> None:
        """Return None, for the same reason as :meth:`parameters`."""

    def _draw(self, kind: TaskKind) -> list[dict[str, float]]:
        generator = np.random.RandomState(self._random_state)
        tried = []
        for _ in range(self._iterations):
            setting: dict[str, float] = {"C": _log_uniform(generator, self._c or (1e-6, 10.0))}
            setting["degree"] = int(generator.choice(self._degrees or [1]))
            if self._gamma is not None:
                setting["gamma"] = _log_uniform(generator, self._gamma)
            if self._coef0 is not None:
                setting["coef0"] = float(generator.uniform(*self._coef0))
            if self._epsilons is not None:
                epsilon = float(generator.choice(self._epsilons))
                if kind is TaskKind.REGRESSION:
                    setting["epsilon"] = epsilon
            tried.append(setting)
        return tried


def _fold(
    data: ProbeInput,
    rows: NDArray[np.float64],
    split: NDArray[np.int32],
    tried: list[dict[str, float]],
    stop: NDArray[np.uint8],
    *,
    details: bool,
) -> FoldResult:
    record = FoldRecord(data, split)
    train, test = record.train, record.test
    kept = None
    for setting in tried:
        if stop[0]:
            break
        predict = _fitted(data, rows[train], data.targets[train], setting)
        outputs, fitted = predict(rows[test]), predict(rows[train]) if details else None
        losses = None
        if fitted is not None:
            losses = _loss(data, fitted, data.targets[train]), _loss(data, outputs, data.targets[test])
        if record.add(outputs, losses):
            kept = fitted
    return record.result(kept)


def _fitted(
    data: ProbeInput, rows: NDArray[np.float64], targets: NDArray[Any], setting: Mapping[str, float]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Fit, and return a function that predicts numbers for a regression, or values that are positive for a class."""
    from sklearn.svm import SVC, SVR

    if data.kind is TaskKind.REGRESSION:
        regressor = SVR(kernel="poly", **setting).fit(rows, targets)
        return lambda new: np.asarray(regressor.predict(new), dtype=np.float64)
    if data.kind is TaskKind.MULTICLASS:
        wanted = targets[:, np.newaxis] == np.arange(data.outputs)
    else:
        wanted = targets.reshape(len(targets), -1) > 0.5
    # One classifier per class, against the rest. A class that all or none of the training samples have gets a constant.
    machines = [
        float(column[0]) * 2 - 1
        if column.all() or not column.any()
        else SVC(kernel="poly", **setting).fit(rows, column)
        for column in wanted.T
    ]

    def predict(new: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.stack(
            [
                np.full(len(new), machine) if isinstance(machine, float) else machine.decision_function(new)
                for machine in machines
            ],
            axis=1,
        )
        # The sign decides, even if all values are in [0, 1].
        values = np.where(values > 0, values + 1.0, values - 1.0)
        return values[:, 0] if data.kind is TaskKind.BINARY else values

    return predict


def _loss(data: ProbeInput, outputs: NDArray[np.float64], targets: NDArray[Any]) -> float:
    if data.kind is TaskKind.REGRESSION:
        return float(np.mean((targets - outputs) ** 2))
    if data.kind is TaskKind.MULTICLASS:
        return float(np.mean(outputs.argmax(axis=1) != targets))
    return float(np.mean((outputs > 0) != (targets > 0.5)))


def _best(tried: list[dict[str, float]], folds: Sequence[FoldResult]) -> dict[str, float]:
    """Return the setting with the highest mean score over the folds."""
    scores = np.nan_to_num(np.array([fold.history for fold in folds]), nan=-np.inf).mean(axis=0)
    return tried[int(scores.argmax())]


def _log_uniform(generator: np.random.RandomState, bounds: tuple[float, float]) -> float:
    return float(np.exp(generator.uniform(np.log(bounds[0]), np.log(bounds[1]))))


def _range(
    params: Mapping[str, Any], key: str, default: tuple[float, float] | None, *, positive: bool = False
) -> tuple[float, float] | None:
    value = params.get(key)
    if value is None:
        return default
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError, OverflowError):
        low, high = 0.0, 0.0
    if not -np.inf < low < high < np.inf or (positive and low <= 0):
        raise _wrong(key, value, "[smallest, largest], such as [0.001, 1000]")
    return low, high


def _choices(
    params: Mapping[str, Any], key: str, default: list[float] | None, *, whole: bool = False
) -> list[float] | None:
    value = params.get(key)
    if value is None:
        return default
    try:
        numbers = [float(item) for item in (value if isinstance(value, (list, tuple)) else [value])]
    except (TypeError, ValueError, OverflowError):
        numbers = []
    low = 1 if whole else 0
    if not numbers or not all(low <= item < np.inf and (not whole or item.is_integer()) for item in numbers):
        raise _wrong(key, value, "a list such as [2, 3]" if whole else "a list such as [0.01, 0.1]")
    return numbers


def _whole(params: Mapping[str, Any], key: str, default: int, *, low: int) -> int:
    value = params.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**32:
        raise _wrong(f"opt_params.{key}", value, f"a whole number of at least {low}")
    return value


def _wrong(key: str, value: object, expected: str) -> OrganizerError:
    return OrganizerError(
        f"probe_params.{key} is {str(value)[:60]!r}, not {expected}.",
        cure="Correct the value in the configuration.",
        code="probe.bad_parameter",
    )
