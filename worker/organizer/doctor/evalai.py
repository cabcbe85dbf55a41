"""Checks of the challenge at EvalAI, its phases and leaderboards; nothing is written there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from leaderboard import Shown
from scoring.errors import OrganizerError
from scoring.inputs.formats import SUFFIXES
from scoring.printable import count_of
from worker.evalai import Budget
from worker.evalai.records import integer, text
from worker.fetching.download import check_address
from worker.intake.session import CLOCKS_AGREE, clocks_differ, phase_faults, split_faults
from worker.organizer.bundle_check import CONCURRENT, LIMITS, packed_phases
from worker.organizer.doctor.check import Finding, Level, NotChecked, fail, note, skipped, warn
from worker.organizer.doctor.launch import MINUTE
from worker.organizer.doctor.subjects import CheckedChallenge, CheckedEvalAI
from worker.organizer.doctor.told import Setting, Told, each

SOON = timedelta(days=30)
ALLOWED_PER_MINUTE = 60
CALLS = 4  # for one submission
SKEW_WARN = timedelta(seconds=10)
PUBLIC = 3


def token(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Read the token, and when it expires."""
    now = challenge.clock()
    with closing(challenge.client()) as client:
        expiry = client.expiry
    if expiry is None:
        yield skipped(
            "The EvalAI token does not say when it expires. One of 40 digits does so 365 days after the login."
        )
    elif expiry <= now:
        yield fail(f"The EvalAI token expired on {expiry:%Y-%m-%d}.")
    elif expiry <= now + SOON:
        yield warn(
            f"The EvalAI token expires on {expiry:%Y-%m-%d}, in {count_of((expiry - now).days, 'day')}."
        )


def examined(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Say which challenge was asked for."""
    server = evalai.configuration.evalai.server
    yield note(
        f"Challenge {evalai.remote.pk}, “{evalai.remote.title}”, at {server}: phases {', '.join(evalai.phases) or 'none'}.",
    )


CHALLENGE = (
    Setting(
        "remote_evaluation",
        False,
        "The challenge is not set to remote evaluation, so EvalAI would evaluate submissions itself.",
        "Upload the bundle with remote_evaluation: True, or ask EvalAI's administrators to set it.",
        Level.FAIL,
    ),
    Setting(
        "is_docker_based",
        True,
        "The challenge is docker-based (is_docker_based). Participants would submit images, which the worker cannot score.",
        "Upload the bundle with is_docker_based: False, or ask EvalAI's administrators to unset it.",
        Level.FAIL,
    ),
    Setting(
        "is_static_dataset_code_upload",
        True,
        "Participants would submit code (is_static_dataset_code_upload), which the worker cannot score.",
        "Upload the bundle without is_static_dataset_code_upload, or ask EvalAI's administrators to unset it.",
        Level.FAIL,
    ),
    Setting(
        "allow_participants_resubmissions",
        True,
        "Anybody may run anybody's submission again (allow_participants_resubmissions). Each run is a new submission to score, and does not"
        " use up the limits of its phase.",
        "Ask EvalAI's administrators to unset it.",
    ),
    Setting(
        "use_fifo_sqs",
        True,
        "The challenge has a FIFO queue (use_fifo_sqs): each message of a team waits until the team's previous one is deleted, so many"
        " submissions of one team arrive slowly.",
        "No submission is lost, because the worker also reads EvalAI's listing. To avoid the delay, ask EvalAI's administrators"
        " for a standard queue.",
    ),
)
"""What EvalAI shows of the challenge by its queue."""
PAGE = (
    Setting(
        "manual_participant_approval",
        True,
        "A team can submit only after a host has approved it (manual_participant_approval).",
        "Approve each team on EvalAI's page of the challenge, or unset it there.",
    ),
    Setting(
        "anonymous_leaderboard",
        True,
        "EvalAI is told to hide the names of teams (anonymous_leaderboard), but the published board shows them.",
        "Unset it on EvalAI, or tell participants what the published board shows.",
    ),
)


def challenge(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Compare the challenge's settings with what the worker needs."""
    yield from each(setting.compare(evalai.behind_queue) for setting in CHALLENGE)
    yield from each(setting.compare(evalai.page) for setting in PAGE)


def clock(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Compare this machine's clock with EvalAI's."""
    ahead = evalai.client.ahead
    if ahead is None:
        yield skipped("The server does not send its time.")
    elif abs(ahead) > SKEW_WARN:
        yield (fail if abs(ahead) > CLOCKS_AGREE else warn)(f"{clocks_differ(ahead)}.")


def storage(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Check that files may be downloaded from where EvalAI stores them."""
    stored_at = evalai.behind_queue.read("evaluation_script", text)  # in the same storage as submissions
    if not (host := urlsplit(stored_at).netloc):
        raise NotChecked("EvalAI does not say where it stores files.")
    settings = evalai.configuration.evalai
    try:
        check_address(stored_at, [urlsplit(settings.server).netloc, *settings.media_hosts])
    except OrganizerError:
        yield fail(
            f"EvalAI stores files on {host}, which the worker may not download from.",
            f"Set evalai.media_hosts: [{host}]",
        )


def phases(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Compare codenames, dataset splits and metrics."""
    configured = evalai.configuration.phases
    listed = {phase.pk: codename for codename, phase in evalai.phases.items()}
    yield from (
        fail(fault.sentence, fault.hint)
        for fault in (
            *phase_faults(evalai.configuration, listed),
            *split_faults(evalai.configuration, listed, evalai.splits),
        )
    )
    for pk, split in sorted(evalai.splits):
        wanted = configured[listed[pk]].split if listed.get(pk) in configured else split
        if split != wanted and (pk, wanted) in evalai.splits:
            yield warn(
                f"On EvalAI, phase {listed[pk]} has another dataset split {split}, whose leaderboard stays empty.",
                "Upload the bundle with one split in each phase, or ask EvalAI's administrators to remove it.",
            )
    for codename in sorted(evalai.phases.keys() - configured.keys()):
        yield warn(
            f"EvalAI has a phase {codename} that is not configured. Its submissions would be put on hold.",
            f"Add phases.{codename} to the configuration, or remove the phase at EvalAI.",
        )


PHASE = (
    Setting(
        "is_submission_paused",
        True,
        "EvalAI has paused {0.name} (is_submission_paused), which accepts no submissions.",
        "Resume it on EvalAI before the launch.",
    ),
    Setting(
        "disable_logs",
        True,
        "In {0.name}, disable_logs is set, so participants cannot read what is wrong with a file.",
        "Unset it on EvalAI. Messages about a file do not depend on the hidden tasks, unless scoring.standardize_embeddings is false.",
    ),
    Setting(
        "is_submission_public",
        False,
        "Submissions to {0.name} are private by default, but only public ones count for the board.",
        "Set is_submission_public on EvalAI, or remind participants to send their submissions as public; a later change does not count.",
    ),
    Setting(
        "is_partial_submission_evaluation_enabled",
        True,
        "Partial evaluation is enabled in {0.name}; the worker does not use it.",
        "Unset is_partial_submission_evaluation_enabled on EvalAI.",
    ),
    Setting(
        "is_restricted_to_select_one_submission",
        True,
        "In {0.name}, each team may show one submission as public (is_restricted_to_select_one_submission), but a submission counts on the"
        " board if it was public when it was sent.",
        "Unset it on EvalAI.",
    ),
)


def phase_settings(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Compare the settings of the phases with what participants need."""
    for phase in evalai.configured.values():
        yield from each([*(setting.compare(phase) for setting in PHASE), _file_types(phase)])


def _file_types(phase: Told) -> Iterator[Finding]:
    """Check that EvalAI's page offers all types of files that the worker reads."""
    allowed = phase.read("allowed_submission_file_types", text)
    kinds = {kind.strip() for kind in allowed.lower().split(",")}
    if not kinds.issuperset(SUFFIXES):
        yield warn(
            f"In {phase.name}, EvalAI's page offers only files of the types {allowed or 'of an empty list'}.",
            f"Set allowed_submission_file_types on EvalAI: {', '.join(SUFFIXES)}",
        )


def limits(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Compare the limits with those that the bundle states, and with what the worker can answer."""
    settings = evalai.configuration.evalai
    asked, idle = settings.requests_per_minute, 60 / settings.poll_every + 60 / settings.reconcile_every
    if asked > ALLOWED_PER_MINUTE:
        yield warn(
            f"evalai.requests_per_minute is {asked}; EvalAI allows an account {ALLOWED_PER_MINUTE} and refuses more for the rest"
            " of the minute.",
            "Set it to 50.",
        )
    if idle > asked - Budget(asked).reserve:
        yield warn(
            f"By evalai.poll_every and reconcile_every, the worker makes {idle:.0f} calls a minute while nothing happens. Of the {asked} in"
            " evalai.requests_per_minute, this leaves none for reading a submission.",
            "Raise evalai.poll_every or evalai.reconcile_every.",
        )
    if not (stated := packed_phases(evalai.challenge.base / "bundle.zip")):
        yield note("Limits and end dates were not compared with a bundle.zip, because none can be read.")
    for codename, phase in evalai.configured.items():
        yield from each(
            [
                _rate(phase, min(asked, ALLOWED_PER_MINUTE) // CALLS),
                _differing(phase, stated.get(codename, {})),
            ]
        )


def _rate(phase: Told, per_minute: int) -> Iterator[Finding]:
    """Compare what one team may send with what the worker can answer."""
    limits = {key: phase.read(key, integer) for key in (*LIMITS, CONCURRENT)}
    at_once, per_day = limits[CONCURRENT], min(limits[key] for key in LIMITS)
    if none := [key for key, limit in limits.items() if limit <= 0]:
        yield fail(
            f"In {phase.name}, EvalAI accepts no submission, because its limit is 0 ({', '.join(none)}).",
            "Raise it on EvalAI, for example as in bundle.zip.",
        )
    elif per_day > per_minute * 24 * 60 or at_once > per_minute:
        yield warn(
            f"In {phase.name}, one team may send {per_day} submissions a day, {at_once} of them at once. The worker can answer about"
            f" {per_minute} a minute, because each takes about {CALLS} calls, so one team could delay all others.",
            "Lower max_submissions_per_day and max_concurrent_submissions_allowed on EvalAI, for example to 10 and 3.",
        )


def _differing(phase: Told, stated: Mapping[str, Any]) -> Iterator[Finding]:
    differing = [
        f"{key} is {here} instead of {stated[key]}"
        for key in (*LIMITS, CONCURRENT)
        if stated.get(key) is not None and (here := phase.read(key, integer)) != stated[key]
    ]
    end, written = phase.moment("end_date"), stated.get("end_date")
    if isinstance(written, datetime) and end != written.replace(tzinfo=UTC):
        differing.append(f"end_date is {end:{MINUTE}} instead of {written:{MINUTE}}")
    if differing:
        yield warn(f"On EvalAI, {phase.name} differs from bundle.zip: {', '.join(differing)}.")


LEADERBOARD = (
    Setting(
        "show_leaderboard_by_latest_submission",
        True,
        "{0.name} is in the order in which the answers arrived, the newest first (show_leaderboard_by_latest_submission). Its ranks say"
        " nothing about quality; only the published board counts.",
        "As a host, press “Sort by best” on EvalAI's leaderboard of the phase. It then shows each team's best submission by mean Q.",
    ),
    Setting(
        "show_scores_on_leaderboard",
        False,
        "{0.name} shows no values (show_scores_on_leaderboard).",
        "Set show_scores_on_leaderboard on EvalAI, unless values are meant to be hidden.",
    ),
    Setting(
        "show_execution_time",
        True,
        "{0.name} shows execution times (show_execution_time), which depend on the hidden tasks.",
        "Ask EvalAI's administrators to unset it, or upload the bundle again with show_execution_time: False.",
    ),
)


def leaderboards(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Compare EvalAI's leaderboards with the published board."""
    configured = evalai.configuration.phases
    splits = {
        codename: split
        for codename in evalai.configured
        if (split := evalai.splits.get((evalai.phases[codename].pk, configured[codename].split)))
    }  # another check names those that are missing
    boards = {
        codename: Told(f"EvalAI's leaderboard of phase {codename}", split.said)
        for codename, split in splits.items()
    }
    for codename, board in boards.items():
        yield from each(setting.compare(board) for setting in LEADERBOARD)
        if configured[codename].shown is Shown.AT_ONCE:
            yield from each([_public(evalai.configured[codename], board)])
    for codename, board in boards.items():
        settings = evalai.challenge.ask(evalai.client.split_settings, splits[codename].pk)
        hosts = Told(board.name, settings.said)  # what only hosts see
        yield from each(
            [
                _order(board, hosts, configured[codename].metric),
                _precision(hosts, configured[codename].decimals),
            ]
        )


def _public(phase: Told, board: Told) -> Iterator[Finding]:
    if board.read("visibility", integer) != PUBLIC or not phase.flag("leaderboard_public"):
        yield warn(
            f"{board.name} is not public, so participants see mean Q only in their own submissions.",
            "Set leaderboard_public and visibility: 3 on EvalAI, unless it is meant not to be public.",
        )


def _order(board: Told, hosts: Told, metric: str) -> Iterator[Finding]:
    """Check that the largest value comes first. If the schema has metadata of the metric, EvalAI ignores the split's own setting."""
    schema = {"metadata": None, **board.read("leaderboard_schema", _fields)}
    if (by := schema.get("default_order_by")) != metric:
        yield warn(
            f"{board.name} is ordered by {by} (default_order_by of its schema) instead of {metric}.",
            f"Ask EvalAI's administrators to set default_order_by: {metric}, or upload the bundle again.",
        )
    metadata = Told(board.name, schema).read("metadata", lambda value: _fields(value or {}))
    own = metadata.get(metric) is None
    key = "is_leaderboard_order_descending" if own else "sort_ascending"
    # in the metadata, EvalAI takes everything but False for ascending
    if not hosts.flag(key) if own else Told(board.name, metadata).read(metric, _fields).get(key) is not False:
        yield warn(
            f"{board.name} is in ascending order ({key}), so it shows each team's worst submission, and the worst team first.",
            "Set is_leaderboard_order_descending on EvalAI, and sort_ascending: False in the bundle's schema of the leaderboard.",
        )


def _fields(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _precision(hosts: Told, decimals: int) -> Iterator[Finding]:
    shown = hosts.read("leaderboard_decimal_precision", integer)
    if shown < decimals:
        yield warn(
            f"{hosts.name} shows {shown} decimals (leaderboard_decimal_precision), the published board {decimals}. Teams that differ there"
            " could look equal.",
            "Set leaderboard_decimal_precision on EvalAI, or lower the phase's decimals in the configuration.",
        )
