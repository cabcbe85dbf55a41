"""The worker as a process: signals, exit codes, the lock, secrets, and errors in its input."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from tests.waiting import LIMIT_S
from tests.worker.harness.gate import NEVER_SCORES, interpreter
from tests.worker.harness.harness import (
    KEY,
    NEW,
    ROOT,
    SECRET,
    FaultPlan,
    Harness,
    clean_environment,
    embeddings,
    evaluating,
    git,
)
from tests.worker.harness.terminal import shown
from worker.challenge.signing import fingerprint
from worker.sandbox import Fault
from worker.state import Deposed, Store

GRID_S = 86400  # the answer waits for this long


def ended(process: subprocess.Popen[str]) -> None:
    """End a daemon as systemd does; this does not wait for work in progress."""
    process.terminate()
    assert process.wait() == 0


def scored(harness: Harness, pk: int) -> bool:
    """Return whether a submission is answered and on the board."""
    return harness.states().get(pk) == "published"


@pytest.mark.processes
def test_once_does_everything_and_ends_with_zero(live: Harness) -> None:
    """`once` answers everything, pushes the board whatever the interval, and empties the queue, in a new interpreter as cron starts it.

    `status` needs no token: it shows everything but the token's expiry date, and why that is unknown.
    """
    live.configure({"leaderboard": {"publish_every": 3600}, "evalai": {"token": "env:NEUCO_TEST_TOKEN"}})
    pks = [live.submit("A", embeddings(1)), live.submit("B", b"id,0\nx,1\n")]
    for fork_server in (None, live.fork_server):
        live.fork_server = fork_server
        result = live.once(NEUCO_TEST_TOKEN=live.evalai.token("host"))
        assert result.returncode == 0, result.stderr
        assert "Traceback" not in result.stderr
    assert [live.status(pk) for pk in pks] == ["finished", "failed"]
    assert live.teams() == ["A"]
    assert live.evalai.queue_length() == 0
    document = json.loads(live.command("status", "--json").stdout)
    assert (document["leader"], document["states"]) == (None, {"published": 1, "failed": 1})
    assert document["token_expires"] is None
    assert "NEUCO_TEST_TOKEN, which is not set" in document["token_expiry_unknown"]
    told = json.loads(live.command("status", "--json", NEUCO_TEST_TOKEN="a password").stdout)
    assert "neither a JSON web token nor" in told["token_expiry_unknown"]


@pytest.mark.processes
def test_a_log_that_cannot_be_written_stops_nothing(live: Harness) -> None:
    """Cron's may be on a full disk that is not the state's."""
    pk = live.submit("A", embeddings(1))
    command = [sys.executable, "-m", "worker.cli", "once", "--config", str(live.path)]
    with Path("/dev/full").open("wb", buffering=0) as full:
        done = subprocess.run(command, env=clean_environment(), cwd=ROOT, stderr=full, check=False)
    assert (done.returncode, len(live.posts(pk)), live.teams()) == (0, 1, ["A"])


@pytest.mark.processes
def test_once_says_what_a_pause_leaves_undone(live: Harness) -> None:
    """It does not wait for submissions that a pause holds, but counts them; `--finish` ends the begun ones and takes no others."""
    live.configure({"evalai": {"poll_every": 0.3}})  # `once` gives up soon on what waits for a person
    begun = live.submit("A", embeddings(1))
    live.decide("challenge", "pause")
    result = live.once()
    assert result.returncode == 1
    assert "Waiting for `challenge pause --undo`, because scoring is paused: 1 submission." in result.stderr
    assert live.states() == {begun: "fetched"}
    live.decide("challenge", "pause", "--finish")
    live.submit("B", embeddings(2))
    assert live.once().returncode == 0
    assert live.states() == {begun: "published"}


@pytest.mark.processes
def test_once_says_at_a_terminal_what_it_is_waiting_for(live: Harness) -> None:
    """An answer waits for its moment on the grid; at a terminal, and only there, this is said once."""
    live.configure({"submission": {"answer_grid": GRID_S}})
    pk = live.submit("A", embeddings(1))
    screen = shown("once", "--config", str(live.path), until="(submission.answer_grid).")
    assert live.states()[pk] == "scored"
    with closing(live.store()) as store, store.read() as tx:
        moment = tx.known(pk).due_at
    sentence = f"Waiting until {moment:%H:%M:%S} UTC: answers are sent on a {GRID_S}-second grid (submission.answer_grid)."
    assert screen.splitlines().count(sentence) == 1


@pytest.mark.processes
def test_a_refused_token_ends_once_with_two_and_keeps_run_waiting(live: Harness) -> None:
    """`once` ends with a sentence; `run` continues when the token's file contains a valid one."""
    old = (live.folder / "token").read_text()
    fresh = live.evalai.refresh_token("host")
    result = live.once()
    assert result.returncode == 2
    assert "token" in result.stderr
    assert "Traceback" not in result.stderr
    assert old not in result.stderr
    pk = live.submit("A", embeddings(1))
    daemon = live.run()
    live.until(lambda: "evalai.token" in live.log)
    assert daemon.poll() is None
    (live.folder / "token").write_text(fresh)
    live.until(lambda: scored(live, pk))
    ended(daemon)


@pytest.mark.processes
def test_a_second_daemon_ends_with_one(live: Harness) -> None:
    """Only one daemon can use the state; the kernel releases the lock however that daemon ends."""
    first = live.run()
    live.until(lambda: "run.start" in live.log)
    result = live.once()
    assert result.returncode == 1
    assert "Another worker runs on this state." in result.stderr
    first.kill()
    first.wait()
    assert live.once().returncode == 0


@pytest.mark.processes
def test_once_ends_with_one_on_sigterm(live: Harness) -> None:
    """It was stopped before everything was done."""
    live.submit("A", embeddings(NEW))
    process = live.run("once", interpreter=interpreter(live.folder, NEVER_SCORES))
    live.until(lambda: bool(evaluating(process.pid)))
    process.terminate()
    assert process.wait() == 1


@pytest.mark.processes
def test_sighup_takes_a_good_configuration_and_refuses_a_bad_one(live: Harness) -> None:
    """A bad file, or one with another state, is refused in the log; a good one applies from then on, except to recorded phases."""
    daemon = live.run()
    live.until(lambda: "evalai.connected" in live.log)
    pk = live.submit("A", embeddings(1))
    live.until(lambda: scored(live, pk))
    live.configure({"challenge": {"title": "Renamed"}, "phases": {"dev": {"decimals": 1}}})
    daemon.send_signal(signal.SIGHUP)
    live.until(lambda: "reload.done" in live.log and "phase.differs" in live.log)
    live.configure({"state": "sqlite:///./elsewhere/worker.db"})
    daemon.send_signal(signal.SIGHUP)
    live.until(lambda: "reload.refused" in live.log)
    assert not (live.folder / "elsewhere" / "worker.db").exists()
    live.configure({"state": f"sqlite:///{live.state}/worker.db"})
    assert "(reload.refused, since" in live.command("status").stdout
    daemon.send_signal(signal.SIGHUP)
    live.until(lambda: "Alert cleared." in live.log)
    pk = live.submit("B", embeddings(2))
    live.until(lambda: scored(live, pk))
    live.until(lambda: "Renamed" in live.published("index.html"))
    value = live.stdout(pk)["q_mean"]
    assert value != round(value, 1)
    ended(daemon)


@pytest.mark.processes
def test_old_secrets_stay_hidden_after_a_refused_reload(live: Harness) -> None:
    """The old configuration, and with it the old secret, stays in effect."""
    hook, old = live.folder / "hook", "http://127.0.0.1:9/old"
    hook.write_text(old)
    live.configure({"alerts": {"webhook": "file:hook"}})
    daemon = live.run()
    live.until(lambda: "evalai.connected" in live.log)
    hook.write_text("http://127.0.0.1:9/new")
    live.configure({"state": "sqlite:///./elsewhere/worker.db"})
    daemon.send_signal(signal.SIGHUP)
    live.until(lambda: "reload.refused" in live.log)
    live.configure({"leaderboard": {"publish_every": old}})
    daemon.send_signal(signal.SIGHUP)
    live.until(lambda: "publish_every is" in live.log)
    assert "publish_every is `[redacted]`" in live.log
    assert old not in live.log
    ended(daemon)


@pytest.mark.processes
def test_once_is_not_done_before_the_board_is_pushed(live: Harness) -> None:
    """If only the remote is unreachable, the exit code is 1, and the next run pushes."""
    live.configure({"evalai": {"poll_every": 0.3}})  # `once` gives up soon after failures
    away = live.board.with_name("away.git")
    live.board.rename(away)
    pk = live.submit("A", embeddings(1))
    result = live.once()
    assert result.returncode == 1
    assert "repository" in result.stderr
    assert live.status(pk) == "finished"
    away.rename(live.board)
    assert live.once().returncode == 0
    assert live.teams() == ["A"]


@pytest.mark.processes
def test_a_run_that_evalai_does_not_answer_raises_an_alert(live: Harness) -> None:
    """Nobody reads the output of a timer's runs, none of which lasts as long as an outage; the alert ends with the next answer."""
    live.configure({"evalai": {"poll_every": 0.3}})  # `once` gives up soon after failures
    for broken in (1.0, 0.0):
        live.evalai.set_faults(FaultPlan(probability=broken, kinds=(Fault.ERROR_BEFORE,)))
        assert live.once().returncode == broken
        with closing(live.store()) as store, store.read() as tx:
            assert [alert.key for alert in tx.alerts()] == ["evalai.unreachable"] * int(broken)


@pytest.mark.processes
def test_secrets_appear_nowhere(live: Harness) -> None:
    """Logs, command lines, children's environments and git's configuration contain neither token nor secret."""
    live.configure({"evalai": {"token": "env:EVALAI_TOKEN_OF_TEST"}})
    token = live.evalai.token("host")
    live.submit("A", embeddings(NEW))
    daemon = live.run(interpreter=interpreter(live.folder, NEVER_SCORES), EVALAI_TOKEN_OF_TEST=token)
    live.until(lambda: bool(evaluating(daemon.pid)))
    own = Path(f"/proc/{daemon.pid}/cmdline").read_bytes()
    seen = [own]
    for process in psutil.Process(daemon.pid).children(recursive=True):
        with suppress(OSError):  # a short process, such as one of git, may have ended
            command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            if command != own:  # else it is a copy of the daemon that has not begun its own program
                seen += [command, Path(f"/proc/{process.pid}/environ").read_bytes()]
    assert len(seen) >= 3
    live.evalai.refresh_token("host")
    live.until(lambda: "evalai.token" in live.log)
    ended(daemon)
    seen.append(live.log.encode())
    seen += [
        path.read_bytes() for path in live.state.rglob("*") if path.is_file() and "worker.db" not in path.name
    ]
    seen += [path.read_bytes() for path in live.board.rglob("config")]
    everything = b"\n".join(seen)
    assert token.encode() not in everything
    for secret in (SECRET, KEY.seed.hex()):
        assert secret.encode() not in everything
        assert bytes.fromhex(secret) not in everything


@pytest.mark.processes
def test_systemd_is_notified(live: Harness, tmp_path: Path) -> None:
    """The socket receives ready, watchdog and stopping."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(address))
        channel.settimeout(LIMIT_S)
        daemon = live.run(NOTIFY_SOCKET=str(address))
        heard = {channel.recv(200).split(b"\n")[0] for _ in range(3)}
        daemon.terminate()
        while b"STOPPING=1" not in heard:
            heard.add(channel.recv(200).split(b"\n")[0])
        assert daemon.wait() == 0
    assert {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"} <= heard


BAD_INPUTS = {
    "unwritable state": (
        lambda live: (live.state / "worker.lock").mkdir(parents=True),
        1,
        "/worker.lock (Is a directory)",
    ),
    "unknown key": (lambda live: live.configure({"submission": {"embedding_dims": 3}}), 2, "embedding_dim"),
    "missing file": (lambda live: live.path.unlink(), 2, "no configuration file"),
    "missing ids": (lambda live: (live.folder / "ids.txt").unlink(), 2, "ids.txt"),
    "missing secret": (
        lambda live: (live.folder / "challenge.secret").unlink(),
        2,
        "challenge.secret ... restore it from the backup ... scored again with `neuco-worker challenge apply`",
    ),
    "missing key": (lambda live: (live.folder / "signing.key").unlink(), 2, "challenge.signing_key"),
    "readable secret": (lambda live: (live.folder / "challenge.secret").chmod(0o644), 2, "chmod 600"),
    "unknown token": (lambda live: (live.folder / "token").write_text("0" * 40), 2, "token"),
    "stranger's token": (
        lambda live: (live.folder / "token").write_text(live.evalai.token("otherhost")),
        2,
        "host",
    ),
    "unreachable server": (
        lambda live: live.configure({"evalai": {"server": "http://127.0.0.1:9", "poll_every": 0.5}}),
        1,
        "EvalAI",
    ),
    "wrong challenge": (lambda live: live.configure({"evalai": {"challenge": 8}}), 2, "challenge 7"),
    "wrong phase": (
        lambda live: live.configure(
            {"phases": {"test": {"split": "x", "tasks": "./tasks/dev", "ids": "./ids.txt"}}}
        ),
        2,
        "no phase with the codename test; it has dev, eval",
    ),
    "empty tasks": (
        lambda live: [path.unlink() for path in (live.folder / "tasks" / "dev").iterdir()],
        2,
        "tasks",
    ),
    "foreign label ids": (
        lambda live: (live.folder / "tasks" / "dev" / "alpha__regr.csv").write_text(
            "id,label\nnobody,1\nnothing,2\n"
        ),
        2,
        "alpha__regr.csv",
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("name", BAD_INPUTS)
def test_bad_input_gets_a_sentence_with_a_hint(live: Harness, name: str) -> None:
    """The documented exit code, what is wrong, how to fix it, and no traceback."""
    spoil, code, words = BAD_INPUTS[name]
    spoil(live)
    result = live.once()
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("20")]  # without the log
    assert lines[0].startswith("neuco-worker: ")
    assert [word for word in words.split(" ... ") if word not in "\n".join(lines)] == []
    assert len(lines) >= 2
    assert lines[1].startswith("  ")
    assert "Traceback" not in result.stderr
    assert len(result.stderr) < 4000


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "name", "code"),
    [
        ("run", "missing file", "config.missing"),
        ("run", "missing secret", "secret.missing"),
        ("once", "unknown token", "evalai.token_refused"),
    ],
)
def test_the_final_error_in_the_journal_is_one_json_object(
    live: Harness, command: str, name: str, code: str
) -> None:
    """An error that ends a service, at its start or later, is a line like all others, with code, sentence and hint."""
    BAD_INPUTS[name][0](live)
    journal = live.folder / "daemon.log"
    journal.touch()
    process = live.run(command, JOURNAL_STREAM=f"{journal.stat().st_dev}:{journal.stat().st_ino}")
    assert process.wait() == 2
    lines = [json.loads(line) for line in live.log.splitlines()]
    assert (lines[-1]["event_key"], lines[-1]["level"]) == (code, "critical")
    assert lines[-1]["event"].endswith(".")
    assert lines[-1]["hint"].endswith(".")


@pytest.mark.processes
def test_a_terminal_within_a_desktop_gets_words(live: Harness) -> None:
    """Programs inherit the variable that names the desktop's journal, although their stderr is another file."""
    (live.folder / "challenge.secret").unlink()
    result = live.command("run", JOURNAL_STREAM="8:1")
    assert result.stderr.startswith("neuco-worker: ")


@pytest.mark.processes
def test_no_other_key_signs_for_a_challenge(live: Harness) -> None:
    """The fingerprint that was told stays the challenge's: the state refuses every other key, and names the first one."""
    assert live.once().returncode == 0
    (live.folder / "signing.key").write_text("5a" * 32)
    refused = live.once()
    assert refused.returncode == 2
    assert fingerprint(KEY.public) in refused.stderr


def test_a_deposed_leader_writes_nothing(url: str) -> None:
    """A new leader raises the epoch; the old leader's next write is refused, but a command's is not."""
    now = datetime(2026, 7, 1, 12, tzinfo=UTC)
    with closing(Store(url)) as leader, closing(Store(url)) as successor, closing(Store(url)) as command:
        with leader.lead(now) as tx:
            tx.set_fact("a", "1")
        with successor.lead(now) as tx:
            tx.set_fact("a", "2")
        with pytest.raises(Deposed), leader.write() as tx:
            tx.set_fact("a", "3")
        with command.read() as tx:
            assert tx.fact("a") == "2"
        leader.resign()
        for other in (successor, command, leader):
            with other.write() as tx:
                tx.set_fact("a", "4")


@pytest.mark.processes
def test_a_command_lets_the_leader_push(live: Harness) -> None:
    """The answer is on the board when the command ends, whatever the leader's interval, or the command says why the leader could not."""
    live.configure({"leaderboard": {"publish_every": 3600}})
    daemon = live.run()
    live.until(lambda: "event_key=board.pushed" in live.log)
    pk = live.submit("A", embeddings(1))
    live.until(lambda: live.states().get(pk) == "posted")
    away = live.board.rename(live.folder / "away.git")
    refused = live.command("board", "publish")
    assert refused.returncode != 0
    assert "repository" in refused.stderr
    away.rename(live.board)
    done = live.command("board", "publish")
    assert done.returncode == 0, done.stderr
    assert "Waiting for the running worker to publish the boards." in done.stdout
    assert live.teams() == ["A"]
    assert git(live.board, "rev-parse", "main").strip() in done.stdout
    ended(daemon)
    again = live.command("board", "publish")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("Nothing has changed")
