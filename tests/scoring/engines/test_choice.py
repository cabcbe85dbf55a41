"""``auto`` means the recorded engine, or else one that suits this machine; PyTorch is imported only if there is a driver."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from scoring.engines import make_engine
from scoring.engines.choice import choose, has_driver, has_gpu


@pytest.mark.parametrize("engine", ["local", "torch", "ray", "plain"])
@pytest.mark.parametrize("recorded", [None, "local", "torch", "ray"])
def test_a_named_engine_is_always_used(engine: str, recorded: str | None) -> None:
    """It is used whatever engine a phase is recorded with."""
    assert choose(engine, recorded=recorded) == engine


@pytest.mark.parametrize("recorded", ["local", "torch"])
def test_a_phase_keeps_its_engine(recorded: str) -> None:
    """It does so on every machine, because the bits of scores differ between engines."""
    assert choose("auto", recorded=recorded) == recorded


@pytest.mark.parametrize("recorded", [None, "ray"])
def test_auto_chooses_by_the_machine(recorded: str | None) -> None:
    """A GPU that PyTorch finds is used; without one, the kernel is."""
    expected = "torch" if torch.cuda.is_available() else "local"
    assert choose("auto", recorded=recorded) == expected
    assert make_engine("auto", threads=1).name == expected
    assert has_gpu() == torch.cuda.is_available()


def test_a_driver_is_found_by_loading_its_library() -> None:
    """The C library is found, and a made-up one is not."""
    assert has_driver("libc.so.6")
    assert not has_driver("libneuco-no-such-driver.so.1")


@pytest.mark.skipif(has_driver(), reason="this machine has NVIDIA's driver, so PyTorch is asked")
def test_without_a_driver_pytorch_is_not_imported() -> None:
    """It is imported neither here nor in a separate process."""
    code = (
        "import subprocess, sys\n"
        "subprocess.run = None\n"
        "from scoring.engines import make_engine\n"
        "sys.exit(make_engine('auto').name != 'local' or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
