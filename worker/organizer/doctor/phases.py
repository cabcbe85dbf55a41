"""Checks of the challenge's phases and leaderboards at EvalAI; nothing is written there."""

from __future__ import annotations

import json
from collections.abc import Iterator

from worker.challenge.sections import Phase as ConfiguredPhase
from worker.evalai import Phase, PhaseSplit
from worker.organizer.doctor.check import Checks, Finding, Flag, fail, warn
from worker.organizer.doctor.examination import Examination

PUBLIC = 3
BY_LATEST = {"last": True, "best": False}  # EvalAI cannot show other selections
CHECKS = Checks()


@CHECKS.add("evalai.phases", "EvalAI has every configured phase", remote=True)
def _phases(exam: Examination) -> Iterator[Finding]:
    known = exam.evalai_phases
    for codename in exam.configuration.phases:
        if codename not in known:
            yield fail(
                f"EvalAI has no phase with the codename {codename}; it has {', '.join(sorted(known)) or 'none'}.",
                "Under `phases`, use the codenames of the challenge bundle.",
            )


@CHECKS.add("evalai.other_phases", "Every phase on EvalAI is configured", remote=True)
def _other_phases(exam: Examination) -> Iterator[Finding]:
    for codename in sorted(set(exam.evalai_phases) - set(exam.configuration.phases)):
        yield warn(
            f"EvalAI has a phase {codename} that is not configured. Its submissions would be put on hold.",
            f"Add phases.{codename} to the configuration, or remove the phase at EvalAI.",
        )


@CHECKS.add("evalai.ended", "No phase has ended", remote=True)
def _ended(exam: Examination) -> Iterator[Finding]:
    for codename, phase in exam.matched:
        end = phase.end_date
        if end is not None and end <= exam.clock():
            yield warn(
                f"Phase {codename} ended on {end:%Y-%m-%d %H:%M} UTC, so EvalAI accepts no more submissions to it.",
                "Move its end date on EvalAI, unless it was meant to end then.",
            )


FLAGS: tuple[Flag[Phase], ...] = (
    Flag(
        "evalai.public",
        "Participants see every phase",
        lambda phase: not phase.is_public,
        warn,
        "Phase {0.codename} is not public (is_public), so EvalAI accepts submissions to it only from hosts.",
        "Make the phase public on EvalAI before it begins.",
    ),
    Flag(
        "evalai.open",
        "No phase is paused on EvalAI",
        lambda phase: phase.is_submission_paused,
        warn,
        "Phase {0.codename} is paused on EvalAI and accepts no submissions.",
        "Resume it on EvalAI before the launch.",
    ),
    Flag(
        "evalai.logs",
        "Participants can read what is wrong with their files",
        lambda phase: phase.disable_logs,
        warn,
        "Phase {0.codename} has disable_logs set, so participants cannot read what is wrong with a file.",
        "Unset it on EvalAI. Messages about a file do not depend on the hidden tasks, unless scoring.standardize_embeddings is false.",
    ),
    Flag(
        "evalai.visibility",
        "Submissions are public unless their team says otherwise",
        lambda phase: not phase.is_submission_public,
        warn,
        "Submissions to phase {0.codename} are private by default, but only public ones count for the board.",
        "Set is_submission_public on EvalAI, or remind participants to make their submissions public.",
    ),
    Flag(
        "evalai.partial",
        "No phase asks for partial evaluation",
        lambda phase: phase.partial_evaluation,
        warn,
        "Phase {0.codename} has partial evaluation enabled, which the worker does not use.",
        "Unset is_partial_submission_evaluation_enabled on EvalAI.",
    ),
)
CHECKS.add_flags(
    lambda exam: [phase for _, phase in exam.matched],
    FLAGS,
    remote=True,
)


@CHECKS.add("evalai.splits", "Every phase has the configured dataset split", remote=True)
def _splits(exam: Examination) -> Iterator[Finding]:
    for codename, phase in exam.matched:
        split = exam.configuration.phases[codename].split
        if (phase.pk, split) not in exam.splits:
            there = sorted(name for pk, name in exam.splits if pk == phase.pk)
            yield fail(
                f"Phase {codename} has no dataset split {split} on EvalAI; it has {', '.join(there) or 'none'}.",
                f"Correct phases.{codename}.split.",
            )


def _each_split(exam: Examination) -> Iterator[tuple[str, ConfiguredPhase, PhaseSplit]]:
    """Yield each phase's codename, its configuration, and its split at EvalAI."""
    for codename, phase in exam.matched:
        configured = exam.configuration.phases[codename]
        if split := exam.splits.get((phase.pk, configured.split)):
            yield codename, configured, split


@CHECKS.add("evalai.metric", "EvalAI's leaderboards have exactly the metric that is posted", remote=True)
def _metric(exam: Examination) -> Iterator[Finding]:
    for codename, phase, split in _each_split(exam):
        if split.labels != (phase.metric,):
            yield fail(
                f"The leaderboard of phase {codename} has the metrics {', '.join(split.labels)}, but the worker posts {phase.metric}.",
                f"Correct phases.{codename}.metric, or the schema of the bundle: labels: [{phase.metric}].",
            )


@CHECKS.add("evalai.leaderboard", "Participants see EvalAI's own leaderboard", remote=True)
def _leaderboard(exam: Examination) -> Iterator[Finding]:
    for codename, _, split in _each_split(exam):
        if split.visibility != PUBLIC or not exam.evalai_phases[codename].leaderboard_public:
            yield warn(
                f"EvalAI's leaderboard of phase {codename} is not public, so participants see mean Q only in their own submissions.",
                "Set leaderboard_public and visibility: 3 on EvalAI, unless it is meant not to be public.",
            )


@CHECKS.add("evalai.latest", "EvalAI shows the same submission of each team as the board", remote=True)
def _latest(exam: Examination) -> Iterator[Finding]:
    for codename, phase, split in _each_split(exam):
        wanted = BY_LATEST.get(phase.selection)
        if wanted is None or split.by_latest is wanted:
            continue
        shown, button = ("best", "Sort by latest") if wanted else ("latest", "Sort by best")
        address = f"{exam.configuration.evalai.server.rstrip('/')}/api/challenges/challenge/create/challenge_phase_split/{split.pk}/"
        change = json.dumps({"show_leaderboard_by_latest_submission": wanted})
        dropped = "The bundle asks for the latest submissions, but EvalAI ignores that. " if wanted else ""
        yield warn(
            f"EvalAI's leaderboard of phase {codename} shows the {shown} submission of each team, but on the board the {phase.selection}"
            " one counts. Participants would see two different rankings.",
            f"{dropped}As a host, press “{button}” on EvalAI's leaderboard of the phase, or send: PATCH {address} {change}",
        )


@CHECKS.add("evalai.execution_time", "EvalAI does not show how long submissions took", remote=True)
def _execution_time(exam: Examination) -> Iterator[Finding]:
    for codename, _, split in _each_split(exam):
        if split.show_execution_time:
            yield warn(
                f"EvalAI's leaderboard of phase {codename} shows execution times (show_execution_time), which depend on the hidden tasks.",
                "Ask EvalAI's administrators to unset it, or upload the bundle again with show_execution_time: False.",
            )
