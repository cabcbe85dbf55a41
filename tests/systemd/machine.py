"""The interface that the checks use for a machine with systemd as its first process, common to all kinds of machine."""

from __future__ import annotations

import shlex
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

LIMIT_S = 180.0  # for every command and wait; reached only if something is wrong
LOOK_EVERY_S = 0.2
CLEAN = (
    "env",
    "-i",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LANG=C.UTF-8",
)
"""The environment of every command on the machine, without the variables of this process."""


class Impossible(Exception):
    """This computer lacks what a machine or a check needs; the message says what."""


class Failed(Exception):
    """A command on the machine ended with an error, or something did not happen in time."""


class Machine(ABC):
    """A machine that can be switched on and off; as a context manager, it boots and is removed at the end.

    Attributes:
        title: The name of its kind, for printing.
        limits_memory: Whether its kernel limits the memory of a cgroup (version 2).
    """

    title: ClassVar[str]
    limits_memory: ClassVar[bool]

    def __enter__(self) -> Machine:
        try:
            self.boot()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def boot(self) -> None:
        """Switch it on and wait until systemd has started everything.

        Raises:
            Impossible: If this computer cannot run it.
            Failed: If it does not come up.
        """

    @abstractmethod
    def power_off(self) -> None:
        """Kill all its processes at once, without any warning."""

    @abstractmethod
    def close(self) -> None:
        """Switch the machine off and remove it."""

    @abstractmethod
    def lead_to(self, port: int) -> None:
        """Forward a loopback port of the machine to the same port of this computer, also after the next boot."""

    @abstractmethod
    def command(self, words: Sequence[str]) -> list[str]:
        """Return the local command that runs a command on the machine."""

    def run(self, *words: str, stdin: bytes = b"", expect: int | None = 0) -> str:
        """Run a command as root and return what it prints.

        Raises:
            Failed: If it does not end in time or with the expected status; None accepts any status.
        """
        try:
            done = subprocess.run(
                self.command([*CLEAN, *words]), input=stdin, capture_output=True, check=False, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired as problem:
            raise Failed(f"`{shlex.join(words)}` did not end in {LIMIT_S:g} seconds") from problem
        told = (done.stdout + done.stderr).decode("utf-8", "replace")
        if expect is not None and done.returncode != expect:
            raise Failed(f"`{shlex.join(words)}` ended with status {done.returncode}:\n{told[-3000:]}")
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else told

    def shell(self, script: str, *, expect: int | None = 0) -> str:
        """Run a bash script as root and return what it prints."""
        return self.run("bash", "-euc", script, expect=expect)

    def write(self, path: str, content: str | bytes, *, mode: str = "0644") -> None:
        """Write a file."""
        data = content.encode() if isinstance(content, str) else content
        folder = shlex.quote(str(Path(path).parent))
        place = shlex.quote(path)
        self.run("bash", "-euc", f"mkdir -p {folder}; cat >{place}; chmod {mode} {place}", stdin=data)

    def copy(self, source: Path, target: str) -> None:
        """Copy a folder of this computer to the machine."""
        packed = subprocess.run(
            ["tar", "-C", str(source), "--owner=root", "--group=root", "-cf", "-", "."],
            check=True,
            capture_output=True,
        ).stdout
        place = shlex.quote(target)
        self.run("bash", "-euc", f"mkdir -p {place}; tar -C {place} -xf -", stdin=packed)

    def wait_for_systemd(self) -> None:
        """Wait until systemd has finished booting."""
        self.run("systemctl", "is-system-running", "--wait", expect=None)


def until(condition: Callable[[], bool], what: str, *, limit_s: float = LIMIT_S) -> None:
    """Wait until a condition holds.

    Raises:
        Failed: If it does not hold within the limit.
    """
    ends = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > ends:
            raise Failed(f"this did not happen in {limit_s:g} seconds: {what}")
        time.sleep(LOOK_EVERY_S)
