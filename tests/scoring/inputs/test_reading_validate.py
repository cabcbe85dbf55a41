"""``neuco-worker validate`` gives the worker's verdict on the participant's machine."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from scoring.errors import NeucoError, ParticipantError
from tests.scoring.inputs.reading_tables import IDS, as_csv, good, refused, table
from worker.participant.commands import app

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an id list, a good and a bad file."""
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    (tmp_path / "good.csv").write_bytes(good())
    (tmp_path / "bad.csv").write_bytes(good().replace(b"s000", b"t000"))
    return tmp_path


def run(*words: str) -> tuple[int, str, NeucoError | None]:
    """Run a command; return exit status, standard output and the error."""
    result = CliRunner().invoke(app, words)
    if isinstance(result.exception, NeucoError):
        return result.exception.exit_code, result.stdout, result.exception
    return result.exit_code, result.stdout, None


def test_a_good_file_gives_exit_status_0(folder: Path) -> None:
    """The output is text or JSON, with the content hash that is the key of scores, and with what would be ignored or corrected."""
    data = as_csv([f"{name}.zarr" for name in IDS], table()) + b"more,1,2,3,4\n"
    (folder / "good.csv").write_bytes(data)
    arguments = (str(folder / "good.csv"), "--ids", str(folder / "ids.txt"), "--dim", "4")
    code, text, _ = run("validate", *arguments)
    assert code == 0
    assert "The file is valid: 12 embeddings with 4 values each." in text
    assert "Note: 1 id that is not in the public list was ignored: " in text
    document = json.loads(run("validate", *arguments, "--json")[1])
    assert f"Content hash: {document['content_hash']}\n" in text
    assert (document["valid"], document["zarr_suffix_removed"], len(document["notes"])) == (True, True, 2)


def test_a_bad_file_gives_exit_status_1_and_the_workers_message(folder: Path) -> None:
    """Verdict and message are those of the reader."""
    arguments = (str(folder / "bad.csv"), "--ids", str(folder / "ids.txt"), "--dim", "4")
    expected = refused((folder / "bad.csv").read_bytes(), folder)
    code, text, error = run("validate", *arguments)
    assert (code, text) == (1, "")
    assert isinstance(error, ParticipantError)
    assert error.message == expected.message
    code, text, _ = run("validate", *arguments, "--json")
    assert code == 1
    assert json.loads(text) == {"valid": False, "code": expected.code, "message": expected.message}


@pytest.mark.parametrize(
    ("inside", "code", "words"),
    [
        (
            ".zgroup",
            "file.arrays",
            "it is a Zarr archive. Load it, and write numpy.savez(file, ids=ids,",
        ),
        (
            "_versions",
            "file.table",
            "it is a Lance dataset. Save the table as CSV or Parquet, with the columns id, 0, 1, 2 and",
        ),
        (
            "part-00000.csv",
            "file.parts",
            'it holds "part-00000.csv". Write the parts into one file: with pandas, concat(parts)',
        ),
        ("readme", "file.kind", "it is a folder. Save it as CSV with the columns id, 0, 1, 2 and so on."),
    ],
)
def test_a_folder_is_refused_like_any_other_file(inside: str, code: str, words: str, folder: Path) -> None:
    """A Zarr archive and the output of Spark are folders on disk; the verdict says which files are accepted, whatever the size limit is."""
    given = folder / "c.zarr"
    given.mkdir()
    (given / inside).write_text("{}")
    arguments = (str(given), "--ids", str(folder / "ids.txt"), "--dim", "4", "--max-megabytes", "0.001")
    status, text, error = run("validate", *arguments)
    assert (status, text) == (1, "")
    assert isinstance(error, ParticipantError)
    assert f": {words}" in error.message
    assert json.loads(run("validate", *arguments, "--json")[1])["code"] == code


def test_a_file_beyond_the_download_cap_is_refused(folder: Path) -> None:
    """A file that the worker would not download is refused here, too."""
    arguments = (str(folder / "good.csv"), "--ids", str(folder / "ids.txt"), "--dim", "4", "--max-megabytes")
    assert [run("validate", *arguments, limit)[0] for limit in ("0.002", "0.001")] == [0, 1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("none.csv", "--ids", "ids.txt", "--dim", "4"),
        ("good.csv", "--ids", "none.txt", "--dim", "4"),
        ("good.csv", "--ids", "ids.txt", "--dim", "0"),
        ("good.csv", "--ids", "ids.txt"),
        ("good.csv", "--dim", "4"),
    ],
)
def test_wrong_usage_gives_exit_status_2(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file, list or dimension is not a verdict on the submission."""
    monkeypatch.chdir(folder)
    assert run("validate", *arguments)[0] == 2


@pytest.mark.processes
def test_the_example_for_participants_writes_valid_files(folder: Path) -> None:
    """Both files of the example are accepted, and are the same submission."""
    script = ROOT / "config" / "participant" / "write_submission.py"
    subprocess.run(
        [
            sys.executable,
            str(script),
            "--ids",
            str(folder / "ids.txt"),
            "--dim",
            "4",
            "--folder",
            str(folder),
        ],
        check=True,
    )
    hashes = set()
    for name in ("submission.csv", "submission.parquet"):
        code, text, _ = run(
            "validate", str(folder / name), "--ids", str(folder / "ids.txt"), "--dim", "4", "--json"
        )
        assert code == 0
        hashes.add(json.loads(text)["content_hash"])
    assert len(hashes) == 1


READ = """
import sys
from pathlib import Path
from scoring.inputs.identifiers import read_ids
from scoring.inputs.tables import read_submission
folder = Path(sys.argv[1])
read_submission(folder / "good.csv", read_ids(folder / "ids.txt"), 4, max_expanded_bytes=10**6)
print(*sys.modules)
"""


@pytest.mark.processes
def test_a_participants_tool_loads_only_the_readers(folder: Path) -> None:
    """A small file needs numpy; nothing needs a training kernel, PyTorch or the worker."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=True
    )
    heavy = {
        "scoring.kernel.train",
        "scoring.tasks.tasks",
        "torch",
        "pandas",
        "worker",
        "numba",
        "pyarrow",
    }
    assert not heavy & set(done.stdout.split())


LIMITED = """
import resource, sys
import pyarrow.parquet, scoring.inputs.tables, scoring.inputs.parquet
from worker.participant.commands import app, main
from worker.participant.process import run
stack, room = int(sys.argv.pop(1)), int(sys.argv.pop(1))
if not stack:  # Arrow starts its threads
    assert run(app, ["validate", "small.parquet", "--ids", "two.txt", "--dim", "1024"]) == 0
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room,) * 2)
main()
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("stack", "room", "words"),
    [
        (0, 10_000_000, "This needs more memory than it may use."),
        (4 << 30, 1 << 30, "This machine starts no further thread."),  # since its stack does not fit
    ],
)
def test_a_limit_of_the_machine_does_not_refuse_a_file(
    tmp_path: Path, stack: int, room: int, words: str
) -> None:
    """Nothing is known of a good Parquet file that cannot be read here: exit status 2, and no word about damage."""
    matrix = np.random.default_rng(1).random((4_000, 1024), np.float32)
    for name, rows, ids in (("small", 2, "two"), ("large", len(matrix), "all")):
        columns = {"id": [f"s{row}" for row in range(rows)], "embedding": list(matrix[:rows])}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        (tmp_path / f"{ids}.txt").write_text("\n".join(columns["id"]))
    limits = [str(stack), str(room)]
    command = subprocess.run(
        [
            sys.executable,
            "-c",
            LIMITED,
            *limits,
            "validate",
            "large.parquet",
            "--ids",
            "all.txt",
            "--dim",
            "1024",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_STACK, (stack, resource.RLIM_INFINITY))
        if stack
        else None,
    )
    assert command.returncode == 2, command
    assert command.stderr.startswith(f"neuco-check: {words}\n")
