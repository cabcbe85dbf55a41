"""The units are what systemd accepts, closed as far as the worker allows, and open where it needs to be."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.cgroup import DELEGATED

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
SERVICES = ("neuco-worker@.service", "neuco-worker-once@.service")
EXPOSURE_LIMIT = 3.0
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def settings(name: str) -> Iterator[tuple[str, str]]:
    """Read a unit's keys and values in order."""
    for line in (UNITS / name).read_text().splitlines():
        match = re.fullmatch(r"(\w+)=(.*)", line)
        if match:
            yield match[1], match[2]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A root directory with the units, this machine's targets, and something executable where the units expect it."""
    for place in ("opt/neuco-worker/bin/neuco-worker", "bin/kill"):
        target = tmp_path / place
        target.parent.mkdir(parents=True)
        target.write_text("#!/bin/sh\n")
        target.chmod(0o755)
    shutil.copytree(UNITS, tmp_path / "etc/systemd/system")
    targets = tmp_path / "usr/lib/systemd/system"
    targets.mkdir(parents=True)
    for path in Path("/usr/lib/systemd/system").glob("*.target"):
        shutil.copy(path, targets)
    (tmp_path / "lib").symlink_to("usr/lib")
    return tmp_path


def verify(system: Path, *units: str) -> subprocess.CompletedProcess[str]:
    """Let systemd judge units of a root directory."""
    command = [str(ANALYZE), "verify", "--man=no", f"--root={system}"]
    return subprocess.run(
        [*command, *(f"/etc/systemd/system/{unit}" for unit in units)],
        capture_output=True,
        text=True,
        check=False,
    )


@needs_systemd
def test_systemd_accepts_every_unit(system: Path) -> None:
    """No unit has a word that systemd does not know."""
    judged = verify(system, *(path.name for path in UNITS.iterdir()))
    assert (judged.returncode, judged.stderr) == (0, "")


@needs_systemd
def test_the_verifier_would_tell(system: Path) -> None:
    """Guard for the test above: a misspelt key and a missing program are found."""
    unit = system / "etc/systemd/system" / SERVICES[0]
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    (system / "opt/neuco-worker/bin/neuco-worker").unlink()
    judged = verify(system, SERVICES[0])
    assert "NoNewPrivilege" in judged.stderr
    assert "neuco-worker is not executable" in judged.stderr


@needs_systemd
@pytest.mark.parametrize("name", SERVICES)
def test_exposure_is_low(name: str) -> None:
    """The measure by systemd of what a taken-over service could reach stays below 3.0."""
    told = subprocess.run(
        [str(ANALYZE), "security", "--offline=yes", "--no-pager", str(UNITS / name)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    match = re.search(r"Overall exposure level for \S+: (\d+\.\d+)", told)
    assert match is not None, told
    assert float(match[1]) < EXPOSURE_LIMIT


def test_both_services_are_closed_in_the_same_way() -> None:
    """The drain has the daemon's user, credentials, limits and hardening, to the letter."""
    own = {"Type", "NotifyAccess", "WatchdogSec", "ExecStart", "ExecReload", "TimeoutStartSec", "Description"}
    own |= {"Restart", "RestartSec", "WantedBy", "StartLimitIntervalSec"}
    daemon, drain = ([pair for pair in settings(name) if pair[0] not in own] for name in SERVICES)
    assert daemon == drain


@pytest.mark.parametrize("name", SERVICES)
def test_the_compiler_may_work(name: str) -> None:
    """Memory may be executed, the children's code cache may be written, processor and memory can be counted; the file says why."""
    text, pairs = (UNITS / name).read_text(), list(settings(name))
    assert ("MemoryDenyWriteExecute", "no") in pairs
    assert "numba compiles the scoring code at run time" in text
    cache = dict(pair.split("=", 1) for key, pair in pairs if key == "Environment")["NUMBA_CACHE_DIR"]
    assert cache.startswith("/var/cache/" + dict(pairs)["CacheDirectory"] + "/")
    assert "ProcSubset" not in dict(pairs)


@pytest.mark.parametrize("name", SERVICES)
def test_children_may_have_ceilings_of_the_kernels(name: str) -> None:
    """Memory is delegated, the worker is told so, and the tree is no longer read-only; the service is not root."""
    pairs = list(settings(name))
    assert ("Delegate", "memory") in pairs
    assert ("Environment", f"{DELEGATED}=1") in pairs
    assert ("ProtectControlGroups", "no") in pairs
    assert dict(pairs)["User"] == "neuco-worker"


def test_the_daemon_ends_by_itself_before_it_is_killed() -> None:
    """The unit waits longer than the worker needs (12 s), notices a hanging loop, and a child's death by memory stops nobody else."""
    daemon = dict(settings(SERVICES[0]))
    assert int(daemon["TimeoutStopSec"]) > 12
    assert (daemon["Type"], daemon["KillMode"], daemon["OOMPolicy"]) == ("notify", "mixed", "continue")
    assert int(daemon["WatchdogSec"]) >= 60
    assert daemon["Restart"] == "on-failure"
