"""The doctor: every check finds a planted fault, a healthy challenge has no findings, and nothing is changed outside."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import flask
import numpy as np
import pandas as pd
import pytest
import requests

from tests.leaderboard.harness.git_server import serve
from tests.waiting import LIMIT_S
from tests.worker.harness.harness import git
from tests.worker.harness.terminal import shown
from tests.worker.organizer.doctor_faults import (
    FAULTS,
    HARMLESS,
    HEALTHY_PHASES,
    MISCONFIGURED,
    ROWS,
    SECRET_LABEL,
    SHADES,
    SOON,
    UNKNOWN,
    Fault,
    FaultyChallenge,
    Plant,
    changing,
    close,
    example_tasks,
    grouped,
    label_rows,
    misconfigured,
    public_ids,
    recorded,
    write_healthy,
)
from worker.challenge.configuration import EXAMPLE_REPOSITORY
from worker.cli import guarded
from worker.organizer.doctor import CHECKS, Examination, Level
from worker.organizer.scaffold import EXAMPLE_QUEUE
from worker.sandbox import Fault as Spoilt
from worker.sandbox import FaultPlan, Listener, fields

FINDINGS = (Level.WARN, Level.FAIL)


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The healthy challenge, from which every faulty one is copied."""
    folder = tmp_path_factory.mktemp("healthy")
    write_healthy(folder)
    return folder


@pytest.fixture
def challenge(healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyChallenge]:
    """A copy of the healthy challenge."""
    folder = tmp_path / "etc" / "neuco-worker" / "earth"
    shutil.copytree(healthy, folder)
    folder.chmod(0o755)
    with FaultyChallenge(folder=folder, monkeypatch=monkeypatch) as challenge:
        yield challenge


def test_every_check_has_a_fault_that_proves_it() -> None:
    """No check is without a planted fault, and no two have the same id."""
    assert sorted(check.id for check in CHECKS) == sorted(FAULTS)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("identifier", "fault"),
    [*FAULTS.items(), *SHADES],
    ids=[*FAULTS, *(f"{identifier}-{number}" for number, (identifier, _) in enumerate(SHADES))],
)
def test_a_check_finds_its_fault(challenge: FaultyChallenge, identifier: str, fault: Fault) -> None:
    """The check itself, and not another one, finds its fault, and says what to do."""
    level, plant = fault
    plant(challenge)
    report = challenge.examine(identifier)
    (outcome,) = report.outcomes
    findings = [finding for finding in outcome.findings if finding.level in FINDINGS]
    assert outcome.level is level, outcome.findings
    assert all(finding.sentence.endswith((".", "?")) and finding.hint for finding in findings)
    assert "check itself failed" not in str(findings)
    assert SECRET_LABEL not in json.dumps(report.to_json())


@pytest.mark.processes
@pytest.mark.parametrize(("identifier", "plant"), HARMLESS, ids=[identifier for identifier, _ in HARMLESS])
def test_what_is_harmless_is_no_finding(challenge: FaultyChallenge, identifier: str, plant: Plant) -> None:
    """Such as a folder that is closed above, or a configuration of git that the worker does not read."""
    plant(challenge)
    assert problems(challenge.examine(identifier)) == {}


@pytest.mark.processes
@pytest.mark.parametrize("identifier", UNKNOWN)
def test_what_was_not_checked_does_not_pass(challenge: FaultyChallenge, identifier: str) -> None:
    """The reason is named instead: there is nothing to look at, or only its use would show whether it is right."""
    UNKNOWN[identifier](challenge)
    assert challenge.examine(identifier).outcomes[0].level is Level.SKIPPED


@pytest.mark.processes
def test_a_file_that_cannot_be_read_is_told_once(challenge: FaultyChallenge) -> None:
    """The system's reason is given with the path, and all other checks go on."""
    challenge.change({"phases": {"dev": {"tasks": "x" * 300}}})
    failed = challenge.examine(offline=True).at(Level.FAIL)
    (sentence,) = (finding.sentence for outcome in failed for finding in outcome.findings)
    assert re.search(r"/earth/x+ cannot be used: File name too long\.", sentence)


@pytest.mark.processes
def test_a_database_without_a_state_stays_as_it_is(challenge: FaultyChallenge) -> None:
    """It may be a new one, or somebody else's: only a start makes tables in it."""
    (challenge.folder / "state").mkdir(mode=0o700)
    with closing(sqlite3.connect(challenge.folder / "state" / "worker.db")) as database:
        database.execute("CREATE TABLE of_others (x)")
        assert (
            problems(challenge.examine("records.pause", "records.same", "board.push", "evalai.launch")) == {}
        )
        tables = database.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("of_others",)]


@pytest.mark.processes
def test_a_folder_that_git_cannot_use_has_gits_reason(challenge: FaultyChallenge) -> None:
    """No server is involved that could be out of reach."""
    board = challenge.folder / "board.git"
    shutil.rmtree(board)
    git(challenge.folder, "init", "-q", "--bare", "-b", "main", "--object-format=sha256", str(board))
    ((sentence,),) = problems(challenge.examine("board.push")).values()
    assert sentence.startswith(f"git cannot use {board}: ")


@pytest.mark.processes
def test_a_user_name_in_the_repositorys_address_is_not_shown(challenge: FaultyChallenge) -> None:
    """It is often a token."""
    with serve(challenge.folder, SECRET_LABEL) as server:
        challenge.private("board.token", SECRET_LABEL)
        address = f"{server.url.replace('://', f'://{SECRET_LABEL}@')}/board.git"
        challenge.change({"leaderboard": {"repository": address, "token": "file:board.token"}})
        (outcome,) = challenge.examine("board.push").outcomes
    text = " ".join(finding.sentence for finding in outcome.findings)
    assert f"of {server.url}/board.git: a dry run of a push succeeded" in text
    assert SECRET_LABEL not in text


@pytest.mark.processes
def test_the_doctor_survives_a_ray_that_aborts(
    challenge: FaultyChallenge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does Ray if its processes see another /tmp/ray than the one that connects."""
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray.py").write_text("import os\n\nos.abort()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "ray"))
    challenge.change({"scoring": {"engine": "ray"}})
    ((sentence,),) = problems(challenge.examine("labels.cost")).values()
    assert sentence == "Ray ended the process that connected to the cluster at 'auto' (SIGABRT)."


EVALAI = [check.id for check in CHECKS if check.group == "evalai" and check.id != "evalai.token"]


def problems(report: Examination) -> dict[str, list[str]]:
    """Return for each check the sentences of what is wrong or unknown."""
    return {
        outcome.check.id: [finding.sentence for finding in outcome.findings if finding.level is not Level.OK]
        for outcome in report.outcomes
        if outcome.level is not Level.OK
    }


@pytest.mark.processes
@pytest.mark.parametrize(
    ("identifier", "words", "what", "changes"),
    MISCONFIGURED,
    ids=[f"{what}-{next(iter(changes))}" for _, _, what, changes in MISCONFIGURED],
)
def test_each_misconfiguration_at_evalai_is_named_once(
    challenge: FaultyChallenge, identifier: str, words: str, what: str, changes: dict[str, Any]
) -> None:
    """Exactly one check has exactly one finding, which names the setting; the others find nothing, or depend on that one."""
    misconfigured(what, changes)(challenge)
    found = problems(challenge.examine(*EVALAI))
    (sentence,) = found.pop(identifier)
    assert words in sentence
    assert all(others == [f"{identifier} failed."] for others in found.values()), found


@pytest.mark.processes
@pytest.mark.parametrize("approved", [True, False])
def test_before_the_approval_a_note_names_the_price(challenge: FaultyChallenge, *, approved: bool) -> None:
    """It is a note, because only EvalAI's team knows what a challenge costs."""
    misconfigured("challenge", {"approved_by_admin": approved})(challenge)
    (outcome,) = challenge.examine("evalai.launch").outcomes
    notes = [finding.sentence for finding in outcome.findings if finding.level is Level.OK]
    assert [sentence.startswith("Ask EvalAI about the price") for sentence in notes] == [True] * (
        not approved
    )


@pytest.mark.processes
def test_a_later_phase_that_waits_is_in_order_while_another_one_is_open(challenge: FaultyChallenge) -> None:
    """The last phase begins later and is not public yet, as it should be; if no phase is open, each one that waits is named."""
    challenge.prepare = lambda evalai: evalai.set_phase(
        "eval", is_public=False, start_date=evalai.world.clock.now() + SOON
    )
    assert problems(challenge.examine(*EVALAI)) == {}
    challenge.evalai.set_phase("dev", is_public=False)
    dev, last = problems(challenge.look(*EVALAI))["evalai.launch"]
    assert ("phase dev only from hosts" in dev, "phase eval yet" in last) == (True, True)


@pytest.mark.processes
def test_before_the_opening_no_phase_is_public_and_after_it_each_must_be(challenge: FaultyChallenge) -> None:
    """By the day in the configuration; a phase that is public too early is named, too."""
    challenge.prepare = lambda evalai: evalai.set_phase("dev", is_public=False)
    opens = datetime.now(UTC) + timedelta(days=1)
    challenge.change({"phases": {"dev": {"opens": opens}}})
    assert problems(challenge.examine("evalai.launch")) == {}
    challenge.ahead = timedelta(days=2)
    (finding,) = challenge.look("evalai.launch").at(Level.FAIL)[0].findings
    assert ("only from hosts" in finding.sentence, f"{opens:%Y-%m-%d}" in finding.hint) == (True, True)
    challenge.ahead = timedelta()
    challenge.evalai.set_phase("dev", is_public=True)
    (sentence,) = problems(challenge.look("evalai.launch"))["evalai.launch"]
    assert "although it opens only on" in sentence


@pytest.mark.processes
def test_a_phase_that_is_over_is_in_order_once_it_is_closed(challenge: FaultyChallenge) -> None:
    """Until then, its end is told; afterwards, that EvalAI still accepts submissions to it. When all are closed, the challenge may end."""
    recorded(lambda _: None)(challenge)
    challenge.evalai.set_phase("dev", end_date=datetime.now(UTC))

    def launch() -> list[str]:
        return problems(challenge.look("evalai.launch")).get("evalai.launch", [])

    (sentence,) = launch()
    assert "which ended on" in sentence
    close(challenge, "dev")
    assert launch() == []
    challenge.evalai.set_phase("dev", end_date=datetime.now(UTC) + SOON)
    (sentence,) = launch()
    assert "they do not count, because the phase is closed" in sentence
    close(challenge, "eval")
    challenge.evalai.end_challenge()
    assert launch() == []


@pytest.mark.processes
def test_what_was_read_is_compared_although_a_later_call_fails(challenge: FaultyChallenge) -> None:
    """EvalAI does not show what only hosts see of a leaderboard: the rest is compared, and this is a failure."""
    misconfigured("phase", {"show_scores_on_leaderboard": False, "disable_logs": True})(challenge)
    challenge.open()
    with Leaving(challenge.evalai.url, failing="create/challenge_phase_split/") as proxy:
        challenge.change({"evalai": {"server": proxy.url}})
        challenge.open()
        found = problems(challenge.look(*EVALAI))
    assert "disable_logs" in found["evalai.phase_settings"][0]
    first, failed = found["evalai.leaderboards"]
    assert ("shows no values" in first, "did not send a usable answer" in failed) == (True, True)


@pytest.mark.processes
def test_a_setting_that_evalai_does_not_send_is_unknown_and_never_good(challenge: FaultyChallenge) -> None:
    """Each field that is compared is left out once, and missed by its name; all others together are not missed."""
    dev, last = HEALTHY_PHASES  # the order of one leaderboard is in its schema, that of the other is not
    challenge.settings = replace(challenge.settings, phases=(replace(dev, sort_ascending=False), last))
    challenge.open()
    compared = {key for _, _, _, changes in MISCONFIGURED for key in changes} | {"is_public"}
    with Leaving(challenge.evalai.url) as proxy:
        challenge.change({"evalai": {"server": proxy.url}})
        challenge.open()
        proxy.left_out = every_field() - compared - NEEDED
        assert problems(challenge.look(*EVALAI)) == {}
        for key in compared - {"is_disabled"}:  # which is in no answer
            proxy.left_out = {key}
            found = problems(challenge.look(*EVALAI))
            words = "in ascending order" if key == "sort_ascending" else f"EvalAI does not say {key} of"
            assert words in str(found), key
            assert all(len(set(sentences)) == len(sentences) for sentences in found.values()), key


@pytest.mark.processes
def test_an_odd_answer_of_evalai_is_told_and_stops_no_check(challenge: FaultyChallenge) -> None:
    """What EvalAI's database cannot hold, or its own code cannot read, is unknown or wrong, and no check fails itself."""
    phases = tuple(replace(phase, sort_ascending=False) for phase in HEALTHY_PHASES)
    challenge.settings = replace(challenge.settings, phases=phases)
    challenge.open()
    with Leaving(challenge.evalai.url) as proxy:
        challenge.change({"evalai": {"server": proxy.url}})
        challenge.open()
        second_split = {"challenge_phase": challenge.evalai.phase_pk("dev")}
        for identifier, words, replaced in [
            *ODD,
            ("evalai.phases", "another dataset split eval_split", second_split),
        ]:
            proxy.replaced = replaced
            found = problems(challenge.look(*EVALAI))
            assert "check itself failed" not in str(found), replaced
            assert words in str(found[identifier]), (replaced, found)


ODD: list[tuple[str, str, dict[str, Any]]] = [
    ("evalai.launch", "does not say start_date of the challenge", {"start_date": None}),
    ("evalai.launch", "does not say end_date of phase dev", {"end_date": None}),
    ("evalai.launch", "does not say is_public of phase dev", {"is_public": "true"}),
    ("evalai.launch", "does not say allowed_email_ids of phase dev", {"allowed_email_ids": "a@example.org"}),
    ("evalai.storage", "does not say evaluation_script of the challenge", {"evaluation_script": 7}),
    ("evalai.storage", "does not say where it stores files", {"evaluation_script": "/media/script.zip"}),
    ("evalai.leaderboards", "is ordered by None", {"default_order_by": None}),
    ("evalai.leaderboards", "is ordered by other", {"default_order_by": "other"}),
    ("evalai.leaderboards", "does not say metadata", {"metadata": ["q_mean"]}),
    ("evalai.leaderboards", "does not say q_mean", {"metadata": {"q_mean": "sort_ascending"}}),
    ("evalai.leaderboards", "in ascending order (sort_ascending)", {"metadata": {"q_mean": {}}}),
    ("evalai.leaderboards", "in ascending order (sort_ascending)", {"sort_ascending": "False"}),
]
"""A check, words of what it says, and what EvalAI sends instead of fields."""


@pytest.mark.processes
@pytest.mark.parametrize("failed", ["configuration.file", "evalai.server"])
def test_what_depends_on_a_failed_check_is_skipped(challenge: FaultyChallenge, failed: str) -> None:
    """Each error is reported once; checks of what could not be read guess nothing, and name the failed check."""
    _, plant = FAULTS[failed]
    plant(challenge)
    report = challenge.examine()
    assert [outcome.check.id for outcome in report.at(Level.FAIL)] == [failed]
    (finding,) = next(o for o in report.outcomes if o.check.id == "evalai.launch").findings
    assert (finding.level, finding.sentence) == (Level.SKIPPED, f"{failed} failed.")


NEEDED = {
    "id",
    "codename",
    "challenge",
    "challenge_phase",
    "dataset_split",
    "leaderboard_schema",
    "evaluation_script",
}
"""Without these, an answer cannot be read, or there is nothing to compare."""


def every_field() -> set[str]:
    """Return the fields of all answers that the doctor reads."""
    lists = [value for name, value in vars(fields).items() if name.isupper()]
    return {name for names in lists for name in names}


class Leaving:
    """A proxy of EvalAI that leaves fields out of every JSON answer or replaces them, and fails at some addresses."""

    def __init__(self, server: str, *, failing: str = "nothing") -> None:
        self.left_out: set[str] = set()
        self.replaced: dict[str, Any] = {}
        app = flask.Flask("leaving-proxy")

        @app.get("/<path:path>")
        def get(path: str) -> flask.Response:
            if failing in path:
                flask.abort(500)
            sent = {"Authorization": flask.request.headers["Authorization"]}
            answer = requests.get(f"{server}/{path}", headers=sent, timeout=60)
            return flask.Response(
                json.dumps(self._without(answer.json())), answer.status_code, mimetype="application/json"
            )

        self._listener = Listener(app)
        self.url = self._listener.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _without(self, document: Any) -> Any:
        if isinstance(document, list):
            return [self._without(item) for item in document]
        if isinstance(document, dict):
            return {
                key: self.replaced.get(key, self._without(value))
                for key, value in document.items()
                if key not in self.left_out
            }
        return document


def fingerprint(folder: Path) -> dict[str, tuple[int, str]]:
    """Return every file of a folder with its mode and the hash of its content."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.processes
def test_a_healthy_challenge_has_no_finding_and_is_not_changed(challenge: FaultyChallenge) -> None:
    """Nothing is found or skipped, received, written, pushed or posted, and no file of the challenge is made or changed."""
    challenge.open()
    waiting = challenge.evalai.submit("A", "dev", b"id,0\n")
    before, entries = fingerprint(challenge.folder), len(challenge.evalai.journal)
    report = challenge.look()
    skipped = challenge.folder / "bundle.zip"
    assert problems(report) == {"configuration.bundle": [f"There is no {skipped}."]}
    assert len(report.outcomes) == len(CHECKS)
    assert fingerprint(challenge.folder) == before
    made = list(challenge.evalai.journal)[entries:]
    assert {(entry.kind, entry.method) for entry in made} == {("request", "GET")}
    assert not [entry for entry in made if entry.path.startswith("/api/jobs/challenge/queues/")]
    assert len(made) <= 11
    assert challenge.evalai.submission(waiting)["status"] == "submitted"
    assert git(challenge.folder / "board.git", "for-each-ref") == ""
    challenge.webhook.settimeout(LIMIT_S)
    connection, _ = challenge.webhook.accept()
    with connection:
        connection.settimeout(LIMIT_S)
        assert connection.recv(1) == b""  # connected, and hung up without a word


@pytest.mark.processes
def test_the_command_shows_failures_first_and_ends_with_1(
    challenge: FaultyChallenge, capsys: pytest.CaptureFixture[str]
) -> None:
    """Faults come first with their hints, each counted; then each group has a line, and what was examined is named."""
    (challenge.folder / "dev.txt").write_text("\n".join(public_ids("dev")[::-1]))
    (challenge.folder / "eval.txt").write_text("\n".join(public_ids("eval")[::-1]))
    FAULTS["evalai.launch"][1](challenge)
    challenge.open()
    assert guarded(["doctor", "--config", str(challenge.path)]) == 1
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "2 problems to fix"
    assert all("is not sorted" in line for line in (lines[1], lines[3]))
    assert "LC_ALL=C sort" in lines[2]
    assert lines[6] == "1 warning"
    assert "is not published" in lines[7]
    for words in (
        "- Configuration: 3 passed, 1 skipped (There is no",
        "✗ Public ids: 3 passed, 1 failed",
        "! EvalAI: 9 passed, 1 with warnings",
        "“Healthy” with the phases dev, eval",
        "Phase dev: 80 public ids, 3 tasks.",
        "Phase dev: scoring a submission takes about",
        "Challenge 7",
        "Branch main of",
        "In a new phase, scoring begins at least 10 minutes after the commitment to the phase.",
        "a dry run of a push succeeded; nothing has been pushed yet",
    ):
        assert any(words in line for line in lines[10:]), words
    assert lines[-1].startswith(
        f"{len(CHECKS)} checks: {len(CHECKS) - 3} passed, 1 with warnings, 1 failed, 1 skipped."
    )
    for hidden in (
        challenge.evalai.token("host"),
        "services/hidden",
        os.fspath(challenge.folder / "challenge.secret"),
    ):
        assert hidden not in captured.out + captured.err


@pytest.mark.processes
def test_advice_about_epochs_is_one_number_for_all_phases(challenge: FaultyChallenge) -> None:
    """It is enough for every task, or for all others without the task that needs the most, which is named if that makes a difference."""
    challenge.change({"scoring": {"epochs": 1, "batch_size": 10_000}})
    (finding,) = challenge.examine("labels.steps").outcomes[0].findings
    assert "drop" not in finding.hint
    challenge.change({"scoring": {"epochs": 1, "batch_size": 64}})
    labels = label_rows("dev")["gamma__regr.csv"]
    challenge.labels("dev", "gamma__regr.csv", labels[:25])
    (outcome,) = challenge.examine("labels.steps").outcomes
    (finding,) = outcome.findings
    found = re.search(
        r"scoring.epochs to (\d+) .*drop gamma in phase dev, .*; (\d+) epochs are enough", finding.hint
    )
    assert found is not None, finding
    most, others = map(int, found.groups())
    assert most > others > 1
    challenge.change({"scoring": {"epochs": others}})
    (finding,) = challenge.examine("labels.steps").outcomes[0].findings
    assert finding.sentence.startswith("The probes of gamma in phase dev train")
    challenge.change({"scoring": {"epochs": most}})
    assert challenge.examine("labels.steps").outcomes[0].findings == ()


@pytest.mark.processes
def test_a_terminal_shows_what_is_being_checked(challenge: FaultyChallenge) -> None:
    """The checks are counted, since some take long."""
    challenge.open()
    words = f"of {len(CHECKS)}: Does a submission fit its limits"
    assert words in shown("doctor", "--offline", "--config", str(challenge.path), until=words)


@pytest.mark.processes
def test_all_placeholders_are_one_problem(challenge: FaultyChallenge) -> None:
    """They are named with what to enter; what depends on them is not checked, but the other phase is."""
    challenge.change({"evalai": {"challenge": 0, "queue": EXAMPLE_QUEUE}})
    challenge.change({"leaderboard": {"repository": EXAMPLE_REPOSITORY}})
    example_tasks(challenge)
    challenge.labels("dev", "late__regr.csv", [("img_nowhere", "1")])
    (outcome,) = challenge.examine().at(Level.FAIL)
    (finding,) = outcome.findings
    assert finding.sentence == (
        "What `init` wrote as an example is still in place: 4 files of phase dev, leaderboard.repository,"
        " evalai.challenge, evalai.queue."
    )
    for words in ("your own label files", "your own repository", "Upload bundle.zip"):
        assert words in finding.hint
    rows = [("img_nowhere", "1"), *label_rows("eval")["alpha__regr.csv"]]
    challenge.labels("eval", "alpha__regr.csv", rows)
    (finding,) = challenge.look("labels.files").outcomes[0].findings
    assert "eval/alpha__regr.csv" in finding.sentence


@pytest.mark.processes
def test_a_baseline_shows_how_much_neighbors_leak(challenge: FaultyChallenge) -> None:
    """Embeddings that only know their tile predict the mean of its labels, which random splits reward and splits by group do not."""
    tiles = np.arange(ROWS) % 20
    of_tile = np.random.RandomState(0).standard_normal(20)[tiles]
    ids = public_ids("dev")
    for name in label_rows("dev"):
        labels = of_tile > 0 if "__cls" in name else of_tile
        challenge.labels("dev", name, [(i, float(value)) for i, value in zip(ids, labels, strict=True)])
    grouped(lambda row: f"tile {tiles[row]}")(challenge)
    changing(
        submission={"embedding_dim": 20},
        scoring={"epochs": 200, "learning_rate": 0.05},
    )(challenge)
    baseline = challenge.folder / "baseline.csv"
    table = pd.DataFrame(np.eye(20)[tiles], index=pd.Index(ids, name="id"))
    table.to_csv(baseline)
    challenge.open()
    (outcome,) = challenge.look("labels.groups", offline=True, baseline=baseline).outcomes
    divided, *_, compared = (finding.sentence for finding in outcome.findings)
    assert divided == (
        "Phase dev, alpha, beta, gamma: 20 groups of 80 samples, the largest with 4; 10 folds with 9 different test parts of 8 to 8"
        " samples."
    )
    assert re.search(
        r"mean score is 1\.00 with random splits and -\d+\.\d\d by group: neighbours leak", compared
    )


@pytest.mark.processes
def test_groups_that_are_too_large_are_told(challenge: FaultyChallenge) -> None:
    """A group with a fifth of the samples is never tested on, and a class that is in one group leaves test parts without it."""
    rare = [(name, int(row < 8)) for row, (name, _) in enumerate(label_rows("dev")["beta__cls.csv"])]
    challenge.labels("dev", "beta__cls.csv", rare)
    grouped(lambda row: "large" if 8 <= row < 40 else f"tile {row // 4}")(challenge)
    challenge.open()
    (outcome,) = challenge.look("labels.groups", offline=True).outcomes
    sentences = "\n".join(finding.sentence for finding in outcome.findings)
    assert (
        "40% of the samples are never tested on, because their groups (1) have at least 20% of all each"
        in sentences
    )
    assert re.search(r"\d of 10 folds of beta have no positive sample", sentences)
    assert "doctor --baseline FILE" in sentences


@pytest.mark.processes
def test_warnings_alone_end_with_0_and_json_is_one_document(
    challenge: FaultyChallenge, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json stdout has only one document, and waits are reported on stderr; --offline makes no call, and --all shows each check."""
    changing(phases={"dev": {"folds": 3}})(challenge)
    challenge.open()
    challenge.evalai.set_faults(FaultPlan(storm_s=0.5))  # Retry-After has whole seconds: 1
    challenge.evalai.faults.force(Spoilt.STORM)
    command = ["doctor", "--config", str(challenge.path)]
    assert guarded([*command, "--json"]) == 0
    printed = capsys.readouterr()
    assert "waiting 1 s, as EvalAI asks" in printed.err
    document = json.loads(printed.out)
    assert document["counts"] == {"ok": len(CHECKS) - 2, "skipped": 1, "warn": 1, "fail": 0}
    (warned,) = [check for check in document["checks"] if check["result"] == "warn"]
    assert warned["id"] == "configuration.phases"
    assert warned["findings"][0]["hint"]
    entries = len(challenge.evalai.journal)
    assert guarded([*command, "--offline", "--all"]) == 0
    assert len(challenge.evalai.journal) == entries
    page = capsys.readouterr().out
    for check in CHECKS:
        unread = check.remote or check.id == "configuration.bundle"
        mark = "-" if unread else "!" if check.id == warned["id"] else "✓"
        assert f"{mark} {check.question}" in page
