"""The support vector probe: polynomial kernels with a search over settings, like NeuCo-Bench's.

NeuCo-Bench searches with scikit-optimize's BayesSearchCV; this probe draws ``n_iter`` settings at random from the same ranges, so its
scores are similar, not equal. As in NeuCo-Bench, each fold keeps the best score that any setting reached on its test part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
)
from sklearn.svm import SVC, SVR

from scoring.probes.measures import ProbeState, best_of
from scoring.probes.probe import Fold, FoldResult, Probe, ProbeInput
from scoring.probes.ridge import decided_by_sign
from scoring.protocol import MOST_REPEATS
from scoring.tasks import TaskType


def _increasing(bounds: tuple[float, float]) -> tuple[float, float]:
    if not -np.inf < bounds[0] < bounds[1] < np.inf:
        raise ValueError("two increasing numbers")
    return bounds


Range = Annotated[tuple[float, float], AfterValidator(_increasing)]
PositiveRange = Annotated[tuple[PositiveFloat, PositiveFloat], AfterValidator(_increasing)]
AsList = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
RANGE = "[smallest, largest], such as [0.001, 1000]"


class Options(BaseModel):
    """Those of BayesSearchCV's options that have an effect."""

    n_iter: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 50
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | None = None


class SvmParameters(BaseModel, extra="forbid"):
    """Ranges, drawn log-uniformly (``coef0`` uniformly), and choices; ``epsilon`` is for regressions."""

    C_start_end: PositiveRange = Field((1e-6, 10.0), description=RANGE)
    epsilon_list: Annotated[list[NonNegativeFloat], Field(min_length=1), AsList] | None = Field(
        None, description="a list such as [0.01, 0.1]"
    )
    kernel_degree_list: Annotated[list[PositiveInt], Field(min_length=1), AsList] = Field(
        [1], description="a list such as [2, 3]"
    )
    kernel_gamma_start_end: PositiveRange | None = Field(None, description=RANGE)
    kernel_coef0_start_end: Range | None = Field(None, description=RANGE)
    opt_params: Options = Field(Options(), description="keys with values, such as n_iter: 50")


class SvmProbe(Probe):
    """scikit-learn's SVR and SVC with a polynomial kernel; they have no losses."""

    parameters = SvmParameters
    libraries = ("scikit-learn",)

    def hyperparameters(self, folds: Sequence[FoldResult]) -> Mapping[str, object]:
        """Return the setting with the highest mean score over the folds."""
        scores = np.nan_to_num(np.array([fold.history for fold in folds]), nan=-np.inf).mean(axis=0)
        return {**self._settings()[int(scores.argmax())], "n_iter": len(scores), "search": "random"}

    @contextmanager
    def fitter(
        self, tasks: Sequence[ProbeInput], folds: int, *, details: bool
    ) -> Iterator[Callable[[Fold], list[FoldResult]]]:
        """See :meth:`scoring.probes.probe.Probe.fitter`."""
        [data] = tasks
        rows, columns, settings = data.rows.astype(np.float64), data.columns, self._settings()

        def states(fold: Fold) -> Iterator[ProbeState]:
            train, test, wanted = rows[fold.train], rows[fold.test], columns[fold.train]
            for setting in settings:
                if self.stop[0]:
                    return
                predict = _fitted(data.kind, train, wanted, setting)
                fitted = predict(train) if details else np.empty((0, data.outputs))
                yield ProbeState(outputs=predict(test), fitted=fitted)

        yield lambda fold: [best_of(data, fold, states(fold))]

    def _settings(self) -> list[dict[str, Any]]:
        """Draw the settings to try, the same for all tasks."""
        params, options = self.params, self.params.opt_params
        generator = np.random.RandomState(self.seed if options.random_state is None else options.random_state)
        ranges = {"C": params.C_start_end, "gamma": params.kernel_gamma_start_end}
        choices = {"degree": params.kernel_degree_list, "epsilon": params.epsilon_list}
        settings: list[dict[str, Any]] = []
        for _ in range(options.n_iter):
            setting = {
                name: float(np.exp(generator.uniform(*np.log(bounds))))
                for name, bounds in ranges.items()
                if bounds
            }
            if params.kernel_coef0_start_end:
                setting["coef0"] = float(generator.uniform(*params.kernel_coef0_start_end))
            settings.append(
                setting
                | {name: generator.choice(values).item() for name, values in choices.items() if values}
            )
        return settings


def _fitted(
    kind: TaskType, rows: NDArray[np.float64], columns: NDArray[np.float64], setting: Mapping[str, Any]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Fit, and return a function that predicts numbers for a regression, or values that are positive for a class."""
    if kind is TaskType.REGRESSION:
        return SVR(kernel="poly", **setting).fit(rows, columns[:, 0]).predict  # type: ignore[no-any-return]
    setting = {key: value for key, value in setting.items() if key != "epsilon"}

    def machine(column: NDArray[np.bool_]) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
        """Fit a classifier of one class against the rest; a class that all or none of the samples have gets a constant."""
        if column.all() or not column.any():
            return lambda new: np.full(len(new), 1.0 if column[0] else -1.0)
        return SVC(kernel="poly", **setting).fit(rows, column).decision_function  # type: ignore[no-any-return]

    machines = [machine(column > 0.5) for column in columns.T]
    return lambda new: decided_by_sign(np.stack([predict(new) for predict in machines], axis=1))
