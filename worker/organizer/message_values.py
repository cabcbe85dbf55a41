"""What the page of messages shows for a value that is only known when the message is written.

A placeholder is :data:`OPEN`, the value's description, and :data:`CLOSE`.
"""

from __future__ import annotations

import ast
import re

OPEN, CLOSE = "\ue000", "\ue001"  # private-use characters, which no message contains
DOTS = "…"
NUMBER = "N"
NUMBERS = """
    allowed asked at_once begins challenge_pk columns cores days deadline deadline_s dim embedding_dim empty ends fit folds format free
    grid head high ladder_step largest layers least left length limit low major max_bytes measured_folds memory_gigabytes message_phase
    needed number ours partial patience_s phase_pk pk port reserve returncode revision round rows seconds shared size skew_s spare strength
    tested threads time_out_s timeout_s times total wanted
"""
CALLED = {
    "__name__": "kind of error",
    "act.what": "act",
    "again": "ids",
    "annotations": "folder",
    "arguments": "command",
    "at": "time",
    "awaited": "codenames",
    "base": "folder",
    "blank": "lines",
    "challenge": "lines",
    "chosen": "type",
    "closed": "service",
    "config": "path",
    "configured": "rule",
    "directory": "folder",
    "document": "answer",
    "end": "time",
    "end_date": "time",
    "error": "reason",
    "existing": "path",
    "expiry": "time",
    "faults": "problems",
    "file": "path",
    "first": "name",
    "folder.parent": "folder",
    "found": "value",
    "gives_away": "what this gives away",
    "given": "value",
    "have": "names",
    "here": "challenge.yaml",
    "hold_reason": "reason",
    "hostname": "host",
    "keep": "folder",
    "known": "names",
    "last": "commit",
    "latest": "time",
    "left_out": "codename",
    "lines": "",
    "listed": "names",
    "listen": "address",
    "lock": "another worker",
    "lost": "entry",
    "moment": "time",
    "named": "numbers",
    "MINIMUM_ROWS": NUMBER,
    "near": "name",
    "new": "codenames",
    "new[0]": "codename",
    "odd": "value",
    "others": "names",
    "out": "path",
    "output_dir": "folder",
    "phase": "codename",
    "phases": "codenames",
    "place": "address",
    "plot": "path",
    "probe": "name",
    "protocol": "name",
    "queue": "name",
    "repeats": "path",
    "repository": "path",
    "second": "name",
    "sentence": "reason",
    "server": "address",
    "shown": "rule",
    "sources": "path",
    "state_dir": "folder",
    "stated": "rule",
    "status_code": "status",
    "strerror": "reason",
    "there": "path",
    "told": "details",
    "tried": "folders",
    "tx": "name",
    "unknown": "name",
    "values": "value",
    "want": "names",
    "what": "do something",
    "widths": "value",
    "wrong": "name",
} | dict.fromkeys(re.findall(r"\w+", NUMBERS), NUMBER)
"""Descriptions of expressions whose own names are not clear enough; an empty text means dots."""


def name_of(node: ast.expr) -> str:
    """Return the name of a variable or attribute; an empty text for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def placeholder(node: ast.expr) -> str:
    """Return the placeholder for a value, described as far as the expression allows."""
    if ast.unparse(node) in CALLED:
        return placeholder_of(ast.unparse(node))
    match node:
        case ast.Call(func=ast.Name(id="len")):
            return placeholder_of(NUMBER)
        case ast.Call(func=ast.Name(id="count_of"), args=[_, ast.Constant(value=str(noun)), *others]):
            plural = next((str(one.value) for one in others if isinstance(one, ast.Constant)), f"{noun}s")
            return f"{placeholder_of(NUMBER)} {plural}"
        case ast.Call(func=ast.Attribute(attr="join" | "fromisoformat"), args=[one]) | ast.Call(args=[one]):
            return placeholder(one)
        case (
            ast.Call(func=ast.Attribute(value=one), args=[])
            | ast.GeneratorExp(generators=[ast.comprehension(iter=one)])
        ):
            return placeholder(one)
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return placeholder_of(key)
        case ast.Subscript(value=one) | ast.BinOp(left=one):
            return placeholder(one)
    return placeholder_of(name_of(node))


def placeholder_of(name: str) -> str:
    """Return the placeholder for the value of a name."""
    if name == NUMBER:
        return f"{OPEN}{NUMBER}{CLOSE}"
    bare = name if name in CALLED else name.strip("_").lower()
    words = CALLED.get(bare, bare.replace("_", " "))
    return f"{OPEN}{words}{CLOSE}" if words else DOTS
