"""Scripts, container files and user data pass the checkers for their formats.

A test whose checker is missing is skipped, and the reason names the checker. The tests do not build or run the image, because that needs a
container engine: `make image` does.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def program(name: str) -> str:
    """Return the path of a checker, or skip the test if it is not installed."""
    places = [str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"]
    return shutil.which(name, path=os.pathsep.join(places)) or pytest.skip(f"{name} is not installed")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("checker", "arguments", "folder"),
    [
        (
            "shellcheck",
            "deploy/install.sh deploy/neuco-challenge tests/setup.sh tests/container .ci/run",
            ROOT,
        ),
        ("hadolint", "Dockerfile", ROOT),
        ("logrotate", "--debug logrotate", DEPLOY),
    ],
)
def test_the_checker_of_its_format_accepts_a_file(checker: str, arguments: str, folder: Path) -> None:
    """The checkers find nothing in scripts, container file, logrotate's."""
    command = [program(checker), *arguments.split()]
    checked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_user_data_installs_the_worker() -> None:
    """cloud-init takes the file for its own, and the last command of the new machine is the installer."""
    text = (DEPLOY / "cloud-init.yaml").read_text()
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text)["runcmd"][-1] == ["/opt/neuco-worker-source/deploy/install.sh"]


def test_containers_have_no_more_rights_than_they_need() -> None:
    """The worker cannot gain rights or write to its image, is not root, and no port is open."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert services["worker"]["read_only"] is True
    assert services["worker"]["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in services["worker"]["security_opt"]
    assert not any("ports" in service for service in services.values())
    assert services["postgresql"]["profiles"] == ["postgresql"]
    assert re.search(r"^USER 10001$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("docker", "uid", "words"),
    [
        (None, 0, "Docker is missing."),
        ("exit 1", 0, "Docker's daemon does not answer this user."),
        ('[ "$1" = version ]', 1000, "only root can make a base that stands in for it. Use sudo."),
        ('[ "$1" = version ]', 0, "debootstrap is missing"),
    ],
)
def test_the_image_is_not_built_without_what_it_needs(
    tmp_path: Path, docker: str | None, uid: int, words: str
) -> None:
    """The script says what is missing, before it does anything."""
    for name, script in {"docker": docker, "id": f"echo {uid}"}.items():
        if script is not None:
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)
    for name in ("bash", "dirname", "sed", "sort", "sh"):
        (tmp_path / name).symlink_to(program(name))
    command = [program("bash"), ROOT / "tests" / "container"]
    refused = subprocess.run(
        command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert words in refused.stderr


@pytest.mark.processes
def test_no_log_grows_without_end(tmp_path: Path) -> None:
    """The crontab's log is rotated, and the installer limits the size of the journal unless the machine already has a limit."""
    rotation = DEPLOY / "logrotate"
    (log,) = set(re.findall(r"2>>(\S+)", (DEPLOY / "crontab").read_text()))
    (pattern,) = re.findall(r"^(\S+) \{$", rotation.read_text(), re.MULTILINE)
    assert fnmatch.fnmatch(log, pattern)
    for given, kept in (("#SystemMaxUse=1G\n", True), ("SystemMaxUse=1G\n", False)):
        root = tmp_path / str(kept)
        (root / "etc/systemd").mkdir(parents=True)
        (root / "etc/systemd/journald.conf").write_text(f"[Journal]\n{given}")
        command = [DEPLOY / "install.sh", "--root", root, "--dry-run", "--libraries", root]
        plan = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert (f"{root}/etc/systemd/journald.conf.d/neuco-worker.conf" in plan) is kept
        assert f"{root}/etc/logrotate.d/neuco-worker" in plan
    assert "SystemMaxUse=" in (DEPLOY / "journald.conf").read_text()


@pytest.mark.processes
def test_lines_of_the_crontab_work(tmp_path: Path) -> None:
    """Cron mails only failures, and of drains in a row the first; one is skipped while another runs, and percent signs are escaped."""
    lines = [line for line in (DEPLOY / "crontab").read_text().splitlines() if line.startswith(("*", "1"))]
    calls = tmp_path / "calls"
    stub = tmp_path / "neuco-challenge"

    def run(line: str, script: str, *before: str) -> str:
        """Run a line's command with a stub in place of our program, and return what cron would mail."""
        stub.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
        stub.chmod(0o755)
        *_, user, command = line.split(maxsplit=6)
        assert user == "root"
        assert not re.search(r"(?<!\\)%", command)
        for place in ("/run/lock", "/var/log"):
            command = command.replace(place, str(tmp_path))
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        words = [*before, "sh", "-c", command.replace(r"\%", "%")]
        done = subprocess.run(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.stdout

    drain, backup = lines
    assert run(backup, "echo done") == run(drain, "") == ""
    assert run(drain, "", "flock", str(tmp_path / "neuco-worker-earth.lock")) == ""
    backed_up, drained = calls.read_text().splitlines()
    assert re.fullmatch(r"earth challenge backup /var/backups/neuco-worker/earth-\w+\.zip --force", backed_up)
    assert drained == "earth once"
    failing = "echo why >&2\nexit 1"
    assert run(backup, failing) == "why\n"
    log = tmp_path / "neuco-worker-earth.log"
    mails = [run(drain, script) for script in (failing, failing, "", failing)]
    mail = f"A run of neuco-worker for earth failed; the end of {log} says why.\n"
    assert mails == [mail, "", "", mail]
    assert log.read_text().endswith("why\n")
