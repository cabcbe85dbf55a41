"""Checks of failures: processes that are killed or hang, exhausted memory, and power loss."""

from __future__ import annotations

import gzip

from tests.systemd.machine import Impossible
from tests.systemd.service import LONG, Service, Stage
from tests.worker.harness.harness import embeddings

WATCHDOG_S = 5


def kill_daemon(stage: Stage) -> None:
    """After SIGKILL of the daemon in the middle of an evaluation, systemd starts it again, and the evaluation is repeated."""
    with stage.service("kill-daemon", LONG) as service:
        service.start()
        pk = service.submit("A")
        child, daemon = service.until_scoring(pk), service.pid()
        service.machine.run("kill", "-KILL", str(daemon))
        service.until(
            lambda: service.show("NRestarts") == "1" and service.pid() not in (0, daemon), "a new daemon"
        )
        assert child not in service.children()
        service.until_answered()
        service.until_published("A")
        service.answered_once()
        assert outcomes(service) == ["dead", "done"]


def kill_child(stage: Stage) -> None:
    """After SIGKILL of the process that evaluates, the same daemon tries again, and the participant notices nothing."""
    with stage.service("kill-child", LONG) as service:
        service.start()
        pk, daemon = service.submit("A"), service.pid()
        service.machine.run("kill", "-KILL", str(service.until_scoring(pk)))
        service.until_answered()
        service.until_published("A")
        service.answered_once()
        assert outcomes(service) == ["signal", "done"]
        assert service.pid() == daemon
        assert service.show("Result") == "success"


def watchdog(stage: Stage) -> None:
    """A daemon that hangs (SIGSTOP) is ended by systemd's watchdog, here after 5 seconds instead of 120, and started again."""
    with stage.service("watchdog") as service:
        service.add_to_unit(f"[Service]\nWatchdogSec={WATCHDOG_S}\nTimeoutAbortSec=5\nRestartSec=1\n")
        service.start()
        service.submit("A")
        service.until_published("A")
        service.machine.run("kill", "-STOP", str(service.pid()))
        service.submit("B")
        service.until(lambda: service.show("NRestarts") == "1", "a restart by the watchdog")
        service.until_published("A", "B")
        service.answered_once()
        assert "Watchdog timeout" in service.journal()


def memory_reading(stage: Stage) -> None:
    """The kernel ends a child that goes over its limit while it reads (the check lowers the limit); the file is rejected as faulty."""
    needs_memory_limits(stage)
    with stage.service("memory-reading") as service:
        service.start()
        daemon, pk = service.pid(), service.submit("A", long_file(200), file_name="embeddings.csv.gz")
        service.until(service.reading, "the file is being read")
        service.lower_memory_limit()
        service.until_answered(pk, status="failed")
        assert "took more memory" in service.evalai.text(pk, "stderr_file")
        assert killed_by_the_kernel(service) > 0
        assert service.pid() == daemon
        service.submit("B")
        service.until_answered(service.submitted[-1])


def memory_scoring(stage: Stage) -> None:
    """The kernel ends a child that goes over its limit while it scores (the check lowers the limit); it is tried again and succeeds."""
    needs_memory_limits(stage)
    with stage.service("memory-scoring", {"scoring": {"epochs": 400_000}}) as service:
        service.start()
        daemon, pk = service.pid(), service.submit("A", long_file(1), file_name="embeddings.csv.gz")
        service.until_read(service.until_scoring(pk))
        service.lower_memory_limit()
        service.until(lambda: "memory" in outcomes(service), "the attempt ends for its memory")
        assert "'scoring'" in str(service.query("SELECT reason FROM attempts WHERE outcome = 'memory'"))
        assert killed_by_the_kernel(service) > 0
        service.until_answered(pk)
        service.until_published("A")
        service.answered_once()
        assert outcomes(service) == ["memory", "done"]
        assert service.pid() == daemon


def power_off(stage: Stage) -> None:
    """After a loss of power during an evaluation, the service starts by itself with the machine, and nothing is lost or done twice."""
    with stage.service("power-off", LONG) as service:
        service.control("enable")
        service.start()
        service.submit("A")
        service.until_answered()
        service.until_published("A")
        service.submit("B")
        service.submit("C")
        service.until_scoring(service.submitted[1])
        stage.machine.power_off()
        service.submit("D")
        stage.machine.boot()
        service.until(lambda: service.show("ActiveState") == "active", "the service starts by itself")
        service.until_answered()
        service.until_published("A", "B", "C", "D")
        service.answered_once()
        assert service.show("NRestarts") == "0"


def outcomes(service: Service) -> list[str]:
    """Return the outcomes of all evaluation attempts, in order."""
    rows = service.query("SELECT outcome FROM attempts WHERE kind = 'evaluate' ORDER BY id")
    return [outcome for (outcome,) in rows]


def needs_memory_limits(stage: Stage) -> None:
    """Skip a check where the kernel limits no memory.

    Raises:
        Impossible: If the kernel limits no memory.
    """
    if not stage.machine.limits_memory:
        raise Impossible("cgroups (version 2) limit no memory here")


def killed_by_the_kernel(service: Service) -> int:
    """Count the processes of a service that the kernel has ended because memory ran out."""
    events = f"/sys/fs/cgroup{service.show('ControlGroup')}/memory.events"
    lines = service.machine.run("cat", events).splitlines()
    return int(dict(line.split() for line in lines)["oom_kill"])


def long_file(times: int) -> bytes:
    """Return a small compressed file: a valid submission and repeated blocks of empty lines, each taking some tenths of a second to read.

    With a single block, the number of lines stays below the limit, so the file is still valid.
    """
    return gzip.compress(embeddings(0), mtime=0) + gzip.compress(b"\n" * 990_000, mtime=0) * times
