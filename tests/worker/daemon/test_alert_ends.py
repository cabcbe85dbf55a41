"""Every alert ends when its cause has gone: each code has a test that says so, and each key is resolved by somebody."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from scoring.errors import InfrastructureError
from tests.worker.harness.gate import interpreter
from tests.worker.harness.harness import NEW, Harness, StepWorker, embeddings
from worker.sandbox import ManualClock
from worker.state import ALERT_CODES, State
from worker.state.alerts import ALERT_KEPT_FOR
from worker.state.submissions import STEPS

ROOT = Path(__file__).parents[3]
CALL = "daemon/test_alert_ends.py::test_an_alert_about_a_call_ends_with_its_success"
EVENT = "daemon/test_alert_ends.py::test_an_alert_about_what_has_happened_ends_after_a_day"
SHARED = "daemon/test_alert_ends.py::test_a_fault_that_all_submissions_share_is_told_once"
STEP = "daemon/test_alert_ends.py::test_alerts_about_its_steps_end_with_a_submission"
OUTAGE = "intake/test_calls.py::test_an_outage_of_a_night_costs_nothing_but_time"
PHASE = "intake/test_calls.py::test_phases_that_change_at_evalai_are_taken_up_without_a_reload"
PUSH = "publishing/test_publishing.py::test_a_commit_says_what_it_changes"
RECORD = "challenge/test_records.py::test_a_damaged_record_stops_only_its_own_board"
STATE = "daemon/test_alerts.py::test_a_failing_state_is_reported_once_and_again_when_it_fails_again"
TOKEN = "intake/test_calls.py::test_a_refused_token_waits_alerts_and_goes_on"
ENDS = {
    "act.timed_out": "runtime/test_runner.py::test_a_call_that_hangs_is_given_up",
    "beacon.*": "fairness/test_beacon.py::test_nothing_is_scored_before_the_value_is_known",
    "board.folds_differ": PUSH,
    "challenge.paused": "intake/test_waiting.py::test_a_pause_is_told_after_an_hour_until_it_ends",
    "child.start": SHARED,
    "clock.wrong": "intake/test_calls.py::test_a_clock_that_is_far_ahead_registers_and_signs_nothing",
    "disk.*": "test_full_disk.py::test_a_file_that_does_not_fit_waits_for_room",
    "download.broken": "fetching/test_fetching.py::test_a_file_elsewhere_is_not_fetched",
    "download.host": "fetching/test_fetching.py::test_a_file_elsewhere_is_not_fetched",
    "download.redirected": "fetching/test_fetching.py::test_a_file_elsewhere_is_not_fetched",
    "engine.*": SHARED,
    "evalai.challenge_differs": CALL,
    "evalai.email_unverified": TOKEN,
    "evalai.hosts_changed": EVENT,
    "evalai.hosts_unknown": "intake/test_hosts.py::test_a_server_that_hides_its_hosts_stops_nothing",
    "evalai.metric_differs": CALL,
    "evalai.not_found": CALL,
    "evalai.not_permitted": CALL,
    "evalai.phase_unknown": PHASE,
    "evalai.redirected": CALL,
    "evalai.rejected": "intake/test_calls.py::test_an_answer_that_evalai_does_not_take_is_kept_reported_once_and_tried_again",
    "evalai.server_address": CALL,
    "evalai.split_unknown": CALL,
    "evalai.throttled": "intake/test_calls.py::test_an_account_that_others_use_up_is_told",
    "evalai.token_form": TOKEN,
    "evalai.token_refused": TOKEN,
    "evalai.unintelligible": OUTAGE,
    "evalai.unreachable": OUTAGE,
    "evaluate.*": "evaluation/test_at_once.py::test_the_end_of_one_child_does_not_affect_the_others",
    "facts.author_not_in_team": "intake/test_senders.py::test_a_submission_for_a_team_of_others_waits",
    "facts.changed": "intake/test_strangers.py::test_what_anybody_writes_before_the_answer_changes_nothing",
    "facts.number_used": "intake/test_senders.py::test_a_submission_whose_number_its_team_had_used_waits",
    "facts.other_challenge": "intake/test_senders.py::test_a_submission_of_another_challenge_is_told_and_waits_for_nobody",
    "facts.phase_unconfigured": "intake/test_intake.py::test_a_phase_nobody_configured_is_held_until_a_reload_names_it",
    "facts.sender_unusual": "intake/test_senders.py::test_an_author_who_is_new_for_a_team_and_a_gap_are_told_once",
    "file.link_expired": STEP,
    "leaderboard.*": "publishing/test_files_branch.py::test_boards_do_not_wait_for_files_that_cannot_be_pushed",
    "leaderboard.overwritten": "publishing/test_commits_of_others.py::test_commits_of_others_are_corrected_and_reported_once",
    "leaderboard.rewritten": "publishing/test_commits_of_others.py::test_a_forced_push_is_reported_and_registered",
    "library.*": SHARED,
    "memory": STEP,
    "phase.end_moved": "intake/test_opening.py::test_what_changes_at_evalai_is_told",
    "phase.not_open": "intake/test_opening.py::test_a_phase_that_should_be_open_and_is_not_is_told",
    "phase.not_recorded": RECORD,
    "phase.open": "intake/test_opening.py::test_a_closed_phase_that_takes_submissions_is_told",
    "phase.paused": "intake/test_opening.py::test_what_changes_at_evalai_is_told",
    "queue.foreign": EVENT,
    "record.*": RECORD,
    "reload.refused": "daemon/test_running.py::test_sighup_takes_a_good_configuration_and_refuses_a_bad_one",
    "restore.answered_since": "organizer/test_backup.py::test_a_restored_worker_continues_from_what_was_published",
    "secret.*": "fairness/test_beacon.py::test_a_secret_that_cannot_be_read_when_the_draw_is_due_is_an_alert",
    "state.*": STATE,
    "submission.answered_elsewhere": STEP,
    "submission.given_up": "intake/test_waiting.py::test_what_evalai_gave_up_is_told_once_and_comes_back",
    "submission.quota": EVENT,
    "submission.set_back": "intake/test_intake.py::test_answered_submissions_are_answered_once",
    "submission.timed_out": "intake/test_waiting.py::test_what_evalai_failed_is_told_once_and_answered_all_the_same",
    "submission.unreadable": STEP,
    "submission.waiting": "intake/test_waiting.py::test_what_waits_for_three_days_is_told_until_it_goes_on",
    "team.name_alike": "intake/test_senders.py::test_a_name_that_looks_like_another_teams_is_marked_and_told",
    "unexpected": STEP,
    "upload.unfinished": "fetching/test_fetching.py::test_an_abandoned_upload_is_checked_less_and_less_and_reported_after_a_day",
}
"""The code of each alert, or its family, and the test under ``tests/worker`` in which such an alert ends."""


def test_every_code_has_a_test_in_which_it_ends() -> None:
    """A new code needs one, too."""
    assert ENDS.keys() == ALERT_CODES
    for place in set(ENDS.values()):
        path, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / "worker" / path).read_text(), place


class Keys:
    """The keys of alerts in the product's code, with {} for every value that only a running worker knows."""

    def __init__(self) -> None:
        modules = [ast.parse(path.read_text()) for path in (ROOT / "worker").rglob("*.py")]
        self._nodes = [list(ast.walk(module)) for module in modules]
        self._constants = {
            name: value for module in modules for name, value in assigned(module.body) if text_of(value)
        }

    def of(self, **places: slice) -> set[str]:
        """Return the keys in all calls of methods, each named with the places of keys among its arguments, but not of what happened."""
        found = set()
        for nodes in self._nodes:
            local = list(assigned(nodes))
            for call in nodes:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not happened(call):
                    for key in call.args[places.get(call.func.attr, slice(0))]:
                        found |= self._written(key, local)
        return found

    def _written(self, key: ast.expr, local: list[tuple[str, ast.expr]]) -> set[str]:
        if isinstance(key, ast.Name):
            values = [value for name, value in local if name == key.id and value is not key]
            known = [self._constants[key.id]] if not values and key.id in self._constants else values
            return {
                text for value in known for text in self._written(value, local)
            }  # a parameter is its caller's
        if isinstance(key, ast.Call):  # its function makes the key
            return {f"{ast.unparse(key.func)}()"}
        if isinstance(key, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in key.values]
            return {"".join(text_of(self._constants.get(ast.unparse(part), part)) or "{}" for part in parts)}
        return {text_of(key) or ast.unparse(key)}


def happened(call: ast.Call) -> bool:
    """Return whether a call raises an alert that ends by itself."""
    return any(keyword.arg == "happened" for keyword in call.keywords)


def assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Return names and what they are assigned, one by one."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                yield from ((left.id, right) for left, right in pairs if isinstance(left, ast.Name))


def text_of(node: ast.AST) -> str | None:
    """Return a constant text."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def test_every_key_is_resolved_by_somebody() -> None:
    """Where it was raised, or with its submission, unless it is about what has happened."""
    keys = Keys()
    first = slice(1)
    resolved = keys.of(resolve_alert=first, resolve_alerts=slice(None))
    resolved |= {f"{step}:{{}}" for step in STEPS} | {"fault_key()"}
    assert keys.of(raise_alert=first, report=first) - resolved == set()


@pytest.mark.processes
def test_an_alert_that_the_runbook_does_not_explain_cannot_be_raised(worker: StepWorker) -> None:
    """Only the code of an error may be unknown: it is unexpected, and says itself what to do."""
    with worker.store.write() as tx:
        with pytest.raises(ValueError, match=r"ALERT_CODES lacks nothing\.of_ours"):
            tx.raise_alert("key", "nothing.of_ours", "It happened.", now=worker.clock.now())
        tx.report(
            "key",
            InfrastructureError("It failed.", hint="Wait.", code="nothing.of_ours"),
            now=worker.clock.now(),
        )
        assert [alert.code for alert in tx.alerts()] == ["unexpected"]


@pytest.mark.processes
def test_an_alert_about_what_has_happened_ends_after_a_day(worker: StepWorker) -> None:
    """It lasts a day longer if it happens again; alerts about anything else stay as long as their cause."""
    now = worker.clock.now()
    with worker.store.write() as tx:
        for key in ("once", "twice"):
            tx.raise_alert(key, "queue.foreign", "It happened.", now=now, happened=True)
        tx.raise_alert("lasting", "phase.paused", "It lasts.", now=now)
    worker.clock.advance(ALERT_KEPT_FOR.total_seconds() / 2)
    with worker.store.write() as tx:
        tx.raise_alert("twice", "queue.foreign", "It happened again.", now=worker.clock.now(), happened=True)
    for left in ({"lasting", "twice"}, {"lasting"}):
        worker.clock.advance(ALERT_KEPT_FOR.total_seconds() / 2)
        worker.drive(lambda: not worker.step())
        with worker.store.read() as tx:
            assert {alert.key for alert in tx.alerts()} == left


@pytest.mark.processes
@pytest.mark.parametrize("end", [State.CANCELLED, State.SUPERSEDED])
def test_alerts_about_its_steps_end_with_a_submission(
    harness: Harness, worker: StepWorker, end: State
) -> None:
    """Whatever the steps failed of, nothing is left to do once it was answered, cancelled or run again."""
    with worker.store.write() as tx:
        for pk in (7, 8):
            tx.add(pk, now=worker.clock.now())
            for step in STEPS:
                tx.raise_alert(f"{step}:{pk}", "unexpected", "It failed.", now=worker.clock.now())
        tx.move(7, State.RECEIVED, end)
        tx.move(8, State.RECEIVED, State.ACKNOWLEDGED)
        assert {alert.key for alert in tx.alerts()} == {f"{step}:8" for step in STEPS}


@pytest.mark.processes
def test_a_fault_that_all_submissions_share_is_told_once(tmp_path: Path) -> None:
    """While the engine is away, three submissions that wait for it are one alert; it ends with the first that is scored."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(name='torch')")
    without_torch = interpreter(tmp_path, f"export PYTHONPATH={tmp_path}")
    with (
        pytest.MonkeyPatch.context() as patch,
        Harness(tmp_path, clock=ManualClock(), changes={"scoring": {"engine": "torch"}}) as harness,
        harness.worker() as worker,
    ):
        patch.setattr(sys, "executable", str(without_torch))
        pks = [harness.submit(team, embeddings(NEW + number)) for number, team in enumerate("ABC")]
        worker.drive(lambda: all(pk in worker.states() and worker.row(pk).tries > 0 for pk in pks))
        with worker.store.read() as tx:
            (alert,) = tx.alerts()
        assert (alert.key, alert.code) == ("evaluate:library.missing", "library.missing")
        harness.configure({"scoring": {"engine": "local"}})
        worker.reload()
        worker.drive(lambda: "finished" in {harness.status(pk) for pk in pks})
        assert worker.alerts() == set()


@pytest.mark.processes
def test_an_alert_about_a_call_ends_with_its_success(harness: Harness, worker: StepWorker) -> None:
    """A listing that EvalAI does not permit is the organizers' to fix, and is repeated until it succeeds."""
    worker.drive()
    harness.configure({"evalai": {"challenge": harness.evalai.challenge + 1}})
    worker.reload()
    worker.drive(lambda: "evalai.challenge_differs" in worker.alerts())
    harness.configure({"evalai": {"challenge": harness.evalai.challenge}})
    worker.reload()
    worker.drive()
    assert worker.alerts() == set()
