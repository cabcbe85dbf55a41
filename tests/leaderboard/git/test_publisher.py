"""The publisher pushes to any git repository, without damage, without force and without showing a secret."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from werkzeug.exceptions import abort
from werkzeug.wrappers import Response

from leaderboard.git import (
    Published,
    Publisher,
    PublisherSettings,
    cloned,
    process,
    with_signature,
    without_signature,
)
from leaderboard.git.remote import CloneDamaged
from scoring.errors import Cancelled, InfrastructureError, NeucoError, OrganizerError
from tests.leaderboard.harness.git_server import add_file, bare, blob, commit_tree, git, serve
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.processes

TOKEN = f"tok-{os.urandom(8).hex()}"  # which the command line of no other process contains
NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
FILES = {"README.md": b"# Board\n", "index.html": b"<p>", "leaderboard/dev.json": b"{}"}

Files = Mapping[str, bytes]


def sign(payload: bytes) -> bytes:
    """Sign a commit with a hash instead of a key."""
    return b"signed %b\nby us\n" % hashlib.sha256(payload).hexdigest().encode()


@dataclass
class Board:
    """A bare repository, and the state of the worker that pushes to it."""

    remote: Path
    state: Path

    def publisher(self, repository: object = "", **facts: object) -> Publisher:
        """Return a publisher of a new process with the same state."""
        settings = PublisherSettings(
            repository=str(repository or self.remote),
            state_dir=self.state,
            **facts,  # type: ignore[arg-type]
        )
        return Publisher(settings, clock=lambda: NOW)

    def push(
        self,
        files: Files | Callable[[Files, Files], Files] = FILES,
        message: str = "Publish\n",
        *,
        by: Publisher | None = None,
        **facts: object,
    ) -> Published:
        """Publish files, or what a function makes of those in the branch and our own."""
        render = files if callable(files) else lambda *_: files
        return (by or self.publisher()).publish(render, message, sign=sign, **facts)  # type: ignore[arg-type]

    def git(self, *arguments: str) -> str:
        """Run git in the repository."""
        return git(*arguments, at=self.remote)

    def paths(self, branch: str = "main") -> list[str]:
        """Return the files of a branch."""
        return self.git("ls-tree", "-r", "--name-only", branch).splitlines()

    def commits(self, branch: str = "main") -> list[str]:
        """Return the subjects of a branch, newest first."""
        return self.git("log", "--format=%s", branch).splitlines()

    def hook(self, name: str, script: str) -> Path:
        """Add a hook to the repository."""
        path = self.remote / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(0o755)
        return path

    def fails(
        self, by: Publisher, code: str, kind: type[NeucoError], *, push_only: bool = False
    ) -> NeucoError:
        """Check that a publication and a check both fail with one of our errors, which shows no secret; return the publication's."""
        errors = []
        for attempt in (lambda: self.push(by=by), by.check)[: 1 if push_only else 2]:
            with pytest.raises(kind) as caught:
                attempt()
            assert caught.value.code == code
            assert caught.value.hint
            assert TOKEN not in caught.value.message
            errors.append(caught.value)
        return errors[0]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """Return an empty bare repository, and no state."""
    return Board(bare(tmp_path / "remote.git"), tmp_path / "state")


def test_first_publication_makes_a_signed_commit(board: Board) -> None:
    """An empty repository gets the branch with every file in a commit that git understands; nothing is checked out.

    The same content again makes no commit, from the same clone and from a new one.
    """
    ours = board.publisher(branch="board/v1")
    done = board.push(by=ours)
    assert done.changed
    assert board.git("rev-parse", "board/v1") == done.commit
    assert board.paths("board/v1") == sorted(FILES)
    assert (
        board.git("log", "--format=%an|%cn|%cI|%B", "board/v1")
        == "neuco-worker|neuco-worker|2026-03-05T12:00:00+00:00|Publish"
    )
    assert board.git("fsck", "--strict") == ""
    raw = board.git("cat-file", "commit", "board/v1").encode() + b"\n"
    payload, signature = without_signature(raw)
    assert signature == sign(payload)
    assert with_signature(payload, signature) == raw
    assert without_signature(payload) == (payload, b"")
    assert not list(board.state.rglob("index.html"))
    for _ in range(2):
        assert board.push(message="Two\n", by=ours) == replace(done, changed=False, own=done.commit)
        ours.discard()


def test_files_of_others_stay(board: Board) -> None:
    """Files, folders, submodules, executables, links and names that are no UTF-8 stay."""
    remote = board.remote
    script = blob(remote, b"#!/bin/sh\n")
    folders = [
        git("mktree", at=remote, stdin=f"{mode} blob {script}\t{name}\n".encode())
        for mode, name in (("100755", "run.sh"), ("100644", "notes.txt"))
    ]
    commit_tree(
        remote,
        [
            f"040000 tree {folders[0]}\ttools",
            f"040000 tree {folders[1]}\tleaderboard",
            f"160000 commit {commit_tree(remote, [])}\tmodule",
            f"120000 blob {script}\tlink",
            f"100644 blob {script}\t".encode() + b"caf\xe9",
        ],
    )
    board.push()
    kept = board.git("ls-tree", "-r", "main")
    for line in (
        "100755 blob",
        "160000 commit",
        "120000 blob",
        "leaderboard/notes.txt",
        '"caf\\351"',
        "dev.json",
    ):
        assert line in kept
    assert board.git("fsck", "--strict") == ""


def test_planted_links_are_replaced_and_never_followed(board: Board, tmp_path: Path) -> None:
    """Symbolic links at our paths become files and folders; their targets are neither read nor written.

    The name of a link cannot pretend to be a file.
    """
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "README.md").write_text("private words")
    link, readme = (blob(board.remote, str(path).encode()) for path in (victim, victim / "README.md"))
    inside = git(
        "mktree", at=board.remote, stdin=f"120000 blob {link}\tx100644 blob {readme}\tREADME.md\n".encode()
    )
    seen: list[Files] = []

    def watching(existing: Files, own: Files) -> Files:
        seen.append(existing)
        return FILES

    for entry in (f"120000 blob {link}\tleaderboard", f"040000 tree {inside}\tleaderboard"):
        commit_tree(
            board.remote, [entry, f"120000 blob {readme}\tREADME.md", f"120000 blob {link}\tindex.html"]
        )
        board.push(watching, folders=["leaderboard"])
        assert board.paths() == sorted(FILES)
        assert "120000" not in board.git("ls-tree", "-r", "main")
    assert seen == [{}] * 2
    assert [path.name for path in victim.iterdir()] == ["README.md"]
    assert (victim / "README.md").read_text() == "private words"


def test_paths_that_leave_the_tree_are_refused(board: Board) -> None:
    """A render with such a path raises a ValueError, and nothing is pushed."""
    for path in ("../x", "/x", "leaderboard/../../x", ".git/config", "leaderboard/.GIT/x", "a//b", ""):
        with pytest.raises(ValueError):
            board.push({path: b"x"})
    assert board.git("for-each-ref") == ""


def test_a_moving_tip_is_followed(board: Board) -> None:
    """If others push between reading and pushing, the files are rendered and signed again on the new tip, and all commits stay.

    A branch that moves at every attempt ends in an infrastructure error and is never overwritten.
    """
    add_file(board.remote, "README.md", b"First")
    seen: list[bytes] = []

    def racing(existing: Files, own: Files) -> Files:
        seen.append(existing["README.md"])
        if len(seen) not in (3, 4):
            add_file(board.remote, "README.md", f"Edited {len(seen)}".encode())
        return {"index.html": b"%d" % (len(seen) > 3)}

    assert board.push(racing).changed
    assert seen == [b"First", b"Edited 1", b"Edited 2"]
    assert board.commits() == ["Publish", *["By somebody else"] * 3]
    assert board.git("show", "main:README.md") == "Edited 2"
    payload, signature = without_signature(board.git("cat-file", "commit", "main").encode() + b"\n")
    assert signature == sign(payload)
    assert b"\nparent " + board.git("rev-parse", "main~1").encode() in payload
    seen += [b""] * 2
    with pytest.raises(InfrastructureError) as caught:
        board.push(racing, "No\n")
    assert caught.value.code == "leaderboard.busy"
    assert "No" not in board.commits()


def damage_objects(clone: Path) -> None:
    """Empty every object, as a power cut may."""
    for path in [*clone.glob("objects/??/*"), *clone.glob("objects/pack/*")]:
        path.chmod(0o600)
        path.write_bytes(b"")


def test_a_damaged_clone_is_replaced(board: Board) -> None:
    """The next publication succeeds after any damage to the clone."""
    damages: tuple[Callable[[Path], object], ...] = (
        damage_objects,
        lambda clone: shutil.rmtree(clone / "objects"),
        lambda clone: (clone / "HEAD").unlink(),
        lambda clone: (clone / "HEAD").write_text("nonsense"),
        lambda clone: (clone / "config").write_text("[broken"),
        lambda clone: ((clone / "shallow.lock").touch(), (clone / "refs/neuco/tip.lock").touch()),
    )
    board.push()
    for number, damage in enumerate(damages):
        add_file(board.remote, "other", b"%d" % number)
        (clone,) = board.state.glob("*.git")
        damage(clone)
        assert board.push({"index.html": b"%d" % number}, f"Repair {number}\n").changed
        assert board.commits()[0] == f"Repair {number}"
    assert board.git("fsck", "--strict") == ""


def test_the_users_git_configuration_has_no_effect(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Global configuration, hooks and git's environment variables of the process change nothing, and no identity is needed."""
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("pre-push", "reference-transaction", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\nexit 1\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        "[user]\n\tuseConfigOnly = true\n[commit]\n\tgpgSign = true\n"
        f'[core]\n\thooksPath = {hooks}\n[url "/nowhere/"]\n\tinsteadOf = {tmp_path}\n'
    )
    with monkeypatch.context() as patched:
        patched.setenv("HOME", str(home))
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_TRACE"):
            patched.setenv(name, str(tmp_path / "wrong"))
        board.push()
    assert board.commits() == ["Publish"]
    assert not (tmp_path / "hooked").exists()
    assert not (tmp_path / "wrong").exists()


def test_a_push_to_a_local_repository_is_flushed_to_the_disk(board: Board, tmp_path: Path) -> None:
    """By git's default, a power failure after the push would leave empty objects. The repository may belong to another account."""
    board.hook("pre-receive", f"git config core.fsync >'{tmp_path}/setting'\n")
    if os.geteuid() == 0:  # only root can give files away
        for path in (board.remote, *board.remote.rglob("*")):
            os.chown(path, 12345, 12345)
    board.push()
    assert (tmp_path / "setting").read_text() == "all\n"


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "HEAD.lock"])
def test_the_lock_of_a_killed_push_is_removed_once_it_is_old(board: Board, name: str) -> None:
    """A killed push leaves its lock in a local repository; the fresh lock of a running push stays."""
    board.push({"index.html": b"1"})
    lock = board.remote / name
    lock.touch()
    os.utime(lock, (time.time() + 1000, time.time() + 1000))
    with pytest.raises(InfrastructureError) as locked:
        board.push()
    assert locked.value.code == "leaderboard.locked"
    assert str(lock) in str(locked.value)
    assert lock.exists()
    os.utime(lock, (0, 0))
    assert board.push().changed
    assert not lock.exists()


def seen_in_processes(text: str) -> bool:
    """Return whether any process has a text in its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


def test_smart_http_with_a_token(
    board: Board, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pushes over authenticated HTTP succeed, with and without a user in the address, and the token appears nowhere.

    Wrong and missing tokens, a repository that is not there and a server that is not there have errors of their own.
    """
    leaks: list[bool] = []
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # which is not used on loopback
    with caplog.at_level("DEBUG"), serve(tmp_path, TOKEN) as server:
        server.on_request = lambda: leaks.append(seen_in_processes(TOKEN))
        address = f"{server.url}/remote.git"
        ours = board.publisher(address, token=TOKEN)
        assert ours.check() == ({}, None, ())
        assert board.git("for-each-ref") == ""
        assert board.push(by=ours).changed
        assert ours.check() == (FILES, "main", ("index.html", "leaderboard/dev.json"))
        again = board.publisher(address.replace("://", "://robot@"), token=TOKEN)
        assert not board.push(by=again).changed
        for token in ("wrong", None):
            board.fails(board.publisher(address, token=token), "leaderboard.auth_refused", OrganizerError)
        missing = board.publisher(f"{server.url}/none.git", token=TOKEN)
        board.fails(missing, "leaderboard.repository_not_found", OrganizerError)
    board.fails(board.publisher(tmp_path / "none.git"), "leaderboard.repository_not_found", OrganizerError)
    board.fails(ours, "leaderboard.unreachable", InfrastructureError)
    assert board.commits() == ["Publish"]
    assert set(leaks) == {False}
    assert TOKEN not in "".join(server.paths) + caplog.text + repr(ours._settings)
    for path in board.state.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


def test_no_password_of_the_account_comes_before_the_token(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another person's, who may not push; here, it is the one that may."""
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login person password {TOKEN}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with serve(tmp_path, TOKEN) as server:
        ours = board.publisher(f"{server.url}/remote.git", token="wrong")
        board.fails(ours, "leaderboard.auth_refused", OrganizerError)


@pytest.fixture
def mount() -> Iterator[Callable[..., None]]:
    """Return a function that mounts a file system, or skips the test where that is not allowed."""
    with ExitStack() as mounted:

        def make(place: Path, *options: str) -> None:
            done = subprocess.run(["mount", *options, str(place)], capture_output=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"no file system may be mounted here: {done.stderr.decode().strip()}")
            mounted.callback(subprocess.run, ["umount", "--quiet", str(place)], check=False)

        yield make


@pytest.mark.parametrize("folder", ["", "refs/heads"])
def test_a_read_only_file_system_is_named(board: Board, mount: Callable[..., None], folder: str) -> None:
    """A systemd service sees a folder like this if its unit does not list it; git's message is the same for a dozen faults.

    If only some folders belong to another account, git's message is that of a branch that has moved.
    """
    place = board.remote / folder
    mount(place, "--bind", str(place))
    mount(place, "-o", "remount,ro,bind", str(place))
    for address in (board.remote, f"file://{board.remote}"):
        board.fails(board.publisher(address), "leaderboard.read_only", OrganizerError)


def test_a_state_directory_that_cannot_be_written_is_named(board: Board) -> None:
    """Neither git is missing, nor is this a defect; the next push succeeds once it can be written."""
    board.state.write_bytes(b"")  # the clone's folder cannot be made
    board.fails(board.publisher(), "leaderboard.clone", CloneDamaged)
    board.state.unlink()
    (board.state / "gitconfig").mkdir(parents=True)  # git's configuration cannot be written
    board.fails(board.publisher(), "leaderboard.clone", CloneDamaged)
    (board.state / "gitconfig").rmdir()
    assert board.push().changed


def test_a_full_disk_of_the_repository_is_named(tmp_path: Path, mount: Callable[..., None]) -> None:
    """The push fails with an error about the disk, not the network, and succeeds once there is space."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount(disk, "-t", "tmpfs", "-o", "size=1m", "neuco-test")
    board = Board(bare(disk / "remote.git"), tmp_path / "state")
    (disk / "filler").write_bytes(bytes(shutil.disk_usage(disk).free))
    board.fails(board.publisher(), "leaderboard.disk_full", InfrastructureError)
    (disk / "filler").unlink()
    assert board.push().changed


def test_a_push_that_a_hook_declines_is_an_organizer_error(board: Board) -> None:
    """Only a real push finds it. The error says what the server says, because a hook may protect a branch, or refuse a large file."""
    for said in ("GH006: Protected branch update failed", "File board is 101.00 MB; the limit is 100.00 MB"):
        board.hook("pre-receive", f"echo 'error: {said}.\033[2J' >&2\nexit 1\n")
        error = board.fails(board.publisher(), "leaderboard.push_refused", OrganizerError, push_only=True)
        assert f"refused the push: {said}" in error.sentence
        assert error.sentence.isprintable()


def test_a_push_that_the_repository_cannot_take_is_no_fault_of_the_clone(board: Board) -> None:
    """Git's words about a quota, or a full disk of a server, are those about a damaged clone; the error says what the server says."""
    for settings, said in (
        ({"receive.hideRefs": "refs/heads/main"}, "deny updating a hidden ref"),
        ({"receive.unpackLimit": "1", "receive.maxInputSize": "10"}, "pack exceeds maximum allowed size"),
    ):
        for name, value in settings.items():
            board.git("config", name, value)
        error = board.fails(
            board.publisher(), "leaderboard.push_refused", InfrastructureError, push_only=True
        )
        assert f"refused the push: {said}" in error.sentence


def test_a_branch_with_the_full_name_of_ours_is_named(board: Board, tmp_path: Path) -> None:
    """Such as a script makes that puts refs/heads/ before a full name. The server is within reach, and its history need not go."""
    add_file(board.remote, "LICENSE", b"mine")
    board.git("update-ref", "refs/heads/refs/heads/main", "main")
    with serve(tmp_path, TOKEN) as server:
        for ours in (board.publisher(), board.publisher(f"{server.url}/remote.git", token=TOKEN)):
            error = board.fails(ours, "leaderboard.unreachable", InfrastructureError)
            assert error.sentence.endswith(": dst refspec refs/heads/main matches more than one.")
            assert "correct what git names" in error.hint


def test_the_command_that_makes_a_repository_makes_one_for_the_board(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever format a repository has by default: the one that was refused may have come from the same command."""
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    shutil.rmtree(board.remote)
    board.remote.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main"], cwd=board.remote, check=True)
    error = board.fails(board.publisher(), "leaderboard.unreachable", InfrastructureError)
    shutil.rmtree(board.remote)
    board.remote.mkdir()
    _, command, _ = error.hint.split("`")
    subprocess.run(command.split(), cwd=board.remote, check=True, capture_output=True)
    assert board.push().changed


def test_a_board_is_pushed_and_read_with_the_defaults_of_git_3(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes repositories of another format, and does not look for bare ones."""
    (tmp_path / "defaults").write_text("[safe]\n\tbareRepository = explicit\n")
    newer = tmp_path / "bin" / "git"
    newer.parent.mkdir()
    newer.touch(0o755)
    newer.write_text(
        f"#!/bin/sh\nunset GIT_CONFIG_NOSYSTEM\nexport GIT_DEFAULT_HASH=sha256 GIT_CONFIG_SYSTEM='{tmp_path}/defaults'\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    monkeypatch.setenv("PATH", f"{newer.parent}:{os.environ['PATH']}")
    done = board.push()
    with cloned(str(board.remote)) as clone:
        assert clone.tip == done.commit
        assert clone.repository.commits(clone.tip) == [done.commit]


def test_a_branch_below_ours_is_named(board: Board) -> None:
    """Git cannot make our branch next to it; nobody pushed to ours meanwhile."""
    board.push()
    board.git("branch", "--move", "main", "main/other")
    error = board.fails(board.publisher(), "leaderboard.push_refused", OrganizerError, push_only=True)
    assert "'refs/heads/main/other' exists" in error.sentence


def test_what_a_push_did_is_no_reason(board: Board) -> None:
    """Whoever receives it is killed after it was accepted; the message repeats neither the address nor the commit."""
    board.hook("post-receive", "kill -9 $PPID\n")
    error = board.fails(board.publisher(), "leaderboard.unreachable", InfrastructureError, push_only=True)
    assert "refs/heads/main" not in error.sentence
    assert error.sentence.count(str(board.remote)) == 1


@pytest.mark.parametrize(
    ("status", "code"), [(403, "leaderboard.auth_refused"), (429, "leaderboard.unreachable")]
)
def test_a_server_that_refuses_is_quoted(board: Board, tmp_path: Path, status: int, code: str) -> None:
    """An archived repository is no wrong token, and a server that says that it is busy can be reached."""
    with serve(tmp_path, TOKEN) as server:
        said = Response("This repository was archived.", status, mimetype="text/plain")
        server.on_request = lambda: abort(said)
        ours = board.publisher(f"{server.url}/remote.git", token=TOKEN)
        assert "This repository was archived." in board.fails(ours, code, NeucoError).sentence


def test_a_damaged_repository_is_no_fault_of_the_clone(board: Board) -> None:
    """Git's words about it are those about a damaged clone; the error says what the server says."""
    add_file(board.remote, "LICENSE", b"mine")
    lost = board.git("rev-parse", "main:LICENSE")
    (board.remote / "objects" / lost[:2] / lost[2:]).unlink()
    error = board.fails(board.publisher(), "leaderboard.unreachable", InfrastructureError)
    assert f"unable to read {lost}" in error.sentence
    assert "make the repository again" in error.hint


def test_a_silent_server_times_out(board: Board) -> None:
    """A server that accepts connections and never answers ends in a timeout and leaves no process behind."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        slow = board.publisher(address, timeout_s=0.4)
        board.fails(slow, "leaderboard.timeout", InfrastructureError, push_only=True)
        until(lambda: not seen_in_processes(address))  # killed processes take a moment to end


def stopped_push(board: Board, tmp_path: Path, *, trap: str = "") -> list[type[BaseException]]:
    """Stop a push while git has locked the branch and its hook, which a line of shell begins, hangs; return how the push ended."""
    locked = tmp_path / "locked"
    hook = board.hook(
        "reference-transaction", f"{trap}[ $1 = prepared ] || exit 0\ntouch '{locked}'\nsleep 600\n"
    )
    ours, errors = board.publisher(), list[type[BaseException]]()

    def run() -> None:
        try:
            board.push(by=ours)
        except BaseException as error:
            errors.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: locked.exists() or not thread.is_alive())
    ours.stop()
    thread.join(LIMIT_S)
    hook.unlink()
    return errors


def test_a_stopped_push_leaves_no_lock(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If git gets the time to end by itself, the next push succeeds at once."""
    monkeypatch.setattr(process, "ENDS_WITHIN_S", LIMIT_S)
    assert stopped_push(board, tmp_path) == [Cancelled]
    assert not list(board.remote.rglob("*.lock"))
    assert board.push().changed


def test_a_hook_cannot_prevent_a_stop(board: Board, tmp_path: Path) -> None:
    """Not even one that ignores SIGTERM."""
    assert stopped_push(board, tmp_path, trap="trap '' TERM\n") == [Cancelled]


def test_addresses_that_are_refused(board: Board) -> None:
    """Open HTTP, passwords in addresses, helpers, other protocols and options are refused before git sees them."""
    for url in (
        "http://example.org/x.git",
        "https://user:password@example.org/x.git",
        "ext::sh -c touch% /tmp/x",
        "fd::3",
        "git://example.org/x.git",
        "ftp://example.org/x.git",
        "--upload-pack=touch x",
        "https://example.org/\nx.git",
    ):
        with pytest.raises(OrganizerError) as caught:
            board.publisher(url)
        assert caught.value.code == "leaderboard.bad_repository"
        assert "password@" not in caught.value.message


def test_ssh_with_pinned_hosts(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the given key is offered, only pinned hosts are trusted, and nothing prompts; a wrong host key is an organizer error."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.touch(0o755)
    ssh.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/arguments\nfor last; do :; done\nexec sh -c "$last"\n'
    )
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    key, pinned = tmp_path / "a key", tmp_path / "known hosts"
    address = f"ssh://git@board.example{board.remote}"
    ours = board.publisher(address, ssh_key=key, known_hosts=pinned)
    assert board.push(by=ours).changed
    options = {
        "-oBatchMode=yes",
        "-oStrictHostKeyChecking=yes",
        "-oIdentitiesOnly=yes",
        str(key),
        "git@board.example",
    }
    assert (tmp_path / "arguments").read_text().splitlines().count(f'-oUserKnownHostsFile="{pinned}"') > 1
    assert options <= set((tmp_path / "arguments").read_text().splitlines())
    denied = "git@board.example: Permission denied (publickey)."
    for message, code, kind, told in (
        ("Host key verification failed.", "leaderboard.host_key", OrganizerError, ""),
        (denied, "leaderboard.auth_refused", OrganizerError, ""),
        (
            'Load key "k": invalid format\n' + denied,
            "leaderboard.auth_refused",
            OrganizerError,
            "invalid format",
        ),
        (
            "ERROR: Permission to a/b denied to deploy key",
            "leaderboard.auth_refused",
            OrganizerError,
            "deploy key",
        ),
        ("ERROR: This key is marked as read only.", "leaderboard.auth_refused", OrganizerError, "read only"),
        (
            "error: RPC failed; HTTP 413\nfatal: hung up",
            "leaderboard.unreachable",
            InfrastructureError,
            "HTTP 413",
        ),
        (
            "fatal: early EOF\nfatal: fetch-pack: invalid index-pack output",
            "leaderboard.unreachable",
            InfrastructureError,
            "early EOF",
        ),
        ("ssh: Could not resolve hostname x", "leaderboard.unreachable", InfrastructureError, "hostname x"),
    ):
        ssh.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit 255\n")
        assert told in board.fails(ours, code, kind).sentence


@pytest.mark.parametrize(("branch", "expected"), [("main", [1, 2, 1, 2]), ("files", [1, 2, 3, 4])])
def test_the_clone_is_packed(
    board: Board, monkeypatch: pytest.MonkeyPatch, branch: str, expected: list[int]
) -> None:
    """Each push adds a pack; the clone makes one of them once there are many, and still works.

    Published files, which are large and have nothing in common, stay as they are; their clone is removed after the last.
    """
    monkeypatch.setattr("leaderboard.git.clone.PACKS", 2)
    packs = []
    for message in ("One\n", "Two\n", "Three\n", "Four\n"):
        board.push({"index.html": message.encode()}, message, by=board.publisher(branch=branch))
        packs.append(len(list(board.state.glob("*.git/objects/pack/*.pack"))))
    assert packs == expected
    assert board.commits(branch) == ["Four", "Three", "Two", "One"]


def test_what_others_changed_is_told_from_what_we_published(board: Board) -> None:
    """It is compared with our newest commit, also if that was not recorded or is no longer in the branch; then it is ours again.

    The newest commits that changed our files are named; there are none if the tip is ours, or if our last commit is unknown.
    """
    ours, seen = board.publisher(), list[str]()

    def watching(existing: Files, own: Files) -> Files:
        seen[:] = [own["index.html"].decode()]
        return {"index.html": b"page", "README.md": b"# Board\n", "leaderboard/a.json": b"{}"}

    def publish(last: str | None) -> Published:
        return board.push(watching, by=ours, last=last, folders=["leaderboard"])

    first = board.push({"index.html": b"old"}, by=ours).commit
    board.push({"index.html": b"page"}, by=ours, last=first)
    ours.discard()
    done = publish(first)  # as after a crash between push and record
    assert (seen, done.others) == (["page"], "")
    for path in ("index.html", "leaderboard", "LICENSE", "README.md"):
        add_file(board.remote, path, b"mine")
    named = [f"commit {board.git('rev-parse', f'main~{back}')[:10]} by other@example.org" for back in (2, 3)]
    done = publish(done.commit)
    assert (seen, done.others, done.rewritten) == (["page"], "; ".join(named), False)
    assert board.paths() == ["LICENSE", "README.md", "index.html", "leaderboard/a.json"]
    add_file(board.remote, "LICENSE", b"mine, too")
    assert publish(done.commit) == replace(
        done, commit=board.git("rev-parse", "main"), changed=False, others="", own=done.commit
    )
    add_file(board.remote, "index.html", b"page ")
    add_file(board.remote, "index.html", b"page")
    assert publish(None).others == ""
    assert not publish(done.commit).changed
    board.git("update-ref", "refs/heads/main", first)
    done = publish(done.commit)
    assert (seen, done.others, done.rewritten) == (["page"], "", True)


@pytest.mark.parametrize("state", ["kept", "lost"])
def test_a_forced_push_is_distinguished_from_many_commits(
    board: Board, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """This works however deep our commit is, with and without an existing clone."""
    monkeypatch.setattr("leaderboard.git.clone.NEAR", 3)
    monkeypatch.setattr("leaderboard.git.clone.DEEP", 4)

    def publish(last: str) -> Published:
        if state == "lost":
            shutil.rmtree(board.state)
        return board.push({"index.html": b"2"}, "Two\n", last=last)

    def others(*numbers: int) -> None:
        for number in numbers:  # with the same content within a second, these would be the same commits
            add_file(board.remote, "LICENSE", b"%d" % number)

    last = board.push({"index.html": b"1"}).commit
    others(*range(5))
    done = publish(last)
    assert not done.rewritten
    board.git("update-ref", "refs/heads/main", last)
    again = publish(done.commit)
    assert again.rewritten
    board.git("update-ref", "refs/heads/main", "main~1")
    others(*range(5, 10))
    assert publish(again.commit).rewritten
    board.git("update-ref", "-d", "refs/heads/main")
    assert publish(again.commit).rewritten


def test_another_branch_has_its_own_history(board: Board) -> None:
    """Another branch shares no commit with the board's, and a second push adds to the first, also from a new clone."""
    ours = board.publisher()
    board.push(by=ours, message="Board\n")
    other = ours.for_branch("files")
    for name in ("one", "two"):
        board.push({name: b"1"}, f"{name}\n", by=other)
        other.discard()
    assert (board.paths("files"), board.commits("files")) == (["one", "two"], ["two", "one"])
    assert board.commits() == ["Board"]
    ours.stop()
    with pytest.raises(Cancelled):
        board.push({"three": b"3"}, by=other)
