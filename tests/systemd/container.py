"""A systemd-nspawn container, which starts quickly and shares this computer's kernel and network."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.systemd.machine import Failed, Impossible, Machine
from tests.systemd.root import FOLDER, QUIETLY, needs

STARTS_WITHIN_S = 60.0


class Container(Machine):
    """The root file system in a container; its cgroups belong to this computer and are assumed not to limit memory.

    Args:
        base: The root file system to copy.
    """

    title = "systemd-nspawn"
    limits_memory = False

    def __init__(self, base: Path) -> None:
        needs(("systemd-nspawn", "systemd-container"), ("nsenter", "util-linux"))
        self._root = FOLDER / "container"
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._first = 0
        shutil.rmtree(self._root, ignore_errors=True)
        subprocess.run([*QUIETLY, "cp", "-a", "--reflink=auto", str(base), str(self._root)], check=True)

    def boot(self) -> None:
        """Start systemd in the container and wait until it has booted."""
        words = ["systemd-nspawn", "-D", str(self._root), "--boot", "--register=no", "--keep-unit"]
        with (FOLDER / "container.log").open("ab") as log:
            self._nspawn = subprocess.Popen(
                [*QUIETLY, *words, "--machine=earth"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends = time.monotonic() + STARTS_WITHIN_S
        while time.monotonic() < ends:
            if self._nspawn.poll() is not None:
                raise Impossible(
                    f"systemd-nspawn ended with status {self._nspawn.returncode}: {self._last_words()}"
                )
            if self._find_first():
                self.wait_for_systemd()
                return
            time.sleep(0.1)
        raise Failed(f"systemd did not start in the container: {self._last_words()}")

    def power_off(self) -> None:
        """Kill the first process; the kernel then kills all others."""
        if self._nspawn is None:
            return
        for process in psutil.Process(self._nspawn.pid).children() if self._nspawn.poll() is None else []:
            process.kill()
        self._nspawn.wait(timeout=STARTS_WITHIN_S)
        self._nspawn = None

    def close(self) -> None:
        """Kill the container and remove its files."""
        self.power_off()
        shutil.rmtree(self._root, ignore_errors=True)

    def lead_to(self, port: int) -> None:
        """Do nothing, because the container shares this computer's network."""

    def command(self, words: Sequence[str]) -> list[str]:
        """Return a command that runs in the container's namespaces."""
        return [*QUIETLY, "nsenter", "--all", "--target", str(self._first), "--", *words]

    def _find_first(self) -> bool:
        """Find the first process, and return whether it is systemd and answers."""
        if self._nspawn is None:
            return False
        for process in psutil.Process(self._nspawn.pid).children():
            if process.name() == "systemd":
                self._first = process.pid
                answer = self.run("systemctl", "show", "-P", "Version", expect=None)
                return answer[:1].isdigit()
        return False

    def _last_words(self) -> str:
        lines = (FOLDER / "container.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"
