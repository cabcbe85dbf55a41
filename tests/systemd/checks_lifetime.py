"""Checks of a challenge that outlives a machine or a version: backup and restore, upgrade, uninstallation."""

from __future__ import annotations

from tests.systemd.machine import Impossible
from tests.systemd.root import BEFORE, CLONE, VERSION_BEFORE
from tests.systemd.service import Stage
from tests.worker.harness.harness import embeddings

BACKUP = "/var/backups/neuco-worker/backup.tar.gz"


def backup_restore(stage: Stage) -> None:
    """A backup of the running service, restored after its folders are gone, has everything; later submissions are fetched from EvalAI."""
    with stage.service("backup") as service:
        service.start()
        service.submit("A")
        service.until_published("A")
        service.challenge("challenge", "backup", BACKUP)
        assert stage.machine.run("stat", "-c", "%a %U", BACKUP).split() == ["600", "neuco-worker"]
        service.control("stop")
        service.submit("B")
        stage.machine.run(
            "/opt/neuco-worker/bin/neuco-worker", "challenge", "restore", BACKUP, "/root/restored"
        )
        stage.machine.shell(f"mv {service.folder} /root/old; mv {service.state} /root/old-state")
        service.challenge("adopt", "/root/restored")
        service.credential("evalai.token", service.evalai.token("host"))
        service.start()
        service.until_answered()
        service.until_published("A", "B")
        service.answered_once()
        assert service.alerts() == set()


def upgrade(stage: Stage) -> None:
    """A challenge of the previous version continues after an upgrade: its database is migrated, and a copy of the old one is kept."""
    machine = stage.machine
    if machine.run("test", "-d", BEFORE, expect=None):
        raise Impossible(f"the git history here does not have {VERSION_BEFORE}: git fetch --unshallow")
    stage.install(BEFORE)
    try:
        with stage.service("upgrade") as service:
            service.start()
            service.submit("A")
            service.submit("B", embeddings(1, noise=1.0))
            service.until_answered()
            service.until_published("A", "B")
            old = service.query("SELECT version_num FROM alembic_version")
            service.challenge("challenge", "drain")
            service.control("stop")
            service.submit("C", embeddings(2, noise=2.0))
            service.challenge("challenge", "backup", "/var/backups/neuco-worker")
            stage.install()
            service.start()
            service.challenge("challenge", "resume")
            service.until_answered()
            service.until_published("A", "B", "C")
            service.answered_once()
            assert service.query("SELECT version_num FROM alembic_version") != old
            assert machine.shell(f"ls {service.state}/worker.db.before-*").strip()
            assert service.alerts() == set()
    finally:
        stage.install(CLONE)


def uninstall(stage: Stage) -> None:
    """The removal stops all running services and deletes everything that was installed; challenges, state and the user stay."""
    machine = stage.machine
    with stage.service("uninstall") as service:
        service.control("enable")
        service.add_to_unit("[Service]\nRestartSec=5\n")
        service.start()
        machine.run(f"{CLONE}/deploy/install.sh", "--uninstall")
        stage.installed = False
        assert machine.run("pgrep", "-u", "neuco-worker", expect=1) == ""
        left = machine.shell(
            "find /opt/neuco-worker /usr/local/bin/neuco-challenge /var/cache/neuco-worker /etc/logrotate.d"
            " /etc/systemd /run/systemd/system -name '*neuco*' 2>/dev/null || true"
        )
        assert left == "", left
        machine.run("id", "neuco-worker")
        for path in (f"{service.folder}/challenge.yaml", f"{service.state}/worker.db"):
            machine.run("test", "-f", path)
        assert "could not be found" in service.control("status", expect=4)
