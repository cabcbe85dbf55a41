"""The plan: properties of the queue, and the command."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.worker.harness.harness import DIM, ROOT, Harness, clean_environment
from worker.challenge.configuration import load
from worker.challenge.files import read_phases
from worker.cli.plan import USUAL, size_of
from worker.organizer.planning import Load, Pace, make_plan, simulate

LOAD = Load(
    submissions=400,
    days=3,
    tasks=9,
    folds=200,
    dim=1024,
    samples=13260,
    epochs=20,
    last_hour=0.25,
    patience_s=3600,
    calls_per_minute=50,
    megabits=200,
    cores=8,
)
PACE = Pace(probe_core_s=0.2, read_s=1.0, start_s=1.0, csv_bytes=160_000_000, kept_bytes=80_000_000, cores=2)


def test_totals_follow_by_arithmetic() -> None:
    """Seconds, hours, disk and calls are computed from load and speed."""
    plan = make_plan(LOAD, PACE)
    assert plan.evaluation_s == pytest.approx(1 + 1 + 9 * 200 * 0.2 / 8)
    assert plan.machine_hours == pytest.approx(400 * plan.evaluation_s / 3600)
    assert plan.disk_bytes == 400 * 80_000_000 + 160_000_000
    assert plan.calls_in_all == 2400
    assert plan.calls_per_minute == pytest.approx(100 * 6 / 60)


def test_a_single_submission_does_not_queue() -> None:
    """It only waits for its own calls, download and evaluation."""
    waits = simulate(LOAD, PACE, 30.0, 1, 1)
    alone = 6 / 50 * 60 + 160_000_000 * 8 / 200e6 + 30.0
    assert waits.median_s == pytest.approx(alone)
    assert waits.longest_s == pytest.approx(alone)


def test_more_machines_never_wait_longer() -> None:
    """Waits fall with machines, and rise with submissions."""
    waits = [simulate(LOAD, PACE, 120.0, 100, machines) for machines in (1, 2, 4, 8)]
    assert all(a.most_s >= b.most_s and a.median_s >= b.median_s for a, b in itertools.pairwise(waits))
    assert simulate(LOAD, PACE, 120.0, 200, 2).most_s > waits[1].most_s


def test_an_overloaded_machine_works_through_the_queue_at_its_speed() -> None:
    """A hundred evaluations of 120 s on one machine end 200 minutes after the first arrival, whatever the calls do."""
    assert simulate(LOAD, PACE, 120.0, 100, 1).longest_s == pytest.approx(100 * 120 - 3600, rel=0.1)


def test_the_plan_names_the_fewest_machines_that_keep_the_patience() -> None:
    """With one machine less, the waits would be too long."""
    slow = replace(PACE, probe_core_s=2.0)
    plan = make_plan(LOAD, slow)
    assert plan.machines is not None
    assert plan.machines > 1
    crowd = 100
    assert simulate(LOAD, slow, plan.evaluation_s, crowd, plan.machines).most_s <= LOAD.patience_s
    assert simulate(LOAD, slow, plan.evaluation_s, crowd, plan.machines - 1).most_s > LOAD.patience_s
    assert plan.bound_by == "scoring" or plan.machines * 3600 / plan.evaluation_s >= crowd


def test_calls_can_be_the_limit() -> None:
    """If EvalAI's limit decides, no number of machines is given, and the plan says so."""
    plan = make_plan(replace(LOAD, submissions=8000, patience_s=600), replace(PACE, probe_core_s=0.001))
    assert plan.machines is None
    assert plan.bound_by == "calls"


def test_the_command_measures_and_prints_one_document() -> None:
    """``plan --json`` prints one JSON document with the figures of its own measurement."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "worker.cli", "plan", "--json", "--submissions", "40", "--tasks", "2"),
            *("--folds", "4", "--dim", "16", "--samples", "300", "--cores", "4"),
        ],
        env=clean_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    document = json.loads(done.stdout)
    pace = document["pace"]
    assert pace["probe_core_s"] > 0
    assert document["evaluation_s"] == pytest.approx(
        pace["start_s"] + pace["read_s"] + 2 * 4 * pace["probe_core_s"] / 4
    )
    assert document["waits"][0]["machines"] == 1
    assert document["load"]["submissions"] == 40


def test_the_plan_is_for_the_challenge_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is for the most expensive phase; without a challenge, for a usual one."""
    monkeypatch.chdir(tmp_path)
    assert size_of(None) == USUAL
    folder = tmp_path / "challenge"
    folder.mkdir()
    with Harness(folder) as harness:
        harness.configure({"phases": {"eval": {"folds": 50}}})
        size = size_of(harness.path)
        phase = read_phases(load(harness.path))["eval"]
    assert (size.phase, size.folds, size.dim) == ("eval", 50, DIM)
    assert (size.tasks, size.samples) == (len(phase.record.tasks), len(phase.ids))
