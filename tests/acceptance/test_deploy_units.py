"""systemd accepts the units, which are sandboxed as far as the worker permits and give access to the paths that it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from leaderboard.git import process
from worker.challenge.configuration import load
from worker.daemon import health
from worker.organizer.configuration_text import with_values
from worker.organizer.service import unreachable
from worker.runtime import child

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
SERVICES = ("neuco-worker@.service", "neuco-worker-once@.service")
EXPOSURE_LIMIT = 3.0
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def settings(name: str) -> Iterator[tuple[str, str]]:
    """Yield a unit's keys and values in order."""
    for line in (UNITS / name).read_text().splitlines():
        match = re.fullmatch(r"(\w+)=(.*)", line)
        if match:
            yield match[1], match[2]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A root directory with the units, this machine's targets, and stub programs in the places that the units name."""
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


@pytest.mark.processes
@needs_systemd
def test_systemd_accepts_every_unit(system: Path) -> None:
    """``systemd-analyze verify`` reports no problem in any unit."""
    units = [f"/etc/systemd/system/{path.name}" for path in UNITS.iterdir()]
    command = [str(ANALYZE), "verify", "--man=no", f"--root={system}", *units]
    judged = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (judged.returncode, judged.stderr) == (0, "")


@pytest.mark.processes
@needs_systemd
@pytest.mark.parametrize("name", SERVICES)
def test_exposure_is_low(name: str) -> None:
    """The exposure level that systemd-analyze computes stays below 3.0."""
    output = subprocess.run(
        [str(ANALYZE), "security", "--offline=yes", "--no-pager", str(UNITS / name)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    match = re.search(r"Overall exposure level for \S+: (\d+\.\d+)", output)
    assert float(match[1] if match else "nan") < EXPOSURE_LIMIT, output


def test_the_doctor_names_what_the_units_do_not_open(system: Path) -> None:
    """The service writes to its own folder and to /srv, and sees no home folder, unless an administrator has opened a place for it."""
    path = system / "etc/neuco-worker/earth/challenge.yaml"
    path.parent.mkdir(parents=True)
    (path.parent / "state").symlink_to("../../../var/lib/neuco-worker/earth")  # as `adopt` makes it
    text = (ROOT / "config" / "challenge.yaml").read_text()

    def named(**values: str) -> list[tuple[str, Path, bool]]:
        changes: dict[tuple[str, ...], object] = {
            tuple(key.split("/")): value for key, value in values.items()
        }
        path.write_text(with_values(text, changes))
        return list(unreachable(path, load(path)))

    assert named() == named(**{"leaderboard/repository": "/srv/boards/board.git"}) == []
    assert named(state="postgresql+psycopg://neuco@127.0.0.1/neuco") == []
    outside = {"leaderboard/repository": "/opt/board.git", "phases/dev/tasks": "/home/me/tasks"}
    assert named(**outside) == [
        ("leaderboard.repository", Path("/opt/board.git"), True),
        ("phases.dev.tasks", Path("/home/me/tasks"), False),
    ]
    drop_in = system / "etc/systemd/system/neuco-worker@earth.service.d" / "override.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nReadWritePaths=/opt /home/me/tasks\n")
    assert [key for key, _, _ in named(**outside)] == ["phases.dev.tasks"]
    (system / "etc/systemd/system/neuco-worker@.service").unlink()
    assert named(**outside) == []


def test_both_services_are_hardened_in_the_same_way() -> None:
    """The drain's unit has exactly the same user, credentials, limits and hardening as the daemon's."""
    own = {"Type", "NotifyAccess", "WatchdogSec", "ExecStart", "ExecReload", "TimeoutStartSec", "Description"}
    own |= {"Restart", "RestartSec", "WantedBy", "StartLimitIntervalSec"}
    daemon, drain = ([pair for pair in settings(name) if pair[0] not in own] for name in SERVICES)
    assert daemon == drain


NEEDED = {
    ("MemoryDenyWriteExecute", "no"): "numba compiles the scoring code at run time",
    ("User", "neuco-worker"): "the service is not root",
    ("AssertPathExists", "/etc/neuco-worker/%i/challenge.yaml"): "an unmet Condition would count as success",
}
"""Lines that both services must have, and why."""


@pytest.mark.parametrize("name", SERVICES)
def test_the_units_have_what_the_worker_needs(name: str) -> None:
    """The compiled code has a writable cache, processor and memory counts can be read, and a start without a challenge fails."""
    pairs = list(settings(name))
    assert [pair for pair in NEEDED if pair not in pairs] == []
    cache = dict(pair.split("=", 1) for key, pair in pairs if key == "Environment")["NUMBA_CACHE_DIR"]
    assert cache.startswith("/var/cache/" + dict(pairs)["CacheDirectory"] + "/")
    assert not [key for key, _ in pairs if key == "ProcSubset" or key.startswith("Condition")]


def test_the_daemon_ends_by_itself_before_it_is_killed() -> None:
    """The unit waits longer than the 12 s that the worker needs, restarts a hanging worker, and survives a child's out-of-memory kill."""
    daemon = dict(settings(SERVICES[0]))
    at_most_s = (
        process.ENDS_WITHIN_S + 2 * child.ENDS_WITHIN_S + health.CLOSES_WITHIN_S
    )  # two: it fetches and evaluates
    assert at_most_s < 12 < int(daemon["TimeoutStopSec"])
    assert (daemon["Type"], daemon["KillMode"], daemon["OOMPolicy"]) == ("notify", "mixed", "continue")
    assert int(daemon["WatchdogSec"]) >= 60
    assert daemon["Restart"] == "on-failure"
