"""systemd accepts the units, which are sandboxed as far as the worker permits and give access to the paths that it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scoring.errors import OrganizerError
from worker.challenge.configuration import load
from worker.organizer.configuration_text import with_values
from worker.organizer.service import Instance, instance_of, main, not_open, open_places, places
from worker.runtime.cgroup import DELEGATED

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


def verify(system: Path, *units: str) -> None:
    """Require that ``systemd-analyze verify`` finds nothing in units, with their drop-ins, in a root directory."""
    command = [str(ANALYZE), "verify", "--man=no", f"--root={system}", *units]
    judged = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (judged.returncode, judged.stderr) == (0, "")


@needs_systemd
def test_systemd_accepts_every_unit(system: Path) -> None:
    """``systemd-analyze verify`` reports no problem in any unit."""
    verify(system, *(f"/etc/systemd/system/{path.name}" for path in UNITS.iterdir()))


@needs_systemd
@pytest.mark.parametrize("name", SERVICES)
def test_exposure_is_low(name: str) -> None:
    """The exposure level that systemd-analyze computes stays below 3.0."""
    told = subprocess.run(
        [str(ANALYZE), "security", "--offline=yes", "--no-pager", str(UNITS / name)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    match = re.search(r"Overall exposure level for \S+: (\d+\.\d+)", told)
    assert match is not None, told
    assert float(match[1]) < EXPOSURE_LIMIT


CONFIGURED = {
    "leaderboard.repository": "/srv/my boards/100%.git",
    "phases.dev.tasks": "/home/me/hidden tasks",
}


def configure(system: Path, **values: str) -> Instance:
    """Write the example configuration, with changes, to the folder of a service."""
    text = (ROOT / "config" / "challenge.yaml").read_text()
    values = {"state": f"sqlite:///{system}/var/lib/neuco-worker/earth/worker.db"} | values
    path = system / "etc/neuco-worker/earth/challenge.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(with_values(text, {tuple(key.split(".")): value for key, value in values.items()}))
    instance = instance_of(path)
    assert instance is not None
    return instance


def test_a_configuration_outside_a_service_gets_a_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A configuration that was not adopted has no units, and the error says how to adopt it."""
    path = tmp_path / "challenge.yaml"
    assert main(["paths", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"neuco-worker: No service uses {path}. Adopt the configuration first: sudo neuco-challenge NAME adopt DIR.\n"
    )


def test_the_units_open_what_the_configuration_names_and_nothing_else(system: Path) -> None:
    """Paths in the configuration get lines in a drop-in that systemd accepts; the drop-in is removed when no path needs it."""
    instance = configure(system, **CONFIGURED)
    named = places(load(instance.configuration), instance)
    assert {place.key for place in named} == set(CONFIGURED)
    assert not_open(load(instance.configuration), instance) == named
    assert open_places(instance) == named
    assert not_open(load(instance.configuration), instance) == []
    written = system / "etc/systemd/system/neuco-worker@earth.service.d/50-paths.conf"
    assert written.read_text().splitlines()[1:] == [
        "[Service]",
        "ProtectHome=tmpfs",
        'ReadWritePaths="-/srv/my boards/100%%.git"',
        'BindReadOnlyPaths="-/home/me/hidden tasks"',
    ]
    if ANALYZE is not None:
        for name in SERVICES:
            verify(system, name.replace("@", "@earth"))
    assert open_places(configure(system)) == []
    assert not written.exists()


@pytest.mark.parametrize("path", ["/tmp/board.git", "/srv/a:b.git", '/srv/"x".git'])
def test_places_that_no_unit_can_open_are_refused(system: Path, path: str) -> None:
    """A path in /tmp, which is private to the service, or with a character that a unit cannot contain is refused without any change."""
    instance = configure(system, **{"leaderboard.repository": path})
    with pytest.raises(OrganizerError, match=r"leaderboard.repository names"):
        open_places(instance)
    assert not any(instance.drop_ins(template).exists() for template in instance.units())


def test_the_state_folder_of_a_database_server_can_be_written(system: Path) -> None:
    """With a database server, files are stored next to the configuration, in a folder that the unit has to open for writing."""
    instance = configure(system, state="postgresql+psycopg://neuco@127.0.0.1/neuco")
    (place,) = open_places(instance)
    assert (place.key, place.path) == ("state", Path("/etc/neuco-worker/earth/state"))
    folder = instance.configuration.parent / "state"
    assert (folder.stat().st_mode & 0o777, folder.owner()) == (0o700, instance.configuration.owner())


def test_both_services_are_hardened_in_the_same_way() -> None:
    """The drain's unit has exactly the same user, credentials, limits and hardening as the daemon's."""
    own = {"Type", "NotifyAccess", "WatchdogSec", "ExecStart", "ExecReload", "TimeoutStartSec", "Description"}
    own |= {"Restart", "RestartSec", "WantedBy", "StartLimitIntervalSec"}
    daemon, drain = ([pair for pair in settings(name) if pair[0] not in own] for name in SERVICES)
    assert daemon == drain


NEEDED = {
    ("MemoryDenyWriteExecute", "no"): "numba compiles the scoring code at run time",
    ("Delegate", "memory"): "the kernel limits the memory of children,",
    ("Environment", f"{DELEGATED}=1"): "which the worker is told,",
    ("ProtectControlGroups", "no"): "and for which it writes to its cgroup tree",
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
    assert int(daemon["TimeoutStopSec"]) > 12
    assert (daemon["Type"], daemon["KillMode"], daemon["OOMPolicy"]) == ("notify", "mixed", "continue")
    assert int(daemon["WatchdogSec"]) >= 60
    assert daemon["Restart"] == "on-failure"
