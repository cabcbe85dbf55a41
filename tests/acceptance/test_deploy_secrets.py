"""Secrets reach the service without being exposed, and a backup archive cannot write outside its folder."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from scoring.errors import OrganizerError
from worker.challenge.configuration import load
from worker.challenge.secrets import SECRET, SIGNING_KEY, read_bytes
from worker.organizer.archiving import DATABASE, read_backup
from worker.organizer.service import install, main
from worker.state import LeaderLock, Store

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config" / "challenge.yaml"
UNITS = ROOT / "deploy" / "systemd"


@pytest.mark.parametrize("name", ["../escaped", "/tmp/neuco-worker-escaped", "link"])
def test_a_malicious_archive_writes_only_into_its_folder(name: str, tmp_path: Path) -> None:
    """Neither a path outside the folder nor a symbolic link leads out of it."""
    path, place = tmp_path / "backup.zip", tmp_path / "restored"
    member = zipfile.ZipInfo(name)
    member.external_attr = (stat.S_IFLNK if name == "link" else stat.S_IFREG | 0o600) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(DATABASE, "x")
        archive.writestr("challenge.secret", "x")
        archive.writestr("signing.key", "x")
        archive.writestr(member, "/etc")
    read_backup(path, place)
    assert {entry.name for entry in tmp_path.iterdir()} == {"backup.zip", "restored"}
    assert not [entry for entry in place.rglob("*") if entry.is_symlink()]
    assert not Path("/tmp/neuco-worker-escaped").exists()


def test_a_secret_that_systemd_hands_over_may_show_an_access_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Group read permission is accepted on a secret from systemd, where it reflects an access list, and refused on any other secret."""
    secret = tmp_path / "challenge.secret"
    secret.write_text("5a" * 32)
    secret.chmod(0o440)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    with pytest.raises(OrganizerError, match="can be read by other users"):
        read_bytes(secret, SECRET)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_bytes(secret, SECRET) == b"\x5a" * 32


def test_a_credential_has_a_plain_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential reference cannot leave the folder that systemd provides, and without such a folder the error says what to do."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "given").mkdir()
    configuration = load(EXAMPLE)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "given"))
    with pytest.raises(OrganizerError, match="did not receive it"):
        configuration.secret("credential:../token", "evalai.token")
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(OrganizerError) as refused:
        configuration.secret("credential:token", "evalai.token")
    assert "neuco-challenge" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "read", "hint"),
    [
        (
            "evalai.token",
            lambda _: load(EXAMPLE).secret("credential:evalai.token", "evalai.token"),
            "sudo neuco-challenge NAME credential evalai.token",
        ),
        *(
            (name, partial(read_bytes, key=key), f"/etc/neuco-worker/NAME/credentials/{name}")
            for name, key in (("challenge.secret", SECRET), ("signing.key", SIGNING_KEY))
        ),
    ],
)
def test_a_missing_credential_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, read: Callable[[Path], object], hint: str
) -> None:
    """The unit passes an empty line for a missing file, so the worker can say which credential is missing and how to provide it."""
    for unit in ("neuco-worker@.service", "neuco-worker-once@.service"):
        lines = (UNITS / unit).read_text().splitlines()
        loaded = {line.split("=")[1].split(":")[0] for line in lines if line.startswith("LoadCredential=")}
        stand_ins = {line.removeprefix("SetCredential=") for line in lines if line.startswith("SetCred")}
        assert stand_ins == {f"{credential}:\\n" for credential in loaded}
    (tmp_path / name).write_text("\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    with pytest.raises(OrganizerError, match=f"credential {name}, which is missing or empty") as refused:
        read(tmp_path / name)
    assert hint in refused.value.hint
    assert refused.value.code == "secret.missing"


def test_what_the_system_refuses_during_an_adoption_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a traceback; here, a missing folder stands for a full disk."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "challenge.yaml").write_text(EXAMPLE.read_text())
    monkeypatch.setenv("EVALAI_TOKEN", "the-token")
    assert main([str(tmp_path / "source"), str(tmp_path / "folder"), str(tmp_path / "worker.db")]) == 1
    place = tmp_path / "folder" / "credentials" / "evalai.token"
    assert capsys.readouterr().err == f"neuco-worker: {place} cannot be used: No such file or directory.\n"


def test_adoption_turns_secrets_into_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every secret of the old configuration becomes a credential, even if its key is absent from the file, and comments are kept."""
    source, folder = tmp_path / "source", tmp_path / "folder"
    source.mkdir()
    (folder / "credentials").mkdir(parents=True)
    (source / "hook").write_text("https://hooks.example/T")
    lines = EXAMPLE.read_text().replace("  webhook: null ", "  webhook: file:hook ").splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("  token: env:EVALAI", "state:"))) + "\n"
    (source / "challenge.yaml").write_text(text)
    monkeypatch.setenv("EVALAI_TOKEN", "the-token")
    for name in ("tasks/dev", "ids/dev.txt", "tasks/eval", "ids/eval.txt"):
        with pytest.raises(OrganizerError, match=f"{name} was not copied"):
            install(source, folder, tmp_path / "worker.db")
        (folder / name).mkdir(parents=True)
    install(source, folder, tmp_path / "worker.db")
    new = load(folder / "challenge.yaml")
    assert (new.evalai.token, new.alerts.webhook) == ("credential:evalai.token", "credential:alerts.webhook")
    assert new.database_url == f"sqlite:///{tmp_path / 'worker.db'}"
    assert (folder / "credentials" / "evalai.token").read_text() == "the-token\n"
    assert (folder / "credentials" / "alerts.webhook").read_text() == "https://hooks.example/T\n"
    assert (
        "# the challenge's number, which is part of its address at EvalAI"
        in (folder / "challenge.yaml").read_text()
    )


@pytest.fixture
def adopt(tmp_path: Path) -> Callable[[], subprocess.CompletedProcess[str]]:
    """A challenge without tasks in the folder ``my``, and the command that adopts it."""
    command, program = tmp_path / "usr/local/bin/neuco-challenge", tmp_path / "opt/neuco-worker/bin/python"
    for path, text in (
        (command, (ROOT / "deploy" / "neuco-challenge").read_text()),
        (program, f'#!/bin/sh\nexec {sys.executable} "$@"\n'),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "my").mkdir()
    for name, text in (
        ("challenge.yaml", EXAMPLE.read_text()),
        ("challenge.secret", "x"),
        ("signing.key", "y"),
    ):
        (tmp_path / "my" / name).write_text(text)
    return partial(
        subprocess.run,
        [command, "earth", "adopt", "my"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.processes
def test_a_command_has_the_home_of_the_service(
    adopt: Callable[[], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Otherwise the service and the commands would look for ~/.pgpass in two places."""
    for entry in ("tasks/dev", "tasks/eval", "ids/dev.txt", "ids/eval.txt"):
        (tmp_path / "my" / entry).mkdir(parents=True)
    adopt()
    program = tmp_path / "opt/neuco-worker/bin/neuco-worker"
    program.write_text('#!/bin/sh\necho "$HOME"\n')
    program.chmod(0o755)
    command = [tmp_path / "usr/local/bin/neuco-challenge", "earth", "status"]
    home = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert home == f"{tmp_path}/var/lib/neuco-worker"
    assert "--home-dir /var/lib/neuco-worker " in (ROOT / "deploy/install.sh").read_text()


@pytest.mark.processes
def test_an_adoption_with_a_file_to_copy_by_hand_is_otherwise_complete(
    adopt: Callable[[], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The service could otherwise read and write nothing, and the command refuses to run again."""
    state = tmp_path / "var/lib/neuco-worker/earth"
    state.mkdir(parents=True, mode=0o755)
    done = adopt()
    assert (done.returncode, "was not copied" in done.stderr) == (2, True), done
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert "to replace it, first move" in adopt().stderr


@pytest.mark.processes
def test_a_state_that_is_not_copied_is_named(
    adopt: Callable[[], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The service would begin with an empty one, and know no submission."""
    given, state = tmp_path / "my/challenge.yaml", tmp_path / "my/state/earth.db"
    given.write_text(EXAMPLE.read_text().replace("state/worker.db", "state/earth.db"))
    state.parent.mkdir()
    state.touch()
    done = adopt()
    assert (done.returncode, f"The state {state} was not copied." in done.stderr) == (2, True), done
    assert not (tmp_path / "etc/neuco-worker/earth/challenge.yaml").exists()
    state.unlink()  # no worker has run
    assert "tasks/dev was not copied" in adopt().stderr


@pytest.mark.processes
def test_a_failed_adoption_can_be_repeated(
    adopt: Callable[[], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """After a running worker, a wrong configuration, or an interrupted copy; and root runs nothing from the current folder."""
    (tmp_path / "yaml.py").write_text("raise SystemExit('not the library')")
    (tmp_path / "my/state").mkdir()
    (tmp_path / "my/state/worker.db").touch()
    with closing(LeaderLock(tmp_path / "my/state")) as lock:  # of a worker that still runs there
        assert lock.take()
        refused = adopt()
    assert (refused.returncode, "if a worker runs there, stop it" in refused.stderr) == (2, True)
    source, folder = tmp_path / "my/challenge.yaml", tmp_path / "etc/neuco-worker/earth"
    source.write_text("dim: wrong\n")
    old, lock_of_editor = tmp_path / "my/tasks/old__regr.csv", tmp_path / "my/tasks/.#old"
    old.parent.mkdir()
    old.touch()
    assert adopt().returncode == 2
    assert not (folder / "challenge.yaml").exists()
    assert (folder / "tasks/old__regr.csv").is_file()
    old.unlink()
    lock_of_editor.symlink_to("nothing")
    assert "my/tasks was not copied; remove links to nothing" in adopt().stderr
    lock_of_editor.unlink()
    (tmp_path / "labels").touch()
    (tmp_path / "my/tasks/new__regr.csv").symlink_to("../../labels")
    source.write_text(EXAMPLE.read_text())
    for name in ("tasks/dev", "tasks/eval", "ids"):
        (tmp_path / "my" / name).mkdir(parents=True)
    for name in ("dev", "eval"):
        (tmp_path / f"my/ids/{name}.txt").touch()
    done = adopt()
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (folder / "tasks").iterdir() if path.is_file()] == ["new__regr.csv"]
    assert not (folder / "tasks/new__regr.csv").is_symlink()
    assert load(folder / "challenge.yaml").evalai.token == "credential:evalai.token"
    assert not (tmp_path / "var/lib/neuco-worker/earth/.adopting").exists()
    (folder / "challenge.yaml").unlink()
    assert "worker.db exists" in adopt().stderr


@pytest.mark.processes
def test_a_repeated_adoption_keeps_nothing_of_the_first(
    adopt: Callable[[], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """SQLite would add the changes in the first copy's journal to the second copy of the database."""
    configuration = tmp_path / "my/challenge.yaml"
    places = ("my/state", "var/lib/neuco-worker/earth")
    source, copy = (f"sqlite:///{tmp_path / place}/worker.db" for place in places)
    configuration.write_text("dim: wrong\n")
    with closing(Store(source)) as store:
        with store.write() as tx:
            tx.set_fact("word", "first")
        assert adopt().returncode == 2  # copies the journal of a database that is open
    with closing(Store(source)) as store, store.write() as tx:
        tx.set_fact("word", "second")
    configuration.write_text(EXAMPLE.read_text())
    adopt()
    with closing(Store(copy)) as store, store.read() as tx:
        assert tx.fact("word") == "second"
