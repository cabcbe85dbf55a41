"""The text of a configuration file: written for a new challenge, and changed value by value without losing its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import yaml

from scoring.inputs.documents import read_yaml
from worker.challenge.sections import Phase
from worker.organizer.resources import shipped

EXAMPLE = "config/challenge.yaml"
VALUE_COLUMN = 38  # of the comments
ALWAYS_SAID = ("folds",)  # keys of a phase that are always written, because the organizer decides them
_LINE = re.compile(r"(?P<indent> *)(?P<key>'[\w.-]+'|[\w.-]+):(?P<value>[^#]*?)(?P<comment>\s*#.*)?$")


def short_configuration(values: Mapping[str, object], phases: Mapping[str, Mapping[str, object]]) -> str:
    """Return a file with only the keys that an organizer decides, each with the example's comment.

    Args:
        values: Dotted key (``evalai.challenge``) to value, with the keys of a section together; ``phases`` marks the place of
            the phases.
        phases: Codename to the phase's keys, in order; keys with their default value are left out.
    """
    comments = dict(_example_comments())
    lines = [
        f"# Keys that are missing here have their defaults. All keys, with their meaning: {shipped(EXAMPLE)}",
        "# Relative paths are relative to this file. `neuco-worker doctor` checks the challenge, and `neuco-worker rehearse` tries it out.",
    ]
    section = ""
    for dotted, value in values.items():
        head, _, key = dotted.partition(".")
        if head != section:
            lines += ["", f"{head}:"]
            section = head
        if key:
            lines.append(_commented(f"  {key}: {_scalar(value)}", comments.pop(dotted, "")))
            continue
        for codename, keys in phases.items():
            lines.append(f"  {_scalar(codename)}:")
            lines += [
                _commented(f"    {key}: {_scalar(value)}", comments.pop(f"phases.{key}", ""))
                for key, value in _decided(codename, keys).items()
            ]
    return "\n".join(lines) + "\n"


def _decided(codename: str, keys: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of a phase whose values differ from the defaults."""
    usual = {key: field.default for key, field in Phase.model_fields.items()} | Phase.named_after(codename)
    return {key: value for key, value in keys.items() if key in ALWAYS_SAID or value != usual[key]}


def _example_comments() -> Iterator[tuple[str, str]]:
    """Yield each key of the shipped example with its comment; the keys of a phase only once, without its codename."""
    path: list[tuple[int, str]] = []
    for line in shipped(EXAMPLE).read_text(encoding="utf-8").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        indent = len(match["indent"])
        path = [part for part in path if part[0] < indent] + [(indent, match["key"])]
        names = [name for _, name in path]
        comment = (match["comment"] or "").strip().removeprefix("#").strip()
        if comment and (names[0] != "phases" or len(names) == 3):
            names = [names[0], names[-1]] if names[0] == "phases" else names
            yield ".".join(names), re.sub(r"^default(; |$)", "", comment)


def _commented(text: str, comment: str) -> str:
    return f"{text:<{VALUE_COLUMN - 1}} # {comment}" if comment else text


def annotated_configuration(values: Mapping[str, object], phases: Mapping[str, Mapping[str, object]]) -> str:
    """Return the shipped example with other values and phases, and with its comments.

    Args:
        values: Dotted key (``evalai.challenge``) to value, for everything but phases.
        phases: Codename to the phase's keys, in order; keys that are not given keep the example's values.
    """
    lines = shipped(EXAMPLE).read_text(encoding="utf-8").splitlines()
    start, end = (
        lines.index("phases:") + 1,
        next(i for i, x in enumerate(lines) if x.startswith("submission:")),
    )
    annotated, lean = _phase_blocks(lines[start:end])
    blocks: list[str] = []
    for number, codename in enumerate(phases):
        block = annotated if number == 0 else lean
        head = f"  {_scalar(codename)}:"  # quoted if YAML would read a number or a Boolean
        comment = block[0].partition("#")[2]
        blocks += [f"{head:<{VALUE_COLUMN}}#{comment}" if comment else head, *block[1:]]
    text = "\n".join([*lines[:start], *blocks, "", *lines[end:]]) + "\n"
    for codename, keys in phases.items():
        for key, value in keys.items():
            text = set_value(text, ("phases", codename, key), value)
    for dotted, value in values.items():
        text = set_value(text, tuple(dotted.split(".")), value)
    return text


def set_value(text: str, key: Sequence[str], value: object) -> str:
    """Change one value of a YAML text and nothing else; its comment no longer calls it the default.

    Raises:
        KeyError: If the text does not contain the key.
    """
    lines = text.split("\n")
    path: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        match = _LINE.match(line)
        if match is None:
            continue
        indent = len(match["indent"])
        path = [part for part in path if part[0] < indent] + [(indent, match["key"].strip("'"))]
        if [name for _, name in path] != list(key):
            continue
        if read_yaml(match["value"]) == value:
            return text
        head = f"{match['indent']}{match['key']}: {_scalar(value)}"
        comment = (match["comment"] or "").strip().removeprefix("#").strip()
        comment = re.sub(r"^default(; |$)", "", comment)
        lines[number] = f"{head:<{VALUE_COLUMN - 1}} # {comment}" if comment else head
        return "\n".join(lines)
    raise KeyError(".".join(key))


def put_value(text: str, key: Sequence[str], value: object) -> str:
    """Set a value, even if the file leaves it to its default."""
    try:
        return set_value(text, key, value)
    except KeyError:
        pass
    line = f"{key[-1]}: {_scalar(value)}"
    if len(key) == 1:
        return f"{text.rstrip()}\n{line}\n"
    head = f"{key[0]}:"
    lines = text.split("\n")
    for number, found in enumerate(lines):
        if found.split("#")[0].rstrip() == head:
            following = next((one for one in lines[number + 1 :] if one.strip()), "  ")
            indent = following[: len(following) - len(following.lstrip())] or "  "
            return "\n".join([*lines[: number + 1], indent + line, *lines[number + 1 :]])
    return f"{text.rstrip()}\n{head}\n  {line}\n"


def _phase_blocks(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    blocks: list[list[str]] = []
    for line in lines:
        if not line.strip():
            continue
        if not line.startswith("    "):
            blocks.append([])
        blocks[-1].append(line)
    return blocks[0], blocks[1]


def _scalar(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n").strip()
