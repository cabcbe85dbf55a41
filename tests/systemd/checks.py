"""The checks, in the order in which they run; the docstring of each says what it shows."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable

from tests.acceptance.installation import ROOT
from tests.systemd.machine import CLONE, LIBRARIES
from tests.systemd.service import LONG, Stage
from tests.worker.harness.harness import SECRET, embeddings

ENDS_WITHIN_S = 12.0  # as the daemon promises


def install(stage: Stage) -> None:
    """`install.sh` prints what it would do, does it, starts nothing, and does no harm when it is run again."""
    machine = stage.machine
    plan = machine.run(f"{CLONE}/deploy/install.sh", "--dry-run", "--libraries", LIBRARIES)
    assert "useradd" in plan
    assert machine.run("id", "neuco-worker", expect=1)
    for _ in range(2):
        assert stage.install().rstrip().splitlines()[-2].startswith("==> Done.")
    assert machine.run("systemctl", "list-units", "--plain", "--no-legend", "neuco-worker*").strip() == ""
    units = machine.shell("echo /etc/systemd/system/neuco-worker*@.*").split()
    assert machine.run("systemd-analyze", "verify", "--man=no", *units) == ""
    refused = machine.run("systemctl", "start", "neuco-worker@nobody", expect=1)
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
        pid, folder = service.pid(), f"/run/credentials/{service.unit}"
        inside = ("nsenter", "-t", str(pid), "-m")
        files = ["alerts.webhook", "challenge.secret", "evalai.token", "git.token", "signing.key", "ssh_key"]
        assert machine.run(*inside, "ls", folder).split() == files
        assert machine.run(*inside, "cat", f"{folder}/challenge.secret").strip() == SECRET
        for user, path in (
            ("nobody", folder),
            ("neuco-worker", f"{service.folder}/credentials"),
            ("nobody", service.state),
        ):
            refusal = machine.run("setpriv", "--reuid", user, "--clear-groups", "ls", path, expect=2)
            assert "Permission denied" in refusal, f"{user} sees {path}"
        visible = machine.shell(f"cat /proc/{pid}/environ /proc/{pid}/cmdline | tr '\\0' '\\n'")
        secrets = (SECRET, service.evalai.token("host"))
        assert not any(secret in visible + service.journal() for secret in secrets)


def paths(stage: Stage) -> None:
    """A repository outside /srv is reported as read-only for the service, until `systemctl edit` opens the place."""
    with stage.service("path") as service:
        service.start()
        service.submit("A")
        service.until_published("A")
        moved = "/opt/elsewhere/board.git"
        stage.machine.shell(f"mkdir /opt/elsewhere; cp -a {service.board} {moved}")
        service.configure({"leaderboard": {"repository": moved}})
        service.control("reload")
        service.submit("B")
        service.until_answered()
        service.until(lambda: "leaderboard.read_only" in service.alerts(), "the alert leaderboard.read_only")
        service.add_to_unit("[Service]\nReadWritePaths=/opt/elsewhere\n")
        service.control("restart")
        service.board = moved
        service.until_published("A", "B")
        service.until(lambda: service.alerts() == set(), "the alert clears")


def doctor(stage: Stage) -> None:
    """The doctor judges the service as it is; it sees the machine's /tmp, where Ray is, only with the drop-in of `deploy/ray`."""
    machine, program = stage.machine, "/opt/neuco-worker/bin/neuco-worker"
    with stage.service("doctor") as service:
        assert " checks: " in machine.run("neuco-challenge", service.name, "doctor", expect=None)
        machine.shell(
            f"mv {program} {program}.kept; touch /tmp/of-ray; printf '#!/bin/sh\\nid -un; ls /tmp; exit 3' >{program}"
        )
        machine.run("chmod", "0755", program)
        try:
            assert machine.run("neuco-challenge", service.name, "doctor", expect=3).split() == [
                "neuco-worker"
            ]
            service.add_to_unit((ROOT / "deploy/ray/neuco-worker.conf").read_text())
            assert "of-ray" in machine.run("neuco-challenge", service.name, "doctor", expect=3).split()
        finally:
            machine.run("mv", f"{program}.kept", program)


def watchdog(stage: Stage) -> None:
    """A daemon that hangs (SIGSTOP) is ended by systemd's watchdog, here after 5 seconds instead of 120, and started again."""
    with stage.service("watchdog") as service:
        service.add_to_unit("[Service]\nWatchdogSec=5\nTimeoutAbortSec=5\nRestartSec=1\n")
        service.start()
        service.machine.run("kill", "-STOP", str(service.pid()))
        service.submit("A")
        service.until(lambda: service.show("NRestarts") == "1", "a restart by the watchdog")
        service.until_published("A")
        service.answered_once()
        assert "Watchdog timeout" in service.journal()


def memory(stage: Stage) -> None:
    """A child that goes over its limit while it reads is killed alone, and the file is rejected; the check allows a lower limit."""
    with stage.service("memory", {"submission": {"memory_gigabytes": 0.06}}, low_memory=True) as service:
        service.start()
        daemon = service.pid()
        # repeated blocks of empty lines, each of which takes some tenths of a second to read
        content = gzip.compress(embeddings(0), mtime=0) + gzip.compress(b"\n" * 990_000, mtime=0) * 200
        service.submit("A", content, file_name="embeddings.csv.gz")
        service.until_answered(status="failed")
        assert "took more memory" in service.evalai.text(service.submitted[0], "stderr_file")
        assert service.pid() == daemon


def kernel(stage: Stage) -> None:
    """When the service's memory runs out, the kernel kills the child and not the daemon, and the submission is scored later."""
    with stage.service("kernel", LONG) as service:
        service.start()
        daemon = service.pid()
        service.submit("A")
        service.leave_memory_for_half(service.until_scoring())
        service.until(lambda: service.outcomes() == ["signal"], "the child is killed")
        service.limit_memory("infinity")
        service.until_published("A")
        service.answered_once()
        assert service.pid() == daemon


def stop(stage: Stage) -> None:
    """A stop during an evaluation ends all processes within 12 seconds and without a fault; the next start finishes the work."""
    with stage.service("stop", LONG) as service:
        service.start()
        service.submit("A")
        service.until_scoring()
        began = time.monotonic()
        service.control("stop")
        took = time.monotonic() - began
        assert took < ENDS_WITHIN_S, f"it took {took:.1f} seconds"
        assert (service.show("Result"), service.show("ExecMainStatus")) == ("success", "0")
        assert stage.machine.run("pgrep", "-u", "neuco-worker", expect=1) == ""
        service.start()
        service.until_published("A")
        service.answered_once()
        assert service.outcomes() == ["cancelled", "done"]


def timer(stage: Stage) -> None:
    """The timer processes all waiting submissions, and later does so again; while a daemon runs, it only says so and stops."""
    with stage.service("timer") as service:
        name = service.once.replace(".service", ".timer")
        service.add_to_unit(
            "[Timer]\nOnActiveSec=1s\nOnUnitInactiveSec=2s\nRandomizedDelaySec=0\nAccuracySec=100ms\n", name
        )
        service.submit("A")
        service.control("start", name)
        service.until_published("A")
        service.submit("B")
        service.until_published("A", "B")
        service.answered_once()
        service.control("stop", name)
        service.until(
            lambda: service.show("ActiveState", service.once) in ("inactive", "failed"), "the last drain ends"
        )
        assert service.show("Result", service.once) == "success"
        service.start()
        service.control("start", service.once, expect=1)
        assert "Another worker runs on this state." in service.journal(service.once)
        assert service.show("ActiveState") == "active"


def power_off(stage: Stage) -> None:
    """If the machine dies during an evaluation, the service starts by itself with it, and nothing is lost or answered twice."""
    with stage.service("power-off", LONG) as service:
        service.control("enable")
        service.start()
        service.submit("A")
        service.submit("B")
        service.until_scoring()
        stage.machine.power_off()
        service.submit("C")
        stage.machine.boot()
        service.until_published("A", "B", "C")
        service.answered_once()
        assert service.show("NRestarts") == "0"


def uninstall(stage: Stage) -> None:
    """The removal stops all running services and deletes everything that was installed; challenges, state and the user stay."""
    machine = stage.machine
    with stage.service("uninstall") as service:
        service.control("enable")
        service.start()
        machine.run(f"{CLONE}/deploy/install.sh", "--uninstall")
        stage.installed = False
        assert machine.run("pgrep", "-u", "neuco-worker", expect=1) == ""
        files = machine.shell(
            "find /opt/neuco-worker /usr/local/bin/neuco-challenge /var/cache/neuco-worker /etc/logrotate.d"
            " /etc/systemd /run/systemd/system -name '*neuco*' 2>/dev/null || true"
        )
        assert files == "", files
        machine.run("id", "neuco-worker")
        for path in (f"{service.folder}/challenge.yaml", f"{service.state}/worker.db"):
            machine.run("test", "-f", path)


CHECKS: tuple[Callable[[Stage], None], ...] = (
    *(install, credentials, paths, doctor, watchdog, memory, kernel, stop, timer, power_off, uninstall),
)
