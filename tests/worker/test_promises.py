"""Fairness with a running worker and disagreeing clocks: an honest challenge never has a contradiction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from scoring.errors import OrganizerError
from tests.worker.harness.drand import drawing
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import KEY, Harness, StepWorker, embeddings, git, today
from worker.challenge.configuration import load
from worker.challenge.secrets import public_value
from worker.challenge.setups import read_phase, read_phases, read_secret
from worker.fairness import commitments
from worker.organizer.rehearsal.practice_draw import practice_chain, sign
from worker.organizer.rescoring import carry_out, make_plan
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session
from worker.sandbox import ManualClock
from worker.verify import Status, receipt_verdicts, verdicts
from worker.verify.public import opened as opened_repository

pytestmark = pytest.mark.processes
clock = today

SET_BACK_S = 200  # within what a check forgives between a commitment and a score


def lies(harness: Harness, stdout: Mapping[str, Any] | None = None) -> list[str]:
    """Return the contradictions in the repository, and in what participants were shown."""
    with opened_repository(str(harness.board)) as repository:
        all_verdicts = list(verdicts(repository))
        if stdout is not None:
            all_verdicts += receipt_verdicts(repository, stdout["receipt"], stdout["q_mean"])
    return [verdict.sentence for verdict in all_verdicts if verdict.status is Status.CONTRADICTED]


def test_disagreeing_clocks_cause_no_contradiction(harness: Harness, worker: StepWorker) -> None:
    """The worker's clock is set back between two boards, and a rescore uses another machine's clock, which is ahead."""
    harness.submit("A", embeddings(0))
    worker.drive()
    worker.clock.advance(-SET_BACK_S)
    harness.submit("B", embeddings(1))
    worker.drive()
    (harness.folder / "tasks" / "dev" / "gamma__regr.csv").unlink()
    with open_session(harness.path) as session:
        ahead = replace(session, clock=lambda: worker.clock.now() + timedelta(seconds=SET_BACK_S / 2))
        assert carry_out(ahead, make_plan(ahead, ahead.phase("dev"))) == 2
    worker.drive()
    harness.submit("C", embeddings(0))
    worker.drive()
    with worker.store.read() as tx:
        made = [json.loads(text)["made_at"] for text in tx.boards("dev")]
    assert len(made) == 4
    assert made == sorted(made)
    harness.decide("challenge", "reveal", "--open", "--phase", "dev")
    assert lies(harness) == []


def test_commitments_are_in_the_order_of_their_times(harness: Harness, worker: StepWorker) -> None:
    """A commitment made with a clock that is behind still gets a later time."""
    worker.drive()
    configuration = load(harness.path)
    now = datetime.now(UTC)
    with worker.store.write() as tx:
        phases = read_phases(configuration).values()
        for moment in (now, now - timedelta(hours=1)):
            commitments.begin(tx, KEY, read_secret(configuration), phases, reason="again", now=moment)
        times = [public["made_at"] for public, _ in tx.commitments()]
    assert len(times) == 3
    assert times == sorted(times)


def test_a_beacon_cannot_be_undone(tmp_path: Path, fork_server: ForkServer) -> None:
    """A process that read the phases before the value was mixed in cannot commit to them; one that reads them later has the value."""
    now = datetime.now(UTC)
    rounds = practice_chain(genesis=int(now.timestamp()) - 1000)
    changes = drawing(tmp_path, rounds, "http://127.0.0.1:9", notice_s=30)
    with (
        Harness(tmp_path, clock=ManualClock(now), changes=changes, fork_server=fork_server) as harness,
        harness.worker() as worker,
    ):
        worker.drive()
        configuration = load(harness.path)
        secret, before = read_secret(configuration), read_phases(configuration)
        with worker.store.read() as tx:
            (draw, _) = commitments.waiting(tx).values()
        worker.clock.advance(40)
        with worker.store.write() as tx:
            commitments.mix_in(
                tx, KEY, secret, [*before], sign(draw.round), reason="drawn", now=worker.clock.now()
            )
            committed = len(tx.commitments())
        with worker.store.write() as tx, pytest.raises(OrganizerError) as error:
            commitments.begin(tx, KEY, secret, before.values(), now=worker.clock.now())
        assert error.value.code == "secret.edited"
        with worker.store.write() as tx:
            entries = tx.public_commitments()
            mixed = [read_phase(configuration, name, secret, public_value(entries, name)) for name in before]
            commitments.begin(tx, KEY, secret, mixed, now=worker.clock.now())
            assert len(tx.commitments()) == committed
        harness.submit("A", embeddings(1))
        worker.restart()
        worker.drive()
        harness.decide("challenge", "reveal", "--open")
        assert lies(harness) == []


def test_a_failed_reveal_leaves_nothing(harness: Harness, worker: StepWorker) -> None:
    """With another secret than the committed one, no batch is closed and no document stored."""
    harness.submit("A", embeddings(0))
    worker.drive()
    (harness.folder / "challenge.secret").write_text("6b" * 32)
    with open_session(harness.path) as session, pytest.raises(OrganizerError) as error:
        reveal(session, ["dev", "eval"], labels=True, open_too=True)
    assert error.value.code == "secret.changed"
    with worker.store.read() as tx:
        assert (tx.batches(), tx.reveals()) == ([], {})


@pytest.mark.parametrize("shown", ["at_once", "at_end"])
def test_a_phase_with_a_wrong_name_is_revealed_after_all_others(
    harness: Harness, worker: StepWorker, shown: str
) -> None:
    """It was committed to, so nothing is complete without it; its tasks are those of another phase, so they stay hidden until the end."""
    written = harness.path.read_text()
    document = yaml.safe_load(written)
    document["phases"]["evla"] = document["phases"].pop("eval") | {"shown": shown}
    harness.path.write_text(yaml.safe_dump(document))
    worker.reload()
    harness.path.write_text(written)
    worker.reload()
    harness.submit("A", embeddings(0))
    worker.drive()
    harness.decide("board", "close", "--phase", "dev", "--now")
    words = ("challenge", "reveal", "--yes", "--phase", "evla")
    assert "Still open: eval." in harness.command(*words).stderr
    harness.decide("board", "close", "--phase", "eval", "--now")
    assert "not in the configuration: evla." in harness.decide("challenge", "reveal")
    assert Status.NOT_REVEALED in {verdict.status for verdict in harness.verdicts()}
    assert "evla are published" in harness.decide(*words)
    assert not {Status.NOT_REVEALED, Status.CONTRADICTED} & {verdict.status for verdict in harness.verdicts()}
    assert "not in the configuration" not in harness.decide("challenge", "reveal")


@pytest.mark.slow
def test_only_closed_phases_are_revealed_and_only_once(harness: Harness, worker: StepWorker) -> None:
    """Tasks of an open phase stay hidden unless the organizer insists; what is added later, another phase or labels, is revealed alone."""

    def reveal_them(*options: str) -> tuple[str, list[str], dict[str, str]]:
        before = git(harness.board, "rev-parse", "main").strip()
        done = harness.command("challenge", "reveal", "--yes", *options)
        commits = git(harness.board, "log", "--format=%s", f"{before}..main").splitlines()
        paths = git(harness.board, "ls-tree", "-r", "--name-only", "main", "reveal/").split()
        documents = {path.split("/")[1]: path for path in paths if path.endswith("reveal.json")}
        times = {name: json.loads(harness.published(path))["revealed_at"] for name, path in documents.items()}
        return done.stdout + done.stderr, commits, times

    harness.submit("A", embeddings(0))
    harness.submit("A", embeddings(0), phase="eval")
    worker.drive()
    message, _, revealed = reveal_them()
    assert ("Still open: dev, eval." in message, revealed) == (True, {})
    harness.decide("board", "close", "--phase", "dev", "--now")
    message, _, revealed = reveal_them("--phase", "dev", "--phase", "eval")
    assert ("Still open: eval." in message, revealed) == (True, {})
    message, _, first = reveal_them("--no-labels")
    assert "Not revealed, because still open or not in the configuration: eval." in message
    assert set(first) == {"dev"}
    with closing(harness.store()) as store, store.write() as tx:  # the next promise is later, to the second
        tx.attestation_time(worker.clock.now() + timedelta(hours=1))
    message, commits, times = reveal_them("--phase", "dev", "--no-labels")
    assert "Already revealed and unchanged since: dev." in message
    assert (commits, times) == ([], first)
    _, commits, times = reveal_them("--open", "--no-labels")
    assert not [subject for subject in commits if "Reveal phase dev" in subject]
    assert (set(times), times["dev"]) == ({"dev", "eval"}, first["dev"])
    _, commits, times = reveal_them("--open")
    published = git(harness.board, "ls-tree", "-r", "--name-only", "main", "reveal/")
    assert (commits, "labels" in published) == ([], False)
    _, commits, later = reveal_them("--phase", "dev", "--labels")
    assert any("Open what is new in phase dev" in subject for subject in commits)
    assert later["dev"] > first["dev"]
    assert later["eval"] == times["eval"]
    message, commits, _ = reveal_them("--phase", "dev", "--no-labels")
    assert ("Already revealed and unchanged since: dev." in message, commits) == (True, [])
    assert lies(harness) == []
