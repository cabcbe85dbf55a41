"""Checks of normal operation: installation, readiness, credentials, sandboxing, pushing, reload, stop, timer, and two services at once."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.systemd.root import CLONE, LIBRARIES
from tests.systemd.service import LONG, Stage
from tests.worker.harness.harness import SECRET

ENDS_WITHIN_S = 12.0  # as the daemon promises
SSH_PORT = 2022
PROBE = Path(__file__).with_name("probe.py")
ALLOWED = {
    *("write its state", "write the cache", "write its own /tmp", "compile code", "read its credential"),
    *("connect to a server", "count memory"),
}
"""Actions that the probe may take; every other action that it tries must be refused."""


def install(stage: Stage) -> None:
    """`install.sh` says what it would do, does it, starts nothing, and does no harm when it is run again."""
    machine = stage.machine
    told = machine.run(f"{CLONE}/deploy/install.sh", "--dry-run", "--libraries", LIBRARIES)
    assert "useradd" in told
    assert machine.run("id", "neuco-worker", expect=1)
    machine.run("test", "!", "-e", "/opt/neuco-worker/bin/python")
    for _ in range(2):
        told = stage.install()
        assert told.rstrip().splitlines()[-2].startswith("==> Done.")
    assert machine.run("systemctl", "list-units", "--plain", "--no-legend", "neuco-worker*").strip() == ""
    units = machine.shell("echo /etc/systemd/system/neuco-worker*@.*").split()
    assert machine.run("systemd-analyze", "verify", "--man=no", *units) == ""
    assert "neuco-worker 0." in machine.run("/opt/neuco-worker/bin/neuco-worker", "--version")


def ready(stage: Stage) -> None:
    """`systemctl start` returns once the daemon is ready; the daemon scores and publishes; a start without a challenge fails."""
    with stage.service("ready") as service:
        service.control("enable")
        service.start()
        assert service.show("ActiveState") == "active"
        assert service.show("Type") == "notify"
        assert [event["pid"] for event in service.events("run.start")] == [service.pid()]
        service.submit("A")
        service.until_answered()
        service.until_published("A")
        assert service.status(service.submit("B", b"id,0\nimg_000,1\n")) in ("submitted", "running", "failed")
        service.until_answered(service.submitted[-1], status="failed")
        assert service.show("NRestarts") == "0"
    refused = stage.machine.run("systemctl", "start", "neuco-worker@nobody", expect=1)
    assert "Assertion failed" in refused


def credentials(stage: Stage) -> None:
    """Only the service gets the secrets; they are in no environment, command line or log; a missing one is named."""
    with stage.service("credentials", token=False) as service:
        machine = stage.machine
        service.control("start", expect=1)
        service.control("stop")
        assert "evalai.token" in service.journal()
        service.credential("evalai.token", service.evalai.token("host"))
        service.start()
        pid, handed = service.pid(), f"/run/credentials/{service.unit}"
        named = machine.run("nsenter", "-t", str(pid), "-m", "ls", handed).split()
        assert named == ["alerts.webhook", "challenge.secret", "evalai.token", "git.token", "ssh_key"]
        given = machine.run("nsenter", "-t", str(pid), "-m", "cat", f"{handed}/challenge.secret")
        assert given.strip() == SECRET
        for user, path in (
            ("nobody", handed),
            ("neuco-worker", f"{service.folder}/credentials"),
            ("nobody", service.state),
        ):
            told = machine.run("setpriv", "--reuid", user, "--clear-groups", "ls", path, expect=2)
            assert "Permission denied" in told, f"{user} sees {path}"
        secrets = (SECRET, service.evalai.token("host"))
        seen = machine.shell(f"cat /proc/{pid}/environ /proc/{pid}/cmdline | tr '\\0' '\\n'")
        assert not any(secret in seen + service.journal() for secret in secrets)


def sandboxing(stage: Stage) -> None:
    """A program that the unit runs can write to its own folders and connect to servers, and can do none of 28 other things."""
    with stage.service("sandboxing") as service:
        machine = stage.machine
        machine.write("/usr/local/lib/probe.py", PROBE.read_bytes())
        machine.shell(
            "mkdir -p /home/someone /var/lib/neuco-worker/other /etc/neuco-worker/other/credentials"
            " /run/credentials/neuco-worker@other.service; touch /root/something /tmp/secret-of-the-machine;"
            " touch /etc/neuco-worker/other/credentials/x /run/credentials/neuco-worker@other.service/x;"
            " chown -R neuco-worker: /var/lib/neuco-worker/other /run/credentials/neuco-worker@other.service;"
            " chmod 0700 /etc/neuco-worker/other/credentials"
        )
        service.add_to_unit(
            f"[Service]\nExecStartPre=/usr/bin/python3 /usr/local/lib/probe.py {service.name}\n"
        )
        service.start()
        (tried,) = (event["tried"] for event in service.events("probe"))
        wrong = {what: told for what, told in tried.items() if (told == "allowed") != (what in ALLOWED)}
        assert not wrong, f"not as it should be: {wrong}"
        assert len(tried) - len(ALLOWED) == 28, len(tried) - len(ALLOWED)
        status = machine.run("cat", f"/proc/{service.pid()}/status")
        found = dict(re.findall(r"^(CapEff|CapBnd|NoNewPrivs|Seccomp):\s+(\w+)$", status, re.MULTILINE))
        none = "0" * 16
        assert found == {"CapEff": none, "CapBnd": none, "NoNewPrivs": "1", "Seccomp": "2"}
        machine.shell(
            "rm -rf /etc/neuco-worker/other /var/lib/neuco-worker/other /run/credentials/neuco-worker@other.service"
        )


def push_ssh(stage: Stage) -> None:
    """The board is pushed over ssh to the server whose key is pinned; while another key is pinned, nothing is pushed."""
    machine, repository = stage.machine, "/srv/git/board.git"
    address = f"ssh://board@127.0.0.1:{SSH_PORT}{repository}"
    machine.shell(
        "useradd --system --create-home --home-dir /srv/git --shell /usr/bin/git-shell board;"
        " usermod -p '*' board; install -d -o board /srv/git/.ssh;"
        f" su -s /bin/sh board -c 'git init -q --bare {repository}';"
        " for key in host other worker; do ssh-keygen -q -t ed25519 -N '' -f /root/$key; done;"
        " install -o board -m 0600 /root/worker.pub /srv/git/.ssh/authorized_keys;"
        f" systemd-run -q --unit board-server -p RuntimeDirectory=sshd /usr/sbin/sshd -D -f /dev/null -h /root/host -p {SSH_PORT}"
    )

    def pinned(key: str) -> str:
        return (
            f"[127.0.0.1]:{SSH_PORT} " + " ".join(machine.run("cat", f"/root/{key}.pub").split()[:2]) + "\n"
        )

    changes = {
        "leaderboard": {
            "repository": address,
            "ssh_key": "credential:ssh_key",
            "known_hosts": "file:known_hosts",
        }
    }
    with stage.service("ssh", board=False) as service:
        service.credential("ssh_key", machine.run("cat", "/root/worker"))
        machine.write(f"{service.folder}/known_hosts", pinned("other"))
        service.configure(changes)
        service.start()
        service.submit("A")
        service.until_answered()
        service.until(
            lambda: "leaderboard.host_key" in service.alerts(),
            "the alert leaderboard.host_key",
        )
        assert service.teams(repository) == []
        machine.write(f"{service.folder}/known_hosts", pinned("host"))
        service.control("reload")
        service.until(lambda: service.teams(repository) == ["A"], "the board is pushed over ssh")
        service.until(lambda: service.alerts() == set(), "the alert clears")
    machine.run("systemctl", "stop", "board-server")


def push_path(stage: Stage) -> None:
    """A repository in a new place is reported as read-only for the service, until `neuco-challenge paths` opens the place."""
    with stage.service("path") as service:
        service.start()
        service.submit("A")
        service.until_published("A")
        moved = "/srv/elsewhere/board.git"
        stage.machine.shell(f"mkdir /srv/elsewhere; cp -a {service.board} {moved}")
        service.configure({"leaderboard": {"repository": moved}})
        service.control("reload")
        service.submit("B")
        service.until_answered()
        service.until(lambda: "leaderboard.read_only" in service.alerts(), "the alert leaderboard.read_only")
        service.challenge("paths")
        service.control("restart")
        service.until(lambda: service.teams(moved) == ["A", "B"], "the board is pushed to the new place")
        service.until(lambda: service.alerts() == set(), "the alert clears")


def reload(stage: Stage) -> None:
    """A reload applies the new configuration in the same process; a wrong one is refused, and the old one stays in effect."""
    with stage.service("reload") as service:
        service.start()
        pid = service.pid()
        service.submit("A")
        service.until_published("A")
        service.configure({"submission": {"max_megabytes": 0.001}})
        service.control("reload")
        service.until(lambda: bool(service.events("reload.done")), "the reload in the log")
        service.until_answered(service.submit("B"), status="failed")
        service.configure({"submission": {"max_megabytes": "many"}})
        service.control("reload")
        service.until(lambda: bool(service.events("reload.refused")), "the refusal in the log")
        service.until_answered(service.submit("C"), status="failed")
        assert service.pid() == pid
        assert len(service.events("reload.done")) == 1


def stop(stage: Stage) -> None:
    """A stop during an evaluation ends all processes within 12 seconds and without a fault; the next start finishes the work."""
    with stage.service("stop", LONG) as service:
        service.start()
        service.until_scoring(service.submit("A"))
        began = time.monotonic()
        service.control("stop")
        took = time.monotonic() - began
        assert took < ENDS_WITHIN_S, f"it took {took:.1f} seconds"
        assert (service.show("Result"), service.show("ExecMainStatus")) == ("success", "0")
        assert stage.machine.run("pgrep", "-u", "neuco-worker", expect=1) == ""
        assert service.query("SELECT outcome FROM attempts WHERE kind = 'evaluate'") == [["shutdown"]]
        service.start()
        service.until_answered()
        service.until_published("A")
        service.answered_once()


def timer(stage: Stage) -> None:
    """The timer processes all waiting submissions, and later does so again; while a daemon runs, it only names the daemon and stops."""
    with stage.service("timer") as service:
        name = service.once.replace(".service", ".timer")
        service.add_to_unit(
            "[Timer]\nOnActiveSec=1s\nOnUnitInactiveSec=2s\nRandomizedDelaySec=0\nAccuracySec=100ms\n", name
        )
        service.submit("A")
        service.control("enable", name)
        service.control("start", name)
        service.until_answered()
        service.until_published("A")
        service.submit("B")
        service.until_published("A", "B")
        service.answered_once()
        service.control("disable", name)
        service.control("stop", name)
        service.until(
            lambda: service.show("ActiveState", service.once) in ("inactive", "failed"), "the last drain ends"
        )
        assert service.show("Result", service.once) == "success"
        service.start()
        service.control("start", service.once, expect=1)
        assert "Another worker runs on this state." in service.journal(service.once)
        assert service.show("ActiveState") == "active"


def two(stage: Stage) -> None:
    """Two challenges run next to each other; stopping one does not affect the other, and each board shows only its own teams."""
    with stage.service("first", LONG) as first, stage.service("second", LONG) as second:
        first.start()
        second.start()
        first.submit("A")
        second.submit("B")
        first.until_scoring(first.submitted[0])
        second.until_scoring(second.submitted[0])
        pid = second.pid()
        first.control("kill")
        first.control("stop")
        second.until_answered()
        first.start()
        first.until_answered()
        first.until_published("A")
        second.until_published("B")
        first.answered_once()
        second.answered_once()
        assert second.pid() == pid
