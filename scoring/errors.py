"""The error classes of neuco-worker.

::

    NeucoError
    ├── ParticipantError      the submitted file is wrong; its author can fix it
    ├── OrganizerError        labels, configuration or credentials are wrong; the organizer can fix it
    ├── InfrastructureError   network, disk, memory, a crash; trying again may help
    └── Cancelled             somebody asked to stop; nothing is wrong

Only a ParticipantError ends a submission as FAILED on EvalAI. After an OrganizerError or InfrastructureError it waits, the organizer gets
an alert, and the worker tries again. Any other exception counts as an infrastructure error, and its text is not shown to participants.

This module is in ``scoring`` because every package may import from ``scoring``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

MESSAGE_LIMIT = 2000  # characters; EvalAI shows stderr in full


class NeucoError(Exception):
    """An error with a code, a sentence that says what is wrong, and a hint.

    Args:
        sentence: What is wrong, for a person. The default is the first line of the class's docstring.
        hint: What the reader can do about it; empty if they can only wait.
        code: Stable key for programs and for the documentation, for example ``"config.unknown_key"``. The default is the class's usual
            code, or else its family.
    """

    family: ClassVar[str] = "infrastructure"
    exit_code: ClassVar[int] = 1
    usual_code: ClassVar[str] = ""

    def __init__(self, sentence: str = "", *, hint: str = "", code: str = "") -> None:
        self.sentence = sentence or (type(self).__doc__ or "").split("\n", 1)[0]
        self.hint = hint
        self.code = code or self.usual_code or self.family
        super().__init__(f"{self.sentence} {self.hint}".strip())  # what Python prints

    @property
    def message(self) -> str:
        """The sentence and its hint, at most ``MESSAGE_LIMIT`` characters."""
        text = f"{self.sentence} {self.hint}".strip()
        return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def error_document(error: NeucoError) -> dict[str, str]:
    """Return the JSON document from which :func:`read_error` makes an error of the same family."""
    return {
        "family": error.family,
        "sentence": error.sentence,
        "hint": error.hint,
        "code": error.code,
    }


def read_error(document: Mapping[str, object]) -> NeucoError:
    """Return the error that a document describes; an unknown family counts as infrastructure."""
    kinds: dict[str, type[NeucoError]] = {"participant": ParticipantError, "organizer": OrganizerError}
    kind = kinds.get(str(document.get("family")), InfrastructureError)
    return kind(str(document.get("sentence")), hint=str(document.get("hint")), code=str(document.get("code")))


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


class Cancelled(NeucoError):
    """The work was stopped on request."""

    family: ClassVar[str] = "cancelled"


class WrongValue(OrganizerError, ValueError):
    """A value that Python code passed cannot be used."""


class WrongType(OrganizerError, TypeError):
    """Python code passed an object of a type that cannot be used."""


class MissingFile(OrganizerError, FileNotFoundError):
    """Python code named a file that does not exist."""


class MissingLibrary(OrganizerError, ModuleNotFoundError):
    """An optional library is not installed."""

    usual_code = "library.missing"


@contextmanager
def python_errors() -> Iterator[None]:
    """Turn errors of participants and organizers into errors that are a ``ValueError`` too, for callers in Python.

    Raises:
        WrongValue: With the same message and code; an error that is an exception of Python already stays as it is. Also for a text with
            half a character, such as the name of a file that is not UTF-8, wherever it is used first; for a number that no float can
            be; and for what contains itself.
    """
    try:
        yield
    except (ParticipantError, OrganizerError) as error:
        if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
            raise
        raise WrongValue(error.sentence, hint=error.hint, code=error.code) from None
    except UnicodeEncodeError as error:
        if error.reason != "surrogates not allowed":
            raise
        raise WrongValue(
            f"There is a text that UTF-8 does not have: {error.object[max(0, error.start - 20) : error.start + 20]!a}.",
            hint="Python makes it of names that are not UTF-8. Replace such characters: name.encode(errors='replace').decode().",
            code="score.text",
        ) from None
    except ZeroDivisionError:
        raise  # a defect of ours, and no number that was given
    except ArithmeticError as error:
        raise WrongValue(
            "A number cannot be a float: it is larger than 1.8e308, or a signaling NaN.",
            hint="Correct it, or leave its sample out.",
            code="score.number",
        ) from error
    except RecursionError as error:
        raise WrongValue(
            "A list contains itself, or lists are nested too deeply.",
            hint="Give one row of numbers for each sample.",
            code="score.nested",
        ) from error


@contextmanager
def needs_extra(extra: str, user: str) -> Iterator[None]:
    """Import optional libraries inside this context; ``user``, the subject of the message, is what needs them.

    Raises:
        MissingLibrary: With the command that installs the extra.
    """
    try:
        yield
    except MissingLibrary:
        raise  # from an import within
    except ModuleNotFoundError as missing:
        raise MissingLibrary(
            f"{user} needs {missing.name}, which is not installed.",
            hint=f'Install it: pip install "neuco-worker[{extra}]".',
        ) from missing
