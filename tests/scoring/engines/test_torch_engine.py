"""The torch engine gives the local engine's scores within the stated tolerance, in blocks of any size."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.engines import LocalEngine, make_engine
from scoring.engines.fold_block import DeviceRows, FoldBlock
from scoring.engines.fold_memory import footprint
from scoring.engines.reference import PlainEngine
from scoring.engines.torch import TOLERANCE, TorchEngine
from scoring.errors import Cancelled, InfrastructureError, OrganizerError
from scoring.protocol import Recipe
from scoring.randomness.fold_draws import draw_folds
from tests.scoring.engines.units import make_unit
from worker.sandbox import ManualClock
from worker.state import State

SHAPES = [  # samples, dimension, batch size, epochs
    (72, 3, 64, 20),
    (101, 16, 32, 7),
    (130, 100, 7, 5),
    (300, 100, 300, 10),
    (713, 1024, 64, 3),
]


def close(scores: np.ndarray, expected: np.ndarray) -> bool:
    """Compare as the engine promises."""
    return bool(np.all(np.abs(scores - expected) <= TOLERANCE * np.maximum(1, np.abs(expected))))


@pytest.mark.parametrize(("samples", "dim", "batch_size", "epochs"), SHAPES)
def test_torch_agrees_with_the_local_engine(samples: int, dim: int, batch_size: int, epochs: int) -> None:
    """Every fold of every task agrees within the tolerance that the module states."""
    recipe = Recipe(epochs=epochs, batch_size=batch_size)
    unit = make_unit(samples=samples, dim=dim, types="rcr", folds=3, recipe=recipe, seed=samples)
    assert close(TorchEngine(device="cpu", threads=1).score(unit), LocalEngine(threads=2).score(unit))


def test_torch_agrees_with_the_plain_loop() -> None:
    """The scores agree with the reference, too."""
    unit = make_unit(samples=90, dim=9, types="rc", folds=2, recipe=Recipe(epochs=6, learning_rate=0.05))
    assert close(TorchEngine(device="cpu", threads=1).score(unit), PlainEngine().score(unit))


@given(
    samples=st.integers(11, 60),
    dim=st.integers(1, 12),
    types=st.text("rc", min_size=1, max_size=4),
    folds=st.integers(1, 4),
    batch_size=st.integers(1, 70),
    test_size=st.sampled_from([0.1, 0.25, 0.5]),
    learning_rate=st.sampled_from([0.001, 0.05]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=15, deadline=None)
def test_it_agrees_with_the_plain_loop_whatever_the_shape(
    samples: int,
    dim: int,
    types: str,
    folds: int,
    batch_size: int,
    test_size: float,
    learning_rate: float,
    seed: int,
) -> None:
    """This covers any mixture of tasks, a shorter last batch, a batch larger than the training part, and any split."""
    recipe = Recipe(epochs=2, batch_size=batch_size, test_size=test_size, learning_rate=learning_rate)
    unit = make_unit(samples=samples, dim=dim, types=types, folds=folds, recipe=recipe, seed=seed)
    assert close(TorchEngine(device="cpu", threads=1).score(unit), PlainEngine().score(unit))


def test_it_agrees_where_the_metrics_have_edges() -> None:
    """This covers constant labels with and without a residual of zero, no positives, and outputs that count as probabilities."""
    recipe = Recipe(epochs=60, learning_rate=0.01)
    unit = make_unit(samples=40, dim=3, types="rrcc", folds=4, recipe=recipe)
    unit.rows[:, 1:] = 0
    unit.rows[:, 0] = 1e-3
    unit.targets[0] = 0
    unit.targets[1] = 5
    unit.targets[2] = 0
    engines = TorchEngine(device="cpu", threads=1), LocalEngine(threads=1), PlainEngine()
    torch_scores, local_scores, plain_scores = (engine.score(unit) for engine in engines)
    assert close(torch_scores, plain_scores)
    assert close(torch_scores, local_scores)
    assert {0.0, 1.0} <= set(torch_scores.ravel().tolist())


@pytest.mark.parametrize("together", [1, 2, 4])
def test_blocks_of_folds_change_nothing_but_rounding(together: int) -> None:
    """The number of folds that are trained at once follows from the memory, and scores do not depend on it."""
    unit = make_unit(samples=60, dim=8, types="rc", folds=4)
    needed = footprint(unit)
    limit = needed.shared + together * needed.per_fold
    done: list[int] = []
    scores = TorchEngine(device="cpu", threads=1, memory_limit=limit).score(unit, progress=done.append)
    assert done == [2 * together] * (4 // together)
    assert close(scores, LocalEngine(threads=1).score(unit))


def test_a_fold_that_does_not_fit_is_an_infrastructure_error() -> None:
    """The error has the sizes and a cure."""
    unit = make_unit(samples=60, dim=8, folds=4)
    needed = footprint(unit)
    engine = TorchEngine(device="cpu", threads=1, memory_limit=needed.shared + needed.per_fold - 1)
    with pytest.raises(InfrastructureError) as caught:
        engine.score(unit)
    assert caught.value.code == "engine.memory"
    assert "scoring.engine to local" in caught.value.cure


def test_a_fold_without_finite_score_has_failed() -> None:
    """Rows that overflow give NaN, only in their folds."""
    unit = make_unit(samples=40, dim=4, types="r", folds=1, recipe=Recipe(epochs=2))
    unit.rows[:] *= np.float32(1e38)
    assert math.isnan(TorchEngine(device="cpu").score(unit)[0, 0])


def test_it_can_be_stopped() -> None:
    """During training, it checks whether it should stop."""
    with pytest.raises(Cancelled):
        TorchEngine(device="cpu").score(make_unit(samples=40, dim=4), cancelled=lambda: True)


def test_it_restores_the_settings_of_torch() -> None:
    """The number of threads and the global random stream stay the same."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    TorchEngine(device="cpu", threads=1).score(make_unit(samples=40, dim=4))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_device_is_an_organizer_error() -> None:
    """Without CUDA, ``cuda`` is refused, and ``auto`` takes the CPU."""
    with pytest.raises(OrganizerError):
        TorchEngine(device="cuda")
    assert make_engine("torch", threads=1).score(make_unit(samples=40, dim=4)).shape == (2, 3)


def test_an_epoch_never_reads_a_value_from_the_device() -> None:
    """A whole epoch runs with tensors that have no values, so reading a value, or using values of the host, would fail.

    Only such an epoch can be recorded as a CUDA graph.
    """
    unit = make_unit(samples=60, dim=5, types="rc", folds=3)
    draws = draw_folds(
        unit.split_seeds, unit.training_seeds, rows=60, tested=6, dim=5, epochs=unit.recipe.epochs
    )
    asked: list[None] = []
    with torch.no_grad():
        block = FoldBlock(DeviceRows(unit, torch.device("meta")), draws, unit.recipe)
        block.begin(0)
        block.run_epoch(lambda: asked.append(None))
    assert len(asked) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
def test_a_gpu_agrees_with_the_local_engine() -> None:
    """On CUDA the tolerance is the same."""
    unit = make_unit(samples=713, dim=1024, types="rc", folds=20, recipe=Recipe(epochs=3))
    assert close(TorchEngine(device="cuda").score(unit), LocalEngine().score(unit))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
@pytest.mark.parametrize(("samples", "dim", "batch_size", "epochs"), SHAPES)
def test_a_gpu_takes_no_more_memory_than_estimated(
    samples: int, dim: int, batch_size: int, epochs: int
) -> None:
    """The estimate covers the peak, except for memory that CUDA's libraries allocate once."""
    recipe = Recipe(epochs=epochs, batch_size=batch_size)
    unit = make_unit(samples=samples, dim=dim, types="rc", folds=50, recipe=recipe)
    engine = TorchEngine(device="cuda")
    engine.score(make_unit(samples=40, dim=4))
    torch.cuda.reset_peak_memory_stats()
    engine.score(unit)
    needed = footprint(unit)
    assert torch.cuda.max_memory_allocated() <= needed.shared + 50 * needed.per_fold + 64 * 2**20


def test_naming_the_engines_imports_none_of_them() -> None:
    """Torch and ray are not imported until they are chosen."""
    code = "import sys, scoring.engines as e; e.make_engine('local'); sys.exit('torch' in sys.modules or 'ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_worker_scores_with_torch(tmp_path: Path) -> None:
    """If it is configured, the evaluation process uses it, from submission to board."""
    from tests.worker.harness.harness import Harness

    scoring = {"engine": "torch"}
    with (
        Harness(tmp_path, clock=ManualClock(), changes={"scoring": scoring}) as harness,
        harness.worker() as worker,
    ):
        pk = harness.submit("A")
        worker.drive(lambda: worker.states().get(pk) == State.PUBLISHED)
        assert harness.status(pk) == "finished"
        with worker.store.read() as tx:
            made_by = {json.loads(cell.provenance)["versions"]["engine"] for cell in tx.all_cells()}
    assert made_by == {"torch"}
