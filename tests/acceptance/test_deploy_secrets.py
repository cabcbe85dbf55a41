"""Secrets reach the service without being exposed, and a backup archive cannot write outside its folder."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scoring.errors import OrganizerError
from worker.challenge.configuration import load
from worker.challenge.secrets import read_challenge_secret
from worker.organizer.archiving import FORMAT, MANIFEST, read_backup
from worker.organizer.service import install

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config" / "challenge.yaml"
UNITS = ROOT / "deploy" / "systemd"


def archive(path: Path, spoil: Callable[[tarfile.TarInfo], None]) -> Path:
    """Write a backup with an additional, malicious member."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (
            (MANIFEST, json.dumps({"format": FORMAT}).encode()),
            ("challenge.secret", b"x"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        member = tarfile.TarInfo("extra")
        member.size = 1
        spoil(member)
        tar.addfile(member, io.BytesIO(b"x"))
    return path


def outside(member: tarfile.TarInfo) -> None:
    """Give the member a path outside the folder."""
    member.name = "../escaped"


def absolute(member: tarfile.TarInfo) -> None:
    """Give the member an absolute path."""
    member.name = "/tmp/neuco-worker-escaped"


def link(member: tarfile.TarInfo) -> None:
    """Turn the member into a symbolic link to another folder."""
    member.type, member.linkname = tarfile.SYMTYPE, "/etc"


def twice(member: tarfile.TarInfo) -> None:
    """Give the member the name of an earlier member."""
    member.name = "challenge.secret"


@pytest.mark.parametrize("spoil", [outside, absolute, link, twice])
def test_a_malicious_archive_is_refused(spoil: Callable[[tarfile.TarInfo], None], tmp_path: Path) -> None:
    """An archive with a link, a duplicate name or a path outside the folder is refused, and nothing is written outside the folder."""
    path = archive(tmp_path / "backup.tar.gz", spoil)
    with pytest.raises(OrganizerError) as refused:
        read_backup(path, tmp_path / "restored")
    assert refused.value.code == "restore.damaged"
    assert {entry.name for entry in tmp_path.iterdir()} <= {"backup.tar.gz", "restored"}
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
        read_challenge_secret(secret)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_challenge_secret(secret) == b"\x5a" * 32


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
    assert "neuco-challenge" in refused.value.cure


@pytest.mark.parametrize(
    ("name", "read", "cure"),
    [
        (
            "evalai.token",
            lambda _: load(EXAMPLE).secret("credential:evalai.token", "evalai.token"),
            "sudo neuco-challenge NAME credential evalai.token",
        ),
        ("challenge.secret", read_challenge_secret, "/etc/neuco-worker/NAME/credentials/challenge.secret"),
    ],
)
def test_a_missing_credential_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, read: Callable[[Path], object], cure: str
) -> None:
    """The unit passes an empty line for a missing file, so the worker can say which credential is missing and how to provide it."""
    for unit in ("neuco-worker@.service", "neuco-worker-once@.service"):
        lines = (UNITS / unit).read_text().splitlines()
        loaded = {line.split("=")[1].split(":")[0] for line in lines if line.startswith("LoadCredential=")}
        stand_ins = {line.removeprefix("SetCredential=") for line in lines if line.startswith("SetCred")}
        assert stand_ins == {f"{one}:\\n" for one in loaded}
    (tmp_path / name).write_text("\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    with pytest.raises(OrganizerError, match=f"credential {name}, which is missing or empty") as refused:
        read(tmp_path / name)
    assert cure in refused.value.cure
    assert refused.value.code == "secret.missing"


def test_adoption_turns_secrets_into_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every secret of the old configuration becomes a credential, even if its key is absent from the file, and comments are kept."""
    source, folder = tmp_path / "source", tmp_path / "folder"
    for place in (source, folder):
        for phase in ("dev", "eval"):
            (place / "tasks" / phase).mkdir(parents=True)
        (place / "ids").mkdir()
        for phase in ("dev", "eval"):
            (place / "ids" / f"{phase}.txt").write_text("a\n")
    (folder / "credentials").mkdir()
    (source / "hook").write_text("https://hooks.example/T")
    lines = EXAMPLE.read_text().replace("  webhook: null ", "  webhook: file:hook ").splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("  token: env:EVALAI", "state:"))) + "\n"
    for place in (source, folder):
        (place / "challenge.yaml").write_text(text)
    monkeypatch.setenv("EVALAI_TOKEN", "the-token")
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
    (folder / "ids" / "dev.txt").unlink()
    (folder / "challenge.yaml").write_text(text)
    with pytest.raises(OrganizerError) as lost:
        install(source, folder, tmp_path / "worker.db")
    assert lost.value.code == "adopt.missing"
