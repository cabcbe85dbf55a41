"""Checks of the challenge at EvalAI, its phases and leaderboards; nothing is written there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from scoring.errors import OrganizerError
from scoring.printable import count_of
from worker.evalai import Challenge as RemoteChallenge
from worker.evalai import Phase, PhaseSplit
from worker.fetching.download import check_address
from worker.organizer.bundle_check import CONCURRENT, LIMITS, stated_phases
from worker.organizer.doctor.check import Finding, Level, fail, note, skipped, warn
from worker.organizer.doctor.subjects import Challenge, EvalAI

T = TypeVar("T")
SOON = timedelta(days=30)
ALLOWED_PER_MINUTE = 60
PER_MINUTE = 15  # submissions: an answer takes about four of the 60 calls that EvalAI allows
SKEW_WARN_S, SKEW_FAIL_S = 10.0, 120.0
PUBLIC = 3
FILE_TYPES = (".csv", ".gz", ".zip", ".parquet", ".npz")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """A value at EvalAI that can be wrong.

    Attributes:
        wrong: Returns whether it is.
        sentence: What follows, a format whose argument is the thing that has the value.
        cure: What to do.
        level: How bad it is.
    """

    wrong: Callable[[T], bool]
    sentence: str
    cure: str
    level: Level = Level.WARN


def _compare(things: Iterable[T], settings: Iterable[Setting[T]]) -> Iterator[Finding]:
    """Yield a finding for each setting that is wrong."""
    for thing in things:
        for setting in settings:
            if setting.wrong(thing):
                yield Finding(setting.level, setting.sentence.format(thing), setting.cure)


def token(challenge: Challenge) -> Iterator[Finding]:
    """Read the token, and when it expires."""
    now = challenge.clock()
    with closing(challenge.client()) as client:
        expiry = client.expiry
    # without a date, it has 40 hexadecimal digits, and expires 365 days after the login
    if expiry is not None and expiry <= now:
        yield fail(f"The EvalAI token expired on {expiry:%Y-%m-%d}.")
    elif expiry is not None and expiry <= now + SOON:
        yield warn(
            f"The EvalAI token expires on {expiry:%Y-%m-%d}, in {count_of((expiry - now).days, 'day')}."
        )


def examined(evalai: EvalAI) -> Iterator[Finding]:
    """Say which challenge was asked for."""
    server = evalai.configuration.evalai.server
    yield note(
        f"Challenge {evalai.challenge.pk}, “{evalai.challenge.title}”, at {server}: phases {', '.join(evalai.phases) or 'none'}.",
    )


CHALLENGE: tuple[Setting[RemoteChallenge], ...] = (
    Setting(
        lambda challenge: not challenge.remote_evaluation,
        "The challenge is not set to remote evaluation, so EvalAI would evaluate submissions itself.",
        "Upload the bundle with remote_evaluation: True, or ask EvalAI's administrators to set it.",
        Level.FAIL,
    ),
    Setting(
        lambda challenge: challenge.is_docker_based,
        "The challenge is docker-based (is_docker_based). Participants would submit images, which the worker cannot score.",
        "Upload the bundle with is_docker_based: False, or ask EvalAI's administrators to unset it.",
        Level.FAIL,
    ),
    Setting(
        lambda challenge: challenge.manual_participant_approval,
        "A team can submit only after a host has approved it (manual_participant_approval).",
        "Approve each team on EvalAI's page of the challenge, or unset it there.",
    ),
    Setting(
        lambda challenge: challenge.allow_participants_resubmissions,
        "Participants may run their submissions again (allow_participants_resubmissions). Each run is a new submission to score, and does"
        " not use up the limits of its phase.",
        "Ask EvalAI's administrators to unset it.",
    ),
    Setting(
        lambda challenge: challenge.use_fifo,
        "The challenge has a FIFO queue (use_fifo_sqs): each message of a team waits until the team's previous one is deleted, so many"
        " submissions of one team arrive slowly.",
        "No submission is lost, because the worker also reads EvalAI's listing. To avoid the delay, ask EvalAI's administrators"
        " for a standard queue.",
    ),
)
LAUNCH: tuple[Setting[RemoteChallenge], ...] = (
    Setting(
        lambda challenge: not challenge.published,
        "The challenge is not published, so only its hosts can see it.",
        "Publish it on EvalAI after its approval, on the day on which its first phase begins for participants.",
    ),
    Setting(
        lambda challenge: not challenge.approved,
        "EvalAI's administrators have not approved the challenge (approved_by_admin), so only its hosts can submit.",
        "Submit a baseline to each phase as a host, and let the worker answer. When each phase has a finished submission, request the"
        " approval on EvalAI.",
    ),
)


def challenge(evalai: EvalAI) -> Iterator[Finding]:
    """Compare the challenge's settings with what the worker needs."""
    return _compare([evalai.challenge], CHALLENGE)


def launch(evalai: EvalAI) -> Iterator[Finding]:
    """Say what is missing until participants can submit, and look for ends that have passed."""
    yield from _compare([evalai.challenge], LAUNCH)
    now = evalai.local.clock()
    is_open = any(
        phase.is_public and (phase.end_date is None or phase.end_date > now) for phase in evalai.configured
    )
    for phase in evalai.configured:
        if not phase.is_public:
            sentence = f"Phase {phase.codename} is not public (is_public), so EvalAI accepts submissions to it only from hosts."
            cure = "Make it public on EvalAI on the day on which it begins for participants."
            yield note(f"{sentence} {cure}") if is_open else warn(sentence, cure)
    end = evalai.challenge.end_date
    if end is not None and end <= now:
        yield fail(f"The challenge ended on {end:%Y-%m-%d %H:%M} UTC; EvalAI takes no submissions.")
    for phase in evalai.configured:
        if phase.end_date is not None and phase.end_date <= now:
            yield warn(
                f"Phase {phase.codename} ended on {phase.end_date:%Y-%m-%d %H:%M} UTC, so EvalAI accepts no more submissions to it.",
                "Move its end date on EvalAI, unless it was meant to end then.",
            )


def clock(evalai: EvalAI) -> Iterator[Finding]:
    """Compare this machine's clock with EvalAI's."""
    skew_s = evalai.skew_s
    if skew_s is None:
        yield skipped("The server does not send its time.")
    elif abs(skew_s) > SKEW_WARN_S:
        yield (fail if abs(skew_s) > SKEW_FAIL_S else warn)(
            f"This machine's clock is {abs(skew_s):.0f} s {'behind' if skew_s > 0 else 'ahead of'} EvalAI's."
        )


def storage(evalai: EvalAI) -> Iterator[Finding]:
    """Check that files may be downloaded from where EvalAI stores them."""
    host = urlsplit(evalai.stored_at or "").netloc
    if not evalai.stored_at or not host:
        yield skipped("EvalAI does not say where it stores files.")
        return
    settings = evalai.configuration.evalai
    try:
        check_address(evalai.stored_at, [urlsplit(settings.server).netloc, *settings.media_hosts])
    except OrganizerError:
        yield fail(
            f"EvalAI stores files on {host}, which the worker may not download from.",
            f"Set evalai.media_hosts: [{host}]",
        )


def phases(evalai: EvalAI) -> Iterator[Finding]:
    """Compare codenames, dataset splits and metrics."""
    configured = evalai.configuration.phases
    for codename in configured.keys() - evalai.phases.keys():
        yield fail(
            f"EvalAI has no phase with the codename {codename}; it has {', '.join(sorted(evalai.phases)) or 'none'}.",
            "Under `phases`, use the codenames of the challenge bundle.",
        )
    for codename in sorted(evalai.phases.keys() - configured.keys()):
        yield warn(
            f"EvalAI has a phase {codename} that is not configured. Its submissions would be put on hold.",
            f"Add phases.{codename} to the configuration, or remove the phase at EvalAI.",
        )
    for phase in evalai.configured:
        name, metric = configured[phase.codename].split, configured[phase.codename].metric
        split = evalai.splits.get((phase.pk, name))
        if split is None:
            existing = sorted(name for pk, name in evalai.splits if pk == phase.pk)
            yield fail(
                f"Phase {phase.codename} has no dataset split {name} on EvalAI; it has {', '.join(existing) or 'none'}.",
                f"Correct phases.{phase.codename}.split.",
            )
        elif split.labels != (metric,):
            yield fail(
                f"The leaderboard of phase {phase.codename} has the metrics {', '.join(split.labels)}, but the worker posts {metric}.",
                f"Correct phases.{phase.codename}.metric, or the schema of the bundle: labels: [{metric}].",
            )


def _allows_all(phase: Phase) -> bool:
    """Return whether EvalAI's page of a phase offers all types of files that the worker reads."""
    allowed = (phase.allowed_submission_file_types or "").lower().split(",")
    return {kind.strip() for kind in allowed}.issuperset(FILE_TYPES)


def _per_day(phase: Phase) -> int:
    """Return how many submissions a team may send in one day; 0 if that is unknown."""
    return min((limit for key in LIMITS if (limit := getattr(phase, key)) is not None), default=0)


PHASE: tuple[Setting[Phase], ...] = (
    Setting(
        lambda phase: phase.is_submission_paused,
        "Phase {0.codename} is paused on EvalAI and accepts no submissions.",
        "Resume it on EvalAI before the launch.",
    ),
    Setting(
        lambda phase: phase.disable_logs,
        "Phase {0.codename} has disable_logs set, so participants cannot read what is wrong with a file.",
        "Unset it on EvalAI. Messages about a file do not depend on the hidden tasks, unless scoring.standardize_embeddings is false.",
    ),
    Setting(
        lambda phase: not phase.is_submission_public,
        "Submissions to phase {0.codename} are private by default, but only public ones count for the board.",
        "Set is_submission_public on EvalAI, or remind participants to make their submissions public.",
    ),
    Setting(
        lambda phase: phase.partial_evaluation,
        "Phase {0.codename} has partial evaluation enabled, which the worker does not use.",
        "Unset is_partial_submission_evaluation_enabled on EvalAI.",
    ),
    Setting(
        lambda phase: bool(phase.allowed_submission_file_types) and not _allows_all(phase),
        "In phase {0.codename}, EvalAI's page offers only files of the types {0.allowed_submission_file_types}.",
        f"Set allowed_submission_file_types on EvalAI: {', '.join(FILE_TYPES)}",
    ),
    Setting(
        lambda phase: phase.is_restricted_to_select_one_submission,
        "Phase {0.codename} restricts teams to one public submission (is_restricted_to_select_one_submission). The rule of the board"
        " then chooses among this one only.",
        "Unset it on EvalAI.",
    ),
)
RATE: tuple[Setting[Phase], ...] = (
    Setting(
        lambda phase: (
            _per_day(phase) > PER_MINUTE * 24 * 60
            or (phase.max_concurrent_submissions_allowed or 0) > PER_MINUTE
        ),
        "Phase {0.codename} lets one team send {0.max_submissions_per_day} submissions a day, {0.max_concurrent_submissions_allowed} of"
        f" them at once. EvalAI's rate limit lets the worker answer about {PER_MINUTE} a minute, so one team could delay all others.",
        "Lower max_submissions_per_day and max_concurrent_submissions_allowed on EvalAI, for example to 10 and 3.",
    ),
)


def phase_settings(evalai: EvalAI) -> Iterator[Finding]:
    """Compare the settings of the phases with what participants need."""
    return _compare(evalai.configured, PHASE)


def limits(evalai: EvalAI) -> Iterator[Finding]:
    """Compare the limits with those that the bundle states, and with what the worker can answer."""
    asked = evalai.configuration.evalai.requests_per_minute
    if asked > ALLOWED_PER_MINUTE:
        yield warn(
            f"evalai.requests_per_minute is {asked}; EvalAI allows an account {ALLOWED_PER_MINUTE} and refuses more for the rest"
            " of the minute.",
            "Set it to 50.",
        )
    yield from _compare(evalai.configured, RATE)
    stated = stated_phases(evalai.local.base / "bundle.zip")
    for phase in evalai.configured:
        differing = [
            f"{key} is {here} instead of {wanted}"
            for key in (*LIMITS, CONCURRENT)
            if (wanted := stated.get(phase.codename, {}).get(key)) is not None
            and (here := getattr(phase, key)) not in (None, wanted)
        ]
        if differing:
            yield warn(
                f"The limits of phase {phase.codename} on EvalAI differ from bundle.zip: {', '.join(differing)}."
            )


@dataclass(frozen=True)
class Leaderboard:
    """EvalAI's leaderboard of a configured phase, and the decimals of the published board."""

    phase: Phase
    split: PhaseSplit
    decimals: int


LEADERBOARD: tuple[Setting[Leaderboard], ...] = (
    Setting(
        lambda board: board.split.visibility != PUBLIC or not board.phase.leaderboard_public,
        "EvalAI's leaderboard of phase {0.phase.codename} is not public, so participants see mean Q only in their own submissions.",
        "Set leaderboard_public and visibility: 3 on EvalAI, unless it is meant not to be public.",
    ),
    Setting(
        lambda board: board.split.by_latest,
        "EvalAI's leaderboard of phase {0.phase.codename} is in the order in which the answers arrived, the newest first"
        " (show_leaderboard_by_latest_submission). Its ranks say nothing about quality; only the published board counts.",
        "As a host, press “Sort by best” on EvalAI's leaderboard of the phase. It then shows each team's best submission by mean Q.",
    ),
    Setting(
        lambda board: not board.split.descending,
        "EvalAI's leaderboard of phase {0.phase.codename} is in ascending order (is_leaderboard_order_descending), so it shows each team's"
        " worst submission, and the worst team first.",
        "Set is_leaderboard_order_descending on EvalAI.",
    ),
    Setting(
        lambda board: board.split.decimals is not None and board.split.decimals < board.decimals,
        "EvalAI's leaderboard of phase {0.phase.codename} shows {0.split.decimals} decimals (leaderboard_decimal_precision), the published"
        " board {0.decimals}. Teams that differ there could look equal.",
        "Set leaderboard_decimal_precision on EvalAI, or lower leaderboard.decimals.",
    ),
    Setting(
        lambda board: not board.split.show_scores,
        "EvalAI's leaderboard of phase {0.phase.codename} shows no values (show_scores_on_leaderboard).",
        "Set show_scores_on_leaderboard on EvalAI, unless values are meant to be hidden.",
    ),
    Setting(
        lambda board: board.split.show_execution_time,
        "EvalAI's leaderboard of phase {0.phase.codename} shows execution times (show_execution_time), which depend on the hidden tasks.",
        "Ask EvalAI's administrators to unset it, or upload the bundle again with show_execution_time: False.",
    ),
)


def leaderboards(evalai: EvalAI) -> Iterator[Finding]:
    """Compare EvalAI's leaderboards with the published board."""
    configuration = evalai.configuration
    boards = (
        Leaderboard(phase, split, configuration.leaderboard.decimals)
        for phase in evalai.configured
        if (split := evalai.splits.get((phase.pk, configuration.phases[phase.codename].split)))
    )
    return _compare(boards, LEADERBOARD)
