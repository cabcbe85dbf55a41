"""The units are what systemd accepts, closed as far as the worker allows, and open where it needs to be."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scoring.errors import OrganizerError
from worker.challenge.configuration import load
from worker.organizer.configuration_text import put_value
from worker.organizer.unit import Instance, instance_of, main, open_places, places, view
from worker.runtime.cgroup import DELEGATED

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


def verify_instance(system: Path, unit: str) -> subprocess.CompletedProcess[str]:
    """Let systemd judge one instance with all that was added to it."""
    command = [str(ANALYZE), "verify", "--man=no", f"--root={system}", unit]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_systemd
def test_systemd_accepts_every_unit(system: Path) -> None:
    """No unit has a word that systemd does not know."""
    judged = verify(system, *(path.name for path in UNITS.iterdir()))
    assert (judged.returncode, judged.stderr) == (0, "")


@needs_systemd
def test_the_verifier_would_tell(system: Path) -> None:
    """Guard for the test above: a misspelled key and a missing program are found."""
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


CONFIGURED = {
    "leaderboard.repository": "/srv/my boards/100%.git",
    "metrics.textfile": "/var/lib/node exporter/neuco.prom",
    "phases.dev.tasks": "/home/me/hidden tasks",
}


def configure(system: Path, **values: str) -> Instance:
    """Write the example configuration, changed, where a service has it."""
    text = (ROOT / "config" / "challenge.yaml").read_text()
    values = {"state": f"sqlite:///{system}/var/lib/neuco-worker/earth/worker.db"} | values
    for key, value in values.items():
        text = put_value(text, tuple(key.split(".")), value)
    path = system / "etc/neuco-worker/earth/challenge.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    instance = instance_of(path)
    assert instance is not None
    return instance


def test_a_configuration_of_no_service_is_told_how_to_become_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what was adopted has units to open places for."""
    path = tmp_path / "challenge.yaml"
    assert main([str(path)]) == 2
    assert capsys.readouterr().err == (
        f"neuco-worker: No service uses {path}. Adopt the configuration first: sudo neuco-challenge NAME adopt DIR.\n"
    )


def test_the_units_open_what_the_configuration_names_and_nothing_else(system: Path) -> None:
    """A repository, a text file and label files elsewhere become lines that systemd accepts; they go when the configuration lets go."""
    instance = configure(system, **CONFIGURED)
    named = places(load(instance.configuration), instance)
    assert {place.key for place in named} == set(CONFIGURED)
    views = [view(template, instance) for template in instance.units()]
    assert len(views) == len(SERVICES)
    assert not any(one.may(place) for one in views for place in named)
    assert open_places(instance) == named
    views = [view(template, instance) for template in instance.units()]
    assert all(one.may(place) for one in views for place in named)
    written = system / "etc/systemd/system/neuco-worker@earth.service.d/50-paths.conf"
    assert written.read_text().splitlines()[1:] == [
        "[Service]",
        "ProtectHome=tmpfs",
        'ReadWritePaths="-/srv/my boards/100%%.git"',
        'ReadWritePaths="-/var/lib/node exporter"',
        'BindReadOnlyPaths="-/home/me/hidden tasks"',
    ]
    if ANALYZE is not None:
        for name in SERVICES:
            judged = verify_instance(system, name.replace("@", "@earth"))
            assert (judged.returncode, judged.stderr) == (0, "")
    assert open_places(configure(system)) == []
    assert not written.exists()


def test_what_an_organizer_added_to_a_unit_counts(system: Path) -> None:
    """Lines of other drop-ins open places too, and an empty one takes back what came before it."""
    instance = configure(system, **{"leaderboard.repository": "/srv/board.git"})
    (place,) = places(load(instance.configuration), instance)
    template = instance.units()[0]
    folder = instance.drop_ins(template)
    folder.mkdir()
    (folder / "override.conf").write_text("[Service]\nReadWritePaths=-/srv\n")
    assert view(template, instance).may(place)
    (folder / "zzz.conf").write_text("[Service]\nReadWritePaths=\nReadWritePaths=/data/%i\n")
    assert not view(template, instance).may(place)
    (folder / "zzz.conf").write_text("[Service]\nProtectSystem=full\n")
    assert view(template, instance).may(place)


@pytest.mark.parametrize("path", ["/tmp/board.git", "/srv/a:b.git", '/srv/"x".git'])
def test_places_that_no_unit_can_open_are_refused(system: Path, path: str) -> None:
    """The service has a /tmp of its own, and a unit cannot write every character; nothing is changed then."""
    instance = configure(system, **{"leaderboard.repository": path})
    with pytest.raises(OrganizerError, match=r"leaderboard.repository names"):
        open_places(instance)
    assert not any(instance.drop_ins(template).exists() for template in instance.units())


def test_the_state_folder_of_a_database_server_can_be_written(system: Path) -> None:
    """Stored files lie beside the configuration then, where a service may write nothing by itself."""
    instance = configure(system, state="postgresql+psycopg://neuco@127.0.0.1/neuco")
    (place,) = open_places(instance)
    assert (place.key, place.path) == ("state", Path("/etc/neuco-worker/earth/state"))
    folder = instance.configuration.parent / "state"
    assert (folder.stat().st_mode & 0o777, folder.owner()) == (0o700, instance.configuration.owner())


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


@pytest.mark.parametrize("name", SERVICES)
def test_a_start_without_a_challenge_is_no_success(name: str) -> None:
    """`systemctl start` fails for a name that no challenge was adopted under; an unmet condition would be reported as done."""
    pairs = dict(settings(name))
    assert pairs["AssertPathExists"] == "/etc/neuco-worker/%i/challenge.yaml"
    assert not any(key.startswith("Condition") for key in pairs)


def test_the_daemon_ends_by_itself_before_it_is_killed() -> None:
    """The unit waits longer than the worker needs (12 s), notices a hanging loop, and a child's death by memory stops nobody else."""
    daemon = dict(settings(SERVICES[0]))
    assert int(daemon["TimeoutStopSec"]) > 12
    assert (daemon["Type"], daemon["KillMode"], daemon["OOMPolicy"]) == ("notify", "mixed", "continue")
    assert int(daemon["WatchdogSec"]) >= 60
    assert daemon["Restart"] == "on-failure"
