"""The result of a rehearsal, compared with what should have happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard import Rounding
from worker.challenge.sections import Beacon
from worker.fairness.draws import CHOOSE_DRAND, WITHOUT
from worker.organizer.rehearsal.entries import RANDOM, Entry


@dataclass(frozen=True, kw_only=True)
class RehearsedSubmission:
    """One submission, and what EvalAI shows of it at the end.

    Attributes:
        status: EvalAI's status.
        q_mean: The value that the participant is shown; None if nothing.
        message: The message about a failure that the participant reads.
        seconds: Time that EvalAI shows, from `running` to the answer; None without an answer.
    """

    phase: str
    entry: Entry
    status: str
    q_mean: float | None
    message: str
    seconds: float | None

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
        rounding: How mean Q is shown.
        entries: The published board, as in ``leaderboard/<phase>.json``.
    """

    codename: str
    folds: int
    configured_folds: int
    rounding: Rounding
    submissions: tuple[RehearsedSubmission, ...]
    entries: tuple[Mapping[str, Any], ...]

    @property
    def faults(self) -> Iterator[str]:
        """Return what is wrong."""
        for submission in self.submissions:
            status, happens = ("finished", "scored") if submission.entry.good else ("failed", "refused")
            if submission.status != status:
                yield (
                    f"{self.codename}: {submission.entry.method} should have been {happens}, but is {submission.status}."
                    f" {submission.message}"
                ).strip()
        shown = {str(entry["team"]) for entry in self.entries}
        expected = {row.entry.listed_as for row in self._public if row.status == "finished"}
        for team in sorted(expected - shown):
            yield f"{self.codename}: “{team}” was scored and is public, but is not on the board."
        for team in sorted(shown - expected):
            yield f"{self.codename}: “{team}” is on the board, where it does not belong."

    @property
    def remarks(self) -> Iterator[str]:
        """Return what is possible, but unusual."""
        scores = {row.entry.method: row.q_mean for row in self._public if row.q_mean is not None}
        random = scores.pop(RANDOM, None)
        for method, value in scores.items():
            if random is not None and value <= random:
                yield (
                    f"{self.codename}: {method} scores no better than random numbers ({value:g} and {random:g}). If it is not random, too,"
                    " labels and data do not belong to the same ids, or the probes train for too few steps to learn:"
                    " scoring.epochs × samples ÷ scoring.batch_size in each fold. Try more epochs."
                )

    @property
    def _public(self) -> list[RehearsedSubmission]:
        return [row for row in self.submissions if row.entry.good and row.entry.public]


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """All results of a rehearsal.

    Attributes:
        failures: What went wrong with the worker itself.
        verified: The findings of `verify` about everything published; empty if the rehearsal did not get that far.
        drawn_by: The configuration's ``fairness.beacon``.
        seconds: Duration.
    """

    phases: tuple[PhaseReport, ...]
    failures: tuple[str, ...]
    seconds: float
    verified: tuple[str, ...] = ()
    drawn_by: Beacon = "none"

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong; empty after a good rehearsal."""
        return (*self.failures, *(fault for phase in self.phases for fault in phase.faults))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is possible, but unusual."""
        without = (f"{WITHOUT} {CHOOSE_DRAND}",) if self.drawn_by == "none" else ()
        return (*without, *(remark for phase in self.phases for remark in phase.remarks))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return {
            "result": "failed" if self.faults else "ok",
            "faults": list(self.faults),
            "remarks": list(self.remarks),
            "seconds": round(self.seconds, 3),
            "verified": list(self.verified),
            "phases": {
                phase.codename: {
                    "folds": phase.folds,
                    "configured_folds": phase.configured_folds,
                    "submissions": [row.to_json() for row in phase.submissions],
                    "board": [dict(entry) for entry in phase.entries],
                }
                for phase in self.phases
            },
        }
