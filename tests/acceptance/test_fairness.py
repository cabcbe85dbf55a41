"""An honest challenge verifies from its public repository alone; verify names all that it cannot check."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scoring.errors import OrganizerError, ParticipantError
from scoring.randomness import phase_key
from tests.acceptance.fair_challenge import ALWAYS, REVEAL, Fair, others, revealed
from tests.worker.harness.harness import clean_environment, embeddings, git
from worker.fairness import receipts
from worker.fairness.verify import Worth, make_report, verdicts
from worker.fairness.verify.public import opened, read_folder
from worker.fairness.verify.recompute import submission_verdicts
from worker.fairness.verify.report import TRUST

pytestmark = pytest.mark.xdist_group("fairness")
ROOT = Path(__file__).parents[2]


def test_honest_repository_verifies(fair: Fair) -> None:
    """From the public repository and its history alone, every check of an honest challenge passes; only phase eval is not revealed."""
    with opened(str(fair.board)) as repository:
        found = list(verdicts(repository))
        report = make_report(repository, found)
    assert others(found) == [("eval: reveal", Worth.NOT_REVEALED)]
    assert {(verdict.check, verdict.worth) for verdict in found} >= ALWAYS
    assert len(found) >= 15
    assert (
        report.sentence == "Consistent so far: nothing is contradicted, but not everything has been revealed."
    )
    tip = git(fair.board, "rev-parse", "main").strip()
    assert report.heading()[0] == f"Repository: {fair.board}"
    assert report.heading()[1].startswith(f"Branch main, commit {tip[:10]} of 20")


def test_command_needs_nothing_but_public_files(fair: Fair, tmp_path: Path) -> None:
    """The command verifies a plain folder of public files and says that it is one; a forged reveal ends it with status 1."""
    command = [os.fspath(Path(os.sys.executable).with_name("neuco-worker")), "verify"]
    environment = {**clean_environment(), "HOME": str(tmp_path)}
    shown = subprocess.run(
        [*command, str(fair.public)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert (
        shown.stdout.splitlines()[-1]
        == "Consistent so far: nothing is contradicted, but not everything has been revealed."
    )
    assert "  ~ This is a plain folder" in shown.stdout
    shutil.copytree(fair.public, tmp_path / "liar")
    document = json.loads((fair.public / REVEAL).read_text())
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
    said = json.loads(shown.stdout)
    assert (said["verdict"], said["phases"]["dev"]["recomputed"]) == ("contradicted", 0)
    assert next(one["worth"] for one in said["questions"]) == "contradicted"


def test_the_report_answers_five_questions_and_says_once_what_is_trusted(fair: Fair) -> None:
    """Each answer shows what decides it, and the page on fairness has the sentences of what cannot be proved."""
    with opened(str(fair.board)) as repository:
        report = make_report(repository, verdicts(repository))
    assert [answer.worth for answer in report.answers] == [
        Worth.CONSISTENT,
        Worth.NOT_REVEALED,
        Worth.CONSISTENT,
        Worth.CONSISTENT,
        Worth.CONSISTENT,
    ]
    assert len(list(report.lines(verbose=False))) < 40
    assert sum(len(answer.verdicts) for answer in report.answers) == len(report.verdicts)
    page = (ROOT / "docs" / "fairness.md").read_text()
    assert [sentence for sentence in TRUST.values() if sentence not in page] == []


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


@pytest.mark.parametrize("engine", ["default", "pytorch"])
def test_submission_is_recomputed(fair: Fair, tmp_path: Path, engine: str) -> None:
    """A team's file gives the published fold scores with either engine; an unknown file is not checked, and a malformed one is refused."""
    repository = read_folder(fair.public)
    file = tmp_path / "mine.csv"
    file.write_bytes(embeddings(1, shuffled=True))
    found = list(submission_verdicts(repository, file, engine=engine))
    assert [verdict.worth for verdict in found] == [Worth.RECOMPUTED], found
    file.write_bytes(embeddings(9))
    assert [verdict.worth for verdict in submission_verdicts(repository, file, engine=engine)] == [
        Worth.BELIEVED
    ]
    file.write_bytes(b"id,0\nx,1\n")
    with pytest.raises(ParticipantError):
        list(submission_verdicts(repository, file, engine=engine))


def test_private_submission_appears_nowhere(fair: Fair) -> None:
    """The size of a batch does not show the number of its entries, and private submissions are opened only in part."""
    repository = read_folder(fair.public)
    line = json.loads(repository.files[receipts.PATH].splitlines()[0])
    assert len(line["entries"]) == receipts.SMALLEST_BATCH
    document = revealed(repository)
    evalai = fair.harness.evalai
    private = {pk for pk in evalai.journal.posts() if not evalai.submission(pk)["is_public"]}
    assert private
    openings = document["register"]
    assert not private & {one["fields"].get("submission") for one in openings if "fields" in one}
    parts = [one for one in openings if "fields" not in one]
    assert {name for one in parts for name in one["open"]} == {"kind", "phase", "at", "entry"}
    assert len({one["open"]["entry"][0] for one in parts}) == len(private)


def test_revealing_dev_keeps_eval_hidden(fair: Fair) -> None:
    """Nothing of the other phase's tasks or key is published."""
    repository = read_folder(fair.public)
    everything = b"\n".join(repository.files.values())
    secret = bytes.fromhex((fair.harness.folder / "challenge.secret").read_text().strip())
    assert phase_key(secret, "eval").hex().encode() not in everything
    assert not [path for path in repository.files if path.startswith("reveal/eval")]
    assert git(fair.board, "log", "--format=%B", "main").count("alpha") == 0
