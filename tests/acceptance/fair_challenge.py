"""One small honest challenge, after the reveal of its first phase and at its end, and functions that change its published files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import KEY, WARM_CACHE, Harness, clean_environment, embeddings
from worker.challenge.signing import Signer
from worker.fairness import disclosure
from worker.verify import Status, Verdict, verdicts
from worker.verify.public import PublicRepository

REVEAL = "reveal/dev/reveal.json"
ALWAYS = {
    *((check, Status.BELIEVED) for check in ("access", "beacon", "private", "words")),
    ("register", Status.NOT_REVEALED),
}
"""The verdicts that this challenge always leaves open: four are taken on trust, and one waits for the reveal of phase eval."""
Change = Callable[[Any], Any]


PHASES = ("dev", "eval")
HOSTS, BASELINE = "Host Participant Team", "Baseline mean embeddings"
ACCESS = "The organizers at X <b>have</b> the labels; none of them competes."
FILES = {
    "baseline": embeddings(3, noise=2.0),
    "A": embeddings(1),
    "B": embeddings(2, noise=1.0),
    "B in private": embeddings(5),
    "C": embeddings(4, noise=0.6),
    "A at last": embeddings(6, noise=0.2),
}
"""The files that are submitted."""


class _Grouped(Harness):
    """A challenge whose samples have groups in the first phase, and none in the second."""

    def _write_challenge(self) -> None:
        super()._write_challenge()
        for path in (self.folder / "tasks" / "dev").iterdir():
            header, *lines = path.read_text().splitlines()
            grouped = (f"{line},tile {number // 8}" for number, line in enumerate(lines))
            path.write_text("\n".join([f"{header},group", *grouped]) + "\n")


@dataclass(frozen=True, kw_only=True)
class Fair:
    """The challenge at a moment.

    Attributes:
        harness: The challenge, which goes on to its end.
        board: The repository as it was at the moment.
        public: A folder that holds only its files.
        submissions: Name of each file to its submission in phase dev.
    """

    harness: Harness
    board: Path
    public: Path
    submissions: Mapping[str, int]

    @property
    def signer(self) -> Signer:
        """The organizers' signing key."""
        return KEY


def copy_of(repository: Path, folder: Path, *options: str) -> Path:
    """Clone a repository."""
    command = ["git", "clone", "-q", *options, str(repository), str(folder)]
    subprocess.run(command, check=True, env=clean_environment())
    return folder


def verify(fair: Fair, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``neuco-worker verify`` as a user does."""
    assert fair.harness.fork_server is not None
    return fair.harness.fork_server.command(
        ("verify", str(place), *arguments), environment=clean_environment(), folder=fair.harness.folder
    )


@pytest.fixture(scope="session")
def moments(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Iterator[list[Fair]]:
    """A challenge with a baseline, three teams, a private submission, groups, and a phase that requires a score in the other one.

    The moments are those after the reveal of each phase. The files of the baseline and of each board's first row are published.
    """
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
    folder = tmp_path_factory.mktemp("fair")
    changes = {
        "evalai": {"poll_every": 1},
        "phases": {"eval": {"eligible_if_scored_in": "dev"}},
        "fairness": {"publish_files": "top:1", "access": ACCESS},
    }
    with _Grouped(folder, changes=changes, fork_server=fork_server) as harness:
        harness.evalai.add_team(HOSTS, ("host",))
        pks = {"baseline": harness.submit(HOSTS, FILES["baseline"], method_name=BASELINE)}
        for name in ("A", "B", "B in private"):
            pks[name] = harness.submit(name[0], FILES[name], is_public=name != "B in private")
        assert harness.once().returncode == 0
        for name in ("C", "A at last"):
            pks[name] = harness.submit(name[0], FILES[name])
        harness.submit("A", FILES["A"], phase="eval")
        assert harness.once().returncode == 0
        harness.configure(
            {"fairness": {"publish_files": "top:9", "access": "?"}}
        )  # too late: the first commitment decides
        reached = []
        for phase in PHASES:
            for command in (("board", "close", "--now", "--reason", "a test"), ("challenge", "reveal")):
                done = harness.command(*command, "--phase", phase, "--yes")
                assert done.returncode == 0, done.stderr
                assert "not published" not in done.stdout
            board = copy_of(harness.board, folder / f"{phase}.git", "--bare")
            public = copy_of(board, folder / phase, "-b", "main")
            shutil.rmtree(public / ".git")
            reached.append(Fair(harness=harness, board=board, public=public, submissions=pks))
        yield reached


@pytest.fixture(scope="session")
def fair(moments: list[Fair]) -> Fair:
    """The challenge with one phase revealed."""
    return moments[0]


@pytest.fixture(scope="session")
def ended(moments: list[Fair]) -> Fair:
    """The challenge with both phases revealed."""
    return moments[1]


def lies(found: PublicRepository | Iterable[Verdict]) -> set[str]:
    """Return the checks that found a lie in a repository, or that are among verdicts."""
    all_verdicts = verdicts(found) if isinstance(found, PublicRepository) else found
    return {named(verdict) for verdict in all_verdicts if verdict.status is Status.CONTRADICTED}


def others(all_verdicts: Iterable[Verdict]) -> list[tuple[str, Status]]:
    """Return check and status of every verdict that is not consistent, except those that this challenge always leaves open."""
    return [
        (named(verdict), verdict.status)
        for verdict in all_verdicts
        if verdict.status is not Status.CONSISTENT and (verdict.check, verdict.status) not in ALWAYS
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
    document: dict[str, Any] = json.loads(repository.files[path])
    texts = [
        repository.files[f"{folder}/register-{part}.jsonl"] for part in range(1, document.pop("parts") + 1)
    ]
    return {**document, "register": [json.loads(line) for text in texts for line in text.splitlines()]}


def with_reveal(
    repository: PublicRepository, document: Mapping[str, Any], path: str = REVEAL
) -> PublicRepository:
    """Return the files with another reveal and with the parts that hold its register."""
    folder = path.rpartition("/")[0]
    files = {file: content for file, content in repository.files.items() if not _is_part(file, folder)}
    rest = dict(document)
    if isinstance(document.get("register"), list):
        texts = disclosure.register_texts(json.dumps(event) for event in rest.pop("register"))
        rest["parts"] = len(texts)
        files |= {f"{folder}/register-{part}.jsonl": text.encode() for part, text in enumerate(texts, 1)}
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
