"""An honest challenge verifies from its public repository alone; verify names all that it cannot check, and checks receipts and files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scoring.errors import OrganizerError
from scoring.randomness import phase_key
from tests.acceptance.fair_challenge import (
    ALWAYS,
    FILES,
    REVEAL,
    Fair,
    changed,
    lies,
    others,
    revealed,
    to,
    verify,
    with_file,
)
from tests.worker.harness.harness import clean_environment, embeddings, git
from worker.challenge.signing import fingerprint
from worker.fairness import receipts
from worker.verify import Status, entry_of, make_report, receipt_verdicts, verdicts
from worker.verify.public import opened, read_folder
from worker.verify.recompute import submission_verdicts
from worker.verify.report import ALWAYS as ALWAYS_TRUSTED
from worker.verify.report import TRUST

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("fairness")]
ROOT = Path(__file__).parents[2]
SO_FAR = "Consistent so far: nothing is contradicted, but not everything has been revealed."


def stdout(fair: Fair, name: str) -> dict[str, Any]:
    """Return the result that EvalAI showed for a submission."""
    return fair.harness.stdout(fair.submissions[name])


def test_honest_repository_verifies(fair: Fair) -> None:
    """From the public repository and its history alone, every check of an honest challenge passes; only phase eval is not revealed.

    The report answers five questions, and the page on fairness has the sentences of what cannot be proved.
    """
    with opened(str(fair.board)) as repository:
        all_verdicts = list(verdicts(repository))
        report = make_report(repository, all_verdicts)
    assert others(all_verdicts) == [("eval: reveal", Status.NOT_REVEALED)]
    assert {(verdict.check, verdict.status) for verdict in all_verdicts} >= ALWAYS
    assert report.sentence == SO_FAR
    tip = git(fair.board, "rev-parse", "main").strip()
    key, address, commit, *_ = report.heading()
    assert (key, address) == (f"Key: {fingerprint(fair.signer.public)}", f"Repository: {fair.board}")
    assert commit.startswith(f"Branch main, commit {tip[:10]} of 20")
    with opened(str(fair.board)) as copy:
        for repository in (copy, replace(copy, is_copy=False)):
            late = make_report(repository, all_verdicts, repository.log[-1].made_at + timedelta(hours=5))
            is_silent = "silent for 5 hours: write to the organizers" in "".join(late.heading())
            assert is_silent is not repository.is_copy
    statuses = [*[Status.NOT_REVEALED] * 3, *[Status.CONSISTENT] * 2]
    assert [answer.status for answer in report.answers] == statuses
    assert len(list(report.lines(verbose=False))) < 40
    assert {verdict for answer in report.answers for verdict in answer.verdicts} == {*report.verdicts}
    page = (ROOT / "docs" / "fairness.md").read_text()
    assert [sentence for sentence in (*ALWAYS_TRUSTED, *TRUST.values()) if sentence not in page] == []


def _section(page: bytes) -> bytes:
    """Return a copy of the first phase's section under another name."""
    begin, end = page.index(b'<section class="phase" id="dev"'), page.index(b"</section>") + 10
    return page[:end] + page[begin:end].replace(b'id="dev"', b'id="final"') + page[end:]


FORGED_PAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a phase without a commitment": ("index.html", _section),
    "a banner": ("index.html", lambda page: page.replace(b"<main ", b"<p>C wins.</p><main ", 1)),
    "a script": ("index.html", lambda page: page.replace(b"</body>", b"<script src=x></script></body>", 1)),
    "words in the block": ("README.md", lambda text: text.replace(b"## eval", b"C wins.\n\n## eval", 1)),
    "a value in the open phase": ("leaderboard/eval.csv", lambda text: text.replace(b",1,", b",2,", 1)),
    "a document of a phase without a commitment": ("leaderboard/final.json", lambda _: b"{}"),
    "a file in the worker's folder": ("leaderboard/notes.txt", lambda _: b"C wins."),
    "an earlier board of the open phase": (
        "leaderboard/history.jsonl",
        lambda text: text.replace(b'"phase":"eval","sequence":1,', b'"phase":"eval","sequence":2,', 1),
    ),
}


@pytest.mark.parametrize("name", FORGED_PAGES)
def test_nothing_else_stands_on_the_page_while_a_phase_is_open(fair: Fair, name: str) -> None:
    """What the challenge has signed is compared whole, although one phase is not revealed; phases come from the commitments."""
    path, forge = FORGED_PAGES[name]
    with opened(str(fair.board)) as repository:
        forged = forge(repository.files.get(path, b""))
        assert forged != repository.files.get(path)
        changed_files = replace(repository, files={**repository.files, path: forged})
        assert lies(changed_files) - lies(repository)


def test_a_difference_is_quoted(fair: Fair) -> None:
    """The report names the file, the line, what is published and what follows."""
    forged = with_file(
        read_folder(fair.public),
        "index.html",
        read_folder(fair.public).files["index.html"].replace(b"Leaderboard</p>", b"C wins</p>", 1),
    )
    (verdict,) = [verdict for verdict in verdicts(forged) if verdict.status is Status.CONTRADICTED]
    assert re.search(
        r"index\.html, line \d+: published “.*C wins.*”, follows “.*Leaderboard.*”", verdict.sentence
    )


def test_another_version_compares_values(fair: Fair) -> None:
    """Pages that another version rendered are no contradiction; the report names it, and boards are still compared."""
    public = read_folder(fair.public)
    later = public.files["index.html"].replace(b'content="neuco-worker 0.1.0"', b'content="neuco-worker 9.9"')
    changed_page = with_file(public, "index.html", later.replace(b"Leaderboard</p>", b"Board</p>"))
    assert lies(changed_page) == set()
    (told,) = [
        verdict.sentence for verdict in verdicts(changed_page) if "“neuco-worker 9.9”" in verdict.sentence
    ]
    assert "JSON" not in told  # of a plain folder, it is not compared
    history = public.files["leaderboard/history.jsonl"].replace(b'"q_mean":', b'"q_mean":9', 1)
    assert lies(with_file(changed_page, "leaderboard/history.jsonl", history))


@pytest.mark.parametrize("path", ["reveal/dev/ids.txt", "reveal/dev/register-1.jsonl"])
def test_a_missing_file_of_a_reveal_is_named(fair: Fair, path: str) -> None:
    """The sentence says what is missing."""
    without = with_file(read_folder(fair.public), path, None)
    (verdict,) = [verdict for verdict in verdicts(without) if verdict.status is Status.CONTRADICTED]
    assert verdict.sentence == f"{path} is missing."


def test_command_needs_nothing_but_public_files(fair: Fair, tmp_path: Path) -> None:
    """The command verifies a plain folder of public files and says that it is one; a forged reveal ends it with status 1.

    Of other people's files there, only the names count, and line ends of Windows come from copying.
    """
    command = [os.fspath(Path(os.sys.executable).with_name("neuco-worker")), "verify", str(fair.public)]
    environment = {**clean_environment(), "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == SO_FAR
    assert "  ~ This is a plain folder" in done.stdout
    shutil.copytree(fair.public, tmp_path / "copy")
    for path in filter(Path.is_file, (tmp_path / "copy").rglob("*")):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    for name in ("HEAD", "objects/pack", "refs/heads"):  # as in a bare repository
        (tmp_path / "copy" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "copy" / name).write_text("ref: refs/heads/main")
    with (tmp_path / "copy" / "film.mp4").open("wb") as film:
        film.truncate(1 << 40)
    done = verify(fair, tmp_path / "copy")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "film.mp4" in done.stdout
    shutil.copytree(fair.public, tmp_path / "liar")
    document = json.loads((fair.public / REVEAL).read_text())
    (tmp_path / "liar" / REVEAL).write_text(json.dumps(document | {"key": "00" * 32}))
    done = verify(fair, tmp_path / "liar", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert (report["verdict"], report["phases"]["dev"]["recomputed"]) == ("contradicted", 0)
    assert next(question["status"] for question in report["questions"]) == "contradicted"


def test_a_repository_in_another_format_is_refused(fair: Fair, tmp_path: Path) -> None:
    """Whoever has another version gets one sentence with both formats, not contradictions."""
    shutil.copytree(fair.public, tmp_path / "other")
    listed = tmp_path / "other" / "commitment.json"
    listed.write_text(listed.read_text().replace('"format": 1', '"format": 7'))
    with (
        pytest.raises(OrganizerError, match="has format 7; this version reads format 1"),
        opened(str(tmp_path / "other")),
    ):
        pass


@pytest.mark.parametrize("engine", ["local", "torch"])
def test_submission_is_recomputed(fair: Fair, tmp_path: Path, engine: str) -> None:
    """A team's file gives the published fold scores with either engine; an unknown file is not checked, and a malformed one is refused.

    A receipt and a file of different submissions are reported as not belonging together, not as a lie.
    """
    repository = read_folder(fair.public)
    entry = entry_of(repository, stdout(fair, "B")["receipt"])
    assert entry is not None
    file = tmp_path / "mine.csv"
    for content, receipt, status, words in (
        (embeddings(1, shuffled=True), False, Status.RECOMPUTED, ""),
        (embeddings(9), False, Status.BELIEVED, ""),
        (FILES["A"], True, Status.BELIEVED, "it has the content of submission"),
        (embeddings(9), True, Status.BELIEVED, "no published entry has its content"),
        (FILES["B"], True, Status.RECOMPUTED, ""),
    ):
        file.write_bytes(content)
        scored = [entry] if receipt else []
        (first, *_) = submission_verdicts(repository, file, engine=engine, scored=scored)
        assert (first.status, words in first.sentence) == (status, True), first
        assert ("do not belong together" in first.sentence) == (receipt and status is Status.BELIEVED)
    file.write_bytes(b"id,0\nx,1\n")
    with pytest.raises(OrganizerError, match="belongs to no revealed phase"):
        list(submission_verdicts(repository, file, engine=engine))


def test_a_file_of_no_phase_is_told_what_each_requires(ended: Fair, tmp_path: Path) -> None:
    """Its author knows of which phase it was to be, and not which of them is read first."""
    (tmp_path / "mine.csv").write_text("[]")
    with pytest.raises(OrganizerError) as refusal:
        list(submission_verdicts(read_folder(ended.public), tmp_path / "mine.csv", engine="local"))
    starts = [line.partition(":")[0] for line in refusal.value.sentence.splitlines()]
    assert starts == [f"{tmp_path / 'mine.csv'} belongs to no revealed phase.", "Phase dev", "Phase eval"]


def test_private_submission_appears_nowhere(fair: Fair) -> None:
    """The size of a batch does not show the number of its entries, and private submissions are opened only in part."""
    repository = read_folder(fair.public)
    line = json.loads(repository.files[receipts.PATH].splitlines()[0])
    assert len(line["entries"]) == receipts.SMALLEST_BATCH
    openings = revealed(repository)["register"]
    private = fair.submissions["B in private"]
    assert private not in {opening["fields"].get("submission") for opening in openings if "fields" in opening}
    parts = [opening for opening in openings if "fields" not in opening]
    assert {name for opening in parts for name in opening["open"]} == {"kind", "phase", "at", "entry"}
    assert len({opening["open"]["entry"][0] for opening in parts}) == 1


def test_revealing_dev_keeps_eval_hidden(fair: Fair) -> None:
    """Nothing of the other phase's tasks or key is published."""
    repository = read_folder(fair.public)
    everything = b"\n".join(repository.files.values())
    secret = bytes.fromhex((fair.harness.folder / "challenge.secret").read_text().strip())
    assert phase_key(secret, "eval").hex().encode() not in everything
    assert not [path for path in repository.files if path.startswith("reveal/eval")]
    assert git(fair.board, "log", "--format=%B", "main").count("alpha") == 0


def test_participants_are_witnesses(fair: Fair) -> None:
    """A participant's receipt agrees with the true repository and contradicts a rewritten one; an altered receipt proves nothing."""
    repository = read_folder(fair.public)
    result = stdout(fair, "A")
    receipt, q_mean = result["receipt"], result["q_mean"]
    honest = list(receipt_verdicts(repository, receipt, q_mean))
    assert {verdict.status for verdict in honest} == {Status.CONSISTENT}
    assert honest[0].sentence == "Your receipt carries the challenge's signature."
    rewritten = changed(repository, "commitment.json", to(0, "commitment", value="55" * 32))
    assert Status.CONTRADICTED in {verdict.status for verdict in receipt_verdicts(rewritten, receipt, q_mean)}
    for altered, shown_q, number in (({**receipt, "q_mean": 99.0}, 99.0, 0), (receipt, q_mean + 0.01, 1)):
        verdict = list(receipt_verdicts(repository, altered, shown_q))[number]
        assert (verdict.status, "proves nothing" in verdict.sentence) == (Status.BELIEVED, True)
    assert "was changed" not in verdict.sentence  # only the receipt is signed


def test_command_takes_several_receipts_and_files(fair: Fair, tmp_path: Path) -> None:
    """Each receipt and file gets its own verdict, and recomputed submissions are counted; other files are refused in a sentence."""
    options = ["--against", str(fair.board), "--json"]
    for name in ("A at last", "B"):
        place = tmp_path / f"{name}.csv"
        place.write_bytes(FILES[name])
        place.with_suffix(".stdout").write_text(json.dumps(stdout(fair, name)))
        options += ["--receipt", str(place.with_suffix(".stdout")), "--submission", str(place)]
    done = verify(fair, fair.board, *options)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["verdict"] == "consistent"
    assert document["phases"]["dev"] == {"revealed": True, "entries": 5, "recomputed": 3}
    checks = [verdict["check"] for verdict in document["verdicts"]]
    for name in ("your receipt", "your submission", "older clone"):
        assert [check for check in checks if check.startswith(name)]
    assert (
        sum("counts on the final board at rank" in verdict["sentence"] for verdict in document["verdicts"])
        == 2
    )
    (tmp_path / "empty").mkdir()
    for place, text in (
        ("no", '{"receipt": 1}'),
        ("list", "[]"),
        ("huge", '{"q_mean": 1%s, "receipt": {}}' % ("0" * 400)),
    ):
        (tmp_path / f"{place}.stdout").write_text(text)
    for option, place, words in (
        ("--receipt", tmp_path, "is a directory"),
        ("--submission", tmp_path / "gone.csv", "does not exist"),
        ("--submission", tmp_path / "no.stdout", "belongs to no revealed phase.\nPhase dev: "),
        ("--files", tmp_path / "empty", "is not a folder with published files"),
        ("--receipt", tmp_path / "no.stdout", "Only a scored submission has a receipt."),
        ("--receipt", tmp_path / "list.stdout", "does not contain a receipt"),
        ("--receipt", tmp_path / "huge.stdout", "does not contain a receipt"),
        ("--against", tmp_path / "gone", "does not appear to be a git repository"),
        ("--against", tmp_path / "empty", "is not a challenge's leaderboard repository"),
    ):
        done = verify(fair, fair.public, option, str(place))
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr


def test_untrusted_text_cannot_move_the_cursor(fair: Fair, tmp_path: Path) -> None:
    """Control characters, text direction marks and line breaks in published text never reach the terminal."""
    hostile = "\x1b[2J\x9b1m\u202e\n  \u2713 All is well\x7f"
    hurt = changed(read_folder(fair.public), "commitment.json", to(0, "made_at", value=hostile))
    hurt = changed(hurt, "commitment.json", to(0, "phases", "d\x1b[31mev\n", value={}))
    hurt = changed(hurt, REVEAL, to("register", 0, "fields", "at", value=hostile))
    for path, content in hurt.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    done = verify(fair, tmp_path, "-v")
    assert done.returncode == 1
    assert "All is well" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.strip().startswith("\u2713 All is well")]
    assert not set(done.stdout) & set("\x1b\x9b\x7f\u202e\r")
    assert verify(fair, tmp_path, "--json").stdout.isascii()
