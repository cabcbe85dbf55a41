"""Faults of a configuration file in our words: the line, the key, its value, and what is allowed."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from scoring.printable import printable

VALUE_CHARACTERS = 60
OF_KEY = "[key]"  # how pydantic ends the location of a fault in a key
FORMS = {
    "string_type": "a text, in quotes if it looks like a number",
    "string_unicode": "a text in UTF-8",
    "string_too_short": "a text that is not empty",
    "string_pattern_mismatch": "written like {examples}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "path_type": "a path",
    "list_type": "a list, such as [a, b]",
    "tuple_type": "a list, such as [a, b]",
    "dict_type": "a section with keys of its own",
    "model_type": "a section with keys of its own",
    "too_short": "a section with at least one key",
    "greater_than": "greater than {gt:.9g}",
    "greater_than_equal": "at least {ge:.9g}",
    "less_than": "less than {lt:.9g}",
    "less_than_equal": "at most {le:.9g}",
}
"""What a value must be, by pydantic's type of error."""


def fault_lines(error: ValidationError, text: str, model: type[BaseModel]) -> list[str]:
    """Return a line for each fault of a document.

    Args:
        error: What pydantic refused.
        text: The YAML text of the document.
        model: The model of the whole document.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    faults: dict[tuple[int, str], list[str]] = {}
    for fault in error.errors():
        line, path = _place(root, fault["loc"])
        sentence = _sentence(fault, path, model)
        if not path:  # a sentence on several sections, which begins with a key
            line, _ = _place(root, sentence.partition(" ")[0].split("."))
        faults.setdefault((line, ".".join(path)), []).append(sentence)
    return [_line(line, key, sentences) for (line, key), sentences in sorted(faults.items())]


def _place(root: yaml.Node | None, location: Sequence[int | str]) -> tuple[int, tuple[str, ...]]:
    """Return the line of a fault, or 0, and its path of keys, without the names that pydantic gives to alternatives of a type."""
    node, line, path = root, 0, []
    for part in location:
        if isinstance(node, yaml.MappingNode) and part != OF_KEY:
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            path.append(str(part))
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line, path = node.start_mark.line + 1, [*path, str(part + 1)]
    return line, tuple(path)


def _sentence(fault: Mapping[str, Any], path: tuple[str, ...], model: type[BaseModel]) -> str:
    """Return what is wrong with the value at a path of keys."""
    kind = fault["type"]
    if fault["loc"][-1:] == (OF_KEY,):
        return "is not a codename, which has only letters a to z, digits, '_', '-' and '.', and is in quotes if it looks like a number"
    if kind == "missing":
        return "is missing"
    if kind in ("extra_forbidden", "invalid_key"):  # the latter is no text, such as 2026
        keys = list(_section(model, path[:-1])["properties"])
        near = difflib.get_close_matches(path[-1], keys, n=1)
        return (
            f"is not a key; did you mean {near[0]}?"
            if near
            else f"is not a key here; the keys are: {', '.join(keys)}"
        )
    if kind == "value_error":
        reason = str(fault["ctx"]["error"])
        return f"{_quoted(fault['input'])}{reason}" if reason.startswith("must ") else reason
    examples = ()
    if kind == "string_pattern_mismatch":
        examples = _section(model, path[:-1])["properties"][path[-1]]["examples"]
    form = FORMS.get(kind, fault["msg"]).format(examples=" or ".join(examples), **fault.get("ctx", {}))
    return f"{_quoted(fault['input'])}must be {form}"


def _line(line: int, key: str, sentences: Sequence[str]) -> str:
    """Join what is wrong with a value: if its type has alternatives, each of them has refused it."""
    head, _, _ = sentences[0].partition("must be ")
    whole = " or ".join([sentences[0], *(text.removeprefix(f"{head}must be ") for text in sentences[1:])])
    place = f"line {line}: " if line else ""
    subject = "" if not key else f"{key} " if whole.startswith(("is ", "must ")) else f"{key}: "
    return printable(f"{place}{subject}{whole}{'' if whole.endswith('?') else '.'}")


def _quoted(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return ""
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    text = re.sub(r"(?<=://).*@", "…@", text)  # a password, which may have / and @
    return f"is `{text if len(text) <= VALUE_CHARACTERS else text[:VALUE_CHARACTERS] + '…'}`; it "


def _section(model: type[BaseModel], path: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of the section at a path of keys."""
    schema = section = model.model_json_schema()
    for part in path:
        inner = section.get("properties", {}).get(part) or next(iter(section["patternProperties"].values()))
        section = schema["$defs"][inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
    return section
