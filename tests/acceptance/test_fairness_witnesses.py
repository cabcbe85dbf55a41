"""A participant's receipt is checked against the repository and shows the submission's place on the final board, or why it has none."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.fair_challenge import FILES, REVEAL, Fair, changed, lies, to
from tests.worker.harness.harness import clean_environment, embeddings
from worker.fairness import receipts
from worker.fairness.verify import Worth, entry_of, receipt_verdicts
from worker.fairness.verify.public import PublicRepository, read_folder
from worker.fairness.verify.recompute import submission_verdicts

pytestmark = pytest.mark.xdist_group("fairness")


def stdout(fair: Fair, name: str) -> dict[str, Any]:
    """Return the result that EvalAI showed for a submission."""
    return fair.harness.stdout(fair.submissions[name])


def said(repository: PublicRepository, told: dict[str, Any]) -> tuple[Worth, str]:
    """Return the last verdict on a receipt, which says whether its submission counts."""
    *_, last = receipt_verdicts(repository, told["receipt"], told["q_mean"])
    return last.worth, last.sentence


def test_participants_are_witnesses(fair: Fair) -> None:
    """A participant's receipt agrees with the true repository and contradicts a rewritten one; an altered receipt proves nothing."""
    repository = read_folder(fair.public)
    told = stdout(fair, "A")
    receipt, q_mean = told["receipt"], told["q_mean"]
    honest = list(receipt_verdicts(repository, receipt, q_mean))
    assert {verdict.worth for verdict in honest} == {Worth.CONSISTENT}
    assert honest[0].sentence == "Your receipt carries the challenge's signature."
    rewritten = changed(repository, "commitment.json", to(0, "commitment", value="55" * 32))
    shorter = changed(repository, receipts.PATH, lambda lines: lines[:-1])
    assert Worth.CONTRADICTED in {verdict.worth for verdict in receipt_verdicts(rewritten, receipt, q_mean)}
    assert "dev: register" in lies(shorter)
    for altered, told_q in (({**receipt, "q_mean": 99.0}, 99.0), (receipt, q_mean + 0.01)):
        (verdict,) = receipt_verdicts(repository, altered, told_q)
        assert (verdict.worth, "proves nothing" in verdict.sentence) == (Worth.BELIEVED, True)


def test_receipt_and_file_of_different_entries_are_told_apart(fair: Fair, tmp_path: Path) -> None:
    """A receipt and a file of different submissions are reported as not belonging together, not as a lie."""
    repository = read_folder(fair.public)
    entry = entry_of(repository, stdout(fair, "B")["receipt"])
    assert entry is not None
    file = tmp_path / "mine.csv"
    for content, words in (
        (FILES["A"], "it has the content of submission"),
        (embeddings(9), "no published entry has its content"),
    ):
        file.write_bytes(content)
        first, *_ = submission_verdicts(repository, file, engine="default", scored=[entry])
        assert (first.worth, words in first.sentence) == (Worth.BELIEVED, True)
        assert "do not belong together" in first.sentence
    file.write_bytes(FILES["B"])
    (only,) = submission_verdicts(repository, file, engine="default", scored=[entry])
    assert (only.worth, only.submissions) == (Worth.RECOMPUTED, (entry.submission,))


def verify(fair: Fair, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``neuco-worker verify`` as a user does."""
    command = [os.fspath(Path(os.sys.executable).with_name("neuco-worker")), "verify"]
    environment = {
        **clean_environment(),
        "HOME": str(folder),
        "NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"],
    }
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )


def test_command_takes_several_receipts_and_files(fair: Fair, tmp_path: Path) -> None:
    """Each receipt and file gets its own verdict, and recomputed submissions are counted."""
    for name, submission in (("a.stdout", "A at last"), ("b.stdout", "B")):
        (tmp_path / name).write_text(json.dumps(stdout(fair, submission)))
    (tmp_path / "a.csv").write_bytes(FILES["A at last"])
    (tmp_path / "b.csv").write_bytes(embeddings(2, noise=1.0))
    options = [
        "--receipt",
        "a.stdout",
        "--receipt",
        "b.stdout",
        "--submission",
        "a.csv",
        "--submission",
        "b.csv",
    ]
    done = verify(fair, tmp_path, str(fair.board), *options, "--against", str(fair.board), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["verdict"] == "consistent"
    assert document["phases"]["dev"] == {"revealed": True, "entries": 5, "recomputed": 3}
    checks = [one["check"] for one in document["verdicts"]]
    for check in ("your receipt a.stdout", "your receipt b.stdout", "your submission b.csv", "older clone"):
        assert check in checks
    assert sum("counts on the final board at rank" in one["sentence"] for one in document["verdicts"]) == 2


def test_command_refuses_folders_and_files_without_a_receipt(fair: Fair, tmp_path: Path) -> None:
    """The command prints a sentence and exits with 2, without a traceback."""
    (tmp_path / "no.stdout").write_text('{"receipt": 1}')
    for arguments, words in (
        (("--receipt", str(tmp_path)), "is a directory"),
        (("--submission", str(tmp_path)), "is a directory"),
        (("--submission", str(tmp_path / "gone.csv")), "does not exist"),
        (("--receipt", str(tmp_path / "no.stdout")), "does not contain a receipt"),
        (("--against", str(tmp_path / "gone")), "is not a repository that can be read"),
    ):
        done = verify(fair, tmp_path, str(fair.public), *arguments)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr


def test_a_terminal_shows_progress(fair: Fair, tmp_path: Path) -> None:
    """The current step and the number of computed folds appear on stderr; stdout holds only the result."""
    (tmp_path / "a.csv").write_bytes(FILES["A at last"])
    command = [os.fspath(Path(os.sys.executable).with_name("neuco-worker")), "verify"]
    ours, theirs = os.openpty()
    environment = {**clean_environment(TERM="xterm"), "NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"]}
    arguments = (str(fair.public), "--submission", str(tmp_path / "a.csv"))
    with (tmp_path / "stdout").open("w") as out:
        process = subprocess.Popen([*command, *arguments], stdout=out, stderr=theirs, env=environment)
    os.close(theirs)
    seen = ""
    with contextlib.suppress(OSError):  # raised when the process has closed its end
        while piece := os.read(ours, 65536):
            seen += piece.decode(errors="replace")
    os.close(ours)
    assert process.wait(timeout=60) == 0
    told = (tmp_path / "stdout").read_text()
    assert "Checking what was published" in seen
    assert "Recomputing a.csv" in seen
    assert "12 of 12" in seen
    assert "All 3 x 4 fold scores were recomputed" in told
    assert "\x1b" not in told


def test_untrusted_text_cannot_move_the_cursor(fair: Fair, tmp_path: Path) -> None:
    """Control characters, text direction marks and line breaks in published text never reach the terminal."""
    repository = read_folder(fair.public)
    hostile = "\x1b[2J\x9b1m\u202e\n  \u2713 All is well\x7f"
    hurt = changed(repository, "commitment.json", to(0, "made_at", value=hostile))
    hurt = changed(hurt, "commitment.json", to(0, "phases", "d\x1b[31mev\n", value={}))
    hurt = changed(hurt, REVEAL, to("register", 0, "fields", "at", value=hostile))
    folder = tmp_path / "hurt"
    for path, content in hurt.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    done = verify(fair, tmp_path, str(folder), "-v")
    assert done.returncode == 1
    assert "All is well" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.strip().startswith("\u2713 All is well")]
    assert not set(done.stdout) & set("\x1b\x9b\x7f\u202e\r")
    done = verify(fair, tmp_path, str(folder), "--json")
    assert done.stdout.isascii()
