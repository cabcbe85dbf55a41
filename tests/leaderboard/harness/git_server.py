"""A git server over smart HTTP with authentication, on loopback: git's own http-backend behind a small web server."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response


@dataclass
class GitServer:
    """Serves the bare repositories under a folder to clients that send the token."""

    root: Path
    token: str
    url: str = ""
    paths: list[str] = field(default_factory=list)
    on_request: Callable[[], None] = lambda: None

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        self.paths.append(f"{request.method} {request.full_path}")
        self.on_request()
        if request.authorization is None or request.authorization.password != self.token:
            return Response("no", 401, {"WWW-Authenticate": 'Basic realm="git"'})
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "GIT_CONFIG_KEY_1": "http.receivepack",
            "GIT_CONFIG_VALUE_1": "true",
            "REMOTE_USER": "tester",
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string.decode(),
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"],
            input=request.get_data(),
            env=environment,
            capture_output=True,
            check=False,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        return Response(body, status, [(name, value) for name, value in headers if name != "Status"])


@contextmanager
def serve(root: Path, token: str) -> Iterator[GitServer]:
    """Run the server on a free port."""
    server = GitServer(root, token)
    http = make_server("127.0.0.1", 0, Request.application(server.answer), threaded=True)
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def git(*arguments: str, at: Path, stdin: bytes = b"") -> str:
    """Run git as another client would, and return what it prints."""
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "other@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    done = subprocess.run(
        ["git", *arguments], cwd=at, env=environment, input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def bare(path: Path) -> Path:
    """Make an empty bare repository."""
    path.mkdir(parents=True)
    git("init", "--quiet", "--bare", "--initial-branch=main", at=path)
    git("config", "receive.autogc", "false", at=path)  # it would cost each push two processes
    return path


def commit_tree(repository: Path, entries: Iterable[bytes | str], branch: str = "main") -> str:
    """Commit a tree of entries as in ``git ls-tree`` on top of a branch, straight into a bare repository."""
    listed = b"".join((entry.encode() if isinstance(entry, str) else entry) + b"\0" for entry in entries)
    tree = git("mktree", "-z", at=repository, stdin=listed)
    heads = git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}", at=repository)
    parents = ["-p", heads] if heads else []
    commit = git("commit-tree", tree, *parents, "-m", "By somebody else", at=repository)
    git("update-ref", f"refs/heads/{branch}", commit, at=repository)
    return commit


def blob(repository: Path, content: bytes) -> str:
    """Store a file's content."""
    return git("hash-object", "-w", "--stdin", at=repository, stdin=content)


def add_file(repository: Path, name: str, content: bytes, branch: str = "main") -> str:
    """Commit one more file in the root of a branch."""
    heads = git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}", at=repository)
    lines = git("ls-tree", branch, at=repository).splitlines() if heads else []
    kept = [line for line in lines if not line.endswith(f"\t{name}")]
    return commit_tree(repository, [*kept, f"100644 blob {blob(repository, content)}\t{name}"], branch)
