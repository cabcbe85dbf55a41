"""The publisher pushes to any git repository, without damage, without force and without showing a secret."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leaderboard.git import Published, Publisher, PublisherSettings, with_signature, without_signature
from leaderboard.rendering.files import render
from leaderboard.snapshot import Site
from scoring.errors import Cancelled, InfrastructureError, NeucoError, OrganizerError
from tests.leaderboard.harness.git_server import add_file, bare, blob, commit_tree, git, serve
from tests.leaderboard.harness.site_fixtures import moving_site, simple_site

TOKEN = "tok-5f3a-secret"
NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)

Render = Callable[[Mapping[str, bytes], Mapping[str, bytes]], Mapping[str, bytes]]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Return an empty bare repository."""
    return bare(tmp_path / "remote.git")


def of(site: Site) -> Render:
    """Return a render function like the worker's."""
    return lambda existing, own: render(
        site, readme=existing.get("README.md"), history=own.get("leaderboard/history.jsonl")
    )


def publisher(repository: object, tmp_path: Path, **facts: object) -> Publisher:
    """Return a publisher with its state under the test's folder."""
    settings = PublisherSettings(repository=str(repository), state_dir=tmp_path / "state", **facts)  # type: ignore[arg-type]
    return Publisher(settings, clock=lambda: NOW)


def paths(repository: Path, branch: str = "main") -> list[str]:
    """Return the files of a branch."""
    return git("ls-tree", "-r", "--name-only", branch, at=repository).splitlines()


def commits(repository: Path, branch: str = "main") -> list[str]:
    """Return the subjects of a branch, newest first."""
    return git("log", "--format=%s", branch, at=repository).splitlines()


def show(repository: Path, path: str, branch: str = "main") -> str:
    """Return a file's content."""
    return git("show", f"{branch}:{path}", at=repository)


def add_hook(repository: Path, name: str, script: str) -> Path:
    """Add a hook to a repository."""
    hook = repository / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    return hook


@contextmanager
def mounted(place: Path, *steps: tuple[str, ...]) -> Iterator[None]:
    """Mount a file system in these steps, or skip the test where that is not allowed."""
    for step in steps:
        made = subprocess.run(["mount", *step, str(place)], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            subprocess.run(["umount", "--quiet", str(place)], check=False)
            pytest.skip(f"no file system may be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_first_publication_makes_the_branch(tmp_path: Path, remote: Path) -> None:
    """An empty repository gets the branch, every file, and a commit by the worker; nothing stays checked out."""
    site = simple_site()
    done = publisher(remote, tmp_path, branch="board/v1").publish(of(site), "Begin\n")
    assert done.changed
    assert git("rev-parse", "board/v1", at=remote) == done.commit
    assert paths(remote, "board/v1") == sorted(render(site, readme=None))
    assert (
        git("log", "--format=%an|%cn|%cI|%B", "board/v1", at=remote)
        == "neuco-worker|neuco-worker|2026-03-05T12:00:00+00:00|Begin"
    )
    assert not [path for path in (tmp_path / "state").rglob("*") if path.name in ("README.md", "index.html")]
    git("fsck", "--strict", at=remote)


def test_without_a_change_there_is_no_commit(tmp_path: Path, remote: Path) -> None:
    """The same content again makes no commit, from the same clone and from a new one."""
    first = publisher(remote, tmp_path).publish(of(simple_site()), "One\n")
    for _ in range(2):
        assert publisher(remote, tmp_path).publish(of(simple_site()), "Two\n") == replace(
            first, changed=False
        )
        shutil.rmtree(tmp_path / "state")
    assert commits(remote) == ["One"]


def test_files_of_others_stay(tmp_path: Path, remote: Path) -> None:
    """Files, folders, submodules, executables and names that are no UTF-8 stay; the README keeps its own text."""
    script = blob(remote, b"#!/bin/sh\n")
    sub = git("mktree", at=remote, stdin=f"100755 blob {script}\trun.sh\n".encode())
    folder = git("mktree", at=remote, stdin=f"100644 blob {script}\tnotes.txt\n".encode())
    commit = commit_tree(remote, "")
    commit_tree(
        remote,
        f"100644 blob {blob(remote, b'# Mine' + bytes([10]))}\tREADME.md\n040000 tree {sub}\ttools\n040000 tree {folder}\tleaderboard\n"
        f"160000 commit {commit}\tmodule\n120000 blob {script}\tlink\n",
    )
    raw = git(
        "mktree",
        "-z",
        at=remote,
        stdin=git("ls-tree", "-z", "main", at=remote).encode()
        + f"100644 blob {script}\t".encode()
        + b"caf\xe9\0",
    )
    git(
        "update-ref",
        "refs/heads/main",
        git("commit-tree", raw, "-p", "main", "-m", "odd", at=remote),
        at=remote,
    )
    publisher(remote, tmp_path).publish(of(simple_site()), "Publish\n")
    kept = git("ls-tree", "-r", "main", at=remote)
    for line in (
        "100755 blob",
        "160000 commit",
        "120000 blob",
        "leaderboard/notes.txt",
        '"caf\\351"',
        "leaderboard/dev.json",
    ):
        assert line in kept
    assert show(remote, "README.md").startswith("# Mine\n\n<!-- neuco-worker:begin -->")
    git("fsck", "--strict", at=remote)


def test_planted_links_are_replaced_and_never_followed(tmp_path: Path, remote: Path) -> None:
    """Symbolic links at our paths become files and folders; their targets are neither read nor written."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "README.md").write_text("private words")
    link, readme = blob(remote, str(victim).encode()), blob(remote, str(victim / "README.md").encode())
    commit_tree(
        remote,
        f"120000 blob {link}\tleaderboard\n120000 blob {readme}\tREADME.md\n120000 blob {link}\tindex.html\n",
    )
    seen: list[Mapping[str, bytes]] = []
    site = simple_site()

    def watching(existing: Mapping[str, bytes], own: Mapping[str, bytes]) -> Mapping[str, bytes]:
        seen.append(existing)
        return of(site)(existing, own)

    publisher(remote, tmp_path).publish(watching, "Publish\n")
    assert seen == [{}]
    assert [path.name for path in victim.iterdir()] == ["README.md"]
    assert (victim / "README.md").read_text() == "private words"
    assert "120000" not in git("ls-tree", "-r", "main", at=remote)
    assert paths(remote) == sorted(render(site, readme=None))


@pytest.mark.parametrize(
    "path", ["../x", "/x", "leaderboard/../../x", ".git/config", "leaderboard/.GIT/x", "a//b", ""]
)
def test_paths_that_leave_the_tree_are_refused(tmp_path: Path, path: str, remote: Path) -> None:
    """A render with such a path raises a ValueError, and nothing is pushed."""
    with pytest.raises(ValueError):
        publisher(remote, tmp_path).publish(lambda *_: {path: b"x"}, "No\n")
    assert git("for-each-ref", at=remote) == ""


def test_a_moving_tip_is_followed(tmp_path: Path, remote: Path) -> None:
    """If others push between reading and pushing, the files are rendered again on the new tip, and all commits stay.

    A branch that moves at every attempt ends in an infrastructure error and is never overwritten.
    """
    add_file(remote, "README.md", b"# First\n")
    titles: list[bytes] = []

    def racing(existing: Mapping[str, bytes], own: Mapping[str, bytes]) -> Mapping[str, bytes]:
        titles.append(existing["README.md"].splitlines()[0])
        if len(titles) not in (3, 4):
            add_file(remote, "README.md", f"# Edited {len(titles)}\n".encode())
        return of(simple_site(["Beta"] if len(titles) > 3 else ["Alpha"]))(existing, own)

    assert publisher(remote, tmp_path).publish(racing, "Publish\n").changed
    assert titles == [b"# First", b"# Edited 1", b"# Edited 2"]
    assert commits(remote) == ["Publish", *["By somebody else"] * 3]
    assert show(remote, "README.md").startswith("# Edited 2\n")
    titles += [b""] * 2
    with pytest.raises(InfrastructureError) as caught:
        publisher(remote, tmp_path).publish(racing, "No\n")
    assert caught.value.code == "leaderboard.busy"
    assert "No" not in commits(remote)


def damage_objects(clone: Path) -> None:
    """Empty every object, as a power cut may."""
    for path in [*clone.glob("objects/??/*"), *clone.glob("objects/pack/*")]:
        path.chmod(0o600)
        path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [
        damage_objects,
        lambda clone: shutil.rmtree(clone / "objects"),
        lambda clone: (clone / "HEAD").unlink(),
        lambda clone: (clone / "HEAD").write_text("nonsense"),
        lambda clone: (clone / "config").write_text("[broken"),
        lambda clone: (shutil.rmtree(clone), clone.write_text("a file")),
        lambda clone: ((clone / "shallow.lock").touch(), (clone / "refs/neuco/tip.lock").touch()),
    ],
    ids=["objects", "no-objects", "no-head", "bad-head", "bad-config", "file", "locks"],
)
def test_a_damaged_clone_is_replaced(tmp_path: Path, damage: Callable[[Path], object], remote: Path) -> None:
    """The next publication succeeds after any damage to the clone."""
    add_file(remote, "x", b"0")
    publisher(remote, tmp_path).publish(of(simple_site()), "One\n")
    add_file(remote, "y", b"1")
    (clone,) = (tmp_path / "state").glob("*.git")
    damage(clone)
    assert publisher(remote, tmp_path).publish(of(moving_site()), "Two\n").changed
    assert commits(remote)[0] == "Two"
    git("fsck", "--strict", at=remote)


def test_the_users_git_configuration_has_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path
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
    monkeypatch.setenv("HOME", str(home))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_TRACE"):
        monkeypatch.setenv(name, str(tmp_path / "wrong"))
    publisher(remote, tmp_path).publish(of(simple_site()), "Publish\n")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_TRACE"):
        monkeypatch.delenv(name)
    assert commits(remote) == ["Publish"]
    assert not (tmp_path / "hooked").exists()
    assert not (tmp_path / "wrong").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_local_repository_of_another_account(tmp_path: Path, remote: Path) -> None:
    """Pushes to a repository that belongs to another account, for example in a mounted folder, succeed."""
    for path in (remote, *remote.rglob("*")):
        os.chown(path, 12345, 12345)
    assert publisher(remote, tmp_path).publish(of(simple_site()), "Publish\n").changed
    assert not publisher(remote, tmp_path).publish(of(simple_site()), "Publish\n").changed


def test_a_push_to_a_local_repository_is_flushed_to_the_disk(tmp_path: Path, remote: Path) -> None:
    """By git's default, a power failure after the push would leave empty objects."""
    add_hook(remote, "pre-receive", f"git config core.fsync >'{tmp_path}/setting'\n")
    publisher(remote, tmp_path).publish(of(simple_site()), "Publish\n")
    assert (tmp_path / "setting").read_text() == "all\n"


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "HEAD.lock"])
def test_the_lock_of_a_killed_push_is_removed_once_it_is_old(tmp_path: Path, name: str, remote: Path) -> None:
    """A killed push leaves its lock in a local repository; the fresh lock of a running push stays."""
    publisher(remote, tmp_path).publish(of(simple_site(["Alpha"])), "Publish\n")
    lock = remote / name
    lock.touch()
    os.utime(lock, (time.time() + 1000, time.time() + 1000))
    with pytest.raises(InfrastructureError) as locked:
        publisher(remote, tmp_path).publish(of(simple_site(["Beta"])), "Publish\n")
    assert locked.value.code == "leaderboard.locked"
    assert str(lock) in str(locked.value)
    assert lock.exists()
    os.utime(lock, (0, 0))
    assert publisher(remote, tmp_path).publish(of(simple_site(["Beta"])), "Publish\n").changed
    assert not lock.exists()


def seen_in_processes(secret: str) -> bool:
    """Return whether any process has the secret in its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if secret.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


def test_smart_http_with_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pushes over authenticated HTTP succeed, with and without a user in the address, and the token appears nowhere."""
    remote = bare(tmp_path / "root" / "team" / "board.git")
    add_file(remote, "README.md", b"# Mine\n")
    leaks: list[bool] = []
    with caplog.at_level("DEBUG"), serve(tmp_path / "root", TOKEN) as server:
        server.on_request = lambda: leaks.append(seen_in_processes(TOKEN))
        ours = publisher(f"{server.url}/team/board.git", tmp_path, token=TOKEN)
        ours.check()
        assert commits(remote) == ["By somebody else"]
        assert ours.publish(of(simple_site()), "Publish\n").changed
        again = publisher(server.url.replace("://", "://robot@") + "/team/board.git", tmp_path, token=TOKEN)
        assert not again.publish(of(simple_site()), "Again\n").changed
    assert commits(remote) == ["Publish", "By somebody else"]
    assert leaks
    assert not any(leaks)
    assert TOKEN not in "".join(server.paths) + caplog.text + repr(ours._settings)
    for path in (tmp_path / "state").rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


def fails(ours: Publisher, code: str, kind: type[NeucoError]) -> None:
    """Check that a publication and a check both fail with one of our errors, which shows no secret."""
    for attempt in (lambda: ours.publish(of(simple_site()), "No\n"), ours.check):
        with pytest.raises(kind) as caught:
            attempt()
        assert caught.value.code == code
        assert caught.value.cure
        assert TOKEN not in caught.value.message


def test_refused_missing_and_unreachable_repositories_have_their_own_errors(tmp_path: Path) -> None:
    """This covers a wrong and a missing token, a repository that is not there, and a server that is not there."""
    bare(tmp_path / "root" / "board.git")
    with serve(tmp_path / "root", TOKEN) as server:
        for path, token, code in (
            ("board.git", "wrong", "leaderboard.auth_refused"),
            ("board.git", None, "leaderboard.auth_refused"),
            ("none.git", TOKEN, "leaderboard.repository_not_found"),
        ):
            fails(publisher(f"{server.url}/{path}", tmp_path, token=token), code, OrganizerError)
    fails(publisher(tmp_path / "none.git", tmp_path), "leaderboard.repository_not_found", OrganizerError)
    gone = publisher(f"{server.url}/board.git", tmp_path, token=TOKEN)
    fails(gone, "leaderboard.unreachable", InfrastructureError)


def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    """A systemd service sees a folder like this if its unit does not list it; git's message is the same for a dozen faults."""
    place = bare(tmp_path / "remote.git")
    with mounted(place, ("--bind", str(place)), ("-o", "remount,ro,bind", str(place))):
        for address in (place, f"file://{place}"):
            fails(publisher(address, tmp_path), "leaderboard.read_only", OrganizerError)


def test_a_full_disk_of_the_repository_is_named(tmp_path: Path) -> None:
    """The push fails with an error about the disk, not the network, and succeeds once there is space."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, ("-t", "tmpfs", "-o", "size=1m", "neuco-test")):
        ours = publisher(bare(disk / "remote.git"), tmp_path)
        (disk / "filler").write_bytes(bytes(shutil.disk_usage(disk).free))
        fails(ours, "leaderboard.disk_full", InfrastructureError)
        (disk / "filler").unlink()
        assert ours.publish(of(simple_site()), "Yes\n").changed


def test_a_push_that_a_hook_declines_is_an_organizer_error(tmp_path: Path, remote: Path) -> None:
    """A protected branch is an organizer error."""
    add_hook(remote, "pre-receive", "echo GH006: Protected branch update failed >&2\nexit 1\n")
    with pytest.raises(OrganizerError) as caught:
        publisher(remote, tmp_path).publish(of(simple_site()), "No\n")
    assert caught.value.code == "leaderboard.push_refused"


@pytest.fixture
def silent() -> str:
    """Return the address of a server that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(5)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/x.git"  # type: ignore[misc]


def until_gone(url: str) -> None:
    """Wait until no process talks to an address, because killed processes take a moment to end."""
    ends = time.monotonic() + 60
    while seen_in_processes(url):
        assert time.monotonic() < ends
        threading.Event().wait(0.01)


def test_a_silent_server_times_out(tmp_path: Path, silent: str) -> None:
    """A server that never answers ends in a timeout and leaves no process behind."""
    with pytest.raises(InfrastructureError) as caught:
        publisher(silent, tmp_path, timeout_s=0.4).publish(of(simple_site()), "No\n")
    assert caught.value.code == "leaderboard.timeout"
    until_gone(silent)


def stop_once(reached: Callable[[], bool], ours: Publisher) -> None:
    """Publish in another thread, and stop that as soon as a state is reached."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            ours.publish(of(simple_site()), "No\n")
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not reached() and thread.is_alive():
        threading.Event().wait(0.01)
    ours.stop()
    thread.join(200)
    assert [type(error) for error in ended] == [Cancelled]


@pytest.mark.parametrize("trap", ["", "trap '' TERM\n"], ids=["ends", "ignores-sigterm"])
def test_a_stopped_push_leaves_no_lock(tmp_path: Path, remote: Path, trap: str) -> None:
    """The next push succeeds at once, though the stop comes while git has locked the branch; a hook cannot prevent the stop."""
    locked = tmp_path / "locked"
    script = f"{trap}[ $1 = prepared ] || exit 0\ntouch '{locked}'\nsleep 600\n"
    hook = add_hook(remote, "reference-transaction", script)
    stop_once(locked.exists, publisher(remote, tmp_path))
    assert not list(remote.rglob("*.lock"))
    hook.unlink()
    assert publisher(remote, tmp_path).publish(of(simple_site()), "Publish\n").changed


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/x.git",
        "https://user:password@example.org/x.git",
        "ext::sh -c touch% /tmp/x",
        "fd::3",
        "git://example.org/x.git",
        "ftp://example.org/x.git",
        "--upload-pack=touch x",
        "",
        "https://example.org/\nx.git",
    ],
)
def test_addresses_that_are_refused(tmp_path: Path, url: str) -> None:
    """Open HTTP, passwords in addresses, helpers, other protocols and options are refused before git sees them."""
    with pytest.raises(OrganizerError) as caught:
        publisher(url, tmp_path)
    assert caught.value.code == "leaderboard.bad_repository"
    assert "password@" not in caught.value.message


def test_ssh_with_pinned_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path) -> None:
    """Only the given key is offered, only pinned hosts are trusted, and nothing prompts; a wrong host key is an organizer error."""
    tools = tmp_path / "bin"
    tools.mkdir()
    ssh = tools / "ssh"
    ssh.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/said\nfor last; do :; done\nexec sh -c "$last"\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    key, known = tmp_path / "a key", tmp_path / "known hosts"
    ours = publisher(f"ssh://git@board.example{remote}", tmp_path, ssh_key=key, known_hosts=known)
    assert ours.publish(of(simple_site()), "Publish\n").changed
    said = (tmp_path / "said").read_text().splitlines()
    for option in (
        "-oBatchMode=yes",
        "-oStrictHostKeyChecking=yes",
        "-oIdentitiesOnly=yes",
        f"-oUserKnownHostsFile={known}",
        str(key),
        "git@board.example",
    ):
        assert option in said
    ssh.write_text("#!/bin/sh\necho Host key verification failed. >&2\nexit 255\n")
    fails(ours, "leaderboard.host_key", OrganizerError)
    ssh.write_text("#!/bin/sh\necho 'git@board.example: Permission denied (publickey).' >&2\nexit 255\n")
    fails(ours, "leaderboard.auth_refused", OrganizerError)
    ssh.write_text("#!/bin/sh\necho 'ssh: Could not resolve hostname board.example' >&2\nexit 255\n")
    fails(ours, "leaderboard.unreachable", InfrastructureError)


def test_check_sends_nothing(tmp_path: Path, remote: Path) -> None:
    """A check of an empty and of a filled repository leaves both as they were."""
    publisher(remote, tmp_path).check()
    assert git("for-each-ref", at=remote) == ""
    tip = add_file(remote, "x", b"0")
    publisher(remote, tmp_path).check()
    assert git("rev-parse", "main", at=remote) == tip


def test_the_clone_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path) -> None:
    """The clone packs its objects once there are many, and still works."""
    monkeypatch.setattr("leaderboard.git.clone.LOOSE_OBJECTS", -300)
    for updates in (1, 2, 3):
        publisher(remote, tmp_path).publish(of(moving_site(updates)), "Update\n")
    (clone,) = (tmp_path / "state").glob("*.git")
    assert len(commits(remote)) == 3
    assert len(list(clone.glob("objects/??/*"))) < 40


def test_commits_of_others_since_ours_are_reported(tmp_path: Path, remote: Path) -> None:
    """The newest that changed our files are named; there are none if the tip is ours, or if our last commit is unknown."""
    ours = publisher(remote, tmp_path)
    last = ours.publish(of(simple_site()), "One\n").commit
    assert ours.publish(of(simple_site()), "Two\n", last=last).others == ""
    for name in ("index.html", "LICENSE", "README.md"):
        add_file(remote, name, b"x")
    commit = git("rev-parse", "main~2", at=remote)
    done = ours.publish(of(simple_site()), "Two\n", last=last)
    assert (done.changed, done.rewritten) == (True, False)
    assert done.others == f"commit {commit[:10]} by other@example.org"
    again = publisher(remote, tmp_path).publish(of(simple_site()), "Three\n", last=done.commit)
    assert (again.changed, again.others, again.rewritten) == (False, "", False)
    add_file(remote, "LICENSE", b"y")
    assert publisher(remote, tmp_path).publish(of(simple_site()), "Three\n").others == ""


@pytest.mark.parametrize("state", ["kept", "lost"])
def test_a_forced_push_is_distinguished_from_many_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, remote: Path
) -> None:
    """This works even if our commit is deeper than the first fetch, with and without an existing clone."""
    monkeypatch.setattr("leaderboard.git.clone.NEAR", 3)
    last = publisher(remote, tmp_path).publish(of(simple_site()), "One\n").commit
    for number in range(5):
        add_file(remote, "LICENSE", str(number).encode())
    if state == "lost":
        shutil.rmtree(tmp_path / "state")
    done = publisher(remote, tmp_path).publish(of(moving_site()), "Two\n", last=last)
    assert not done.rewritten
    git("update-ref", "refs/heads/main", f"{last}", at=remote)
    if state == "lost":
        shutil.rmtree(tmp_path / "state")
    again = publisher(remote, tmp_path).publish(of(moving_site()), "Two\n", last=done.commit)
    assert again.rewritten
    git("update-ref", "refs/heads/main", "main~1", at=remote)
    # With the same content within a second, these would be the same commits as before.
    for number in range(5, 10):
        add_file(remote, "LICENSE", str(number).encode())
    assert publisher(remote, tmp_path).publish(of(moving_site()), "Two\n", last=again.commit).rewritten
    git("update-ref", "-d", "refs/heads/main", at=remote)
    assert publisher(remote, tmp_path).publish(of(moving_site()), "Two\n", last=again.commit).rewritten


class Signer:
    """Signs commits with a word instead of a key."""

    def sign(self, payload: bytes) -> bytes:
        """Return the signature."""
        return b"signed %b\nby us\n" % hashlib.sha256(payload).hexdigest().encode()

    def has_signed(self, payload: bytes, signature: bytes) -> bool:
        """Return whether it is ours."""
        return signature == self.sign(payload)


def test_what_others_changed_is_told_from_what_we_published(tmp_path: Path, remote: Path) -> None:
    """It is compared with our newest commit, also if that was not recorded or is no longer in the branch; then it is ours again."""
    ours, seen = publisher(remote, tmp_path), list[str]()

    def watching(existing: Mapping[str, bytes], own: Mapping[str, bytes]) -> Mapping[str, bytes]:
        seen[:] = [own["index.html"].decode()]
        return {"index.html": b"page", "leaderboard/a.json": b"{}"}

    def publish(last: str) -> Published:
        return ours.publish(watching, "Again\n", last=last, folders=["leaderboard"], signer=Signer())

    first = ours.publish(lambda *_: {"index.html": b"old"}, "One\n", signer=Signer()).commit
    ours.publish(lambda *_: {"index.html": b"page"}, "Two\n", last=first, signer=Signer())
    shutil.rmtree(tmp_path / "state")
    done = publish(first)  # as after a crash between push and record
    assert (seen, done.others) == (["page"], "")
    for path in ("index.html", "leaderboard", "LICENSE"):
        add_file(remote, path, b"mine")
    done = publish(done.commit)
    assert (seen, done.others.count("commit ")) == (["page"], 2)
    assert paths(remote) == ["LICENSE", "index.html", "leaderboard/a.json"]
    add_file(remote, "index.html", b"page ")
    add_file(remote, "index.html", b"page")
    assert not publish(done.commit).changed
    git("update-ref", "refs/heads/main", first, at=remote)
    done = publish(done.commit)
    assert (seen, done.others, done.rewritten) == (["page"], "", True)


def test_a_commit_is_signed_again_on_another_parent(tmp_path: Path, remote: Path) -> None:
    """What was signed is git's commit object without the signature, and nothing of another commit is reused."""

    def racing(existing: Mapping[str, bytes], own: Mapping[str, bytes]) -> Mapping[str, bytes]:
        if "LICENSE" not in paths(remote):
            add_file(remote, "LICENSE", b"x")
        return {"index.html": b"page"}

    add_file(remote, "README.md", b"# Ours\n")
    ours, signer = publisher(remote, tmp_path), Signer()
    commit = ours.publish(racing, "Publish\n", signer=signer).commit
    raw = subprocess.run(
        ["git", "cat-file", "commit", commit], cwd=remote, check=True, capture_output=True
    ).stdout
    payload, signature = without_signature(raw)
    assert signer.has_signed(payload, signature)
    assert with_signature(payload, signature) == raw
    assert without_signature(payload) == (payload, b"")
    assert b"\nparent " + git("rev-parse", "main~1", at=remote).encode() in payload
    assert git("log", "--format=%s", at=remote).splitlines()[0] == "Publish"
    assert git("fsck", "--strict", at=remote) == ""
    assert not ours.publish(racing, "Publish\n", last=commit, signer=signer).changed


def test_another_branch_has_its_own_history(tmp_path: Path, remote: Path) -> None:
    """Another branch shares no commit with the board's, and a second push adds to the first, also from a new clone."""
    board = publisher(remote, tmp_path)
    board.publish(of(simple_site()), "Board\n")
    other = board.for_branch("files")
    other.publish(lambda *_: {"one": b"1"}, "One\n")
    other.discard()
    other.publish(lambda *_: {"two": b"2"}, "Two\n")
    assert (paths(remote, "files"), commits(remote, "files")) == (["one", "two"], ["Two", "One"])
    assert commits(remote) == ["Board"]
    board.stop()
    with pytest.raises(Cancelled):
        other.publish(lambda *_: {"three": b"3"}, "Three\n")
