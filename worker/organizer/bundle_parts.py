"""The parts of the bundle's sources that follow from the configuration and from dates, and are renewed; the rest is the organizer's.

In a page they are marked: ``<!-- neuco: NAME -->`` … ``<!-- neuco: end -->``. Where the marks are gone, the organizer's own text stays.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Any, cast

import yaml

TIME = "%Y-%m-%d %H:%M:%S"  # as EvalAI reads it, UTC
_PART = re.compile(r"(<!-- neuco: (?!end )(\w+) -->)(.*?)(?=<!-- neuco: end -->)", re.DOTALL)
_LISTS = ("leaderboard", "challenge_phases", "dataset_splits", "challenge_phase_splits")
"""What grows with the phases, in ``challenge_config.yaml``."""


def stale(page: str, made: str) -> list[str]:
    """Return the names of the marked parts of a page that differ from what the configuration makes."""
    fresh = _parts(made)
    return [name for name, text in _parts(page).items() if fresh.get(name, text) != text]


def unmarked(page: str, made: str) -> list[str]:
    """Return the names of the parts that are no longer marked, and whose text is not what the configuration makes."""
    words, marked = " ".join(page.split()), _parts(page)
    fresh = {name: " ".join(text.split()) for name, text in _parts(made).items() if name not in marked}
    return [name for name, text in fresh.items() if text not in words]


def renewed(page: str, made: str) -> str:
    """Return a page with its marked parts as the configuration makes them."""
    fresh = _parts(made)
    return _PART.sub(lambda part: part[1] + fresh.get(part[2], part[3]), page)


def _parts(page: str) -> dict[str, str]:
    return {name: text for _, name, text in _PART.findall(page)}


def stated_phases(document: Any) -> dict[str, Mapping[str, Any]]:
    """Return the phases of ``challenge_config.yaml`` by codename; none if it has another form, which the check reports."""
    phases = document.get("challenge_phases") if isinstance(document, dict) else None
    if not isinstance(phases, list) or not all(isinstance(phase, dict) for phase in phases):
        return {}
    return {str(phase.get("codename")): phase for phase in phases}


def with_added_phases(text: str, made: str) -> str:
    """Return ``challenge_config.yaml`` with what the configuration makes for more phases than it has; what is there stays.

    It stays as a whole if it has no phase too few, or its lists are not written as ``init`` writes them, which the check reports.

    Args:
        text: The file.
        made: What the configuration makes.
    """
    nodes = {key.value: value for key, value in cast("yaml.MappingNode", yaml.compose(text)).value}
    lists = [nodes.get(name) for name in _LISTS]
    if not all(isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style for node in lists):
        return text
    changes = []
    for name in _LISTS:
        here, items = nodes[name].value, re.split(r"(?m)^(?=  - )", _block(made, name))[1:]
        block = text[: nodes[name].end_mark.index].splitlines(keepends=True)
        while not block[-1].strip() or block[-1].startswith("#"):  # what comes before the next key
            block.pop()
        indent = " " * (here[-1].start_mark.column - 2)
        place, added = len("".join(block)), textwrap.dedent("".join(items[len(here) :]))
        changes.append((place, place, textwrap.indent(added, indent)))
    if (
        any(added for _, _, added in changes) and "end_date" in nodes
    ):  # the challenge ends with its last phase
        end = nodes["end_date"]
        (made_end,) = re.findall(r"(?m)^end_date: (.*)$", made)
        changes.append((end.start_mark.index, end.end_mark.index, made_end))
    for begin, stop, new in sorted(changes, reverse=True):
        text = f"{text[:begin]}{new}{text[stop:]}"
    return text


def _block(text: str, key: str) -> str:
    """Return the lines below a key of a text that the template made."""
    return re.split(rf"(?m)^{key}:\n", text)[1].split("\n\n")[0].rstrip("\n") + "\n"
