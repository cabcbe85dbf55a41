"""A verdict: what one check found, its status, and a sentence for people without technical knowledge.

Only a contradiction counts against the organizers. What somebody else has changed does not, but is not consistent either. What must be
trusted, or was not revealed, never counts as checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from functools import partial

from scoring.documents import UNREADABLE
from worker.fairness.documents import Malformed


class Status(StrEnum):
    """The status of a check's result."""

    RECOMPUTED = "recomputed"  # recomputed from a submission's file
    CONSISTENT = "consistent"  # follows from what was published and committed to
    BELIEVED = "believed"  # nothing that is published could contradict it, so it must be trusted
    NOT_REVEALED = "not revealed"  # can be checked once more is published
    CHANGED = "changed"  # by somebody else than the challenge
    CONTRADICTED = "contradicted"


@dataclass(frozen=True)
class Verdict:
    """The result of one check.

    Attributes:
        status: The status of the result.
        sentence: The result in words. It may quote untrusted text: the caller that prints it must make it printable.
        submissions: The submissions whose scores were recomputed.
        check: Name of the check.
        phase: Codename of the phase that it is about; None for the whole challenge.
    """

    status: Status
    sentence: str
    _: KW_ONLY
    submissions: tuple[int, ...] = ()
    check: str = ""
    phase: str | None = None


consistent = partial(Verdict, Status.CONSISTENT)
"""Returns the verdict that something follows from what was published."""
believed = partial(Verdict, Status.BELIEVED)
"""Returns the verdict that something must be trusted."""
not_revealed = partial(Verdict, Status.NOT_REVEALED)
"""Returns the verdict that something cannot be checked before more is published."""
contradicted = partial(Verdict, Status.CONTRADICTED)
"""Returns the verdict that what was published contradicts itself, or a witness."""


class CheckEnded(Exception):
    """Ends a check with a verdict, by default with a contradiction."""

    def __init__(self, sentence: str, status: Status = Status.CONTRADICTED) -> None:
        super().__init__(sentence)
        self.verdict = Verdict(status, sentence)


def require(holds: object, sentence: str) -> None:
    """End the check with a contradiction if something does not hold that must.

    Raises:
        CheckEnded: With the sentence.
    """
    if not holds:
        raise CheckEnded(sentence)


def judged(
    check: str,
    look: Callable[..., Verdict | Iterable[Verdict] | None],
    *arguments: object,
    phase: str | None = None,
) -> Iterator[Verdict]:
    """Yield what a check says as whole sentences, under its name and about its phase unless a verdict has its own.

    A document that cannot be read counts as a contradiction, because its publisher has the software that writes it correctly.

    Args:
        check: Name of the check.
        look: Returns or yields its verdicts; a fault is the last one.
        arguments: What it looks at.
        phase: Codename of the phase that it is about.
    """
    for verdict in _verdicts(look, arguments):
        sentence = f"{verdict.sentence.removesuffix('.')}."
        if sentence.partition(" ")[0].isalpha():  # and not the name of a file
            sentence = f"{sentence[:1].upper()}{sentence[1:]}"
        yield replace(verdict, check=verdict.check or check, phase=verdict.phase or phase, sentence=sentence)


def _verdicts(
    look: Callable[..., Verdict | Iterable[Verdict] | None], arguments: tuple[object, ...]
) -> Iterator[Verdict]:
    try:
        result = look(*arguments)
        yield from [result] if isinstance(result, Verdict) else result or ()
    except CheckEnded as fault:
        yield fault.verdict
    except Malformed as fault:
        yield contradicted(str(fault))
    except UNREADABLE as error:
        yield contradicted(f"the published documents cannot be read ({type(error).__name__})")
