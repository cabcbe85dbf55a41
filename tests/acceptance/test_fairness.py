"""A revealed challenge verifies; every planted lie is found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.stage import WARM_CACHE, Stage, clean_environment, embeddings, git
from worker.fairness import receipts
from worker.fairness.public import PublicRepository, opened, read_folder
from worker.fairness.recompute import submission_verdicts
from worker.fairness.verify import GROWING, Truth, receipt_verdicts, verdicts

pytestmark = pytest.mark.xdist_group("fairness")
REVEAL = "reveal/dev/reveal.json"


@pytest.fixture(scope="module")
def fair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Path]]:
    """A small honest challenge with two teams and a private submission, its dev phase revealed, and its folder of public files."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
    folder = tmp_path_factory.mktemp("fair")
    with Stage(folder, changes={"evalai": {"poll_every": 1}}) as stage:
        stage.submit("A", embeddings(1))
        assert stage.once().returncode == 0
        stage.submit("B", embeddings(2, noise=1.0))
        stage.submit("B", embeddings(3), is_public=False)
        stage.submit("A", embeddings(4))
        assert stage.once().returncode == 0
        done = stage.command("challenge", "reveal", "--phase", "dev", "--yes", "--config", str(stage.path))
        assert done.returncode == 0, done.stderr
        checkout = folder / "public"
        subprocess.run(
            ["git", "clone", "-q", "-b", "main", str(stage.board), str(checkout)],
            check=True,
            env=clean_environment(),
        )
        shutil.rmtree(checkout / ".git")
        yield stage, checkout


def lies(repository: PublicRepository) -> set[str]:
    """Return the checks that found a lie."""
    return {verdict.check for verdict in verdicts(repository) if verdict.truth is Truth.FALSE}


def changed(repository: PublicRepository, path: str, change: Callable[[Any], Any]) -> PublicRepository:
    """Return the repository with one JSON file (or the lines of one) changed."""
    files = dict(repository.files)
    text = files[path].decode()
    if path.endswith(".jsonl"):
        lines = [json.loads(line) for line in text.splitlines()]
        files[path] = "".join(json.dumps(line) + "\n" for line in change(lines)).encode()
    else:
        files[path] = json.dumps(change(json.loads(text))).encode()
    return PublicRepository(files=files, versions={}, with_history=False)


def test_honest_repository_verifies(fair: tuple[Stage, Path]) -> None:
    """From the public repository alone every check of an honest challenge passes, its history included."""
    stage, _ = fair
    with opened(str(stage.board), growing=GROWING) as repository:
        found = list(verdicts(repository))
    assert [verdict.sentence for verdict in found if verdict.truth is not Truth.TRUE] == []
    assert len(found) >= 12


def test_command_says_fair_without_our_state(fair: tuple[Stage, Path], tmp_path: Path) -> None:
    """The command needs nothing but the public files, and says what a plain folder cannot show."""
    _, checkout = fair
    command = [os.fspath(Path(os.sys.executable).with_name("neuco-worker")), "challenge", "verify"]
    environment = {**clean_environment(), "HOME": str(tmp_path)}
    shown = subprocess.run(
        [*command, str(checkout)], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert "Nothing speaks against fairness; 1 of" in shown.stdout
    (tmp_path / "liar").mkdir()
    shutil.copytree(checkout, tmp_path / "liar", dirs_exist_ok=True)
    document = json.loads((checkout / REVEAL).read_text())
    document["key"] = "00" * 32
    (tmp_path / "liar" / REVEAL).write_text(json.dumps(document))
    shown = subprocess.run(
        [*command, str(tmp_path / "liar"), "--json"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert shown.returncode == 1
    assert json.loads(shown.stdout)["fair"] is False


def _drop_first(items: list[Any]) -> list[Any]:
    return items[1:]


def _set(*path: Any, value: Any) -> Callable[[Any], Any]:
    def change(document: Any) -> Any:
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value
        return document

    return change


def _swap_ranks(document: Any) -> Any:
    first, second = document["boards"][-1]["standings"][:2]
    first["rank"], second["rank"] = second["rank"], first["rank"]
    return document


def _other_score(document: Any) -> Any:
    folds = document["entries"][0]["record"]["cells"]["alpha"]["folds"]
    folds[0] += 0.25
    return document


LIES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "a task dropped from the manifest": (
        REVEAL,
        _set("commitments", 0, "manifest", "tasks", value=_drop_first),
        "dev: commitment",
    ),
    "a task added to the manifest": (
        REVEAL,
        _set(
            "commitments",
            0,
            "manifest",
            "tasks",
            value=lambda tasks: [*tasks, dict(tasks[0], identifier="zeta")],
        ),
        "dev: commitment",
    ),
    "another salt": (
        REVEAL,
        _set("commitments", 0, "manifest", "tasks", 0, "salt", value="11" * 32),
        "dev: labels",
    ),
    "another nonce": (REVEAL, _set("commitments", 0, "opening", "nonce", value="11" * 32), "dev: commitment"),
    "another key, so other seeds": (REVEAL, _set("key", value="22" * 32), "dev: splits"),
    "another number of folds": (
        REVEAL,
        _set("commitments", 0, "manifest", "protocol", "folds", value=5),
        "dev: splits",
    ),
    "another score": (REVEAL, _other_score, "dev: scores"),
    "another nonce of a receipt": (REVEAL, _set("entries", 0, "nonce", value="33" * 32), "dev: scores"),
    "another mean Q": (
        REVEAL,
        _set("boards", -1, "standings", 0, "q_mean", value=lambda q: q + 0.01),
        "dev: ranks",
    ),
    "ranks swapped": (REVEAL, _swap_ranks, "dev: ranks"),
    "a board dropped": (REVEAL, _set("boards", value=_drop_first), "dev: board"),
    "a dropped batch of receipts": (receipts.PATH, _drop_first, "dev: scores"),
    "a dropped receipt": (receipts.PATH, _set(0, "receipts", value=_drop_first), "receipts"),
    "receipts reordered": (receipts.PATH, _set(0, "receipts", value=lambda listed: listed[::-1]), "receipts"),
    "a late commitment": ("commitment.json", _set(0, "commitment", value="44" * 32), "dev: commitment"),
    "a commitment dropped": ("commitment.json", _drop_first, "commitment"),
    "history rewritten": ("leaderboard/history.jsonl", _drop_first, "dev: board"),
    "the present board changed": (
        "leaderboard/dev.json",
        _set("entries", 0, "q_mean", value=99.0),
        "dev: board",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_planted_lie_is_found(fair: tuple[Stage, Path], lie: str) -> None:
    """A change of anything that was promised is found by the check that guards it."""
    path, change, check = LIES[lie]
    repository = read_folder(fair[1])
    assert lies(repository) == set()
    assert check in lies(changed(repository, path, change))


def test_changed_label_and_missing_task_are_found(fair: tuple[Stage, Path]) -> None:
    """One label more, less or different is not the task that was committed to; nor is the set without one."""
    repository = read_folder(fair[1])
    path = "reveal/dev/labels/alpha__regr.csv"
    lines = repository.files[path].decode().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ",0.123"
    files = {**repository.files, path: ("\n".join(lines) + "\n").encode()}
    assert lies(PublicRepository(files=files, versions={}, with_history=False)) == {"dev: labels"}
    files = {name: content for name, content in repository.files.items() if name != path}
    assert lies(PublicRepository(files=files, versions={}, with_history=False)) == {"dev: labels"}


def test_rewritten_history_of_the_repository_is_found(fair: tuple[Stage, Path], tmp_path: Path) -> None:
    """A commit that changes an earlier line of a file that may only grow is seen in the repository's history."""
    stage, _ = fair
    copy = tmp_path / "copy"
    subprocess.run(
        ["git", "clone", "-q", "-b", "main", str(stage.board), str(copy)], check=True, env=clean_environment()
    )
    lines = (copy / "leaderboard/history.jsonl").read_text().splitlines()
    (copy / "leaderboard/history.jsonl").write_text("\n".join(lines[1:]) + "\n")
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(
        ["git", "-C", str(copy), *identity, "commit", "-qam", "tidy"], check=True, env=clean_environment()
    )
    with opened(str(copy), growing=GROWING) as repository:
        assert "history" in lies(repository)


@pytest.mark.parametrize("engine", ["default", "pytorch"])
def test_submission_is_computed_anew(fair: tuple[Stage, Path], tmp_path: Path, engine: str) -> None:
    """A team's file gives the published scores, fold by fold, with the kernel and with the plain loop; another file is unknown."""
    repository = read_folder(fair[1])
    file = tmp_path / "mine.csv"
    file.write_bytes(embeddings(1, shuffled=True))
    found = list(submission_verdicts(repository, file, engine=engine))
    assert [verdict.truth for verdict in found] == [Truth.TRUE], found
    file.write_bytes(embeddings(9))
    assert [verdict.truth for verdict in submission_verdicts(repository, file, engine=engine)] == [
        Truth.UNKNOWN
    ]


def test_forged_score_is_found_by_its_team(fair: tuple[Stage, Path], tmp_path: Path) -> None:
    """Published scores that are not those of the file are a lie, even if everything else was made to fit."""
    repository = read_folder(fair[1])
    document = json.loads(repository.files[REVEAL])
    mine = next(entry for entry in document["entries"] if entry["team"] == "A")
    mine["record"]["cells"]["alpha"]["folds"][0] += 0.5
    files = {**repository.files, REVEAL: json.dumps(document).encode()}
    file = tmp_path / "mine.csv"
    file.write_bytes(embeddings(1))
    found = submission_verdicts(
        PublicRepository(files=files, versions={}, with_history=False), file, engine="default"
    )
    assert Truth.FALSE in {verdict.truth for verdict in found}


def test_participants_are_witnesses(fair: tuple[Stage, Path]) -> None:
    """The receipt in a participant's stdout agrees with the repository; against a rewritten one it testifies."""
    stage, checkout = fair
    repository = read_folder(checkout)
    receipt = stage.stdout(min(stage.evalai.journal.posts()))["receipt"]
    assert {verdict.truth for verdict in receipt_verdicts(repository, receipt)} == {Truth.TRUE}
    rewritten = changed(repository, "commitment.json", _set(0, "commitment", value="55" * 32))
    assert Truth.FALSE in {verdict.truth for verdict in receipt_verdicts(rewritten, receipt)}


def test_private_submission_shows_nowhere(fair: tuple[Stage, Path]) -> None:
    """A batch of receipts has a size that does not tell how many there are, and a private entry is not revealed."""
    stage, checkout = fair
    repository = read_folder(checkout)
    line = json.loads(repository.files[receipts.PATH].splitlines()[0])
    assert len(line["receipts"]) == receipts.SMALLEST_BATCH
    document = json.loads(repository.files[REVEAL])
    private = {pk for pk in stage.evalai.journal.posts() if not stage.evalai.submission(pk)["is_public"]}
    assert private
    assert not private & {entry["submission"] for entry in document["entries"]}


def test_hashes_alone_are_not_recomputable_never_honest(fair: tuple[Stage, Path]) -> None:
    """For labels released as hashes only the verdict is "cannot be checked"."""
    repository = read_folder(fair[1])
    files = {path: content for path, content in repository.files.items() if "/labels/" not in path}
    document = json.loads(files[REVEAL])
    document["labels"] = "hashes"
    files[REVEAL] = json.dumps(document).encode()
    found = [
        verdict
        for verdict in verdicts(PublicRepository(files=files, versions={}, with_history=False))
        if verdict.check == "dev: labels"
    ]
    assert [verdict.truth for verdict in found] == [Truth.UNKNOWN]
    assert "not recomputable" in found[0].sentence


def test_revealing_dev_keeps_eval_hidden(fair: tuple[Stage, Path]) -> None:
    """Nothing of the other phase's tasks or key is published."""
    stage, checkout = fair
    repository = read_folder(checkout)
    everything = b"\n".join(repository.files.values())
    from scoring.seeds import phase_key

    secret = bytes.fromhex((stage.folder / "challenge.secret").read_text().strip())
    assert phase_key(secret, "eval").hex().encode() not in everything
    assert not [path for path in repository.files if path.startswith("reveal/eval")]
    assert git(stage.board, "log", "--format=%B", "main").count("alpha") == 0
