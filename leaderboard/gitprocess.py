"""Run one git process at a time: no configuration but ours, no prompt, no hook, a time limit, and killable as a group.

The token reaches git only through GIT_ASKPASS and the environment of that one process; it stands in no argument, URL, configuration or
message. What git says on stderr is sorted here into the errors of the tree.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import shlex
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from leaderboard import local_repository
from scoring.errors import Cancelled, InfrastructureError, OrganizerError

_PASSED_ON = (
    "PATH", "TMPDIR", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "GIT_EXEC_PATH",
)  # fmt: skip
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "credential.helper": "",
    "protocol.ext.allow": "never",
    "http.lowSpeedLimit": "100",  # bytes a second over http.lowSpeedTime: a connection that died without saying so
    "http.lowSpeedTime": "30",
    "gc.auto": "0",  # the clone is tidied when the publisher says so
    "transfer.fsckObjects": "false",
    "advice.pushUpdateRejected": "true",
}
_CONFIGURATION = "[safe]\n\tdirectory = *\n"
_ASKPASS = """#!/bin/sh
# Answers git's question for a user name or password, for the configured server only.
case "$1" in
  Username*"'$NEUCO_GIT_ORIGIN'"*) printf '%s\\n' "x-access-token" ;;
  Password*"'$NEUCO_GIT_ORIGIN'"*|Password*"'$NEUCO_GIT_USER_ORIGIN'"*) printf '%s\\n' "$NEUCO_GIT_TOKEN" ;;
  *) exit 1 ;;
esac
"""

_HOST_KEY = r"host key verification failed|no .* host key is known|remote host identification has changed"
_REFUSED = (
    r"authentication failed|could not read (username|password)|terminal prompts disabled|permission denied|invalid credentials|"
    r"returned error: 40[13]|http basic: access denied|permission to .* denied|write access to repository not granted"
)
_NOT_FOUND = (
    r"repository .*not found|not found: did you run|does not appear to be a git repository|returned error: 404|no such file or directory|"
    r"project you were looking for could not be found|repository .* does not exist|not a git repository"
)
# The first pattern found decides; the order goes from what is surest to what is vaguest.
_REFUSALS = (
    (
        _HOST_KEY,
        "leaderboard.host_key",
        "The leaderboard's server did not show the host key that is pinned.",
        "Compare the server's published key with the file in leaderboard.known_hosts.",
    ),
    (
        _REFUSED,
        "leaderboard.auth_refused",
        "The leaderboard's repository refused the credentials.",
        "Check that leaderboard.token or leaderboard.ssh_key is valid, has not expired, and may write to the repository.",
    ),
    (
        _NOT_FOUND,
        "leaderboard.repository_not_found",
        "The leaderboard's repository was not found.",
        "Check leaderboard.repository, and that the credentials may see it: servers hide private repositories from strangers.",
    ),
)
_PUSH_REFUSED = re.compile(
    r"hook declined|protected branch|GH00\d|GH013|denyCurrentBranch|branch is currently checked out|prohibited|not allowed",
    re.I,
)
_MOVED = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to update ref|incorrect old value|reference already exists",
    re.I,
)


class TipMoved(Exception):
    """The branch moved between reading and pushing; build on the new tip."""


class CloneDamaged(Exception):
    """The local clone cannot be read or written; make it anew."""


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Where the board is pushed to, checked.

    Raises:
        OrganizerError: The address carries a password, uses a protocol that is not allowed, or could be taken for an option.
    """

    url: str
    protocol: str = field(init=False)
    origin: str = field(init=False, default="")
    folder: Path | None = field(init=False, default=None)  # of a repository of this machine

    def __post_init__(self) -> None:
        """Refuse addresses that git would read as something else than a repository."""
        url = self.url
        if not url or url.startswith("-") or any(ord(char) < 32 or ord(char) == 127 for char in url):
            raise _bad_url("is empty or has characters that no address has")
        protocol = "file"
        if "://" in url:
            parts = urlsplit(url)
            protocol = parts.scheme.lower()
            if parts.password:
                raise _bad_url(
                    "carries a password; it would be seen in process lists",
                    "Put the token into leaderboard.token instead.",
                )
            if protocol == "http" and not _is_loopback(parts.hostname or ""):
                raise _bad_url(
                    "uses http://, which would send the token readably",
                    "Use https://; http:// works on loopback only.",
                )
            if protocol in ("http", "https"):
                host = parts.netloc.rpartition("@")[2]
                object.__setattr__(self, "origin", f"{protocol}://{host}")
        elif "::" in url.split("/", 1)[0]:
            raise _bad_url("names a remote helper")
        elif re.match(r"^[^/]+:", url):
            protocol = "ssh"
        if protocol not in ("file", "http", "https", "ssh"):
            raise _bad_url(f"uses the protocol {protocol}")
        object.__setattr__(self, "protocol", protocol)
        if protocol == "file":
            object.__setattr__(self, "folder", Path(unquote(urlsplit(url).path) if "://" in url else url))


def _bad_url(what: str, cure: str = "Use https://, ssh://, git@host:path or a local path.") -> OrganizerError:
    return OrganizerError(f"leaderboard.repository {what}.", cure=cure, code="leaderboard.bad_repository")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class GitProcess:
    """Starts git for one remote and one clone; at most one process at a time, stoppable from another thread."""

    def __init__(
        self,
        remote: Remote,
        *,
        home: Path,
        timeout_s: float,
        token: str | None = None,
        ssh_key: Path | None = None,
        known_hosts: Path | None = None,
    ) -> None:
        self._remote = remote
        self._home = home
        self._timeout_s = timeout_s
        self._token = token
        self._ssh_key = ssh_key
        self._known_hosts = known_hosts
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    @property
    def url(self) -> str:
        """The remote's address, as it may stand in an argument."""
        return self._remote.url

    def run(self, *arguments: str, clone: Path, network: bool = False, stdin: bytes = b"") -> bytes:
        """Return what ``git <arguments>`` prints, run in the bare clone.

        Raises:
            OrganizerError: The remote refused us, or there is no such repository.
            InfrastructureError: The remote cannot be reached, or the time limit passed.
            TipMoved: A push came too late.
            CloneDamaged: git cannot work with the local clone.
            Cancelled: :meth:`stop` was called.
        """
        environment = self._environment(network=network)
        environment["GIT_DIR"] = str(clone)
        with self._lock:
            if self._stopped:
                raise Cancelled("Publishing was stopped.", code="leaderboard.stopped")
            try:
                process = self._process = subprocess.Popen(
                    ["git", *arguments],
                    cwd=clone,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # its helpers (ssh, git-remote-https) die with it
                )
            except OSError as error:
                if not clone.is_dir():
                    raise CloneDamaged(str(error)) from error
                if not isinstance(error, FileNotFoundError):
                    raise InfrastructureError(
                        "git could not be started.", code="leaderboard.no_process"
                    ) from error
                raise OrganizerError(
                    "git is not installed.", cure="Install git 2.31 or newer.", code="leaderboard.no_git"
                ) from error
        try:
            out, err = process.communicate(stdin, timeout=self._timeout_s)
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(
                f"git {arguments[0]} did not end within {self._timeout_s:.0f} seconds.",
                cure="The push is tried again; look at the connection to the leaderboard's server if this goes on.",
                code="leaderboard.timeout",
            ) from error
        finally:
            _kill_group(process)
            with self._lock:
                self._process = None
        if self._stopped:
            raise Cancelled("Publishing was stopped.", code="leaderboard.stopped")
        if process.returncode != 0:
            raise self._fault(arguments[0], (out + b"\n" + err).decode(errors="replace"), network=network)
        return out

    @property
    def stopped(self) -> bool:
        """Whether nothing may be started any more."""
        return self._stopped

    def stop(self) -> None:
        """Kill the running process and refuse new ones; callable from another thread."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                _signal_group(self._process)

    def _environment(self, *, network: bool) -> dict[str, str]:
        settings = dict(_SETTINGS)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {
            "LC_ALL": "C",
            "LANGUAGE": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": str(self._configuration()),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": self._remote.protocol,
            "GIT_ASKPASS": "/bin/false",
            "SSH_ASKPASS": "/bin/false",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        if network and self._token and self._remote.origin:
            host = self._remote.origin.split("://", 1)[1]
            environment |= {
                "GIT_ASKPASS": str(self._askpass()),
                "NEUCO_GIT_TOKEN": self._token,
                "NEUCO_GIT_ORIGIN": self._remote.origin,
                "NEUCO_GIT_USER_ORIGIN": self._remote.origin.replace(host, f"{self._user(host)}@{host}"),
            }
        if network and self._remote.protocol == "ssh":
            environment["GIT_SSH_COMMAND"] = shlex.join(self._ssh())
            environment["GIT_SSH_VARIANT"] = "ssh"
        environment["GIT_CONFIG_COUNT"] = str(len(settings))
        for place, (key, value) in enumerate(settings.items()):
            environment[f"GIT_CONFIG_KEY_{place}"] = key
            environment[f"GIT_CONFIG_VALUE_{place}"] = value
        return environment

    def _configuration(self) -> Path:
        """Return a global configuration of one line, in place of the account's own.

        A repository on this machine may belong to somebody else (a mounted folder, another account); git asks the global configuration,
        and only it, whether the process at the other end may open it. The organizer has named it, so it may.
        """
        path = self._home / "gitconfig"
        if not path.is_file() or path.read_text(encoding="ascii", errors="replace") != _CONFIGURATION:
            path.write_text(_CONFIGURATION, encoding="ascii")
        return path

    def _user(self, host: str) -> str:
        before = self._remote.url.split("://", 1)[1].split("/", 1)[0]
        return before.removesuffix(host).removesuffix("@") or "x-access-token"

    def _askpass(self) -> Path:
        script = self._home / "askpass.sh"
        if not script.is_file() or script.read_text() != _ASKPASS:
            script.write_text(_ASKPASS)
        script.chmod(0o700)
        return script

    def _ssh(self) -> list[str]:
        command = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=15"]
        command += ["-o", "ServerAliveInterval=15", "-o", "ForwardAgent=no", "-o", "PermitLocalCommand=no"]
        if self._known_hosts is not None:
            command += [
                "-o",
                f"UserKnownHostsFile={self._known_hosts}",
                "-o",
                f"GlobalKnownHostsFile={os.devnull}",
            ]
        if self._ssh_key is not None:
            command += [
                "-F",
                os.devnull,
                "-o",
                "IdentitiesOnly=yes",
                "-o",
                "IdentityAgent=none",
                "-i",
                str(self._ssh_key),
            ]
        return command

    def _fault(self, verb: str, said: str, *, network: bool) -> Exception:
        """Sort what git said into the error that tells who can mend it."""
        said = said.replace(self._token, "…") if self._token else said
        if not network:
            return CloneDamaged(said)
        if verb == "push":
            if _PUSH_REFUSED.search(said):
                return OrganizerError(
                    "The leaderboard's repository refused the push: a rule or hook protects the branch.",
                    cure="Let the account of the token or key push to leaderboard.branch, or name another branch.",
                    code="leaderboard.push_refused",
                )
            if _MOVED.search(said):
                return TipMoved(said)
        if self._remote.folder is not None and (reason := local_repository.fault(self._remote.folder)):
            return reason
        for pattern, code, sentence, cure in _REFUSALS:
            if re.search(pattern, said, re.IGNORECASE):
                return OrganizerError(sentence, cure=cure, code=code)
        if re.search(
            r"\.lock'|corrupt|bad object|loose object|missing blob|missing tree|unable to read|index-pack|shallow",
            said,
        ):
            return CloneDamaged(said)
        return InfrastructureError(
            "The leaderboard's repository cannot be reached.",
            cure="The push is tried again; look at the network and the server's status page if this goes on.",
            code="leaderboard.unreachable",
        )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process and its helpers, and wait for it."""
    _signal_group(process)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # it died before it read everything
                pipe.close()


def _signal_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
