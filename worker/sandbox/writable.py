"""Which fields of a submission its editors may write, and what EvalAI answers to a value that it does not accept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from worker.sandbox.call import Refusal
from worker.sandbox.state import World

DESCRIPTION = ("method_name", "method_description", "project_url", "publication_url")
FILES = (
    "input_file", "submission_input_file", "stdout_file", "stderr_file", "submission_result_file", "environment_log_file",
)  # fmt: skip
STATUSES = (
    "submitted", "running", "failed", "cancelled", "resuming", "queued", "finished", "submitting", "archived", "partially_evaluated",
)  # fmt: skip
FLAGS = ("is_public", "is_flagged", "is_baseline", "is_verified_by_host", "ignore_submission")
MOMENTS = ("started_at", "completed_at", "rerun_resumed_at", "when_made_public")
TRUTHS = {"true": True, "1": True, "false": False, "0": False}
MOMENT_FORMAT = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
Clean = Callable[[Any], Any]


def writable(world: World, given: Mapping[str, Any], *, host: bool) -> dict[str, Any]:
    """Return the values to store; the primary key, the time and the number of a submission cannot be written, and are ignored.

    Args:
        world: The sandbox's state.
        given: Fields of the request, without uploaded files.
        host: Whether a host of the submission's own challenge writes.

    Raises:
        Refusal: 400, with the problems of each field.
    """
    fields: dict[str, Clean] = {
        "status": _choice,
        "challenge_phase": partial(_key, world.phases),
        "participant_team": partial(_key, world.teams),
        "created_by": partial(_key, world.users),
        "job_name": _list,
        "submission_metadata": lambda value: value,
        **dict.fromkeys(FLAGS, _flag),
        **dict.fromkeys(MOMENTS, _moment),
        **dict.fromkeys(DESCRIPTION[:2], _words),
        **dict.fromkeys(DESCRIPTION[2:], _address),
        **dict.fromkeys(files(host=host), _no_file),
    }
    changes, problems = {}, {}
    for name in fields.keys() & given.keys():
        try:
            changes[name] = fields[name](given[name])
        except ValueError as problem:
            problems[name] = [str(problem)]
    if problems:
        raise Refusal(400, problems)
    return changes


def files(*, host: bool) -> tuple[str, ...]:
    """Return the files that may be uploaded; the log of the environment is the hosts'."""
    return FILES if host else FILES[:-1]


def _key(rows: Collection[int], value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError(f"Incorrect type. Expected pk value, received {type(value).__name__}.")
    if int(value) not in rows:
        raise ValueError(f'Invalid pk "{value}" - object does not exist.')
    return int(value)


def _choice(value: Any) -> str:
    if value not in STATUSES:
        raise ValueError(f'"{value}" is not a valid choice.')
    return str(value)


def _flag(value: Any) -> bool:
    truth = TRUTHS.get(str(value).lower())
    if truth is None:
        raise ValueError("Must be a valid boolean.")
    return truth


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        words = f"Datetime has wrong format. Use one of these formats instead: {MOMENT_FORMAT}."
        raise ValueError(words) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _words(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("Not a valid string.")
    return str(value)


def _address(value: Any) -> str:
    words = _words(value)
    if words and not urlsplit(words).netloc:
        raise ValueError("Enter a valid URL.")
    return words


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f'Expected a list of items but got type "{type(value).__name__}".')
    return value


def _no_file(_value: Any) -> None:
    raise ValueError("The submitted data was not a file. Check the encoding type on the form.")
