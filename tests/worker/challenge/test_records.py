"""Phase records: after the first score everything is made from the record, whatever the files and the configuration contain."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import KEY, Harness, StepWorker, embeddings, git, stored, today
from tests.worker.harness.overtaken import Overtaken
from tests.worker.test_promises import lies
from worker.challenge.configuration import load
from worker.challenge.records import PhaseRecord, kept, unpack
from worker.challenge.setups import read_phases, read_record
from worker.fairness.recording import record_phases
from worker.organizer.applying import apply_rules, read_change
from worker.organizer.archiving import write_backup
from worker.organizer.board_by_hand import close
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session
from worker.sandbox import ManualClock
from worker.state import schema

pytestmark = pytest.mark.processes
clock = today


def recorded(worker: StepWorker, phase: str = "dev") -> PhaseRecord:
    """Return the current record of a phase."""
    with worker.store.read() as tx:
        record = read_record(tx, phase)
    assert record is not None
    return record


def rules(harness: Harness) -> str:
    """Apply the rules of the configuration, as an organizer does; return the output."""
    return harness.decide("challenge", "apply", "--reason", "announced on 1 June")


def test_a_record_is_read_as_it_was_written(harness: Harness) -> None:
    """Its document, which has ids, labels, versions, protocol and rules, is the same to the byte; a damaged record is refused."""
    for setup in read_phases(load(harness.path)).values():
        record = setup.record
        again = unpack(record.packed, record.hash)
        assert {"hash", "packed"} <= vars(again).keys()  # a step has no time to make them
        assert (again.document, again.hash) == (record.document, record.hash)
        first = kept(record.hash, lambda _, record=record: record.packed)
        assert kept(record.hash, lambda _: b"") is first  # it is not even loaded again
        for spoilt in (record.packed[:-9], b"", replace(record, engine="torch").packed):
            with pytest.raises(InfrastructureError) as error:
                unpack(spoilt, record.hash)
            assert error.value.code == "record.damaged"


def test_a_scored_phase_needs_no_files(harness: Harness, worker: StepWorker) -> None:
    """It starts, is backed up and revealed from its record; another phase without scores needs its files."""
    harness.submit("A", embeddings(1))
    worker.drive()
    before = recorded(worker).hash
    shutil.rmtree(harness.folder / "tasks" / "dev")
    worker.restart()
    worker.drive()
    assert recorded(worker).hash == before
    assert worker.alerts() == set()
    assert "its files have become unreadable" in harness.command("status").stdout
    assert harness.command("challenge", "apply", "--phase", "eval").returncode == 0
    archive = harness.folder / "backup.zip"
    with open_session(harness.path) as session:
        write_backup(session, harness.path, archive)
        with zipfile.ZipFile(archive) as saved:
            names = saved.namelist()
        assert {name.split("/")[1] for name in names if name.startswith("tasks/")} == {"eval"}
        assert reveal(session, ["dev"], labels=True, open_too=True) == ["dev"]
    worker.drive()
    shown = git(harness.board, "ls-tree", "-r", "--name-only", "main", "reveal/dev/").split()
    assert "reveal/dev/labels/alpha__regr.csv" in shown
    assert lies(harness) == []


def test_a_phase_that_is_removed_is_told(harness: Harness, worker: StepWorker) -> None:
    """Its board is gone, and nobody could reveal it."""
    harness.submit("A", embeddings(1))
    worker.drive()
    document = yaml.safe_load(harness.path.read_text())
    del document["phases"]["dev"]
    harness.path.write_text(yaml.safe_dump(document))
    for command in ("status", "doctor --offline"):
        shown = harness.command(*command.split()).stdout
        assert "Phase dev has scores, but is not in the configuration." in shown


def test_a_child_gets_its_record_in_a_private_file(harness: Harness, worker: StepWorker) -> None:
    """It is in the child's folder, which is removed when the child has ended."""
    harness.submit("A", embeddings(1))
    worker.drive(lambda: worker.daemon.evaluation.busy)
    [place] = (harness.state / "tmp").glob("*/record")
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700
    assert place.read_bytes() == recorded(worker).packed
    worker.drive()
    assert not place.exists()


def test_rules_change_by_a_command_with_a_reason(harness: Harness, worker: StepWorker) -> None:
    """A reload and a rescore keep the recorded rules; the command applies the new ones, and the register has the reason."""
    harness.submit("A", embeddings(1))
    harness.submit("B", embeddings(2))
    worker.drive()
    file = harness.folder / "tasks" / "dev" / "alpha__regr.csv"
    head, *rows = file.read_text().splitlines()
    file.write_text("\n".join([head, *reversed(rows)]) + "\n\n")
    assert "Nothing needs attention" in harness.command("status").stdout  # only the content counts
    harness.configure({"phases": {"dev": {"baselines_weigh": False, "decimals": 0}}})
    (harness.folder / "tasks" / "dev" / "gamma__regr.csv").unlink()
    worker.reload()
    harness.rescore()
    late = harness.submit("C", embeddings(3))
    worker.drive()
    assert set(harness.teams()) == {"A", "B", "C"}
    assert harness.stdout(late)["q_mean"] != round(harness.stdout(late)["q_mean"])
    message = harness.command("status").stdout
    assert "phases.dev.baselines_weigh, phases.dev.decimals changed" in message
    assert "dev: now uses the new baselines_weigh, decimals." in rules(harness)
    assert "dev: nothing to do." in rules(harness)
    after = harness.submit("D", embeddings(4))
    worker.drive()
    assert set(harness.teams()) == {"A", "B", "C", "D"}
    assert harness.stdout(after)["q_mean"] == round(harness.stdout(after)["q_mean"])
    assert "gamma" not in recorded(worker).versions
    assert "Nothing needs attention" in harness.command("status").stdout
    with worker.store.read() as tx:
        last = tx.latest_event("phase", "phase dev")
    assert last is not None
    assert last.fields["reason"] == "announced on 1 June"


def test_rules_change_until_the_board_is_closed(harness: Harness) -> None:
    """A closed board keeps them; an answer that was shown with fewer decimals than the board is no contradiction."""
    harness.configure({"phases": {"dev": {"decimals": 0}}})
    with harness.worker() as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive()
        harness.configure({"phases": {"dev": {"decimals": 3}}})
        assert "dev: now uses the new decimals." in rules(harness)
        harness.decide("board", "close", "--phase", "dev", "--now")
        harness.configure({"phases": {"dev": {"decimals": 1}}})
        assert "dev: nothing to do. The board of dev is closed" in rules(harness)
        assert recorded(worker).rules.decimals == 3
    harness.decide("challenge", "reveal", "--phase", "dev")
    answer = harness.stdout(pk)
    assert answer["q_mean"] == round(answer["q_mean"])
    assert lies(harness, answer) == []


def test_rules_that_another_command_has_changed_meanwhile_stay(harness: Harness, worker: StepWorker) -> None:
    """A person says yes to a change of the rules as they were; values, for example, may have been shown since then."""
    harness.submit("A", embeddings(0))
    worker.drive()
    harness.configure({"phases": {"dev": {"decimals": 1}}})
    with open_session(harness.path) as session:
        change = read_change(session, "dev")
        harness.configure({"phases": {"dev": {"decimals": 2}}})
        rules(harness)
        with pytest.raises(OrganizerError, match="Another command has changed the rules"):
            apply_rules(session, change, reason="of another change")
    assert recorded(worker).rules.decimals == 2
    harness.configure({"phases": {"dev": {"decimals": 3}}})
    with open_session(harness.path) as session:
        change = read_change(session, "dev")
        rules(harness)
        apply_rules(session, change, reason="two equal changes are one")
    assert recorded(worker).rules.decimals == 3


def test_a_phase_without_scores_follows_its_files(tmp_path: Path, fork_server: ForkServer) -> None:
    """Until the first score, a start, a reload or the command applies files, settings and rules, and commits to them; scoring uses them."""
    with (
        Harness(tmp_path, clock=ManualClock(), fork_server=fork_server) as harness,
        harness.worker() as worker,
    ):
        first = recorded(worker).hash
        worker.restart()
        assert recorded(worker).hash == first
        harness.configure({"phases": {"dev": {"decimals": 2, "folds": 5}}})
        worker.reload()
        assert (recorded(worker).rules.decimals, recorded(worker).protocol.folds) == (2, 5)
        harness.add_task("late__regr", seed=1)
        assert "The next start or reload applies the change." in harness.command("status").stdout
        harness.decide("challenge", "apply", "--reason", "a task more")
        (harness.folder / "tasks" / "dev" / "late__regr.csv").write_text("nonsense")
        with pytest.raises(OrganizerError):
            worker.reload()
        harness.submit("A", embeddings(0))
        worker.drive()
        with worker.store.read() as tx:
            assert {cell["task"] for cell in stored(tx, schema.cells)} == {"alpha", "beta", "gamma", "late"}
            reasons = [public["reason"] for public, _ in tx.commitments()]
        changed = "phase dev was changed before anything was scored in it"
        assert reasons == ["the challenge begins", changed, "a task more"]


def test_another_secret_is_refused_until_a_rescore_applies_it(harness: Harness, worker: StepWorker) -> None:
    """Its splits would differ from the committed ones, so a reload fails; a running worker follows a rescore without one."""
    harness.submit("A", embeddings(1))
    worker.drive()
    (harness.folder / "challenge.secret").write_text("6b" * 32)
    with pytest.raises(OrganizerError) as error:
        worker.reload()
    assert error.value.code == "secret.changed"
    assert "Restore the old secret" in error.value.hint
    assert "challenge.secret changed. Restore the old secret." in harness.command("status").stdout
    assert "Since then, challenge.secret changed.\n" in harness.command("challenge", "apply").stdout
    harness.rescore()
    pk = harness.submit("B", embeddings(2))
    worker.drive()
    assert harness.status(pk) == "finished"
    assert worker.alerts() == set()


def test_a_damaged_record_stops_only_its_own_board(harness: Harness, worker: StepWorker) -> None:
    """The phase's submissions wait, and the organizer is told; other boards change, and so does this one after the repair."""

    def store(sql: str, *values: object) -> list[tuple[str, bytes]]:
        with closing(sqlite3.connect(harness.state / "worker.db")) as database, database:
            return database.execute(sql, values).fetchall()

    harness.submit("A", embeddings(1))
    worker.drive()
    before = harness.boards("dev")
    ((name, whole),) = store(
        "SELECT hash, document FROM records JOIN phases ON record = hash WHERE phase = 'dev'"
    )
    store("UPDATE records SET document = x'00' WHERE hash = ?", name)
    with worker.store.write() as tx:
        tx.request_publish()  # a record that was read is looked at again before each board
    worker.drive(lambda: bool(worker.alerts()))
    for phase in ("eval", "dev"):
        harness.submit("B", embeddings(1), phase=phase)
    worker.wait(60)
    assert (harness.teams("eval"), harness.boards("dev")) == (["B"], before)
    assert worker.alerts() == {"record.damaged"}
    with open_session(harness.path) as session, pytest.raises(InfrastructureError) as error:
        close(session, "dev")
    assert error.value.code == "record.damaged"
    store("UPDATE records SET document = ? WHERE hash = ?", whole, name)
    worker.drive()
    assert set(harness.teams("dev")) == {"A", "B"}
    worker.restart()
    assert worker.alerts() == set()


def test_a_start_does_not_take_back_what_a_command_has_committed_to(tmp_path: Path) -> None:
    """Both have read the files of a phase without scores; those that the command has read are newer."""
    now = datetime.now(UTC)
    with Harness(tmp_path) as harness:
        configuration = load(harness.path)

        def command() -> None:
            harness.add_task("newer__regr", seed=2)
            with closing(harness.store()) as store:
                record_phases(store, configuration, KEY, now=now)

        with closing(Overtaken(configuration.database_url)) as store:
            record_phases(store, configuration, KEY, now=now)
            harness.add_task("older__regr", seed=1)
            store.faster = command
            record_phases(store, configuration, KEY, now=now)
            with store.read() as tx:
                (_, first), (_, second) = tx.commitments()
    tasks = [{task["identifier"] for task in each["manifests"]["dev"]["tasks"]} for each in (first, second)]
    assert tasks[1] == tasks[0] | {"newer", "older"}
