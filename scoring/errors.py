"""The errors of neuco-worker, drawn as a tree.

::

    NeucoError
    ├── ParticipantError      the submitted file is wrong; its author can fix it
    ├── OrganizerError        labels, configuration or credentials are wrong; the organizer can fix it
    ├── InfrastructureError   network, disk, memory, a crash; trying again may help
    └── Cancelled             somebody asked to stop; nothing is wrong

Only the first family ends a submission as FAILED on EvalAI. The other two keep it waiting, alert the organizer and retry. An exception
that is not in the tree counts as infrastructure and shows nothing outside.

This module lies in ``scoring`` because imports go one way: everything may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

MESSAGE_LIMIT = 2000  # characters; EvalAI shows stderr as it is, a longer text helps nobody


class NeucoError(Exception):
    """Something that has a code, a sentence and a cure.

    Args:
        sentence: What is wrong, for a person. Without it the class's docstring speaks.
        cure: What that person can do about it; empty if there is nothing to do but wait.
        code: Stable key for machines and for the documentation; every raise site chooses one, for example ``"config.unknown_key"``,
            unless its class has a usual one.
    """

    family: ClassVar[str] = "infrastructure"
    exit_code: ClassVar[int] = 1
    usual_code: ClassVar[str] = ""

    def __init__(self, sentence: str = "", *, cure: str = "", code: str = "") -> None:
        self.sentence = sentence or (type(self).__doc__ or "").split("\n", 1)[0]
        self.cure = cure
        self.code = code or self.usual_code or self.family
        super().__init__(self.sentence)

    def __reduce__(self) -> tuple[object, ...]:
        """Cross a process boundary whole, as from a node of a Ray cluster, whatever the constructor of a class takes."""
        return (_rebuild, (type(self), self.sentence), vars(self))

    @property
    def message(self) -> str:
        """The sentence and its cure, at most ``MESSAGE_LIMIT`` characters."""
        text = f"{self.sentence} {self.cure}".strip()
        return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def error_document(error: NeucoError) -> dict[str, str]:
    """Return what :func:`read_error` makes an error of the same family from; JSON."""
    return {
        "family": error.family,
        "sentence": error.sentence,
        "cure": error.cure,
        "code": error.code,
    }


def read_error(document: Mapping[str, object]) -> NeucoError:
    """Return the error that a document tells of; of a family that nobody knows it is infrastructure."""
    kinds: dict[str, type[NeucoError]] = {"participant": ParticipantError, "organizer": OrganizerError}
    kind = kinds.get(str(document.get("family")), InfrastructureError)
    return kind(str(document.get("sentence")), cure=str(document.get("cure")), code=str(document.get("code")))


def _rebuild(kind: type[NeucoError], sentence: str) -> NeucoError:
    return kind.__new__(kind, sentence)


class ParticipantError(NeucoError):
    """The submitted file is wrong.

    Its text is shown to the participant unchanged, so it is built only from facts about their own file, the public id list and the
    public dimension; never from labels, tasks, splits, paths or other exceptions.
    """

    family: ClassVar[str] = "participant"


class OrganizerError(NeucoError):
    """Labels, configuration or credentials are wrong."""

    family: ClassVar[str] = "organizer"
    exit_code: ClassVar[int] = 2


class InfrastructureError(NeucoError):
    """Network, disk, memory or a process failed; trying again may help."""

    family: ClassVar[str] = "infrastructure"


class Cancelled(NeucoError):
    """The work was stopped on request."""

    family: ClassVar[str] = "cancelled"
