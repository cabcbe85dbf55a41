"""Checks of the challenge's phases and leaderboards at EvalAI; nothing is written there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from worker.challenge.sections import Phase as ConfiguredPhase
from worker.evalai import Phase, PhaseSplit
from worker.organizer.bundle_check import CONCURRENT, LIMITS, stated_phases
from worker.organizer.doctor.check import Checks, Finding, Flag, fail, note, warn
from worker.organizer.doctor.examination import Examination

PUBLIC = 3
PER_MINUTE = 15  # submissions: an answer takes about four of the 60 calls that EvalAI allows
FILE_TYPES = (".csv", ".gz", ".zip", ".parquet", ".npz")
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


@CHECKS.add("evalai.public", "Participants can submit to a phase", remote=True)
def _public(exam: Examination) -> Iterator[Finding]:
    later = [codename for codename, phase in exam.matched if not phase.is_public]
    is_open = any(
        phase.is_public and (phase.end_date is None or phase.end_date > exam.clock())
        for _, phase in exam.matched
    )
    for codename in later:
        sentence = f"Phase {codename} is not public (is_public), so EvalAI accepts submissions to it only from hosts."
        cure = "Make it public on EvalAI on the day on which it begins for participants."
        yield note(f"{sentence} {cure}", always=True) if is_open else warn(sentence, cure)


def _allows_all(phase: Phase) -> bool:
    """Return whether EvalAI's page of a phase offers all types of files that the worker reads."""
    allowed = (phase.allowed_submission_file_types or "").lower().split(",")
    return {kind.strip() for kind in allowed}.issuperset(FILE_TYPES)


def _per_day(phase: Phase) -> int:
    """Return how many submissions a team may send in one day; 0 if that is unknown."""
    return min((limit for key in LIMITS if (limit := getattr(phase, key)) is not None), default=0)


FLAGS: tuple[Flag[Phase], ...] = (
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
    Flag(
        "evalai.file_types",
        "EvalAI takes every kind of file that the worker reads",
        lambda phase: bool(phase.allowed_submission_file_types) and not _allows_all(phase),
        warn,
        "In phase {0.codename}, EvalAI's page offers only files of the types {0.allowed_submission_file_types}.",
        f"Set allowed_submission_file_types on EvalAI: {', '.join(FILE_TYPES)}",
    ),
    Flag(
        "evalai.one_public",
        "Teams may have several public submissions",
        lambda phase: phase.is_restricted_to_select_one_submission,
        warn,
        "Phase {0.codename} restricts teams to one public submission (is_restricted_to_select_one_submission). The rule of the board"
        " then chooses among this one only.",
        "Unset it on EvalAI.",
    ),
    Flag(
        "evalai.rate",
        "EvalAI's rate limit suffices for what one team may send",
        lambda phase: (
            _per_day(phase) > PER_MINUTE * 24 * 60
            or (phase.max_concurrent_submissions_allowed or 0) > PER_MINUTE
        ),
        warn,
        "Phase {0.codename} lets one team send {0.max_submissions_per_day} submissions a day, {0.max_concurrent_submissions_allowed} of"
        f" them at once. EvalAI's rate limit lets the worker answer about {PER_MINUTE} a minute, so one team could delay all others.",
        "Lower max_submissions_per_day and max_concurrent_submissions_allowed on EvalAI, for example to 10 and 3.",
    ),
)
CHECKS.add_flags(
    lambda exam: [phase for _, phase in exam.matched],
    FLAGS,
    remote=True,
)


@CHECKS.add("evalai.limits", "EvalAI has the limits of submissions that the bundle states", remote=True)
def _limits(exam: Examination) -> Iterator[Finding]:
    stated = stated_phases(exam.base / "bundle.zip")
    for codename, phase in exam.matched:
        differing = [
            f"{key} is {here} instead of {wanted}"
            for key in (*LIMITS, CONCURRENT)
            if (wanted := stated.get(codename, {}).get(key)) is not None
            and (here := getattr(phase, key)) not in (None, wanted)
        ]
        if differing:
            yield warn(
                f"The limits of phase {codename} on EvalAI differ from bundle.zip: {', '.join(differing)}.",
                "Set them on EvalAI, or correct the bundle's pages, which state them.",
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


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """EvalAI's leaderboard of a configured phase."""

    codename: str
    configured: ConfiguredPhase
    decimals: int
    phase: Phase
    split: PhaseSplit


def _leaderboards(exam: Examination) -> Iterator[Leaderboard]:
    """Yield the leaderboards of the phases whose dataset split EvalAI has."""
    for codename, phase in exam.matched:
        configured, decimals = exam.configuration.phases[codename], exam.configuration.leaderboard.decimals
        if split := exam.splits.get((phase.pk, configured.split)):
            yield Leaderboard(
                codename=codename, configured=configured, decimals=decimals, phase=phase, split=split
            )


@CHECKS.add("evalai.metric", "EvalAI's leaderboards have exactly the metric that is posted", remote=True)
def _metric(exam: Examination) -> Iterator[Finding]:
    for board in _leaderboards(exam):
        metric, labels = board.configured.metric, board.split.labels
        if labels != (metric,):
            yield fail(
                f"The leaderboard of phase {board.codename} has the metrics {', '.join(labels)}, but the worker posts {metric}.",
                f"Correct phases.{board.codename}.metric, or the schema of the bundle: labels: [{metric}].",
            )


@CHECKS.add("evalai.leaderboard", "Participants see EvalAI's own leaderboard", remote=True)
def _leaderboard(exam: Examination) -> Iterator[Finding]:
    yield note("It shows each team's best submission by mean Q. The board that counts is the published one.")
    for board in _leaderboards(exam):
        if board.split.visibility != PUBLIC or not board.phase.leaderboard_public:
            yield warn(
                f"EvalAI's leaderboard of phase {board.codename} is not public, so participants see mean Q only in their own submissions.",
                "Set leaderboard_public and visibility: 3 on EvalAI, unless it is meant not to be public.",
            )


BOARD_FLAGS: tuple[Flag[Leaderboard], ...] = (
    Flag(
        "evalai.latest",
        "EvalAI's leaderboards are in the order of mean Q",
        lambda board: board.split.by_latest,
        warn,
        "EvalAI's leaderboard of phase {0.codename} is in the order in which the answers arrived, the newest first"
        " (show_leaderboard_by_latest_submission). Its ranks say nothing about quality; only the published board counts.",
        "As a host, press “Sort by best” on EvalAI's leaderboard of the phase. It then shows each team's best submission by mean Q.",
    ),
    Flag(
        "evalai.order",
        "EvalAI's leaderboards begin with the highest value",
        lambda board: not board.split.descending,
        warn,
        "EvalAI's leaderboard of phase {0.codename} is in ascending order (is_leaderboard_order_descending), so it shows each team's"
        " worst submission, and the worst team first.",
        "Set is_leaderboard_order_descending on EvalAI.",
    ),
    Flag(
        "evalai.decimals",
        "EvalAI's leaderboards show as many decimals as the board",
        lambda board: board.split.decimals is not None and board.split.decimals < board.decimals,
        warn,
        "EvalAI's leaderboard of phase {0.codename} shows {0.split.decimals} decimals (leaderboard_decimal_precision), the published board"
        " {0.decimals}. Teams that differ there could look equal.",
        "Set leaderboard_decimal_precision on EvalAI, or lower leaderboard.decimals.",
    ),
    Flag(
        "evalai.scores",
        "EvalAI's leaderboards show mean Q",
        lambda board: not board.split.show_scores,
        warn,
        "EvalAI's leaderboard of phase {0.codename} shows no values (show_scores_on_leaderboard).",
        "Set show_scores_on_leaderboard on EvalAI, unless values are meant to be hidden.",
    ),
    Flag(
        "evalai.execution_time",
        "EvalAI does not show how long submissions took",
        lambda board: board.split.show_execution_time,
        warn,
        "EvalAI's leaderboard of phase {0.codename} shows execution times (show_execution_time), which depend on the hidden tasks.",
        "Ask EvalAI's administrators to unset it, or upload the bundle again with show_execution_time: False.",
    ),
)
CHECKS.add_flags(_leaderboards, BOARD_FLAGS, remote=True)
