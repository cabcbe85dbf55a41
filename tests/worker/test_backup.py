"""A backup holds everything that a challenge needs to go on elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from scoring.errors import OrganizerError
from tests.worker.stage import Stage
from worker.archiving import read_backup, write_backup
from worker.configuration import load
from worker.office import opened

KEY = "git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPublicKeyOfAnExample\n"


def test_the_pinned_host_keys_come_along(stage: Stage, tmp_path: Path) -> None:
    """Without them the restored worker could push nowhere; the configuration points to the restored file."""
    (stage.folder / "hosts").write_text(KEY)
    stage.configure({"leaderboard": {"known_hosts": "file:hosts"}})
    archive = tmp_path / "backup.tar.gz"
    with opened(stage.path) as office:
        write_backup(office, stage.path, archive)
    restored = load(read_backup(archive, tmp_path / "elsewhere"))
    reference = restored.leaderboard.known_hosts
    assert reference is not None
    path = restored.secret_path(reference, "leaderboard.known_hosts")
    assert path.is_relative_to(tmp_path / "elsewhere")
    assert path.read_text() == KEY


def test_host_keys_that_are_gone_are_told(stage: Stage, tmp_path: Path) -> None:
    """A backup that would lack them is none."""
    stage.configure({"leaderboard": {"known_hosts": "file:hosts"}})
    with opened(stage.path) as office, pytest.raises(OrganizerError) as told:
        write_backup(office, stage.path, tmp_path / "backup.tar.gz")
    assert told.value.code == "secret.missing"
    assert list(tmp_path.glob("backup*")) == []


def test_a_challenge_without_pinned_keys_has_none_afterwards(stage: Stage, tmp_path: Path) -> None:
    """Nothing is made up."""
    with opened(stage.path) as office:
        write_backup(office, stage.path, tmp_path / "backup.tar.gz")
    folder = tmp_path / "elsewhere"
    assert load(read_backup(tmp_path / "backup.tar.gz", folder)).leaderboard.known_hosts is None
    assert not (folder / "known_hosts").exists()
