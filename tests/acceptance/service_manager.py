"""A minimal replacement for systemd in tests, which runs the commands of our units below a root directory.

These tests run without systemd; other tests check the units with `systemd-analyze`. Here the commands run with the environment, the
credentials, the folders and the notification socket that the unit files request. Users and sandboxing are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from functools import partial
from pathlib import Path

from tests.waiting import LIMIT_S

PLACES = re.compile(r"(?<![\w.])/(?=(?:opt|etc|var/lib|var/cache|var/backups)/neuco-worker)")
"""Matches the first slash of each absolute path of ours, which is moved below the root directory."""


class ServiceManager:
    """Starts and stops services as `systemctl` does.

    Args:
        root: The root directory into which everything was installed.
        runtime: Folder for sockets, credentials and logs.
    """

    def __init__(self, root: Path, runtime: Path) -> None:
        self._root = root
        self._runtime = runtime
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def below(self, text: str) -> str:
        """Move our absolute paths below the root directory."""
        return PLACES.sub(f"{self._root}/", text)

    def control(self, *arguments: str) -> None:
        """Act as ``systemctl`` does with these arguments; links of enabled units are left out.

        Raises:
            AssertionError: If the unit does not exist or fails, or if the command is unknown.
        """
        verb, name = (argument for argument in arguments if argument != "--now")
        unit = name if "." in name else f"{name}.service"
        file = self._root / "etc/systemd/system" / re.sub(r"@[^.]*", "@", unit)
        assert file.is_file(), f"there is no unit {file.name}"
        if unit.endswith(".timer"):
            assert file.with_suffix(".service").is_file(), f"{file.name} starts nothing"
        elif verb in ("start", "enable"):
            self._start(unit, file)
        elif verb in ("stop", "disable"):
            if process := self._running.pop(unit, None):
                process.terminate()
                assert process.wait() == 0, f"{unit} did not end well:\n{self.log(unit)}"
        elif verb == "reload":
            self._running[unit].send_signal(signal.SIGHUP)
        else:
            assert verb == "status", f"unknown: systemctl {verb}"
            assert self._running[unit].poll() is None, f"{unit} has ended:\n{self.log(unit)}"

    def log(self, unit: str) -> str:
        """Return the output of a service."""
        return (self._runtime / f"{unit}.log").read_text()

    def close(self) -> None:
        """Kill all services that still run."""
        for process in self._running.values():
            process.kill()
            process.wait()

    def _start(self, unit: str, file: Path) -> None:
        instance = re.sub(r".*@|\.service$", "", unit)
        lines = [line.partition("=") for line in file.read_text().splitlines() if not line.startswith("#")]
        pairs = [(key, self.below(value.replace("%i", instance))) for key, sign, value in lines if sign]
        settings = dict(pairs)
        credentials = self._runtime / f"{unit}.credentials"
        shutil.rmtree(credentials, ignore_errors=True)
        credentials.mkdir(mode=0o700)
        for key, value in pairs:
            name, _, given = value.partition(":")
            if key == "LoadCredential" and Path(given).is_file():
                shutil.copy(given, credentials / name)
            elif key == "SetCredential" and not (credentials / name).exists():
                (credentials / name).write_text(given.replace("\\n", "\n"))
        environment = {
            "PATH": os.environ["PATH"],
            "CREDENTIALS_DIRECTORY": str(credentials),
        }
        environment |= dict(value.split("=", 1) for key, value in pairs if key == "Environment")
        folder = Path(settings["WorkingDirectory"])
        folder.mkdir(parents=True, exist_ok=True)
        notices = self._runtime / "notify"
        notices.unlink(missing_ok=True)
        with (
            (self._runtime / f"{unit}.log").open("ab") as log,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
        ):
            journal = os.fstat(log.fileno())
            environment["JOURNAL_STREAM"] = f"{journal.st_dev}:{journal.st_ino}"
            run = partial(subprocess.Popen, env=environment, cwd=folder, stdout=log, stderr=log)
            assert run(settings["ExecStartPre"].lstrip("-").split()).wait() == 0
            if settings["Type"] == "oneshot":
                assert run(settings["ExecStart"].split()).wait() == 0, f"{unit} failed:\n{self.log(unit)}"
                return
            channel.bind(str(notices))
            channel.settimeout(LIMIT_S)
            environment["NOTIFY_SOCKET"] = str(notices)
            self._running[unit] = run(settings["ExecStart"].split())
            while channel.recv(4096) != b"READY=1":
                pass
