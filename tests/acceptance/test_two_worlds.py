"""Nothing about the hidden tasks is visible from outside: the same story looks the same in two worlds.

The worlds differ in the number, names, types and labels of their tasks; everything else is equal. Any visible difference is a leak.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.acceptance.two_worlds import WorldPlay, depend_on_private, in_both
from tests.scoring.inputs.reading_tables import as_npz, as_parquet, zipped
from tests.worker.harness.harness import DIM, IDS, ROWS, embeddings
from worker.state import State

Kind = Callable[[WorldPlay], int]


def matrix(seed: int = 0) -> np.ndarray:
    """Return the values of a good submission."""
    return np.loadtxt(
        io.BytesIO(embeddings(seed)), delimiter=",", skiprows=1, usecols=range(1, DIM + 1), dtype=np.float32
    )


def lines(change: Callable[[list[str]], list[str]]) -> bytes:
    """Return a good file whose lines were changed."""
    return ("\n".join(change(embeddings().decode().splitlines())) + "\n").encode()


def with_columns(names: list[str], values: np.ndarray) -> bytes:
    """Return a table with these columns."""
    rows = (f"{name},{','.join(map(repr, row))}" for name, row in zip(IDS, values.tolist(), strict=True))
    return ("id," + ",".join(names) + "\n" + "\n".join(rows) + "\n").encode()


GOOD: dict[str, bytes] = {
    "plain": embeddings(0),
    "gzip": embeddings(1, packed=True),
    "npz": as_npz(ids=np.array(IDS), embeddings=matrix()),
    "parquet": as_parquet({"id": list(IDS), **{str(column): matrix()[:, column] for column in range(DIM)}}),
    "zip with shuffled rows": zipped(("table.csv", embeddings(0, shuffled=True))),
    "zarr suffix, extra ids and columns, BOM, CRLF": b"\xef\xbb\xbf"
    + lines(
        lambda table: [
            f"{table[0]},note",
            *(row.replace(",", ".zarr.zip,", 1) + ",1" for row in table[1:]),
            "another," + ",".join("1" * (DIM + 1)),
        ]
    ).replace(b"\n", b"\r\n"),
    "huge values": with_columns([str(column) for column in range(DIM)], matrix() * np.float32(1e37)),
}
REFUSED: dict[str, bytes] = {
    "wrong dimension": b"id,0,1\nimg_000,1,2\n",
    "not a number": lines(lambda table: [*table[:3], table[3].rsplit(",", 1)[0] + ",NaN", *table[4:]]),
    "text": lines(lambda table: [*table[:3], table[3].rsplit(",", 1)[0] + ",<b>quercus", *table[4:]]),
    "constant": with_columns([str(column) for column in range(DIM)], np.ones((ROWS, DIM))),
    "cut off": gzip.compress(embeddings(0), mtime=0)[:400],
    "pickled": as_npz(ids=np.array(IDS, dtype=object), embeddings=matrix()),
    "nothing": b"\n \n",
    "ids missing": lines(lambda table: table[:-7]),
    "ids twice": lines(lambda table: [*table, table[5]]),
    "a web page": b"<!doctype html><html><body>Sign in</body></html>\n",
    "endless": lines(lambda table: [*table[:3], table[3].rsplit(",", 1)[0] + ",inf", *table[4:]]),
    "bomb": gzip.compress(b"id,0\n" + b"\n" * 2_000_000, mtime=0),
}


def upload_begun(worker: WorldPlay, team: str) -> int:
    """Begin a large upload, and let the worker find its placeholder."""
    pk = worker.harness.evalai.begin_upload(team, "dev")
    worker.drive(lambda: worker.states().get(pk) == State.UPLOADING)
    return pk


def tell(worker: WorldPlay) -> dict[str, int]:
    """Play the story: every file format, every refusal, and other events around submissions. Return the submissions by name."""
    harness = worker.harness
    sent: dict[str, int] = {}
    worker.drive()
    for number, (name, content) in enumerate(GOOD.items()):
        sent[name] = harness.submit(f"team {number}", content)
        worker.drive()
    for name, content in REFUSED.items():
        sent[name] = harness.submit("refused", content)
    sent["too large"] = harness.submit("refused", b"x" * 300_000)
    sent["private"] = harness.submit("private", embeddings(2), is_public=False)
    sent["cancelled"] = harness.submit("cancelled", embeddings(3))
    harness.evalai.cancel(sent["cancelled"])
    sent["deleted"] = harness.submit("cancelled", embeddings(3))
    harness.evalai.delete(sent["deleted"])
    worker.drive()
    sent["wrong phase"] = harness.submit("wrong", embeddings(4))
    harness.evalai.edit(sent["wrong phase"], phase="eval")
    worker.drive(
        lambda: sent["wrong phase"] in worker.states() and worker.row(sent["wrong phase"]).hold is not None
    )
    sent["baseline"] = harness.submit(
        "host", embeddings(5, noise=9.0), method_name="Baseline random embeddings"
    )
    worker.drive()
    sent["trial"] = harness.submit("cohost", embeddings(6), method_name="a trial")
    worker.drive()
    sent["other phase"] = harness.submit("team 0", embeddings(1), phase="eval")
    worker.drive()
    sent["run again"] = harness.evalai.rerun(sent["gzip"])
    worker.drive()
    for name in ("large upload", "broken off"):
        sent[name] = upload_begun(worker, name)
    harness.evalai.finish_upload(sent["large upload"], embeddings(6))
    harness.evalai.send_again(sent["broken off"])
    worker.drive()
    harness.evalai.send_again(sent["plain"])
    harness.evalai.edit(sent["private"], is_public=True)
    harness.evalai.edit(sent["npz"], status="submitted")  # set back by its team
    worker.drive()
    worker.clock.advance(3600)  # a batch of receipts
    worker.drive()
    return sent


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_story_looks_the_same_over_other_tasks(tmp_path: Path) -> None:
    """Except for the allowed fields, texts, records, execution times, file names, boards and commits are equal in both worlds."""

    def story(worker: WorldPlay) -> dict[str, int]:
        sent = tell(worker)
        assert depend_on_private(worker) == []
        return sent

    found, left, (sent, _) = in_both(tmp_path, story)
    assert "\n".join(found) == ""
    ended = {name: left.submissions[str(pk)]["record"]["status"] for name, pk in sent.items()}
    assert {
        ended[name]
        for name in (*GOOD, "private", "baseline", "trial", "other phase", "run again", "large upload")
    } <= {"finished", "cancelled"}
    assert {ended[name] for name in (*REFUSED, "too large", "broken off")} == {"failed"}
    assert (ended["cancelled"], ended["wrong phase"]) == ("cancelled", "submitted")
    assert len(sent) == 30
    assert len(left.commits) > len(GOOD)
    assert {seen["record"]["execution_time"] for seen in left.submissions.values()} == {
        30,
        "repeated",
        "None",
    }
