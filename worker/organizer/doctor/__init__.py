"""The doctor: every check that is possible before the launch, each with its result and cure.

It changes nothing outside: it receives nothing from the queue, pushes nothing and posts nothing. Label values are never shown. Names of
hidden tasks are, because only the organizer reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from scoring.errors import NeucoError
from worker.organizer.doctor.check import (
    Check,
    CheckOutcome,
    Finding,
    Level,
    NotChecked,
    Report,
    fail,
    skipped,
    worst,
)
from worker.organizer.doctor.cost import Cost
from worker.organizer.doctor.subjects import Examination, FilesUnusable, Wait
from worker.organizer.doctor.table import CHECKS, SUBJECTS

ALL = frozenset(check.id for check in CHECKS)
PROBLEMS = (Level.WARN, Level.FAIL)


T = TypeVar("T")


def examine(
    path: Path,
    *,
    clock: Callable[[], datetime],
    offline: bool = False,
    only: Collection[str] = ALL,
    on_outcome: Callable[[CheckOutcome], None] = lambda _: None,
    wait: Wait = lambda seconds, _: time.sleep(seconds),
) -> Report:
    """Run the checks in the order of their table.

    Args:
        path: The configuration file.
        clock: Returns the time of this machine, aware.
        offline: Skip the checks that contact other machines.
        only: Ids of the checks to run.
        on_outcome: Called with each outcome as soon as it is known.
        wait: Waits for the given seconds, with the reason.
    """
    outcomes: list[CheckOutcome] = []
    reported: dict[str, str] = {}  # the sentence of an error to the check that reported it
    with ExitStack() as opened:
        exam = Examination(path=path, clock=clock, wait=wait, opened=opened)
        source: Any = exam
        for subject in SUBJECTS:
            checks = [check for check in subject.checks if check.id in only]
            if not checks and source is not exam:
                continue
            first = subject.checks[0]
            if source is None or (offline and first.remote):
                reason = (
                    "--offline was given." if source is not None else f"{SUBJECTS[0].checks[0].id} failed."
                )
                read, problems = None, [skipped(reason)]
            else:
                read, problems = _attempt(partial(subject.read, source), first, reported)
            for check in checks:
                if read is None:
                    findings = problems if check is first else [_consequence(first, problems)]
                elif offline and check.remote:
                    findings = [skipped("--offline was given.")]
                else:
                    findings = _ask(check, read, reported)
                outcome = CheckOutcome(check=check, findings=tuple(findings))
                outcomes.append(outcome)
                on_outcome(outcome)
            source = read if source is exam else source
        return Report(outcomes=tuple(outcomes), costs=exam.costs)


def _ask(check: Check[Any], subject: object, reported: dict[str, str]) -> list[Finding]:
    """Return what a check finds, with its cure where the finding has none."""
    findings: list[Finding] = []
    _, problems = _attempt(lambda: findings.extend(check.ask(subject)), check, reported)
    return [
        replace(finding, cure=check.cure) if finding.level in PROBLEMS and not finding.cure else finding
        for finding in (*findings, *problems)
    ]


def _consequence(first: Check[Any], problems: list[Finding]) -> Finding:
    """Say why nothing that depends on a check could be checked."""
    return problems[0] if problems[0].level is Level.SKIPPED else skipped(f"{first.id} failed.")


def _attempt(
    call: Callable[[], T], check: Check[Any], reported: dict[str, str]
) -> tuple[T | None, list[Finding]]:
    """Return what a call returns, or the problems that it raises; one that another check has reported is not reported again."""
    errors: list[NeucoError]
    try:
        return call(), []
    except NotChecked as reason:
        return None, [skipped(str(reason))]
    except FilesUnusable as unusable:
        errors = unusable.errors
    except NeucoError as error:
        errors = [error]
    except Exception as error:  # noqa: BLE001 - a defect in one check must not hide what the others find
        return None, [
            fail(
                f"This check itself failed ({type(error).__name__}).",
                "This is a bug in neuco-worker. Report it, with the check's name and your configuration without its secrets.",
            )
        ]
    new = [fail(error.sentence, error.cure) for error in errors if error.sentence not in reported]
    known = [skipped(f"{reported[error.sentence]} failed.") for error in errors if error.sentence in reported]
    reported.update(dict.fromkeys((error.sentence for error in errors), check.id))
    return None, new or known


__all__ = [
    "ALL",
    "CHECKS",
    "Check",
    "CheckOutcome",
    "Cost",
    "Examination",
    "Finding",
    "Level",
    "Report",
    "Wait",
    "examine",
    "worst",
]
