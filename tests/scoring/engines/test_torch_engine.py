"""The torch engine gives the local engine's scores within the stated tolerance, in chunks of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.engines import TOLERANCE, Engine, LocalEngine, make_engine
from scoring.errors import InfrastructureError, OrganizerError
from scoring.protocol import Recipe
from tests.later import GROUP, Later
from tests.scoring.engines.units import make_unit
from worker.challenge.sections import ScoringSection

pytestmark = GROUP
torch = Later("torch")
reference = Later("scoring.engines.reference")


def torch_engine(chunk: int = 20) -> Engine:
    """Make the engine with one thread."""
    return make_engine("torch", threads=1, chunk=chunk)


def close(scores: np.ndarray, expected: np.ndarray) -> bool:
    """Compare as the engine promises."""
    return bool(np.all(np.abs(scores - expected) <= TOLERANCE * np.maximum(1, np.abs(expected))))


@given(
    samples=st.integers(11, 60),
    dim=st.integers(1, 12),
    types=st.text("rc", min_size=1, max_size=4),
    folds=st.integers(1, 4),
    chunk=st.integers(1, 5),
    batch_size=st.integers(1, 70),
    test_size=st.sampled_from([0.25, 0.5]),
    learning_rate=st.sampled_from([0.001, 0.05]),
    groups=st.sampled_from([0, 6]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=15, deadline=None)
def test_it_agrees_with_the_reference_whatever_the_shape(
    samples: int,
    dim: int,
    types: str,
    folds: int,
    chunk: int,
    batch_size: int,
    test_size: float,
    learning_rate: float,
    groups: int,
    seed: int,
) -> None:
    """This covers any mixture of tasks, a shorter last batch or chunk, a batch larger than the training part, and any split."""
    recipe = Recipe(epochs=2, batch_size=batch_size, test_size=test_size, learning_rate=learning_rate)
    unit = make_unit(
        samples=samples, dim=dim, types=types, folds=folds, recipe=recipe, groups=groups, seed=seed
    )
    done: list[int] = []
    assert close(
        torch_engine(chunk).score(unit, progress=done.append), reference.ReferenceEngine().score(unit)
    )
    assert sum(done) == folds * len(types)


def test_it_agrees_where_the_metrics_have_edges() -> None:
    """This covers constant labels with and without a residual of zero, no positives, and outputs that count as probabilities."""
    recipe = Recipe(epochs=60, learning_rate=0.01)
    unit = make_unit(samples=40, dim=3, types="rrcc", folds=1, recipe=recipe)
    unit.rows[:, 1:] = 0
    unit.rows[:, 0] = 1e-3
    unit.targets[0] = 0
    unit.targets[1] = 5
    unit.targets[2] = 0
    scores = torch_engine().score(unit)
    assert close(scores, reference.ReferenceEngine().score(unit))
    assert close(scores, LocalEngine(threads=1).score(unit))
    assert {0.0, 1.0} <= set(scores.ravel().tolist())


@pytest.mark.skipif("torch.cuda.is_available()", reason="there is a CUDA device")
def test_a_missing_device_is_an_organizer_error() -> None:
    """Without CUDA, ``cuda`` is refused."""
    with pytest.raises(OrganizerError) as refused:
        make_engine("torch", device="cuda")
    assert refused.value.code == "engine.device"


@pytest.mark.skipif("not torch.cuda.is_available()", reason="this machine has no CUDA device")
def test_a_gpu_agrees_with_the_local_engine() -> None:
    """On CUDA the tolerance is the same."""
    unit = make_unit(samples=713, dim=1024, types="rc", folds=20, recipe=Recipe(epochs=3))
    assert close(make_engine("torch", device="cuda").score(unit), LocalEngine().score(unit))


@pytest.mark.skipif("not torch.cuda.is_available()", reason="this machine has no CUDA device")
def test_a_gpu_whose_memory_is_too_small_is_named() -> None:
    """Whoever runs the service learns what to change."""
    unit = make_unit(samples=713, dim=1024, types="rc", folds=20)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e-5)
    try:
        with pytest.raises(InfrastructureError) as refused:
            make_engine("torch", device="cuda").score(unit)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert refused.value.sentence == "PyTorch could not compute on the GPU: CUDA out of memory."
    assert "scoring.chunk" in refused.value.hint


def test_the_configuration_chooses_it() -> None:
    """Its keys are what the engine is made with."""
    settings = ScoringSection(engine="torch", chunk=3)
    assert make_engine(settings.engine, **settings.engine_options()).name == "torch"


def test_the_reference_is_an_engine_by_its_name() -> None:
    """It is the loop that defines a score, so an organizer can run it instead of the kernel."""
    unit = make_unit(samples=40, dim=3, folds=2)
    done: list[int] = []
    engine = make_engine(ScoringSection(engine="reference").engine)
    assert close(LocalEngine().score(unit), engine.score(unit, progress=done.append))
    assert (engine.name, sum(done)) == ("reference", 4)
