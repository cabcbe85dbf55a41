"""What the challenge's key has signed in published files. It counts wherever it is found, whoever has put it there.

``verify`` and the worker judge a repository by it: verify, whether anything of it is gone; the worker, whether its state lacks any of it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from scoring.documents import UNREADABLE, canonical
from scoring.errors import InfrastructureError
from worker.challenge.signing import COMMITMENT, is_signed
from worker.fairness import commitments, receipts
from worker.state import AT_EVALAI, LOG_UNSEEN, Transaction

SIGNED = (commitments.PATH, receipts.PATH)
"""Files with parts that the key has signed."""
Signed = tuple[str, str]
"""A path, and what identifies a part of its content that a key has signed."""
BEHIND = "state_behind"
"""A fact, set while the repository has something that our key has signed and this state lacks; also the code of the alert."""
UNCOMPARED = "uncompared"
"""A fact, set from the start of a worker until it has compared its state with the repository, or could not reach that."""
RESTORE = (
    "Stop every other worker, and start the one with the newest state. If that is lost, run `neuco-worker challenge backup` here, and"
    " `neuco-worker challenge restore` with that archive and a new folder; with PostgreSQL, `neuco-worker challenge restore --dump`."
)
NEWER = (
    "Restore a backup that is newer than this. Without one, set an empty repository in leaderboard.repository and explain this in public,"
    " because nobody can open it anymore."
)
LARGE_BYTES = 8_000_000
"""Nothing that a key has signed is longer; to read what somebody else has pushed takes up to twenty times its length in memory."""
_SIGNATURE = re.compile(rb'"signature": ?"[0-9a-f]{128}"')


def documents(path: str, content: bytes) -> Iterator[Any]:
    """Yield what can be read in a file: the commitments, the lines, or the document."""
    for piece in io.BytesIO(content) if path.endswith(".jsonl") else [content]:
        with suppress(*UNREADABLE):
            document = json.loads(piece)
            yield from document if path == commitments.PATH else [document]


def signed_in(path: str, content: bytes, key: str | None) -> set[Signed]:
    """Return what a key has signed in a file."""
    signed = set[Signed]()
    if key is None or path not in SIGNED:  # a copy in another file is nothing that was published there
        return signed
    pieces = _signed_lines(content) if path == receipts.PATH else [content]
    for document in documents(path, b"".join(piece for piece in pieces if len(piece) <= LARGE_BYTES)):
        with suppress(*UNREADABLE):
            signature, kind, body = document.pop("signature"), COMMITMENT, document
            if path == receipts.PATH:
                kind, body = receipts.BATCH, document["head"]
            if is_signed(key, kind, body, signature):
                signed.add((path, canonical(body).decode()))
    return signed


def _signed_lines(content: bytes) -> Iterator[bytes]:
    """Yield the lines with a signature; others may have pushed millions without one."""
    ends = 0
    for found in _SIGNATURE.finditer(content):
        if found.start() >= ends:
            begins = content.rfind(b"\n", 0, found.start()) + 1
            ends = content.find(b"\n", found.end()) + 1 or len(content)
            yield content[begins:ends]


class StateIsBehind(InfrastructureError):
    """The repository has something that our key has signed and this state lacks.

    Args:
        what: What it is.
        hint: What the organizer can do.
    """

    def __init__(self, what: str, *, hint: str = RESTORE) -> None:
        super().__init__(
            f"The repository has {what} that this challenge's key has signed and this state lacks. The state was rolled back or copied,"
            " or another worker runs with a copy of it. Nothing is scored, answered or published here anymore.",
            hint=hint,
            code=f"leaderboard.{BEHIND}",
        )


def check_state(
    public: Collection[Mapping[str, bytes]], ours: Mapping[str, bytes], *, key: str, restored: bool
) -> None:
    """Check that a state lacks nothing that its key has signed in published files.

    Args:
        public: Versions of the published files.
        ours: The files as the state has them.
        key: Our key.
        restored: Whether the state comes from a backup.

    Raises:
        StateIsBehind: If something is missing.
    """
    for files in public:
        for path, what in zip(SIGNED, ("a commitment", "a line of the public log"), strict=True):
            theirs, own = files.get(path, b""), ours.get(path, b"")
            if own.startswith(theirs):  # nothing is lacking, and no signature of a long log need be checked
                continue
            if signed_in(path, theirs, key) - signed_in(path, own, key):
                raise StateIsBehind(what, hint=NEWER if restored else RESTORE)


def is_held(tx: Transaction) -> bool:
    """Return whether nothing may be scored or answered: the state is behind, or has not been compared with the public log yet."""
    return any(tx.fact(name) for name in (BEHIND, LOG_UNSEEN, UNCOMPARED))


def has_begun(tx: Transaction) -> bool:
    """Return whether a commitment may be published, which is there for good: only after EvalAI has answered once."""
    return tx.fact(AT_EVALAI) is not None or not tx.public_commitments()
