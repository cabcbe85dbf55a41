"""Run one git process at a time, with only our configuration, without prompts or hooks, with a time limit, and killable as a group.

GitPython, which runs git where repositories are only read, is not used here, because it starts git with a copy of the whole environment,
including the daemon's secrets, and nothing can be removed from that copy. A stop could not kill git with its helpers.

The token reaches git only through GIT_ASKPASS and the environment of that one process. It is never in an argument, URL, configuration or
message.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from leaderboard.git.remote import CloneDamaged, Remote, sort_fault
from scoring.documents import is_loopback
from scoring.errors import Cancelled, InfrastructureError

FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--end-of-options")
_PASSED_ON = (
    "PATH", "TMPDIR", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "GIT_EXEC_PATH",
)  # fmt: skip
QUIET = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "protocol.ext.allow": "never",
    "http.lowSpeedLimit": "100",  # bytes per second over http.lowSpeedTime; a slower connection counts as dead
    "http.lowSpeedTime": "30",
    "transfer.fsckObjects": "false",
}
"""The settings of every git process."""
_SETTINGS = {
    **QUIET,
    "credential.helper": "",
    "fastimport.unpackLimit": "0",  # one pack for each commit; a file for each object would need another process
    "gc.pruneExpire": "now",
    "advice.pushUpdateRejected": "true",
}
_OPTIONS = tuple(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))
# The global configuration, which replaces the account's own. Our git processes read it, and so does the one that they start in a local
# repository. That may belong to another account, for example in a mounted folder, and is opened only if it is listed as safe; somebody has
# named it to us, so all folders are.
SAFE = "[safe]\n\tdirectory = *\n"
# A push that was accepted must survive a power failure, but by default git does not flush to the disk.
_CONFIGURATION = f"{SAFE}[core]\n\tfsync = all\n"
_ASKPASS = """#!/bin/sh
# Answers git's question for a user name or password, for the configured server only; a user name may come before the server's name.
case "$1" in
  Username*"'$NEUCO_GIT_SCHEME://$NEUCO_GIT_HOST'"*) printf '%s\\n' "x-access-token" ;;
  Password*"'$NEUCO_GIT_SCHEME://"*"@$NEUCO_GIT_HOST'"*) printf '%s\\n' "$NEUCO_GIT_TOKEN" ;;
  *) exit 1 ;;
esac
"""

ENDS_WITHIN_S = 2.0  # after SIGTERM; git needs milliseconds


@dataclass(frozen=True, kw_only=True)
class PublisherSettings:
    """The repository and branch to push to, and the credentials.

    Attributes:
        repository: Any git URL or a local path; ``http://`` on loopback only, never with a password inside.
        branch: Created by the first push if it does not exist.
        state_dir: Folder for the clone; may be deleted at any time.
        token: For https; masked in ``repr``.
        ssh_key: Private key file; no other key is offered.
        known_hosts: File of pinned host keys; None uses the account's own file. Unknown hosts are always refused.
        timeout_s: Time limit of one git process.
    """

    repository: str
    branch: str = "main"
    state_dir: Path
    token: str | None = field(default=None, repr=False)
    ssh_key: Path | None = None
    known_hosts: Path | None = None
    timeout_s: float = 120.0


class GitProcess:
    """Runs git for one remote and its clones, one process at a time; another thread can stop it.

    Raises:
        OrganizerError: The address cannot be used.
    """

    def __init__(self, settings: PublisherSettings) -> None:
        self.remote = Remote(settings.repository)
        self._settings = settings
        # Notified when the process has ended; its lock guards the two fields below.
        self._ended = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, *arguments: str, clone: Path, network: bool = False, stdin: bytes = b"") -> bytes:
        """Return what ``git <arguments>`` prints, run in the bare clone.

        Raises:
            OrganizerError: The remote refused access, or there is no such repository.
            InfrastructureError: The remote cannot be reached, or the time limit passed.
            TipMoved: A push came too late.
            CloneDamaged: git cannot work with the local clone.
            Cancelled: :meth:`stop` was called.
        """
        with self._ended:
            if self._stopped:
                raise _stopped()
            try:
                process = self._process = subprocess.Popen(
                    ["git", *_OPTIONS, *arguments],
                    cwd=clone,
                    env=self._environment(clone, network=network),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # so that its helpers (ssh, git-remote-https) are killed with it
                )
            except OSError as error:
                if not clone.is_dir():
                    raise CloneDamaged from error
                raise InfrastructureError(
                    f"git could not be started ({error.strerror}).",
                    hint="If git is missing, install git 2.32 or newer; otherwise, check the memory and the number of processes of this"
                    " machine. The worker tries again.",
                    code="leaderboard.no_git",
                ) from error
        with process:
            try:
                out, err = process.communicate(stdin, timeout=self._settings.timeout_s)
            except subprocess.TimeoutExpired as error:
                raise InfrastructureError(
                    f"git {arguments[0]} did not finish within {self._settings.timeout_s:.0f} seconds and was stopped.",
                    hint="The worker tries again. If this continues, check the connection to the leaderboard's server.",
                    code="leaderboard.timeout",
                ) from error
            finally:
                _signal_group(process, signal.SIGKILL)  # and its helpers, if they still run
                with self._ended:
                    self._process = None
                    self._ended.notify_all()
        if self._stopped:
            raise _stopped()
        if process.returncode != 0:
            message = (out + b"\n" + err).decode(errors="replace")
            message = message.replace(self._settings.token or "\0", "…")
            raise sort_fault(self.remote, arguments[0], message) if network else CloneDamaged()
        return out

    def stop(self) -> None:
        """End the running process and refuse new ones; callable from another thread.

        SIGTERM comes first, because git then removes its locks. A lock that stays in a local repository blocks every push.
        """
        with self._ended:
            self._stopped = True
            process = self._process
            if process is not None:
                _signal_group(process, signal.SIGTERM)
                if not self._ended.wait_for(lambda: self._process is None, timeout=ENDS_WITHIN_S):
                    _signal_group(process, signal.SIGKILL)

    def _environment(self, clone: Path, *, network: bool) -> dict[str, str]:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {
            "GIT_DIR": str(clone),
            "LC_ALL": "C",
            "LANGUAGE": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": str(self._file("gitconfig", _CONFIGURATION)),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": self.remote.protocol,
            "GIT_ASKPASS": "/bin/false",
            "SSH_ASKPASS": "/bin/false",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        if network and self._settings.token and self.remote.host:
            environment |= {
                "GIT_ASKPASS": str(self._file("askpass.sh", _ASKPASS)),
                "NEUCO_GIT_TOKEN": self._settings.token,
                "NEUCO_GIT_SCHEME": self.remote.protocol,
                "NEUCO_GIT_HOST": self.remote.host,
                "HOME": str(self._settings.state_dir),  # a password in the account's .netrc would come first
            }
        if is_loopback(urlsplit(f"//{self.remote.host}").hostname):
            environment["no_proxy"] = "*"
        if network and self.remote.protocol == "ssh":
            environment |= {"GIT_SSH_COMMAND": shlex.join(self._ssh()), "GIT_SSH_VARIANT": "ssh"}
        return environment

    def _file(self, name: str, text: str) -> Path:
        """Return the path of one of our files, and write it if it is missing or differs."""
        path = self._settings.state_dir / name
        try:
            if not path.is_file() or path.read_text(encoding="ascii", errors="replace") != text:
                path.write_text(text, encoding="ascii")
                path.chmod(0o700)
        except OSError as error:
            raise CloneDamaged from error
        return path

    def _ssh(self) -> list[str]:
        options: dict[str, object] = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": 15,
            "ServerAliveInterval": 15,
            "ForwardAgent": "no",
            "PermitLocalCommand": "no",
        }
        if self._settings.known_hosts is not None:
            # In quotes: ssh takes a path with a blank for two.
            known = f'"{self._settings.known_hosts}"'
            options |= {"UserKnownHostsFile": known, "GlobalKnownHostsFile": os.devnull}
        identity = []
        if self._settings.ssh_key is not None:
            options |= {"IdentitiesOnly": "yes", "IdentityAgent": "none"}
            identity = ["-F", os.devnull, "-i", str(self._settings.ssh_key)]
        return ["ssh", *(f"-o{name}={value}" for name, value in options.items()), *identity]


def _stopped() -> Cancelled:
    return Cancelled(
        "Publishing was stopped.",
        hint="Do nothing. The worker publishes when it runs again.",
        code="leaderboard.stopped",
    )


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
