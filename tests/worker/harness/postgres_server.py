"""A PostgreSQL server for tests: Debian's, on a free port of loopback, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.waiting import LIMIT_S

ACCOUNT = "postgres"
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60")
TRIES = 5  # to start on a port that is free


class Server:
    """A running server, with a new database for each test.

    Args:
        port: Its port on loopback.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._made = 0

    def url(self, database: str = "postgres") -> str:
        """Return SQLAlchemy's URL of a database."""
        return f"postgresql+psycopg://{ACCOUNT}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Open a connection besides the worker's."""
        return psycopg.connect(f"postgresql://{ACCOUNT}@127.0.0.1:{self.port}/{database}", autocommit=True)

    def fresh(self, options: LiteralString = "") -> str:
        """Make an empty database with some options of SQL and return its name."""
        self._made += 1
        name = f"challenge_{self._made}"
        with self.connect() as connection:
            connection.execute(SQL(f"CREATE DATABASE {{}} {options}").format(Identifier(name)))
        return name


def binaries() -> Path | None:
    """Return the folder of the server's programs, of the newest version that is installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if folders:
        return folders[-1]
    program = shutil.which("postgres")
    return None if program is None else Path(program).resolve().parent


ON_POSTGRES = [
    pytest.mark.processes,
    pytest.mark.xdist_group("postgres"),  # one server
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server is installed (tests/setup.sh)"),
]
"""Marks of a test that needs a server."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server() -> Iterator[Server]:
    """Run a server inside the block; because it refuses to run as root, root uses another account for it."""
    programs = binaries()
    if programs is None:
        raise FileNotFoundError("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="neuco-pg-"))
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        owner = pwd.getpwnam(ACCOUNT)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        account = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **account)

    data = folder / "data"
    run(
        *(str(programs / "initdb"), "-D", str(data), "-U", ACCOUNT, "-A", "trust", "-E", "UTF8"),
        *("--no-sync", "--locale=C.UTF-8"),
    )
    control = str(programs / "pg_ctl"), "-t", f"{LIMIT_S:.0f}"
    for left in reversed(range(TRIES)):
        port = _free_port()
        settings = [f"-c{setting}" for setting in (*QUICK, f"port={port}", "listen_addresses=127.0.0.1")]
        options = " ".join([*settings, f"-cunix_socket_directories={folder}"])
        try:
            run(*control, "-D", str(data), "-l", str(folder / "log"), "-w", "-o", options, "start")
            break
        except subprocess.CalledProcessError:  # somebody else may have got the port in between
            if not left:
                raise
    try:
        yield Server(port)
    finally:
        run(*control, "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)
