"""The doctor: every check that is possible before the launch, each with its result and cure.

It changes nothing outside: it receives nothing from the queue, pushes nothing and posts nothing. Label values are never shown. Names of
hidden tasks are, because only the organizer reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from scoring.errors import NeucoError
from worker.organizer.doctor import (
    beacon,
    board,
    configuration,
    cost,
    evalai,
    machine,
    phases,
    records,
    tasks,
    training,
)
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
from worker.organizer.doctor.examination import Examination
from worker.organizer.doctor.remote import Wait

CHECKS: tuple[Check, ...] = (
    *configuration.CHECKS,
    *tasks.CHECKS,
    *training.CHECKS,
    *evalai.CHECKS,
    *phases.CHECKS,
    *board.CHECKS,
    *beacon.CHECKS,
    *machine.CHECKS,
    *records.CHECKS,
    *cost.CHECKS,
)


def examine(
    path: Path,
    *,
    clock: Callable[[], datetime],
    offline: bool = False,
    only: Collection[str] | None = None,
    on_outcome: Callable[[CheckOutcome], None] = lambda _: None,
    wait: Wait = lambda seconds, _: time.sleep(seconds),
) -> Report:
    """Run the checks in their order.

    Args:
        path: The configuration file.
        clock: Returns the time of this machine, aware.
        offline: Skip the checks that contact other machines.
        only: Ids of the checks to run; all by default.
        on_outcome: Called with each outcome as soon as it is known.
        wait: Waits for the given seconds, with the reason.
    """
    outcomes = []
    raised: dict[NeucoError, str] = {}
    with Examination(path, clock=clock, wait=wait) as exam:
        for check in CHECKS:
            if only is None or check.id in only:
                outcome = CheckOutcome(check=check, findings=_ask(check, exam, raised, offline=offline))
                outcomes.append(outcome)
                on_outcome(outcome)
        return Report(outcomes=tuple(outcomes), costs=exam.measured)


def _ask(
    check: Check, exam: Examination, raised: dict[NeucoError, str], *, offline: bool
) -> tuple[Finding, ...]:
    """Return what a check finds; ``raised`` has the errors so far, each with the check that reported it."""
    if offline and check.remote:
        return (skipped("--offline was given."),)
    findings: list[Finding] = []
    try:
        findings.extend(check.ask(exam))
    except NotChecked as reason:
        findings.append(skipped(str(reason)))
    except NeucoError as error:
        if error in raised:
            return (skipped(f"{raised[error]} failed."),)
        raised[error] = check.id
        findings.append(fail(error.sentence, error.cure))
    except Exception as error:  # noqa: BLE001 - a defect in one check must not hide what the others find
        kind = type(error).__name__
        findings.append(
            fail(
                f"This check itself failed ({kind}).",
                "This is a bug in neuco-worker. Report it, with the check's name and your configuration without its secrets.",
            )
        )
    return tuple(findings)


__all__ = [
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
