"""The private report compares the teams' stored files."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import Harness, embeddings
from worker.runtime.storage import FileStore


def noisy(share: float) -> bytes:
    """Return the good file with a little noise on every value."""
    head, *rows = embeddings().decode().splitlines()
    cells = [row.split(",") for row in rows]
    changed = [
        ",".join(
            [
                name,
                *(
                    f"{float(value) + share * ((row * 7 + place * 3) % 5 - 2):.6g}"
                    for place, value in enumerate(values)
                ),
            ]
        )
        for row, (name, *values) in enumerate(cells)
    ]
    return ("\n".join([head, *changed]) + "\n").encode()


def test_a_noisy_copy_is_named(tmp_path: Path, fork_server: ForkServer) -> None:
    """A second account's copy is found; a missing file is not compared; the comparison leaves nothing behind."""
    with Harness(tmp_path, fork_server=fork_server) as harness:
        first = harness.submit("A")
        second = harness.submit("B", noisy(0.02))
        third = harness.submit("C", embeddings(7, noise=2.0))
        assert harness.once().returncode == 0

        def report() -> dict[str, object]:
            done = harness.command("board", "report", "--phase", "dev", "--out", str(tmp_path / "out"))
            assert done.returncode == 0, done.stderr
            document: dict[str, object] = json.loads((tmp_path / "out" / "dev.json").read_text())
            return document

        found = report()
        assert found["compared"] == 3
        [copy] = found["near_copies"]  # type: ignore[misc]
        assert [sent["submission"] for sent in copy["submissions"]] == [first, second]
        assert harness.leftovers == []
        with closing(harness.store()) as store, store.read() as tx:
            row = tx.get(third)
        assert row is not None
        assert row.file_hash is not None
        FileStore(harness.state).remove(row.file_hash)
        assert report()["compared"] == 2
