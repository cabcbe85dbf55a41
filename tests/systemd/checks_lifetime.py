"""Checks of a challenge that outlives a machine: backup and restore, uninstallation."""

from __future__ import annotations

from tests.systemd.root import CLONE
from tests.systemd.service import Stage

BACKUP = "/var/backups/neuco-worker/backup.zip"


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
