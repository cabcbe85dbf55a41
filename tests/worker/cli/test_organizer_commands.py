"""The organizer's commands during a challenge: submissions, boards, a retry, a test alert."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git, today
from tests.worker.harness.overtaken import Overtaken
from tests.worker.harness.terminal import shown
from tests.worker.harness.webhook import Hook
from worker.cli import guarded
from worker.intake import changes
from worker.organizer import decisions
from worker.organizer.board_by_hand import close, publish_now, reopen, wait_for_answers
from worker.organizer.reveal import choose, reveal
from worker.organizer.session import open_session
from worker.sandbox import Fault, FaultPlan
from worker.verify import Status, receipt_verdicts
from worker.verify.public import opened

pytestmark = pytest.mark.processes
clock = today


def printed(
    harness: Harness, capsys: pytest.CaptureFixture[str], *words: str, status: int = 0, of: str = ""
) -> str:
    """Run a command of the challenge; return its stdout, or its stderr if it fails."""
    capsys.readouterr()
    assert guarded([*words, "--config", str(harness.path)]) == status
    text: str = getattr(capsys.readouterr(), of or ("err" if status else "out"))
    return text


def test_submissions_and_boards(
    harness: Harness, worker: StepWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list has numbers, teams, states, values and holds, and the boards what counts; a preview has what a push would change."""
    first = harness.submit("A", embeddings(1))
    last = harness.submit("A", embeddings(2))
    broken = harness.submit("B", b"id,0\n")
    worker.drive()
    held = harness.submit("B", embeddings(3), phase="eval")
    harness.evalai.edit(held, created_by=harness.evalai.submission(first)["created_by"])
    worker.drive(lambda: held in worker.states() and worker.row(held).hold is not None)

    def listed(*words: str) -> list[dict[str, Any]]:
        document: dict[str, Any] = json.loads(printed(harness, capsys, "submissions", "--json", *words))
        return list(document["submissions"])

    rows = {row["number"]: row for row in listed()}
    assert list(rows) == sorted(rows) == [first, last, broken, held]
    assert [rows[pk]["state"] for pk in (first, last, broken)] == ["published", "published", "failed"]
    assert [rows[pk]["place"] for pk in rows] == ["replaced", "counts", "refused", "open"]
    assert rows[held]["hold"] == "facts.author_not_in_team"
    for words, expected in (
        (("--team", "a"), [first, last]),
        (("--team", str(rows[broken]["team_number"])), [broken, held]),
        (("--state", "held"), [held]),
        (("--state", "failed"), [broken]),
        (("--phase", "eval"), [held]),
        (("--limit", "2"), [held, broken]),
    ):
        assert [row["number"] for row in listed(*words)] == expected, words
    for option, value, sentence in (
        ("--state", "faild", "The states are: received"),
        ("--phase", "x", "There is no phase 'x'"),
    ):
        assert sentence in printed(harness, capsys, "submissions", option, value, status=2)
    value = f"{harness.stdout(last)['q_mean']:.3f}"
    assert f"{value} *" in printed(harness, capsys, "submissions", "--state", "published")
    (board,) = json.loads(printed(harness, capsys, "board", "show", "--phase", "dev", "--json"))["boards"]
    entries = [(row["team"], row["submission"], row["q_mean"]) for row in board["entries"]]
    assert entries == [("A", last, rows[last]["shown"])] == [("A", last, value)]
    assert "Phase eval: there is no board yet." in printed(harness, capsys, "board", "show")
    with worker.store.write() as tx:
        tx.note(last, team="A new name")
    commits = harness.commits()
    printed(harness, capsys, "board", "publish", "--preview", str(tmp_path / "page"))
    assert "A new name" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    for form, name in (("latex", "dev.tex"), ("csv", "dev.csv"), ("svg", "dev-evolution.svg")):
        words = ("board", "export", "--format", form, "--out", str(tmp_path / form), "--phase")
        assert "follow with the reveal" in printed(harness, capsys, *words, "dev")
        assert (tmp_path / form / name).stat().st_size
        assert (tmp_path / form / ".zenodo.json").stat().st_size
        assert "no public board yet" in printed(harness, capsys, *words, "eval", status=2)
    assert (harness.commits(), harness.teams()) == (commits, ["A"])
    for options, sentence in (
        ((), "no longer counts"),
        ((), "already disqualified; nothing was done"),
        (("--undo",), "counts again"),
        (("--undo",), "is not disqualified; nothing was done"),
    ):
        words = ("challenge", "disqualify", str(last), "--yes", "--reason", "a test", *options)
        assert sentence in printed(harness, capsys, *words)


def test_a_decision_needs_a_yes_and_a_reason(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a script, each says what follows and does nothing without `--yes` and `--reason`, or for no score; a terminal asks for both."""
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    harness.configure({"phases": {"dev": {"decimals": 2}}})
    with worker.store.read() as tx:
        before = len(list(tx.events())), len(tx.commitments())
    unset = ("challenge", "apply", "--phase", "", "--yes", "--reason", "a variable that is not set")
    assert "There is no phase ''" in printed(harness, capsys, *unset, status=2)
    for words, consequence in (
        (("challenge", "apply"), "the next board uses the new decimals"),
        (("challenge", "disqualify", str(pk)), f"Submission {pk} (A, phase dev) no longer counts"),
        (("board", "close", "--phase", "dev", "--now"), "The board of dev will be closed"),
    ):
        text = printed(harness, capsys, *words, status=1, of="out")
        assert consequence in text
        assert "Nothing has been done yet" in text
        assert "This needs a reason" in printed(harness, capsys, *words, "--yes", status=2)
        assert "The reason is not UTF-8." in printed(
            harness, capsys, *words, "--yes", "--reason=\udce4x", status=2
        )
    assert "EvalAI's numbers are smaller." in printed(
        harness, capsys, "challenge", "retry", "9" * 30, status=2
    )
    command = ("board", "close", "--phase", "dev", "--now", "--config", str(harness.path))
    assert "Nothing has been done yet" in shown(*command, answers="n\n")
    with worker.store.read() as tx:
        assert (len(list(tx.events())), len(tx.commitments())) == before
    assert "The board of dev is closed; the worker publishes it" in shown(*command, answers="y\nthe end\n")
    with worker.store.read() as tx:
        assert [*tx.events()][-1].fields["reason"] == "the end"


def test_a_submission_without_a_phase_changes_no_other_phase(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was not read yet, or the configuration lacks its phase."""
    with worker.store.write() as tx:
        tx.add(77, now=datetime.now(UTC))
    text = printed(harness, capsys, "challenge", "disqualify", "77", status=1, of="out")
    assert text.startswith("Submission 77 (unknown team, unknown phase) no longer counts.\nNothing has been")


def test_of_two_equal_decisions_at_once_one_is_made(harness: Harness, worker: StepWorker) -> None:
    """Two terminals have both asked when the first one decides."""
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    team = worker.row(pk).team_key or 0
    with open_session(harness.path) as session:
        for undo in (False, True):
            for reason in ("one", "two"):
                decisions.disqualify(session, pk, reason, undo=undo)
                decisions.disqualify_team(session, team, reason, undo=undo)
    with worker.store.read() as tx:
        made = [
            event.fields["reason"] for event in tx.events() if event.fields.get("reason") in ("one", "two")
        ]
    assert made == ["one"] * 4


def test_what_changes_before_the_yes_is_not_done(harness: Harness, worker: StepWorker) -> None:
    """Somebody writes at EvalAI what the person has not read, or reopens a phase whose reveal takes long."""
    pk = harness.submit("A", embeddings(1), method_name="first")
    worker.drive()
    harness.evalai.edit(pk, method_name="second")
    worker.drive()
    read = changes.followed(worker.row(pk))
    harness.evalai.edit(pk, ignore_submission=True)
    worker.drive()
    with open_session(harness.path) as session:
        with pytest.raises(OrganizerError, match="has changed meanwhile"):
            decisions.follow(session, pk, read, "the method was corrected")
        close(session, "dev")
        assert choose(session, None, open_too=False) == (["dev"], ["eval"])
        reopen(session, "dev")
        with pytest.raises(OrganizerError, match="Still open: dev"):
            reveal(session, ["dev"], labels=True)
    worker.drive()
    assert harness.teams() == ["A"]


def test_a_board_that_is_made_during_a_close_counts(harness: Harness, worker: StepWorker) -> None:
    """The close begins again, on that board."""
    harness.submit("A", embeddings(1))
    worker.drive()

    def meanwhile() -> None:
        harness.submit("B", embeddings(2))
        worker.drive()

    def wait_for_the_second_write() -> None:
        store.faster = meanwhile

    with (
        open_session(harness.path) as session,
        closing(Overtaken(session.configuration.database_url)) as store,
    ):
        store.faster = wait_for_the_second_write
        close(replace(session, store=store), "dev")
    worker.drive()
    assert set(harness.teams()) == {"A", "B"}


def test_a_push_goes_on_when_its_command_loses_the_lead(harness: Harness, worker: StepWorker) -> None:
    """On PostgreSQL, whose server has closed the connection with the lock; whoever leads next publishes what was asked for."""
    harness.submit("A", embeddings(1))
    worker.drive()
    already = iter([False, False, True])  # the request, the beginning of the lead, the making of boards

    def another_leads() -> None:
        if not next(already):
            store.faster = another_leads
            return
        with session.store.lead(session.now):
            pass

    with (
        open_session(harness.path) as session,
        closing(Overtaken(session.configuration.database_url)) as store,
    ):
        store.faster = another_leads
        published = publish_now(replace(session, store=store), tell=print)
    assert published.commit == git(harness.board, "rev-parse", "main").strip()


def test_a_close_names_the_upload_that_was_never_finished(harness: Harness) -> None:
    """EvalAI does not let its team finish it after the end of the phase, so no worker would ever answer it."""
    harness.configure({"phases": {"dev": {"shown": "at_end"}}})
    with harness.worker() as worker, open_session(harness.path) as session:
        harness.submit("A", embeddings(1))
        upload = harness.evalai.begin_upload("B", "dev")
        worker.drive(lambda: worker.states().get(upload) == "uploading")
        worker.drive()
        worker.clock.advance(1)
        ended = replace(session, now=worker.clock.now())
        with worker.store.write() as tx:  # its message may be in the queue
            tx.set_fact("reconciled_at", worker.clock.now().isoformat())
        with pytest.raises(InfrastructureError, match="No worker is running"):
            wait_for_answers(ended, "dev", tell=print)
        worker.wait(30)
        with pytest.raises(OrganizerError, match=f"upload of submission {upload} was not finished"):
            wait_for_answers(ended, "dev", tell=print)


def test_of_two_closes_the_first_one_counts(harness: Harness, worker: StepWorker) -> None:
    """The second one has asked a person while the phase was open; what came since the first one does not count."""
    harness.submit("A", embeddings(1))
    worker.drive()
    with open_session(harness.path) as session:
        close(session, "dev", "the end")
        harness.submit("B", embeddings(2))
        worker.drive()
        close(session, "dev", "the end, too")
        reveal(session, ["dev"], labels=True)
    worker.drive()
    assert harness.teams() == ["A"]
    assert harness.contradictions() == []


def test_a_clock_that_was_set_back_makes_no_time_negative(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the worker did at a later time than now was done just now."""
    worker.clock.advance((datetime.now(UTC) - worker.clock.now()).total_seconds() + 3600)
    worker.drive()
    text = printed(harness, capsys, "status")
    assert "0:00:00 ago" in text
    assert "-1 day" not in text


def test_a_key_that_is_not_the_challenges_needs_attention(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """A running worker goes on with the right one, so that nothing else tells before the next start fails."""
    assert "Nothing needs attention" in printed(harness, capsys, "status")
    (harness.folder / "signing.key").write_text("ab" * 32)
    assert "is not the key with which this challenge began" in printed(harness, capsys, "status")


def test_a_token_expires_before_its_date_and_has_expired_after_it(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a worker, nothing else says so."""
    days = (datetime.now(UTC) - harness.evalai.world.clock.now()).days
    for more, words in ((20, "expires"), (-20, "expired")):
        token = harness.evalai.issue_token("host", lifetime=timedelta(days=days + more))
        (harness.folder / "token").write_text(token)
        assert f"The EvalAI token {words} on " in printed(harness, capsys, "status")


def test_a_report_names_a_noisy_copy(
    harness: Harness,
    worker: StepWorker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second account's copy is found; a missing file is not compared; the comparison leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    files = (embeddings(0), embeddings(0, noise=0.1), embeddings(7, noise=1.0))
    first, second, third = (harness.submit(team, file) for team, file in zip("ABC", files, strict=True))
    harness.submit("A", b"id,0\n")
    worker.drive()

    def report() -> dict[str, Any]:
        said = printed(harness, capsys, "board", "report", "--phase", "dev", "--out", ".")
        assert f"Wrote {tmp_path / 'dev.html'} and" in said
        document: dict[str, Any] = json.loads((tmp_path / "dev.json").read_text())
        return document

    (tmp_path / "dev.json").write_text("{}")
    with (tmp_path / "dev.json").open() as of_a_stranger:
        [copy] = report()["near_copies"]
        assert of_a_stranger.read() == "{}"
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("dev.*")} == {0o600}
    assert [sent["submission"] for sent in copy["submissions"]] == [first, second]
    sent = json.loads((tmp_path / "dev.json").read_text())["participation"]
    assert (sent["teams"], sent["files"], sum(sent["files_by_day"].values())) == (3, 4, 4)
    assert list(sent["failures_by_code"].values()) == [1]
    assert harness.leftovers == []
    worker.daemon.files.remove(str(worker.row(third).file_hash))
    assert report()["compared"] == 2


def test_a_report_on_a_closed_phase_has_the_standings_of_its_board(
    harness: Harness, worker: StepWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is scored after the close, or disqualified, changes neither; the awards are read from the board."""
    for team, seed in (("A", 1), ("B", 2)):
        harness.submit(team, embeddings(seed))
    worker.drive()
    harness.decide("board", "close", "--phase", "dev", "--now")
    harness.submit("A", embeddings(0))
    harness.submit("C", embeddings(3))
    worker.drive()
    harness.decide("challenge", "disqualify", str(harness.boards()[1]["submission"]))
    worker.drive()
    printed(harness, capsys, "board", "report", "--phase", "dev", "--out", str(tmp_path))
    standings = json.loads((tmp_path / "dev.json").read_text())["standings"]
    shown = [(row["submission"], row["rank"]) for row in harness.boards()]
    assert [(row["submission"], row["rank"]) for row in standings] == shown


def test_a_retry_ends_the_wait_of_one_submission(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """It continues at once while a worker runs, and another one keeps waiting; a hold ends only if EvalAI's facts agree again."""
    done = harness.submit("A", embeddings(1))
    worker.drive()
    kinds = (Fault.ERROR_BEFORE, Fault.TRUNCATED)
    harness.evalai.set_faults(FaultPlan(probability=1.0, kinds=kinds, origins=("media",)))
    waiting, other = harness.submit("A", embeddings(2)), harness.submit("B", embeddings(3))
    worker.drive(lambda: all(worker.failed(pk) > 0 for pk in (waiting, other)))
    harness.evalai.set_faults(FaultPlan())
    tries = worker.row(waiting).tries
    assert worker.row(waiting).waits(worker.clock.now()) or worker.row(other).waits(worker.clock.now())
    left = worker.row(other).not_before
    text = printed(harness, capsys, "challenge", "retry", str(waiting))
    assert f"is tried again now, after {tries} failed attempt" in text
    assert (worker.row(waiting).not_before, worker.row(other).not_before) == (None, left)
    worker.drive()
    assert harness.status(waiting) == harness.status(other) == "finished"
    assert f"submission {done} is sent to EvalAI again" in printed(
        harness, capsys, "challenge", "retry", str(done)
    )
    printed(harness, capsys, "challenge", "pause")
    paused = harness.submit("C", embeddings(4))
    worker.drive(lambda: paused in worker.states())
    text = printed(harness, capsys, "challenge", "retry", str(paused))
    assert "only waits, and `neuco-worker submissions` says for what" in text
    printed(harness, capsys, "challenge", "pause", "--undo")
    worker.drive()
    assert [post["status"] for post in harness.posts(done)] == ["finished"] * 2
    unknown = printed(harness, capsys, "challenge", "retry", "424242", status=2)
    assert "There is no submission 424242 here." in unknown
    disputed = harness.submit("A", embeddings(4))
    harness.evalai.edit(disputed, created_by=harness.evalai.submission(other)["created_by"])
    worker.drive(lambda: disputed in worker.states() and worker.row(disputed).hold is not None)
    assert "its author is not a member" in printed(harness, capsys, "challenge", "retry", str(disputed))
    worker.drive()
    assert harness.status(disputed) == "finished"


def test_a_test_alert(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    """It is sent as the worker sends its own; a webhook that is missing or refuses is reported with a hint."""
    assert "alerts.webhook is not set" in printed(harness, capsys, "doctor", "--alert", status=2)
    with closing(Hook()) as hook:
        (harness.folder / "hook").write_text(hook.url)
        harness.configure({"alerts": {"webhook": "file:hook"}})
        text = printed(harness, capsys, "doctor", "--alert")
        assert "The webhook answered 200 ok." in text
        assert [alert["text"] for alert in hook.heard] == [text.splitlines()[1].strip()]
        hook.reply.status_code = 404
        assert "answered 404" in printed(harness, capsys, "doctor", "--alert", status=1)


def test_what_evalai_shows_now_is_followed_on_demand(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """A withdrawal, another visibility and other words change the board only then, as decisions that `verify` lists."""
    withdrawn, private, public = [
        harness.submit(team, embeddings(seed), is_public=team != "C") for seed, team in enumerate("ABC")
    ]
    worker.drive()
    harness.evalai.edit(withdrawn, ignore_submission=True)
    harness.evalai.edit(private, is_public=False, is_flagged=True)
    harness.evalai.edit(public, is_public=True, method_name="corrected")
    worker.drive()
    assert (set(harness.teams()), worker.alerts()) == ({"A", "B"}, {"facts.changed"})
    decided = ("--yes", "--reason", "the team asked for it")
    for pk, sentences in (
        (withdrawn, ("it was deleted. It no longer counts.",)),
        (private, ("Not taken over: it was flagged.", "it was public and is now private")),
        (public, ("it was private and is now public", "became 'corrected'")),
    ):
        text = printed(harness, capsys, "challenge", "follow", str(pk), *decided)
        assert all(sentence in text for sentence in sentences), text
        assert "nothing was done" in printed(harness, capsys, "challenge", "follow", str(pk), *decided)
    harness.evalai.edit(private, is_flagged=False)
    worker.drive()
    assert [(row["team"], row["method"]) for row in harness.boards()] == [("C", "corrected")]
    assert worker.alerts() == set()
    harness.decide("challenge", "disqualify", str(withdrawn), "--undo", "--reason", "a mistake")
    worker.drive()
    assert set(harness.teams()) == {"A", "C"}
    harness.decide("board", "close", "--phase", "dev", "--now", "--reason", "the end")
    harness.decide("challenge", "reveal")
    assert harness.contradictions() == []
    assert any("was made public" in verdict.sentence for verdict in harness.verdicts())
    with opened(str(harness.board)) as repository:
        said = list(receipt_verdicts(repository, harness.stdout(private)["receipt"]))[-1]
    assert said.status is Status.CONSISTENT
    assert "the organizers made it private on 20" in said.sentence
    assert "(the team asked for it)" in said.sentence
