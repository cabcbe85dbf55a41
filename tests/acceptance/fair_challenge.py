"""A small honest challenge whose dev phase is revealed, and functions that change its published files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import WARM_CACHE, Harness, clean_environment, embeddings
from worker.fairness import events, receipts, reveals
from worker.fairness.signing import Signer, signer
from worker.fairness.verify import Verdict, Worth, verdicts
from worker.fairness.verify.public import PublicRepository

REVEAL = "reveal/dev/reveal.json"
ALWAYS = {
    *((check, Worth.BELIEVED) for check in ("beacon", "clocks", "evalai", "groups", "private", "words")),
    ("register", Worth.NOT_REVEALED),
}
"""The verdicts that this challenge always leaves open: six are taken on trust, and one waits for the reveal of phase eval."""
Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Fair:
    """A challenge whose harness is still open, and a folder that holds only its public files."""

    harness: Harness
    public: Path

    @property
    def signer(self) -> Signer:
        """The organizers' signing key."""
        with closing(self.harness.store()) as store, store.read() as tx:
            key = signer(tx)
        assert key is not None
        return key


def public_copy(repository: Path, folder: Path) -> Path:
    """Copy the public files of a repository into a new folder, without its history."""
    subprocess.run(
        ["git", "clone", "-q", "-b", "main", str(repository), str(folder)],
        check=True,
        env=clean_environment(),
    )
    shutil.rmtree(folder / ".git")
    return folder


@pytest.fixture(scope="session")
def fair(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Iterator[Fair]:
    """A challenge with two teams and a private submission; dev is revealed, eval is not."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
    folder = tmp_path_factory.mktemp("fair")
    with Harness(folder, changes={"evalai": {"poll_every": 1}}, fork_server=fork_server) as harness:
        harness.submit("A", embeddings(1))
        assert harness.once().returncode == 0
        harness.submit("B", embeddings(2, noise=1.0))
        harness.submit("B", embeddings(3), is_public=False)
        harness.submit("A", embeddings(4))
        assert harness.once().returncode == 0
        assert (
            harness.command(
                "board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test"
            ).returncode
            == 0
        )
        done = harness.command("challenge", "reveal", "--yes", "--reason", "a test")
        assert done.returncode == 0, done.stderr
        yield Fair(harness, public_copy(harness.board, folder / "public"))


def lies(repository: PublicRepository) -> set[str]:
    """Return the checks that found a lie."""
    return {named(verdict) for verdict in verdicts(repository) if verdict.worth is Worth.CONTRADICTED}


def others(found: Iterable[Verdict]) -> list[tuple[str, Worth]]:
    """Return check and worth of every verdict that is not consistent, except those that this challenge always leaves open."""
    return [
        (named(verdict), verdict.worth)
        for verdict in found
        if verdict.worth is not Worth.CONSISTENT and (verdict.check, verdict.worth) not in ALWAYS
    ]


def named(verdict: Verdict) -> str:
    """Return a verdict's check with its phase."""
    return verdict.check if verdict.phase is None else f"{verdict.phase}: {verdict.check}"


def with_file(repository: PublicRepository, path: str, content: bytes | None) -> PublicRepository:
    """Return the files with one of them replaced or removed."""
    files = {**repository.files, path: content or b""}
    if content is None:
        del files[path]
    return PublicRepository(files=files)


def revealed(repository: PublicRepository, path: str = REVEAL) -> dict[str, Any]:
    """Return the document of a reveal, with its register included."""
    folder = path.rpartition("/")[0]
    document: dict[str, Any] = repository.json(path)
    texts = [repository.files[f"{folder}/{part['name']}"] for part in document.pop("parts")]
    return {**document, "register": [json.loads(line) for text in texts for line in text.splitlines()]}


def with_reveal(
    repository: PublicRepository, document: Mapping[str, Any], path: str = REVEAL
) -> PublicRepository:
    """Return the files with another reveal and with the parts that hold its register."""
    folder = path.rpartition("/")[0]
    files = {file: content for file, content in repository.files.items() if not _is_part(file, folder)}
    rest = dict(document)
    if isinstance(document.get("register"), list):
        divided = reveals.written(json.dumps(event) for event in rest.pop("register"))
        rest["parts"] = [part.to_json() for part, _ in divided]
        files |= {f"{folder}/{part.name}": text.encode() for part, text in divided}
    files[path] = json.dumps(rest).encode()
    return PublicRepository(files=files, contents=repository.contents)


def _is_part(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/") and path.endswith(".jsonl")


def changed(repository: PublicRepository, path: str, change: Change) -> PublicRepository:
    """Return the files with a change to one of them: a reveal, a JSON document, a list of JSON lines, or a text."""
    if path.endswith("/reveal.json"):
        return with_reveal(repository, change(revealed(repository, path)), path)
    text = repository.files[path].decode()
    if path.endswith(".jsonl"):
        lines = [json.loads(line) for line in text.splitlines()]
        return with_file(
            repository, path, "".join(json.dumps(line) + "\n" for line in change(lines)).encode()
        )
    if path.endswith(".json"):
        return with_file(repository, path, json.dumps(change(json.loads(text))).encode())
    return with_file(repository, path, change(text).encode())


def to(*path: Any, value: Any) -> Change:
    """Return a change that sets one place of a document to a value, or to a function of its old value."""

    def change(document: Any) -> Any:
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value
        return document

    return change


def of_event(kind: str, change: Change) -> Change:
    """Return a change to a reveal's document that changes its first opened event of a kind."""

    def in_document(document: Any) -> Any:
        opening = next(one for one in document["register"] if one.get("fields", {}).get("kind") == kind)
        opening["fields"] = change(opening["fields"])
        return document

    return in_document


def forged(fair: Fair, repository: PublicRepository, kind: str, change: Change) -> PublicRepository:
    """Change the first event of a kind, and make log and signatures match, as an organizer with all keys can."""
    document = revealed(repository)
    opening = next(one for one in document["register"] if one.get("fields", {}).get("kind") == kind)
    before, _ = events.read_opening(opening)
    opening["fields"] = change(opening["fields"])
    after, _ = events.read_opening(opening)
    signer = fair.signer

    def renewed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        previous = receipts.GENESIS
        for line in lines:
            line |= {
                "entries": sorted(after if one == before else one for one in line["entries"]),
                "previous": previous,
            }
            del line["head"], line["signature"]
            head = receipts.chained(line)
            line |= {"head": head, "signature": signer.sign(receipts.BATCH, head)}
            previous = head
        return lines

    return changed(with_reveal(repository, document), receipts.PATH, renewed)
