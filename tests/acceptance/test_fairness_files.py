"""A reveal publishes contents by a rule in the commitment, and verification recomputes the scores of those that are there."""

from __future__ import annotations

import hashlib
import html
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from scoring.inputs.embeddings import Embeddings
from tests.acceptance.fair_challenge import (
    ACCESS,
    BASELINE,
    HOSTS,
    REVEAL,
    Fair,
    copy_of,
    lies,
    revealed,
    verify,
    with_file,
)
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import DIM, NOISES, Harness, Killed, embeddings, git
from worker.evaluation.evaluate_child import EvaluationOrder
from worker.evaluation.stored import KeepContent
from worker.fairness import disclosure
from worker.fairness.disclosure import FILES_PATH
from worker.organizer.board_by_hand import close, publish_now
from worker.organizer.decisions import disqualify
from worker.organizer.disclosure import prepare_files
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session
from worker.verify import Status, Verdict, verdicts
from worker.verify.public import PublicRepository, opened, read_folder, with_contents
from worker.verify.recompute import published_verdicts
from worker.verify.revealed import read_reveals

pytestmark = pytest.mark.xdist_group("fairness")


@pytest.fixture
def repository(fair: Fair) -> Iterator[PublicRepository]:
    """The opened repository."""
    with opened(str(fair.board)) as public:
        yield public


def statuses(all_verdicts: Iterator[Verdict]) -> list[Status]:
    """Return the status of each verdict."""
    return [verdict.status for verdict in all_verdicts]


def content_of(public: PublicRepository, submission: int) -> str:
    """Return the hash of a submission's content."""
    return read_reveals(public).phases["dev"].records[submission][0].content


def published_names(public: PublicRepository) -> list[str]:
    """Return the names of the published parts of phase dev, of the baseline's first."""
    rows = read_reveals(public).phases["dev"].boards[-1].standings
    due = disclosure.due("top:1", [(row.submission, row.baseline) for row in rows])
    return [f"{content_of(public, submission)}.0" for submission in due]


@pytest.mark.processes
def test_the_files_of_the_rule_are_published_and_recomputed(fair: Fair, repository: PublicRepository) -> None:
    """The baseline and the first row are published on a branch of their own, in the hashed form, and no other contents are."""
    (verdict,) = published_verdicts(repository)
    named = [fair.submissions["baseline"], fair.submissions["A at last"]]
    assert (verdict.status, verdict.submissions) == (Status.RECOMPUTED, tuple(sorted(named)))
    branch = git(fair.board, "ls-tree", "--name-only", "files").split()
    assert branch == sorted(f"{content_of(repository, submission)}.0" for submission in named)
    reference = json.loads(repository.files[FILES_PATH])
    assert reference["commit"] == git(fair.board, "rev-parse", "files").strip()
    assert not git(fair.board, "log", "--format=%H", "main..files", "--", "README.md").strip()
    for name in branch:
        content = repository.contents(name)
        assert f"{hashlib.sha256(content).hexdigest()}.0" == name
        ids = repository.files["reveal/dev/ids.txt"].decode().split()
        assert f"{Embeddings.from_canonical(content, ids, DIM).content_hash}.0" == name
    assert [entry["publish_files"] for entry in json.loads(repository.files["commitment.json"])] == ["top:1"]
    assert statuses(iter(verdicts(repository))).count(Status.CONTRADICTED) == 0


@pytest.mark.processes
def test_who_knows_the_tasks_is_fixed_and_shown(repository: PublicRepository) -> None:
    """The first commitment decides; README, page and `verify` show it, as text."""
    assert {entry["access"] for entry in json.loads(repository.files["commitment.json"])} == {ACCESS}
    assert html.escape(ACCESS) in repository.files["index.html"].decode()
    assert "**Who knows the hidden tasks**" in repository.files["README.md"].decode()
    (verdict,) = [verdict for verdict in verdicts(repository) if verdict.check == "access"]
    assert (verdict.status, ACCESS in verdict.sentence) == (Status.BELIEVED, True)


@pytest.mark.processes
def test_the_command_computes_them_by_default(fair: Fair, tmp_path: Path) -> None:
    """The command recomputes from the repository, from a clone, and from a copy with a folder of files, but not from a copy alone."""
    clone, files = tmp_path / "clone", tmp_path / "files"
    copy_of(fair.board, clone, "-b", "main")
    copy_of(fair.board, files, "-b", "files")
    for arguments, recomputed in (
        ((fair.board,), 2),
        ((clone,), 2),
        ((fair.public,), 0),
        ((fair.public, "--files", str(files)), 2),
        ((clone, "--no-recompute"), 0),
    ):
        done = verify(fair, *arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        phases = json.loads(done.stdout)["phases"].values()
        assert [sum(phase[name] for phase in phases) for name in ("recomputed", "entries")] == [recomputed, 5]


@pytest.mark.processes
@pytest.mark.parametrize("other", ["nothing", "something else", "another content"])
def test_a_part_that_is_missing_or_foreign_is_not_published_now(
    repository: PublicRepository, other: str
) -> None:
    """The scores of this submission are taken on trust, and those of the others are recomputed; nothing is contradicted."""
    first, second = published_names(repository)
    parts = {"nothing": b"", "something else": b"x", "another content": repository.contents(second)}
    contents = repository.contents
    changed = replace(repository, contents=lambda name: parts[other] if name == first else contents(name))
    missing, recomputed = published_verdicts(changed)
    assert (missing.status, recomputed.status) == (Status.BELIEVED, Status.RECOMPUTED)
    assert missing.sentence.startswith("No file is published now of submission ")


@pytest.mark.processes
@pytest.mark.parametrize("reference", [b"[]", b'{"format":1,"branch":"files","commit":"../x"}'])
def test_a_reference_that_cannot_be_read_is_a_contradiction(
    repository: PublicRepository, reference: bytes
) -> None:
    """The software writes it correctly."""
    verdict, *_ = published_verdicts(with_file(repository, FILES_PATH, reference))
    assert (verdict.status, FILES_PATH in verdict.sentence) == (Status.CONTRADICTED, True)


@pytest.mark.processes
def test_a_stored_file_that_is_gone_does_not_keep_a_phase_hidden(
    tmp_path: Path, cells: Path, fork_server: ForkServer
) -> None:
    """A reveal publishes the other files. Once the file is back, the next reveal publishes it too, also if a daemon runs."""
    changes = {"evalai": {"poll_every": 1}, "fairness": {"publish_files": "top:9"}}
    with Harness(tmp_path, changes=changes, cells=cells, fork_server=fork_server) as harness:
        harness.evalai.add_team(HOSTS, ("host",))
        harness.submit(HOSTS, embeddings(3, noise=NOISES[-1]), method_name=BASELINE)
        harness.submit("A", embeddings(1))
        harness.decide("once")
        with closing(harness.store()) as store, store.read() as tx:
            (lost,) = [row for row in tx.submissions() if row.method == BASELINE]
        place = harness.state / "files" / str(lost.file_hash)[:2] / str(lost.file_hash)
        aside = place.rename(tmp_path / "aside")
        harness.decide("board", "close", "--phase", "dev", "--now")
        message = harness.decide("challenge", "reveal")
        assert (
            f"submission {lost.pk} in phase dev is not published: its stored file is not on this machine"
            in message
        )
        with opened(str(harness.board)) as public:
            assert statuses(published_verdicts(public)) == [Status.BELIEVED, Status.RECOMPUTED]
        aside.rename(place)
        process = harness.run()
        harness.until(lambda: "run.start" in harness.log)
        harness.decide("challenge", "reveal")
        process.terminate()
        assert process.wait() == 0
        with opened(str(harness.board)) as public:
            assert statuses(published_verdicts(public)) == [Status.RECOMPUTED]
            assert harness.contradictions() == []


@pytest.mark.processes
def test_contents_too_large_for_the_repository_are_left_out(
    tmp_path: Path, cells: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command names each of them, and its scores are taken on trust."""
    told: list[str] = []
    with Harness(
        tmp_path, changes={"evalai": {"poll_every": 1}}, cells=cells, fork_server=fork_server
    ) as harness:
        harness.evalai.add_team(HOSTS, ("host",))
        harness.submit(HOSTS, embeddings(3, noise=NOISES[-1]), method_name=BASELINE)
        harness.decide("once")
        monkeypatch.setattr(disclosure, "LIMIT_BYTES", 0)
        left = harness.state / "published" / "dev" / ("0" * 64)  # by a reveal that was killed
        left.mkdir(parents=True)
        (left / f"{left.name}.0").write_text("no longer due")
        with open_session(harness.path) as session:
            close(session, "dev")
            prepare_files(session, ["dev"], tell=told.append)
            reveal(session, ["dev"], labels=True)
            publish_now(session, tell=print)
        assert "would take more than 1 GB" in told[0]
        assert not left.exists()
        with opened(str(harness.board)) as public:
            assert FILES_PATH not in public.files
            assert statuses(published_verdicts(public)) == [Status.BELIEVED]


@pytest.mark.processes
def test_what_is_disqualified_during_a_reveal_is_not_published(
    tmp_path: Path, cells: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board at the moment of the reveal decides, not the one by which the files were prepared; a kill leaves no half of a file."""

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with (
        Harness(
            tmp_path, changes={"fairness": {"publish_files": "top:9"}}, cells=cells, fork_server=fork_server
        ) as harness,
        harness.worker() as worker,
        open_session(harness.path) as session,
    ):
        gone, stays = harness.submit("A", embeddings(1)), harness.submit("B", embeddings(2))
        worker.drive()
        prepare_files(session, ["dev"], tell=print)
        disqualify(session, gone, "it trained on the labels")
        worker.drive()
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", killed)
            with pytest.raises(Killed):
                reveal(session, ["dev"], labels=True, open_too=True)
        prepared = [path.name for path in (harness.state / "published" / "dev").iterdir()]
        assert prepared == [worker.row(stays).content_hash]
        reveal(session, ["dev"], labels=True, open_too=True)
        assert prepared == [path.name for path in (harness.state / "published" / "dev").iterdir()]


@pytest.mark.processes
def test_of_two_reveals_at_once_one_prepares_a_file(
    tmp_path: Path, cells: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one does not take away the parts that a worker may be pushing by then."""
    write_order, first = KeepContent.order, list[int]()

    def parts() -> list[int]:
        return [part.stat().st_ino for part in (harness.state / "published" / "dev").glob("*/*")]

    def meanwhile(act: KeepContent) -> EvaluationOrder:
        order = write_order(act)
        monkeypatch.setattr(KeepContent, "order", write_order)
        with open_session(harness.path) as other:
            prepare_files(other, ["dev"], tell=print)
        first.extend(parts())
        return order

    changes = {"fairness": {"publish_files": "top:9"}}
    with (
        Harness(tmp_path, changes=changes, cells=cells, fork_server=fork_server) as harness,
        harness.worker() as worker,
        open_session(harness.path) as session,
    ):
        harness.submit("A", embeddings(1))
        worker.drive()
        monkeypatch.setattr(KeepContent, "order", meanwhile)
        prepare_files(session, ["dev"], tell=print)
        assert (len(first), parts()) == (1, first)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [(None, [5]), ("baselines", [5]), ("top:1", [5, 3]), ("top:9", [5, 3, 4])],
)
def test_a_rule_selects_submissions(rule: str | None, wanted: list[int]) -> None:
    """Baselines are always selected, and come first; the rule gives the number of other rows."""
    assert disclosure.due(rule, [(3, False), (5, True), (4, False)]) == wanted


def test_a_large_content_is_divided_into_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part is larger than ``PART_BYTES``, and the parts together are the content."""
    monkeypatch.setattr(disclosure, "PART_BYTES", 10)
    parts = disclosure.write_parts([b"0123456", memoryview(b"789abcdefghijklm")], "ff", tmp_path / "parts")
    contents = with_contents(PublicRepository(files={}), tmp_path / "parts").contents
    assert [(name, len(contents(name))) for name in parts] == [("ff.0", 10), ("ff.1", 10), ("ff.2", 3)]
    assert b"".join(map(contents, parts)) == b"0123456789abcdefghijklm"
    assert parts == disclosure.part_names("ff", 23)


@pytest.mark.processes
def test_many_parts_equal_one(fair: Fair) -> None:
    """A register that is split into several parts gives the same verdicts, and parts in the wrong order are found."""
    repository = read_folder(fair.public)
    document = revealed(repository)
    texts = disclosure.register_texts(map(json.dumps, document.pop("register")), at_most=3000)
    assert len(texts) > 1
    reveal = {REVEAL: json.dumps({**document, "parts": len(texts)}).encode()}

    def divided(texts: list[str]) -> PublicRepository:
        register = {f"reveal/dev/register-{part}.jsonl": text.encode() for part, text in enumerate(texts, 1)}
        return PublicRepository(files={**repository.files, **reveal, **register})

    assert list(verdicts(divided(texts))) == list(verdicts(repository))
    assert lies(divided(texts[::-1]))
