"""The result of a rehearsal, compared with what should have happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard import Rounding
from worker.challenge.sections import Beacon
from worker.fairness.recording import CHOOSE_DRAND, WITHOUT
from worker.organizer.rehearsal.entries import RANDOM, RehearsalEntry


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
    entry: RehearsalEntry
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
        expected = {
            row.entry.listed_as
            for row in self.submissions
            if row.entry.good and row.entry.public and row.status == "finished"
        }
        for team in sorted(expected - shown):
            yield f"{self.codename}: “{team}” was scored and is public, but is not on the board."
        for team in sorted(shown - expected):
            yield f"{self.codename}: “{team}” is on the board, where it does not belong."

    @property
    def like_random(self) -> Iterator[str]:
        """Return the methods that the board does not place in a group above random numbers."""
        groups = {str(entry["method"]): int(entry["group"]) for entry in self.entries}
        random = groups.pop(RANDOM, None)
        for method, group in groups.items():
            if random is not None and group >= random:
                yield f"{method} in phase {self.codename}"


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
    def like_random(self) -> str:
        """What is not clearly better than random numbers, in words; empty if everything is."""
        return ", ".join(method for phase in self.phases for method in phase.like_random)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is possible, but unusual."""
        without = (f"{WITHOUT} {CHOOSE_DRAND}",) if self.drawn_by == "none" else ()
        alike = (
            (
                f"Not clearly better than random numbers: {self.like_random}. Either it is random, too, or there are too few folds to tell,"
                " or labels and data do not belong to the same ids, or the probes train for too few steps to learn (scoring.epochs ×"
                " samples ÷ scoring.batch_size in each fold; try more epochs).",
            )
            if self.like_random
            else ()
        )
        return (*without, *alike)

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
