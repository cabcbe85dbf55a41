"""The doctor: every check that is possible before the launch, each with its result and hint.

It changes nothing outside: it receives nothing from the queue, pushes nothing and posts nothing. Label values are never shown. Names of
hidden tasks are, because only the organizer reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from scoring.errors import NeucoError, OrganizerError
from worker.challenge.configuration import load
from worker.organizer.doctor.check import (
    Check,
    CheckOutcome,
    Examination,
    Finding,
    Level,
    NotChecked,
    fail,
    skipped,
    worst,
)
from worker.organizer.doctor.subjects import CheckedChallenge, Wait
from worker.organizer.doctor.table import CHECKS, SUBJECTS

T = TypeVar("T")
ALL = frozenset(check.id for check in CHECKS)
PROBLEMS = (Level.WARN, Level.FAIL)


def examine(
    path: Path,
    *,
    clock: Callable[[], datetime],
    offline: bool = False,
    only: Collection[str] = ALL,
    on_check: Callable[[Check[Any], int, int], None] = lambda *_: None,
    wait: Wait = lambda seconds, _: time.sleep(seconds),
    baseline: Path | None = None,
) -> Examination:
    """Run the checks in the order of their table.

    Args:
        path: The configuration file.
        clock: Returns the time of this machine, aware.
        offline: Skip the checks that contact other machines.
        only: Ids of the checks to run.
        on_check: Called before each check with it, its number from 1, and the number of checks.
        wait: Waits for the given seconds, with the reason.
        baseline: Embeddings that are scored with groups and without them.
    """
    outcomes: list[CheckOutcome] = []
    reported: dict[str, str] = {}  # the sentence of an error to the check that reported it
    with ExitStack() as opened:
        challenge = _attempt(
            lambda: CheckedChallenge(
                path=path,
                configuration=load(path),
                clock=clock,
                wait=wait,
                opened=opened,
                baseline=baseline,
            )
        )
        for read, checks in SUBJECTS.items():
            subject: Any = None
            for check in checks:
                if check.id not in only:
                    continue
                on_check(check, len(outcomes) + 1, len(only))
                if offline and check.remote:
                    findings = [skipped("--offline was given.")]
                else:
                    subject = subject or (
                        challenge if isinstance(challenge, Exception) else _attempt(read, challenge)
                    )
                    findings = _findings(check, subject, reported)
                outcomes.append(CheckOutcome(check=check, findings=tuple(findings)))
    return Examination(outcomes=tuple(outcomes))


def _attempt(read: Callable[..., T], *arguments: object) -> T | Exception:
    """Return what a function reads, or the error that says why it cannot."""
    try:
        return read(*arguments)
    except Exception as error:  # noqa: BLE001 - a defect here fails the checks that need what is read, and no others
        return error


def _findings(check: Check[Any], subject: object, reported: dict[str, str]) -> list[Finding]:
    """Return what a check finds, with its hint where the finding has none; an error that another check has reported is not repeated."""
    findings: list[Finding] = []
    errors: Sequence[Any] = ()
    try:
        if isinstance(subject, Exception):
            raise subject
        findings.extend(check.ask(subject))
    except NotChecked as reason:
        findings.append(skipped(str(reason)))
    except ExceptionGroup as unusable:
        errors = unusable.exceptions
    except NeucoError as error:
        errors = [error]
    except OSError as error:
        sentence = f"{error.filename or 'A file'} cannot be used: {error.strerror or error}."
        errors = [OrganizerError(sentence, hint="Check its owner and permissions.", code="doctor.file")]
    except Exception as defect:  # noqa: BLE001 - a defect in one check must not hide what the others find
        hint = "This is a bug in neuco-worker. Report it, with the check's name and your configuration without its secrets."
        findings.append(fail(f"This check itself failed ({type(defect).__name__}).", hint))
    for problem in errors:
        reporter = reported.setdefault(problem.sentence, check.id)
        findings.append(
            fail(problem.sentence, problem.hint) if reporter == check.id else skipped(f"{reporter} failed.")
        )
    return [
        replace(finding, hint=check.hint) if finding.level in PROBLEMS and not finding.hint else finding
        for finding in dict.fromkeys(findings)
    ]


__all__ = [
    "ALL",
    "CHECKS",
    "Check",
    "CheckOutcome",
    "CheckedChallenge",
    "Examination",
    "Finding",
    "Level",
    "Wait",
    "examine",
    "worst",
]
