"""What a challenge requires of a submission, read from its published files: the ids, and the numbers per id."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.protocol import ids_hash
from worker.participant.layout import COMMITMENTS, announced, list_path


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a submission must have.

    Attributes:
        ids: The ids, one row for each.
        embedding_dim: Numbers per row.
        phase: Codename of the phase that requires it; empty if the participant gave the requirements.
    """

    ids: tuple[str, ...]
    embedding_dim: int
    phase: str = ""


def asked_by(read: Callable[[str], bytes | None], phase: str | None) -> Asked:
    """Return what a phase requires.

    Args:
        read: Returns a published file by its path, None if there is none.
        phase: Codename; None for the only one.

    Raises:
        OrganizerError: If the files do not say it, or contradict each other.
    """
    content = read(COMMITMENTS)
    if content is None:
        raise _unsaid(f"There is no {COMMITMENTS}.", "Name the challenge's leaderboard repository.")
    try:
        protocols = announced(json.loads(content))
        name = _chosen(list(protocols), phase)
        dim, name_of_list = int(protocols[name]["embedding_dim"]), str(protocols[name]["ids_hash"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _unsaid(f"{COMMITMENTS} cannot be read.", "Use --ids and --dim.") from None
    listed = read(list_path(name))
    if listed is None:
        raise _unsaid(
            f"The ids of phase {name} are not published yet. They are published when the first submission has been scored.",
            f"Use --ids with the id list from the organizers, and --dim {dim}.",
        )
    ids = tuple(line for line in listed.decode("utf-8", "replace").split("\n") if line)
    if ids_hash(ids) != name_of_list:
        raise _unsaid(
            f"{list_path(name)} does not match the id list in {COMMITMENTS}.",
            "Tell the organizers. Until then use --ids and --dim.",
        )
    return Asked(ids=ids, embedding_dim=dim, phase=name)


def asked(ids: Path | None, dim: int | None, challenge: str | None, phase: str | None) -> Asked:
    """Return what the options of a command require.

    Raises:
        OrganizerError: If they do not say it, or say it twice; or as :func:`asked_by`.
    """
    from worker.participant.published import opened

    if challenge is not None and ids is None and dim is None:
        with opened(challenge) as read:
            return asked_by(read, phase)
    if challenge is None and phase is None and ids is not None and dim is not None:
        return Asked(ids=read_ids(ids), embedding_dim=dim)
    if challenge is None and ids is not None and dim is not None:
        raise _unsaid(
            "--phase names a phase of the challenge, which is not given.",
            "Add --challenge URL instead of --ids and --dim, or remove --phase.",
            code="validate.usage",
        )
    lacks = "--dim N" if ids is not None else "--ids FILE"
    raise _unsaid(
        "The ids and the number of columns are not given, or given twice."
        if challenge is not None or (ids is None) == (dim is None)
        else f"{lacks} is missing.",
        "Use --challenge URL (with --phase NAME if there are several phases), or --ids FILE and --dim N.",
        code="validate.usage",
    )


def _chosen(names: list[str], phase: str | None) -> str:
    if phase is None and len(names) == 1:
        return names[0]
    if phase in names:
        return str(phase)
    sentence = f"The challenge has no phase {phase}." if phase else "The challenge has several phases."
    raise _unsaid(sentence, f"Add --phase with one of: {', '.join(names)}.", code="validate.phase")


def _unsaid(sentence: str, cure: str, *, code: str = "validate.challenge") -> OrganizerError:
    return OrganizerError(sentence, cure=cure, code=code)
