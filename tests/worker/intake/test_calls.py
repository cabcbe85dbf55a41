"""Calls to EvalAI that go wrong: faults before and after the effect, refusals, throttling, tokens."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.worker.harness.harness import NEW, Play, Stage, embeddings
from worker.sandbox import Fault, FaultPlan, JournalEntry, ManualClock, PhaseSettings
from worker.state import Errand, State


def calls(stage: Stage, since: int = 0) -> list[JournalEntry]:
    """Return the API calls after a line of the journal."""
    return [
        entry for entry in stage.evalai.journal.requests() if entry.origin == "api" and entry.number >= since
    ]


def until_scored(play: Play, pk: int) -> None:
    """Drive until only the answer is missing; with an answer grid it waits there."""
    play.drive(lambda: pk in play.states() and play.state(pk) in (State.SCORED, State.REJECTED))


@pytest.fixture
def waiting(stage: Stage) -> Stage:
    """A stage whose answers wait for a grid, so that a test can spoil the very call that posts."""
    stage.configure({"submission": {"answer_grid": 30}})
    return stage


@pytest.mark.parametrize("fault", [Fault.ERROR_AFTER, Fault.RESET_AFTER, Fault.HTML, Fault.TRUNCATED])
def test_a_post_that_may_have_arrived_is_read_again_and_repeated(waiting: Stage, fault: Fault) -> None:
    """After a spoilt answer the submission is read, then the same PUT is sent: one distinct result."""
    with waiting.play() as play:
        pk = waiting.submit("A", embeddings(1))
        until_scored(play, pk)
        play.clock.advance(27)  # read again shortly before the answer leaves
        play.drive(lambda: not play.busy and play.known(pk).read_at is not None and not play.step())
        since = len(waiting.evalai.journal)
        waiting.evalai.set_faults(FaultPlan(probability=1.0, kinds=(fault,)))
        play.drive(lambda: bool(waiting.posts(pk)))
        waiting.evalai.set_faults(FaultPlan())
        play.drive()
        posts = waiting.posts(pk)
        assert len(posts) >= 2
        assert all(post == posts[0] for post in posts)
        assert play.state(pk) is State.PUBLISHED
        ways = [entry.method for entry in calls(waiting, since) if entry.method in ("PUT", "GET")]
        first = ways.index("PUT")
        again = ways.index("PUT", first + 1)
        assert "GET" in ways[first:again]
        assert waiting.teams() == ["A"]


def test_a_post_that_never_arrived_is_repeated(waiting: Stage) -> None:
    """A 500 before the effect is followed by the one PUT that counts."""
    with waiting.play() as play:
        pk = waiting.submit("A", embeddings(1))
        until_scored(play, pk)
        waiting.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE, Fault.RESET_BEFORE)))
        play.wait(70)
        assert waiting.posts(pk) == []
        waiting.evalai.set_faults(FaultPlan())
        play.drive()
        assert len(waiting.posts(pk)) == 1


def test_a_refused_post_is_kept_told_and_tried_again(stage: Stage) -> None:
    """A 400 on PUT is the organizer's fault: an alert, nothing lost, and the answer leaves once it is mended."""
    with stage.play() as play:
        play.drive()
        stage.evalai.rename_metric("dev", "mean_q")
        pk = stage.submit("A", embeddings(1))
        play.drive(lambda: bool(play.alerts()))
        assert play.alerts() == {"evalai.rejected"}
        assert play.state(pk) is State.SCORED
        tries = len([entry for entry in calls(stage) if entry.method == "PUT"])
        play.wait(130)
        assert len([entry for entry in calls(stage) if entry.method == "PUT"]) > tries
        assert stage.status(pk) == "running"
        stage.evalai.rename_metric("dev", "q_mean")
        play.wait(61)
        play.drive()
        assert stage.status(pk) == "finished"
        assert play.alerts() == set()


def test_retry_after_is_obeyed_to_the_second(tmp_path: Path, cells: Path) -> None:
    """Throttled, nothing leaves before the time that EvalAI named; then work goes on and nothing is lost."""
    clock = ManualClock()
    with (
        Stage(tmp_path, clock=clock, cells=cells, settings={"throttle_per_minute": 6}) as stage,
        stage.play() as play,
    ):
        pks = [stage.submit(team, embeddings(seed)) for seed, team in enumerate("ABC")]
        play.drive(lambda: any(entry.status == 429 for entry in calls(stage)))
        (refused,) = [entry for entry in calls(stage) if entry.status == 429]
        play.drive(lambda: len([entry for entry in calls(stage) if entry.number > refused.number]) > 0)
        following = next(entry for entry in calls(stage) if entry.number > refused.number)
        accepted = [
            entry.at for entry in calls(stage) if entry.status != 429 and entry.number < refused.number
        ]
        assert (following.at - accepted[0]).total_seconds() >= 60
        play.drive(lambda: all(stage.status(pk) == "finished" for pk in pks))
        refusals = [entry for entry in calls(stage) if entry.status == 429]
        assert len(refusals) <= len(calls(stage)) / 6 + 1
        assert {pk: len(stage.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)


def test_our_own_budget_keeps_below_the_throttle(tmp_path: Path, cells: Path) -> None:
    """With the configured requests per minute EvalAI never has to refuse a call."""
    clock = ManualClock()
    settings = {"throttle_per_minute": 20}
    changes = {"evalai": {"requests_per_minute": 18}}
    with (
        Stage(tmp_path, clock=clock, cells=cells, settings=settings, changes=changes) as stage,
        stage.play() as play,
    ):
        pks = [stage.submit("ABCD"[seed % 4], embeddings(seed)) for seed in range(6)]
        play.drive(lambda: all(stage.status(pk) == "finished" for pk in pks))
        assert not [entry for entry in calls(stage) if entry.status == 429]


def test_what_is_read_at_a_start_counts_call_by_call(stage: Stage, play: Play) -> None:
    """The first words with EvalAI are several calls; the budget knows of each."""
    play.drive(lambda: play.worker.intake.session.connected and not play.busy)
    assert play.worker.budget.total == len(calls(stage)) > 4
    stage.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,)))
    play.reload()
    play.drive(lambda: play.worker.intake.failing)
    assert play.worker.budget.total == len(calls(stage))


def test_an_answer_may_use_the_reserve(stage: Stage, play: Play) -> None:
    """When the ordinary budget is spent, a result still leaves."""
    now = play.clock.now()
    budget = play.worker.budget
    budget.per_minute = 10
    for _ in range(8):
        budget.spend(now)
    assert not budget.allows(now)
    assert budget.allows(now, answer=True)


def test_a_refused_token_waits_alerts_and_goes_on(stage: Stage, play: Play) -> None:
    """Blacklisted in mid-flight, the worker stays; with the new token in its file it goes on by itself."""
    stage.configure({"submission": {"answer_grid": 30}})
    play.restart()
    pk = stage.submit("A", embeddings(1))
    until_scored(play, pk)
    fresh = stage.evalai.refresh_token("host")
    play.wait(90)
    assert play.alerts() == {"evalai.token_refused"}
    assert stage.posts(pk) == []
    (stage.folder / "token").write_text(fresh)
    play.drive()
    assert stage.status(pk) == "finished"
    assert play.alerts() == set()
    assert len(stage.posts(pk)) == 1


def test_an_outage_of_a_night_costs_nothing_but_time(stage: Stage, play: Play) -> None:
    """Hours of 500s raise one alert; afterwards everything that came meanwhile is answered."""
    play.drive()
    stage.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,)))
    pk = stage.submit("A", embeddings(1))
    before = len(calls(stage))
    for _ in range(40):
        play.clock.advance(60)
        play.wait(1)
    assert "evalai.unreachable" in play.alerts()
    assert len(calls(stage)) - before < 2 * 40 * 4  # backed off
    stage.evalai.set_faults(FaultPlan())
    play.drive()
    assert stage.status(pk) == "finished"
    assert play.alerts() == set()


def test_an_outage_is_an_alert_after_a_minute(stage: Stage, play: Play) -> None:
    """Several tries in vain within a minute come and go; a minute without an answer is told, and its end takes it back."""
    play.drive()
    since = len(stage.evalai.journal)
    stage.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,)))
    play.wait(50)
    assert len(calls(stage, since)) > 3
    assert play.alerts() == set()
    play.wait(75)
    assert play.alerts() == {"evalai.unreachable"}
    stage.evalai.set_faults(FaultPlan())
    play.drive()
    assert play.alerts() == set()


def test_an_answer_that_alone_finds_no_way_is_told_once(stage: Stage) -> None:
    """EvalAI breaks on one PUT and answers everything else: the alert names that submission, and stays until the answer arrived."""
    broken = True

    def spoil(where: str) -> None:
        if broken and where == "before call post":
            stage.evalai.faults.force(Fault.ERROR_BEFORE)

    with stage.play(checkpoint=spoil) as play:
        pk = stage.submit("A", embeddings(1))
        play.wait(300)
        with play.store.read() as tx:
            assert [(alert.key, alert.code) for alert in tx.alerts()] == [
                (f"post:{pk}", "evalai.unreachable")
            ]
            since = tx.alerts()[0].raised_at
        play.wait(120)
        with play.store.read() as tx:
            assert [alert.raised_at for alert in tx.alerts()] == [since]
        broken = False
        play.drive()
        assert stage.status(pk) == "finished"
        assert play.alerts() == set()


def test_a_reload_with_a_new_token_tries_at_once(stage: Stage, play: Play) -> None:
    """However long the refused token has backed off: what was told to try again tries now."""
    play.drive()
    fresh = stage.evalai.refresh_token("host")
    play.wait(180)
    assert play.alerts() == {"evalai.token_refused"}
    (stage.folder / "token").write_text(fresh)
    reloaded_at = play.clock.now()
    play.reload()
    play.drive(lambda: not play.alerts())
    assert (play.clock.now() - reloaded_at).total_seconds() < 1


def test_a_refusal_that_a_reload_overtook_counts_for_nothing(stage: Stage) -> None:
    """A call under the old token that ends after the reload does not hold the new one up."""
    fresh: list[str] = []

    def overtake(where: str) -> None:
        if where == "before call connect" and not fresh:
            fresh.append(stage.evalai.refresh_token("host"))
            (stage.folder / "token").write_text(fresh[0])
            play.worker.intake.reload()

    with stage.play(checkpoint=overtake) as play:
        begun = play.clock.now()
        play.drive(lambda: play.worker.intake.session.connected)
        assert (play.clock.now() - begun).total_seconds() < 1


def test_every_request_says_from_whom_it_comes(stage: Stage, play: Play) -> None:
    """Calls and downloads carry the software's name and version, so that EvalAI's operators know whom to ask."""
    pk = stage.submit("A", embeddings(NEW))
    play.drive()
    assert stage.status(pk) == "finished"
    requests = stage.evalai.journal.requests()
    assert {entry.origin for entry in requests} == {"api", "media"}
    assert {entry.detail["user_agent"] for entry in requests} == {f"neuco-worker/{version('neuco-worker')}"}


def test_a_clock_set_back_silences_nobody(stage: Stage, play: Play) -> None:
    """Waits that were noted under the wrong time hold nothing up."""
    stage.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,)))
    pk = stage.submit("A", embeddings(1))
    play.wait(60)
    stage.evalai.set_faults(FaultPlan())
    play.clock.advance(-86400)
    play.drive()
    assert stage.status(pk) == "finished"


def test_an_answer_on_the_grid_survives_a_clock_set_back(waiting: Stage) -> None:
    """An answer whose moment lies a day ahead after the jump leaves all the same."""
    with waiting.play() as play:
        pk = waiting.submit("A", embeddings(1))
        until_scored(play, pk)
        play.clock.advance(-86400)
        play.drive()
        assert waiting.status(pk) == "finished"


def test_a_clock_that_jumps_ahead_blames_nobody(stage: Stage, play: Play) -> None:
    """A jump beyond every deadline while a child works is not taken for its slowness."""
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: play.worker.evaluation.busy)
    play.clock.advance(7200)
    play.drive()
    assert stage.status(pk) == "finished"
    assert play.outcomes(pk) == ["done"]


@pytest.mark.parametrize("grid", [10, 30])
def test_answers_leave_on_the_grid_cache_hits_too(stage: Stage, grid: int) -> None:
    """The execution time that EvalAI shows is a multiple of the grid, whatever scoring took."""
    stage.configure({"submission": {"answer_grid": grid}})
    with stage.play() as play:
        pks = [
            stage.submit("A", embeddings(1)),
            stage.submit("B", embeddings(1)),
            stage.submit("C", b"id,0\nx,1\n"),
        ]
        play.drive()
        for pk in pks:
            shown = float(stage.evalai.submission(pk)["execution_time"])
            assert shown >= grid
            assert shown % grid < 1.5 or grid - shown % grid < 1.5


def test_unknown_handles_are_given_up(stage: Stage, play: Play) -> None:
    """A handle that EvalAI answers with 500 for ever is dropped; the message would come under a newer one."""
    pk = stage.submit("A", embeddings(1))
    play.drive()
    with play.store.write() as tx:
        tx.owe(Errand.DELETE, pk, now=play.clock.now(), receipt="nonsense")
    play.wait(100)
    with play.store.read() as tx:
        assert tx.owed() == []


def test_many_submissions_are_read_with_one_listing(stage: Stage, play: Play) -> None:
    """A burst costs about four calls a submission, and a reading before each answer."""
    play.drive()
    since = len(stage.evalai.journal)
    pks = [stage.submit("ABCDEFGH"[seed], embeddings(seed)) for seed in range(8)]
    play.drive(lambda: all(stage.status(pk) == "finished" for pk in pks))
    assert len(calls(stage, since)) <= 5 * len(pks) + 4


def test_a_wrong_challenge_or_phase_is_fatal_at_start(stage: Stage) -> None:
    """What EvalAI says of the challenge must agree with the configuration before anything is taken."""
    for changes, code in (
        ({"evalai": {"challenge": 8}}, "evalai.challenge_differs"),
        (
            {
                "evalai": {"challenge": stage.evalai.challenge},
                "phases": {"test": {"split": "x", "tasks": "./tasks/dev", "ids": "./ids.txt"}},
            },
            "evalai.phase_unknown",
        ),
    ):
        stage.configure(changes)
        with stage.play() as play:
            play.drive(lambda play=play: play.worker.fatal is not None)
            assert play.worker.fatal is not None
            assert play.worker.fatal.code == code
            assert play.worker.fatal.exit_code == 2


def test_a_reload_with_an_unknown_phase_does_not_end_the_worker(stage: Stage, play: Play) -> None:
    """A slip in a reloaded configuration is an alert, not an end."""
    play.drive()
    stage.configure({"phases": {"test": {"split": "x", "tasks": "./tasks/dev", "ids": "./ids.txt"}}})
    play.reload()
    pk = stage.submit("A", embeddings(1))
    play.drive()
    assert play.worker.fatal is None
    assert stage.status(pk) == "finished"
    assert play.alerts() == {"evalai.phase_unknown"}


def test_disabled_logs_are_not_sent(tmp_path: Path, cells: Path) -> None:
    """EvalAI stores logs even where the host disabled them, so none are sent: the score arrives, the words do not."""
    phases = (PhaseSettings(codename="dev", disable_logs=True), PhaseSettings(codename="eval"))
    with (
        Stage(tmp_path, clock=ManualClock(), cells=cells, settings={"phases": phases}) as stage,
        stage.play() as play,
    ):
        good, bad = stage.submit("A", embeddings(1)), stage.submit("B", b"id,0\nx,1\n")
        play.drive()
        assert (stage.status(good), stage.status(bad)) == ("finished", "failed")
        assert stage.evalai.text(good, "stdout_file") == ""
        assert stage.stderr(bad) == ""


@pytest.mark.parametrize("grid", [0, 30])
def test_an_evalai_that_takes_long_for_each_call_is_asked_no_more_often(stage: Stage, grid: int) -> None:
    """Calls take longer than facts may be old: what has just come is relied upon once, and the row says when it was asked for."""
    clock = stage.clock
    assert clock is not None
    asked_at: list[datetime] = []

    def take_long(where: str) -> None:
        if where.startswith("before call"):
            if where in ("before call read", "before call listing", "before call reconcile"):
                asked_at.append(clock.now())
            clock.advance(8)

    stage.configure(
        {"submission": {"answer_grid": grid}, "evalai": {"poll_every": 60, "reconcile_every": 600}}
    )
    with stage.play(checkpoint=take_long) as play:
        play.drive(lambda: play.worker.intake.session.empty_polls > 0)
        since, pk = len(stage.evalai.journal), stage.submit("A", embeddings(1))
        play.clock.advance(60)
        play.drive(lambda: play.states().get(pk) == "fetched")
        read_at = play.known(pk).read_at
        assert read_at is not None
        assert min(abs((read_at - moment).total_seconds()) for moment in asked_at) < 1
        play.drive(lambda: stage.status(pk) == "finished")
        readings = [
            entry for entry in calls(stage, since) if "/jobs/" in entry.path and entry.method == "GET"
        ]
        assert len([entry for entry in readings if "/queues/" not in entry.path]) <= 4
        assert [entry.detail for entry in calls(stage, since) if entry.method == "PATCH"] != []
        assert len(stage.posts(pk)) == 1
