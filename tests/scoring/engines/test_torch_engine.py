"""The torch engine: the local engine's scores within the stated tolerance, in blocks of any size."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from scoring.engines import LocalEngine, make_engine
from scoring.engines import torch as torch_engine
from scoring.engines.reference import PlainEngine
from scoring.engines.torch import TOLERANCE, TorchEngine
from scoring.errors import Cancelled, OrganizerError
from scoring.protocol import Recipe
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
    """The oracle says the same."""
    unit = make_unit(samples=90, dim=9, types="rc", folds=2, recipe=Recipe(epochs=6, learning_rate=0.05))
    assert close(TorchEngine(device="cpu", threads=1).score(unit), PlainEngine().score(unit))


@pytest.mark.parametrize("bytes_together", [1, 2 * 4 * 64 * 8])
def test_blocks_of_folds_change_nothing_but_rounding(
    bytes_together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fold at a time, two, or all five: the same scores."""
    unit = make_unit(samples=80, dim=8, types="rc", folds=5)
    together = TorchEngine(device="cpu", threads=1).score(unit)
    monkeypatch.setitem(torch_engine.GATHERED_BYTES, "cpu", bytes_together)
    done: list[int] = []
    assert close(TorchEngine(device="cpu", threads=1).score(unit, progress=done.append), together)
    assert sum(done) == 2 * 5
    assert len(done) > 1


def test_a_fold_without_finite_score_has_failed() -> None:
    """Rows that overflow give NaN, and only where they are."""
    unit = make_unit(samples=40, dim=4, types="r", folds=1, recipe=Recipe(epochs=2))
    unit.rows[:] *= np.float32(1e38)
    assert math.isnan(TorchEngine(device="cpu").score(unit)[0, 0])


def test_it_can_be_stopped() -> None:
    """It asks while it trains."""
    with pytest.raises(Cancelled):
        TorchEngine(device="cpu").score(make_unit(samples=40, dim=4), cancelled=lambda: True)


def test_it_leaves_torch_as_it_was() -> None:
    """Neither the number of threads nor the global random stream moves."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    TorchEngine(device="cpu", threads=1).score(make_unit(samples=40, dim=4))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_device_is_the_organizers_fault() -> None:
    """Without CUDA, asking for it is refused, and ``auto`` takes the CPU."""
    with pytest.raises(OrganizerError):
        TorchEngine(device="cuda")
    assert make_engine("torch", threads=1).score(make_unit(samples=40, dim=4)).shape == (2, 3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
def test_a_gpu_agrees_with_the_local_engine() -> None:
    """On CUDA the tolerance is the same."""
    unit = make_unit(samples=713, dim=1024, types="rc", folds=20, recipe=Recipe(epochs=3))
    assert close(TorchEngine(device="cuda").score(unit), LocalEngine().score(unit))


def test_naming_the_engines_imports_none_of_them() -> None:
    """Torch and ray cost nothing until they are chosen."""
    code = "import sys, scoring.engines as e; e.make_engine('local'); sys.exit('torch' in sys.modules or 'ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_worker_scores_with_torch(tmp_path: Path) -> None:
    """Chosen in the configuration, it is used by the evaluation's process from submission to board."""
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
