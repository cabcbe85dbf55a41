"""Task packages in a running challenge, with versions, ceilings and a hierarchy as in Brain-Score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.worker.harness.harness import Harness, embeddings
from worker.cli import guarded
from worker.sandbox import ManualClock
from worker.state import CellRow, State


def cells_of(harness: Harness) -> dict[tuple[str, str, str], CellRow]:
    """Return all cells by content, task and version."""
    store = harness.store()
    with store.read() as tx:
        cells = {(cell.content_hash, cell.task, cell.version): cell for cell in tx.all_cells()}
    store.close()
    return cells


def test_a_version_bump_makes_new_cells_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Turning a label file into a package needs no rescoring; its next version adds scores for that task only and keeps old cells."""

    def typed(*arguments: str, expect: int = 0) -> str:
        """Run a command with the challenge's configuration and return what it prints."""
        capsys.readouterr()
        assert guarded([*arguments, "--phase", "dev", "--config", str(harness.path)]) == expect
        return capsys.readouterr().out

    with Harness(tmp_path, clock=ManualClock()) as harness:
        with harness.worker() as worker:
            pks = [harness.submit("A", embeddings(1)), harness.submit("B", embeddings(2))]
            worker.drive(lambda: all(worker.states().get(pk) == State.PUBLISHED for pk in pks))
        before = cells_of(harness)
        tasks = tmp_path / "tasks" / "dev"
        plain = tasks / "alpha__regr.csv"
        assert guarded(["task", "new", str(tasks / "alpha"), "--labels", str(plain)]) == 0
        plain.unlink()
        assert "dev: nothing to do" in typed("challenge", "apply")

        package = tasks / "alpha" / "task.yaml"
        text = package.read_text().replace("version: 1 ", "version: 2 ")
        text = text.replace("ceiling: null", "ceiling: 0.8").replace('parent: ""', "parent: land")
        package.write_text(text)
        planned = typed("challenge", "apply", expect=1)
        assert "new or changed tasks: 1; dropped tasks: 0; scores to compute: 2, for 2 submissions" in planned
        assert cells_of(harness) == before
        typed("challenge", "apply", "--yes", "--reason", "a test")
        after = cells_of(harness)
        assert {key: after[key] for key in before} == before
        new = after.keys() - before.keys()
        assert {task for _, task, _ in new} == {"alpha"}
        assert {content for content, _, _ in new} == {content for content, _, _ in before}
        assert len(new) == 2

        report = tmp_path / "report"
        typed("board", "report", "--out", str(report))
        document = json.loads((report / "dev.json").read_text())
        assert [group["group"] for group in document["groups"]] == ["", "land"]
        assert list(document["ceiled"]) == ["alpha"]
        means = {new_key[0]: after[new_key].mean for new_key in new}
        assert sorted(cell["score"] for cell in document["ceiled"]["alpha"]) == pytest.approx(
            sorted(means.values())
        )
        assert sorted(cell["ceiled"] for cell in document["ceiled"]["alpha"]) == pytest.approx(
            sorted(mean / 0.8 for mean in means.values())
        )
