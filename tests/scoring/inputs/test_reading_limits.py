"""The memory that reading takes, measured in a separate process, also for files that are made to use more."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scoring.errors import ParticipantError
from scoring.inputs.formats import FORMATS
from scoring.inputs.tables import read_submission
from tests.fuzz.targets import READING_TARGETS
from tests.scoring.inputs.reading_tables import CEILING, DIM, IDS, check_manners, zipped

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[3]
CHILD = """
import json, sys
from pathlib import Path
from scoring.errors import ParticipantError
from scoring.inputs.tables import read_submission
path, count, dim = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ids = [f"id{number:07d}" for number in range(count)]
try:
    verdict = read_submission(path, ids, dim, max_expanded_bytes=2 * 10**9).content_hash
except ParticipantError as error:
    verdict = error.code
status = Path("/proc/self/status").read_text()
peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
print(json.dumps({"verdict": verdict, "peak_bytes": peak, "torch": "torch" in sys.modules}))
"""


def read_in_child(path: Path, count: int, dim: int) -> dict[str, object]:
    """Read a file in a fresh process and return its verdict and peak resident memory."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(count), str(dim)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    result: dict[str, object] = json.loads(done.stdout)
    return result


@pytest.mark.processes
def test_a_file_of_300_megabytes_is_read_within_350(tmp_path: Path) -> None:
    """Peak memory is that of the matrix (54 MB) and of the libraries, not of the file."""
    count, dim = 13_260, 1024
    values = np.random.default_rng(0).standard_normal(dim)
    text = ("," + ",".join(f"{value:.16e}" for value in values) + "\n").encode()
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.write(("id," + ",".join(map(str, range(dim))) + "\n").encode())
        file.writelines(f"id{number:07d}".encode() + text for number in range(count - 1))
        file.write(f"id{count - 1:07d}{',0' * dim}\n".encode())
    size = path.stat().st_size
    result = read_in_child(path, count, dim)
    path.unlink()
    assert size > 300e6
    assert len(str(result["verdict"])) == 64
    assert result["peak_bytes"] < 350e6  # type: ignore[operator]
    assert not result["torch"]


@pytest.mark.processes
def test_an_npz_file_of_150_megabytes_is_read_within_400(tmp_path: Path) -> None:
    """Only the matrix itself is in memory, not the file or another copy."""
    count, dim = 13_260, 2900
    ids = np.array([f"id{number:07d}" for number in range(count)])
    embeddings = np.random.default_rng(0).standard_normal((count, dim), dtype=np.float32)
    np.savez(tmp_path / "big.npz", ids=ids, embeddings=embeddings)
    assert (tmp_path / "big.npz").stat().st_size > 150e6
    result = read_in_child(tmp_path / "big.npz", count, dim)
    (tmp_path / "big.npz").unlink()
    assert len(str(result["verdict"])) == 64
    assert result["peak_bytes"] < 400e6  # type: ignore[operator]


def bomb(path: Path, kind: str) -> None:
    """Write a file of a few megabytes at most whose reading could take hundreds."""
    header = b"id,0,1,2,3\n"
    if kind == "gz":
        piece = b"x,0,0,0,0\n" * 100_000
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(header)
            for _ in range(200):
                file.write(piece)
    elif kind == "zip":
        path.write_bytes(zipped(("table.csv", header + b"x,0,0,0,0\n" * 10_000_000)))
    elif kind == "csv of short lines":
        path.write_bytes(b"id\n" + b"id0000000\n" * 400_000)
    elif kind == "csv of one line":
        path.write_bytes(header + b"id0000000," + b"1" * 100_000_000)
    elif kind == "csv of columns":
        path.write_bytes(b"id," + b",".join(b"%d" % number for number in range(10**6)) + b"\n1\n")
    elif kind == "npz":
        header = b"\x93NUMPY\1\0\x46\0{'descr': '<f8', 'fortran_order': True, 'shape': (900000, 4), }"
        path.write_bytes(
            zipped(("ids.npy", header.ljust(80)), ("embeddings.npy", header.ljust(80) + b"\0" * 100_000_000))
        )
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = 900_000
        name = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["x" * 1_000_000])
        )
        columns = {str(column): pa.array(np.zeros(rows, dtype=np.float32)) for column in range(4)}
        pq.write_table(pa.table({"id": name} | columns), path, compression="zstd")


BOMBS = {
    **dict.fromkeys(("gz", "zip", "csv of one line", "csv of columns", "npz", "parquet"), 4),
    "csv of short lines": 1024,
}
"""The dimension of each."""


def test_every_format_has_a_bomb_and_a_fuzz_target() -> None:
    """An example, too: ``test_reading.py`` draws one of each."""
    keys = {each.suffix[1:] for each in FORMATS}
    assert {kind.partition(" ")[0] for kind in BOMBS} == keys
    assert READING_TARGETS.keys() == keys
    page = (ROOT / "docs/participants.md").read_text()
    assert [each.name for each in FORMATS if each.name not in page] == []


@pytest.mark.processes
@pytest.mark.parametrize(("kind", "dim"), BOMBS.items())
def test_files_made_to_use_much_memory_are_refused(kind: str, dim: int, tmp_path: Path) -> None:
    """Bombs of every form are refused within a few hundred megabytes of memory."""
    path = tmp_path / "bomb"
    bomb(path, kind)
    result = read_in_child(path, 12, dim)
    path.unlink()
    assert "." in str(result["verdict"])
    assert result["peak_bytes"] < 300e6  # type: ignore[operator]


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_the_corpus_gets_the_verdicts_in_its_names(path: Path) -> None:
    """Each file of the corpus gets the verdict in its name."""
    expected = path.name.partition("--")[0]
    try:
        read_submission(path, IDS, DIM, max_expanded_bytes=CEILING)
        verdict = "ok"
    except ParticipantError as error:
        check_manners(error)
        verdict = error.code
    assert verdict == expected
