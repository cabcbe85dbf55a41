"""A systemd-nspawn container with a Debian root, in which the product's libraries and this checkout can be seen."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.acceptance.installation import ROOT, copy_checkout

FOLDER = ROOT / "build" / "systemd"
LOG = FOLDER / "container.log"
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "iproute2", "procps", "sudo"),
    *("python3", "python3-venv", "git", "openssh-client", "ca-certificates", "util-linux"),
)
"""The first line is for the machine, the second for the product."""
LIBRARIES = "/usr/local/lib/neuco-libraries"
CLONE = "/usr/local/src/neuco-worker"
QUIETLY = ("nice", "-n", "15")
LIMIT_S = 180.0  # for every command and wait; reached only if something is wrong
LOOK_EVERY_S = 0.2
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Failed(Exception):
    """A command on the machine ended with an error, or something did not happen in time."""


class Machine:
    """A new container, which shares this computer's kernel and network."""

    def __init__(self) -> None:
        base = FOLDER / "base"
        if not (base / "etc/hostname").exists():
            _debootstrap(base)
        self._root = FOLDER / "container"
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._first = 0
        shutil.rmtree(self._root, ignore_errors=True)
        subprocess.run([*QUIETLY, "cp", "-a", "--reflink=auto", str(base), str(self._root)], check=True)
        copy_checkout(self._root / CLONE.lstrip("/"))

    def boot(self) -> None:
        """Start systemd and wait until it has started everything.

        Raises:
            Failed: If it does not come up.
        """
        words = ["systemd-nspawn", "-D", str(self._root), "--boot", "--register=no", "--keep-unit"]
        words += ["--machine=earth", f"--bind-ro={sysconfig.get_path('purelib')}:{LIBRARIES}"]
        with LOG.open("ab") as log:
            self._nspawn = subprocess.Popen(
                [*QUIETLY, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until(self._answers, f"systemd starts in the container (see {LOG})")
        self.run("systemctl", "is-system-running", "--wait", expect=None)

    def power_off(self) -> None:
        """Kill the first process; the kernel then kills all others."""
        if self._nspawn is None:
            return
        for process in psutil.Process(self._nspawn.pid).children() if self._nspawn.poll() is None else []:
            process.kill()
        self._nspawn.wait(timeout=LIMIT_S)
        self._nspawn = None

    def close(self) -> None:
        """Kill the container and remove its files."""
        self.power_off()
        shutil.rmtree(self._root, ignore_errors=True)

    def run(self, *words: str, stdin: str = "", expect: int | None = 0) -> str:
        """Run a command as root and return what it prints.

        Raises:
            Failed: If it does not end with the expected status; None accepts any status.
        """
        enter = [
            *QUIETLY,
            "nsenter",
            "--all",
            "--target",
            str(self._first),
            "--",
            "env",
            "-i",
            PATH,
            "HOME=/root",
        ]
        done = subprocess.run(
            [*enter, "LANG=C.UTF-8", *words],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
            text=True,
        )
        if expect is not None and done.returncode != expect:
            output = (done.stdout + done.stderr)[-3000:]
            raise Failed(f"`{shlex.join(words)}` ended with status {done.returncode}:\n{output}")
        return done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def shell(self, script: str, *, expect: int | None = 0) -> str:
        """Run a bash script as root and return what it prints."""
        return self.run("bash", "-euc", script, expect=expect)

    def write(self, path: str, content: str) -> None:
        """Write a file, and the folders above it."""
        self.run("install", "-D", "-m", "0644", "/dev/stdin", path, stdin=content)

    def _answers(self) -> bool:
        """Find the first process, and return whether it is systemd and answers.

        Raises:
            Failed: If the container has ended.
        """
        if self._nspawn is None or self._nspawn.poll() is not None:
            raise Failed(f"systemd-nspawn has ended: see {LOG}")
        for process in psutil.Process(self._nspawn.pid).children():
            if process.name() == "systemd":
                self._first = process.pid
                return self.run("systemctl", "show", "-P", "Version", expect=None)[:1].isdigit()
        return False


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds.

    Raises:
        Failed: If it does not hold within the limit.
    """
    ends = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > ends:
            raise Failed(f"this did not happen in {LIMIT_S:g} seconds: {what}")
        time.sleep(LOOK_EVERY_S)


def _debootstrap(root: Path) -> None:
    """Make the root from the first apt source of this computer, without timers that would disturb the checks."""
    shutil.rmtree(root, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    release = dict(re.findall(r"^(\w+)=(.*)$", Path("/etc/os-release").read_text(), re.MULTILINE))
    indexes = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]
    lines = subprocess.run(indexes, check=True, capture_output=True, text=True).stdout.splitlines()
    suite = release["VERSION_CODENAME"]
    site = next(line.split()[0] for line in lines if line.endswith(f" {suite}"))
    words = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(root), site]
    subprocess.run([*QUIETLY, *words], check=True)
    for timer in ("apt-daily", "apt-daily-upgrade", "e2scrub_all", "dpkg-db-backup"):
        (root / "etc/systemd/system" / f"{timer}.timer").symlink_to("/dev/null")
    (root / "etc/hostname").write_text("earth\n")  # last, as the sign that the root is complete
