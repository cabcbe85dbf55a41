"""The page of messages, generated from the code: every code with its sentence, the cure, and who sees it.

``python -m worker.organizer.message_docs`` writes ``docs/messages.md``; ``--check`` fails if the page is not up to date.

:mod:`worker.organizer.message_search` finds the messages. A value that is only known when a message is written is shown in italics as what
it is, or as dots.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from worker.organizer.generated_page import write_or_check
from worker.organizer.message_search import (
    ALERT,
    DOCTOR,
    FILE,
    LOG,
    MOST,
    ORGANIZER,
    RETRIED,
    ROOT,
    Message,
    messages,
)
from worker.organizer.message_values import CLOSE, DOTS, OPEN

PLACE = ROOT / "docs" / "messages.md"
VALUE = re.compile(f"{OPEN}(.*?){CLOSE}")
INTRODUCTION = """\
# Messages

<!-- Written by `python -m worker.organizer.message_docs` from the code; change a message where it is raised. -->

Every error, alert, log line and finding of `doctor`, listed by code. Logs, alerts and the JSON reports of `doctor` and `validate` show
the code. An error that ends a command shows only its text: search this page for it. Words in italics, such as *path*, and in capitals
inside code, such as `NAME`, stand for actual values; *N* is a number, and … is any other text.
"""
SECTIONS = {
    FILE: """\
## Problems with a submitted file

**Who sees it:** the participant, in the stderr file of a failed submission at EvalAI and from `neuco-check validate` (which cannot
find `file.breaks_reader`, `file.deadline`, `file.memory`, `file.upload_unfinished` and `scores.not_finite`). Each problem is shown with
up to three examples from the file. If more than one problem is found, the message lists them (at most 2,000 characters) and has the
code `file.invalid`. Only `scores.not_finite` depends on the hidden tasks; it can occur only where the configuration sets
`standardize_embeddings: false`.
""",
    ORGANIZER: """\
## Errors that need a correction

**Who sees it:** the person who runs the command, with exit status 2 (1 if `score` refuses the embeddings). In a running worker the
organizer sees it in the log, in `neuco-worker status` and as an alert. Until the cause is fixed, the affected submissions wait
(with `leaderboard.*`, only the board waits); then they continue by themselves. EvalAI shows participants none of this.
""",
    RETRIED: """\
## Errors of the network, a disk, the memory or a process

**Who sees it:** the person who runs the command, with exit status 1 (2 if `validate` cannot check the file). In a running worker the
organizer sees it in the log and, if it lasts, as an alert. Meanwhile the affected submissions wait (with `leaderboard.*`,
only the board waits). EvalAI shows participants none of this.
""",
    ALERT: """\
## Alerts

**Who sees it:** the organizer, in the log, in `neuco-worker status` and at the address of `alerts.webhook`. Errors of a running
worker, listed above, become alerts too. [The runbook](../deploy/RUNBOOK.md) says what to do about each alert.
""",
    DOCTOR: """\
## Findings of the doctor

**Who sees it:** the person who runs `neuco-worker doctor`. A check may also show one of the errors above.
""",
    LOG: """\
## Log lines

**Who sees it:** the organizer, in the log. The code is in the key `event_key`. Errors and alerts are logged too, under their own codes.
""",
}
HEADERS = {
    FILE: ("code", "what is wrong", "what to do"),
    ORGANIZER: ("code", "message", "what to do"),
    RETRIED: ("code", "message", "what to do"),
    ALERT: ("code", "message"),
    DOCTOR: ("check", "finding", "what to do"),
    LOG: ("code", "line"),
}


def document() -> str:
    """Return the whole page."""
    parts, found = [INTRODUCTION], messages()
    for section, introduction in SECTIONS.items():
        header = HEADERS[section]
        rows = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        rows += [
            _row(cells[: len(header)]) for cells in _rows(one for one in found if one.section == section)
        ]
        parts.append("\n".join([introduction, *rows, ""]))
    return "\n".join(parts)


def _rows(found: Iterable[Message]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row: messages with the same code and cure share a row, and so do the cures of the same message."""
    for code, group in groupby(found, lambda one: one.code):
        cures: dict[str, list[str]] = {}
        for one in group:
            cures.setdefault(one.sentence, []).append(one.cure)
        sentences: dict[tuple[str, ...], list[str]] = {}
        for sentence, remedies in cures.items():
            sentences.setdefault(tuple(remedies), []).append(sentence)
        for cure, said in sentences.items():
            yield f"`{_plain(code)}`", "<br>".join(_merged(said)), "<br>or: ".join(cure)


def _merged(sentences: Sequence[str]) -> list[str]:
    """Leave out a sentence that a more general one covers, and merge sentences that differ in one word into one with dots in its place."""
    merged: dict[str, None] = {}
    for sentence in sentences:
        words = sentence.split()
        others = [other.split() for other in sentences]
        alike = [(place, other[place]) for other in others for place in _differ(words, other)]
        if any(word.startswith(OPEN) and not words[place].startswith(OPEN) for place, word in alike):
            continue
        if len(alike) >= MOST:
            words[alike[0][0]] = DOTS
        merged[" ".join(words)] = None
    return list(merged)


def _differ(one: Sequence[str], other: Sequence[str]) -> list[int]:
    """Return the position of the only word in which two sentences differ; nothing if they differ in more."""
    if len(one) != len(other):
        return []
    places = [place for place, pair in enumerate(zip(one, other, strict=True)) if len(set(pair)) > 1]
    return places if len(places) == 1 else []


def _plain(text: str) -> str:
    return VALUE.sub(lambda found: found[1].replace(" ", "_").upper(), text)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    """Write a cell in Markdown: values in italics or, inside code, where Markdown has no italics, in capitals."""
    pieces = cell.replace("|", "\\|").replace("\n", " ").split("`")
    pieces[::2] = [
        VALUE.sub(r"*\1*", piece).replace("<", "\\<").replace("\\<br>", "<br>") for piece in pieces[::2]
    ]
    pieces[1::2] = [_plain(piece) for piece in pieces[1::2]]
    return "`".join(pieces)


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it."""
    return write_or_check(PLACE, document(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
