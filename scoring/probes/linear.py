"""The linear probe of NeuCo-Bench, with the same scores (paper Section 3.2, A.1).

For regressions and binary classifications, one random stream runs through all tasks and folds, as in NeuCo-Bench: with seed 42 the scores
agree with NeuCo-Bench's to about 2e-6. NeuCo-Bench has no tasks with several classes or labels. They are trained by the same recipe, with
one output per class and a seed for each fold, so they do not advance the stream of the other tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.engines import ignore, train_in_order
from scoring.metrics import best_score
from scoring.probes.multi_output import train_multi_output
from scoring.probes.probe import (
    PARAMETERS,
    TEST_SIZE,
    FoldResult,
    ProbeInput,
    ProbeSettings,
    TaskKind,
    Training,
    TrainingParameters,
    checked_parameters,
    shuffle_splits,
)
from scoring.protocol import Recipe


@dataclass(frozen=True, kw_only=True, eq=False)
class _Job:
    split: NDArray[np.int32]
    stream: NDArray[np.uint32]


class LinearProbe:
    """One linear layer, trained with AdamW; the best epoch counts.

    Args:
        settings: ``epochs`` (10), ``batch_size`` (64), ``learning_rate`` (0.001); ``device`` is accepted and has no effect, because the
            compiled kernel runs on the CPU.
    """

    name = "linear"

    def __init__(self, settings: ProbeSettings) -> None:
        from scoring.randomness.torch_stream import STATE_SIZE, start

        self._settings = settings
        self._parameters = TrainingParameters.from_params(
            checked_parameters(settings.params, self.name, PARAMETERS)
        )
        self._stream = np.empty(STATE_SIZE, dtype=np.uint32)
        start(self._stream, settings.seed)

    def train(
        self,
        data: ProbeInput,
        *,
        folds: int,
        details: bool = False,
        progress: Callable[[int], None] = ignore,
    ) -> Training:
        """See :meth:`scoring.probes.probe.Probe.train`."""
        if data.has_columns:
            results = train_multi_output(
                data,
                self._parameters,
                folds=folds,
                settings=self._settings,
                details=details,
                progress=progress,
            )
        else:
            results = self._train(data, folds, details, progress)
        return Training(folds=results, hyperparameters=vars(self._parameters))

    def parameters(self, dim: int, outputs: int) -> int:
        """Count weights and biases."""
        return (dim + 1) * outputs

    def multiply_accumulates(self, dim: int, outputs: int) -> int:
        """Count one operation per weight."""
        return dim * outputs

    def _train(
        self,
        data: ProbeInput,
        folds: int,
        details: bool,
        progress: Callable[[int], None],
    ) -> list[FoldResult]:
        from scoring.kernel.train import FoldTrainer

        trainer = FoldTrainer(data.rows, Recipe(test_size=TEST_SIZE, **vars(self._parameters)))
        targets = np.ascontiguousarray(data.targets, dtype=np.float32).reshape(1, -1)
        kinds = np.array([data.kind is TaskKind.BINARY])

        def train(job: _Job) -> FoldResult:
            trace = trainer.train(targets, kinds, job.split, job.stream, losses=details, best_state=True)
            trained = job.split[trainer.tested :] if details else job.split[:0]
            return FoldResult(
                score=best_score(trace.history),
                test=job.split[: trainer.tested],
                predictions=trace.predictions[0].astype(np.float64),
                train=trained,
                # Without @, because OpenBLAS's AVX-512 kernel for five columns can raise FE_INVALID over values outside the matrix.
                train_predictions=np.einsum("nd,d->n", data.rows[trained], trace.weights[0], dtype=np.float64)
                + trace.biases[0],
                history=tuple(trace.history.ravel().tolist()),
                train_losses=tuple(trace.train_losses.ravel().tolist()),
                test_losses=tuple(trace.test_losses.ravel().tolist()),
            )

        return train_in_order(
            train,
            self._jobs(data.rows, folds),
            threads=self._settings.workers,
            stop=trainer.stop,
            finished=lambda _: progress(1),
        )

    def _jobs(self, rows: NDArray[np.float32], folds: int) -> Iterator[_Job]:
        """Yield each fold with a copy of the stream, and advance the stream past the fold."""
        from scoring.kernel.train import draws_per_fold
        from scoring.randomness.torch_stream import skip

        samples, dim = rows.shape
        for split in shuffle_splits(samples, folds, self._settings.seed):
            yield _Job(split=split, stream=self._stream.copy())
            skip(self._stream, draws_per_fold(dim, samples, self._parameters.epochs))
