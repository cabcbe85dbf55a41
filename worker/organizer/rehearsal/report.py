"""The result of a rehearsal, compared with what should have happened."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from worker.fairness.draws import CHOOSE_ONE, NONE, WITHOUT
from worker.organizer.rehearsal.entries import RANDOM, Entry

HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class RehearsedSubmission:
    """One submission, and what EvalAI shows of it at the end.

    Attributes:
        status: EvalAI's status.
        q_mean: The value that the participant is shown; None if nothing.
        message: The message about a failure that the participant reads.
        silent: Whether stderr of a scored submission, or stdout of a refused one, is empty, as it should be.
        seconds: Time from the start of its evaluation to the end.
    """

    phase: str
    entry: Entry
    status: str
    q_mean: float | None
    message: str
    silent: bool
    seconds: float | None

    @property
    def faults(self) -> Iterator[str]:
        """Return what is wrong."""
        what, good = f"{self.phase}: {self.entry.method}", self.entry.good
        if good and self.status != "finished":
            yield f"{what} should have been scored, but is {self.status}. {self.message}".strip()
        elif good and (self.q_mean is None or not math.isfinite(self.q_mean) or not self.silent):
            yield f"{what} was scored, but its answer is not one number."
        elif not good and self.status != "failed":
            yield f"{what} should have been refused, but is {self.status}."
        elif not good and (not self.message or not self.silent):
            yield f"{what} was refused without a reason."

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        entry = {key: value for key, value in vars(self.entry).items() if key != "content"}
        return vars(self) | {"entry": entry}


@dataclass(frozen=True, kw_only=True)
class PhaseReport:
    """One phase of a rehearsal.

    Attributes:
        folds: Number of trained folds.
        configured_folds: Number of folds in the configuration.
        decimals: Number of decimals with which mean Q is shown.
        ladder_step: The step to which the Ladder rounds mean Q, if it selects.
        entries: The published board, as in ``leaderboard/<phase>.json``.
    """

    codename: str
    folds: int
    configured_folds: int
    decimals: int
    ladder_step: float | None
    submissions: tuple[RehearsedSubmission, ...]
    entries: tuple[Mapping[str, Any], ...]

    @property
    def seconds_per_submission(self) -> float | None:
        """Mean seconds that a good submission took."""
        times = [one.seconds for one in self.submissions if one.entry.good and one.seconds is not None]
        return fmean(times) if times else None

    @property
    def faults(self) -> Iterator[str]:
        """Return what is wrong."""
        for submission in self.submissions:
            yield from submission.faults
        shown = {str(entry["team"]) for entry in self.entries}
        wanted = {
            one.entry.listed_as
            for one in self.submissions
            if one.entry.good and one.entry.public and one.status == "finished"
        }
        for team in sorted(wanted - shown):
            yield f"{self.codename}: “{team}” was scored and is public, but is not on the board."
        for team in sorted(shown - wanted):
            yield f"{self.codename}: “{team}” is on the board, where it does not belong."

    @property
    def remarks(self) -> Iterator[str]:
        """Return what is possible, but unusual."""
        scores = {
            one.entry.method: one.q_mean
            for one in self.submissions
            if one.entry.good and one.entry.public and one.q_mean is not None
        }
        random = scores.pop(RANDOM, None)
        for method, value in scores.items():
            if random is not None and value <= random:
                yield (
                    f"{self.codename}: {method} scores no better than random numbers ({value:g} and {random:g}). If it is not random, too,"
                    " labels and data do not belong to the same ids, or the probes train for too few steps to learn:"
                    " scoring.epochs × samples ÷ scoring.batch_size in each fold. Try more epochs."
                )


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """All results of a rehearsal.

    Attributes:
        calls_per_submission: Calls to EvalAI per submission.
        requests_per_minute: The configuration's limit.
        failures: What went wrong with the worker itself.
        verified: The findings of `verify` about everything published; empty if the rehearsal did not get that far.
        drawn_by: The configuration's ``fairness.beacon``.
        seconds: Duration.
    """

    phases: tuple[PhaseReport, ...]
    calls_per_submission: float
    requests_per_minute: int
    failures: tuple[str, ...]
    seconds: float
    verified: tuple[str, ...] = ()
    drawn_by: str = NONE

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong; empty after a good rehearsal."""
        return (*self.failures, *(fault for phase in self.phases for fault in phase.faults))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is possible, but unusual."""
        without = (f"{WITHOUT} {CHOOSE_ONE}",) if self.drawn_by == NONE else ()
        return (*without, *(remark for phase in self.phases for remark in phase.remarks))

    def per_hour(self, phase: PhaseReport) -> float:
        """Submissions per hour that this machine and EvalAI's rate limit together allow in a phase."""
        by_evalai = 60 * self.requests_per_minute / max(1.0, self.calls_per_submission)
        return min(by_evalai, HOUR_S / (phase.seconds_per_submission or HOUR_S))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return {
            "result": "failed" if self.faults else "ok",
            "faults": list(self.faults),
            "remarks": list(self.remarks),
            "seconds": round(self.seconds, 3),
            "calls_per_submission": round(self.calls_per_submission, 3),
            "verified": list(self.verified),
            "phases": {
                phase.codename: {
                    "folds": phase.folds,
                    "configured_folds": phase.configured_folds,
                    "seconds_per_submission": phase.seconds_per_submission,
                    "submissions_per_hour": self.per_hour(phase),
                    "submissions": [one.to_json() for one in phase.submissions],
                    "board": [dict(entry) for entry in phase.entries],
                }
                for phase in self.phases
            },
        }
