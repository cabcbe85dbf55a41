"""The compiled engine gives the scores of the reference, and the same bits however the work is divided."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.engines import LocalEngine, Unit, local
from scoring.protocol import Recipe
from tests.later import GROUP, Later
from tests.scoring.engines.units import make_unit, part

pytestmark = GROUP
reference = Later("scoring.engines.reference")

ORACLE_SHAPES = [  # samples, dimension, batch size, epochs, groups of rows
    (72, 3, 64, 20, 0),
    (72, 1024, 64, 5, 0),
    (101, 16, 32, 7, 0),
    (130, 100, 7, 5, 0),
    (143, 100, 64, 5, 0),  # two whole batches
    (257, 257, 64, 5, 0),
    (300, 100, 300, 20, 0),
    (713, 1024, 64, 3, 0),
    (1140, 257, 64, 3, 0),
    (300, 16, 1, 1, 0),
    (150, 16, 32, 4, 7),
    (300, 100, 64, 3, 40),
]


@pytest.mark.parametrize(("samples", "dim", "batch_size", "epochs", "groups"), ORACLE_SHAPES)
def test_the_kernel_agrees_with_the_reference(
    samples: int, dim: int, batch_size: int, epochs: int, groups: int
) -> None:
    """Every fold of both task types agrees to 1e-5, with whole batches only and with a shorter last batch."""
    recipe = Recipe(epochs=epochs, batch_size=batch_size)
    unit = make_unit(samples=samples, dim=dim, folds=2, recipe=recipe, groups=groups, seed=samples)
    expected = reference.ReferenceEngine().score(unit)
    scores = LocalEngine(threads=2).score(unit)
    # an R2 far below zero comes from a small divisor, so 1e-5 is relative to the score there
    assert np.all(np.abs(scores - expected) <= 1e-5 * np.maximum(1, np.abs(expected)))


@settings(max_examples=25)
@given(
    samples=st.integers(20, 150),
    dim=st.one_of(st.integers(1, 70), st.just(1024)),
    types=st.text("rc", min_size=1, max_size=5),
    folds=st.integers(1, 7),
    batch_size=st.integers(1, 80),
    groups=st.sampled_from([0, 6]),
    data=st.data(),
)
def test_dividing_the_work_changes_no_bit(
    samples: int, dim: int, types: str, folds: int, batch_size: int, groups: int, data: st.DataObject
) -> None:
    """Any number of threads, any order and subset of tasks, and any range of folds give the same bits as the whole unit."""
    recipe = Recipe(epochs=2, batch_size=batch_size)
    unit = make_unit(samples=samples, dim=dim, types=types, folds=folds, recipe=recipe, groups=groups)
    whole = LocalEngine(threads=1).score(unit)
    for threads in (2, 5):
        assert LocalEngine(threads=threads).score(unit).tobytes() == whole.tobytes()
    tasks = data.draw(st.lists(st.sampled_from(range(len(types))), min_size=1, unique=True))
    begin = data.draw(st.integers(0, folds - 1))
    end = data.draw(st.integers(begin + 1, folds))
    cut = LocalEngine(threads=2).score(part(unit, tasks=tasks, folds=slice(begin, end)))
    assert cut.tobytes() == whole[tasks][:, begin:end].tobytes()


@pytest.mark.processes
def test_another_processor_agrees() -> None:
    """Code compiled for AVX2 gives the same bits for regressions, and agrees to 1e-5 with another library's exponential."""
    script = """
import json
from scoring.engines import LocalEngine
from tests.scoring.engines.units import make_unit
print(json.dumps(LocalEngine(threads=2).score(make_unit(samples=200, dim=100, types="rcr")).tolist()))
"""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = np.array(json.loads(answer.stdout))
    ours = LocalEngine(threads=2).score(make_unit(samples=200, dim=100, types="rcr"))
    assert theirs[[0, 2]].tolist() == ours[[0, 2]].tolist()
    assert theirs[1] == pytest.approx(ours[1], abs=1e-5)


def test_an_error_stops_the_threads() -> None:
    """An error in the caller's thread, like Ctrl-C, does not wait for the end of a fold, which would take minutes here."""
    endless = make_unit(samples=200, dim=64, folds=1, recipe=Recipe(epochs=10**7))
    # There are more training seeds than folds, which is found after the fold has begun.
    broken = Unit(**{**endless.__dict__, "training_seeds": np.array([1, 2], dtype=np.uint32)})
    with pytest.raises(ValueError, match="longer"):
        LocalEngine(threads=2).score(broken)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fold_")]


def test_a_fold_without_finite_score_is_nan() -> None:
    """The reference returns NaN, too."""
    unit = make_unit(samples=40, dim=4, types="r", folds=1, recipe=Recipe(epochs=2))
    unit.rows[:] *= np.float32(1e38)
    assert math.isnan(LocalEngine(threads=1).score(unit)[0, 0])
    assert math.isnan(reference.ReferenceEngine().score(unit)[0, 0])


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_the_quota_of_a_container_is_read(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    """Both versions of control groups, limited or not."""
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    assert local._cgroup_quota(tmp_path) == quota
