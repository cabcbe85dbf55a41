"""Untrusted text reaches the organizer's terminal only as text, in every command that quotes it."""

from __future__ import annotations

import io
import json

import pytest
from rich.table import Table
from rich.text import Text

from tests.worker.harness.harness import Harness, StepWorker
from worker.cli.terminal import Console, table_of

HOSTILE = "Ada:x:\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066\x7f\rB"
OBEYED = set("\x1b\x9b\x07\x7f\r\u202e\u2066")


def test_a_console_shows_text_without_any_effect() -> None:
    """This holds for lines, styled text and cells of tables; the program's own styles still work."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=120)
    table = Table()
    table.add_column("Team")
    table.add_row(HOSTILE)
    for text in (HOSTILE, Text(HOSTILE, style="red"), table):
        console.print(text, markup=False)
    shown = out.getvalue()
    assert shown.count("Ada:x:") == 3  # no emoji, because it may be part of a path
    assert not set(shown) & (OBEYED - {"\x1b"})
    assert "\x1b[31m" in shown
    assert not [piece for piece in shown.split("\x1b")[1:] if not piece.startswith("[")]
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize("width", [80, 10])
def test_no_number_of_a_table_is_cut_off_in_a_narrow_terminal(width: int) -> None:
    """Four runs with intervals fit 80 columns, the fewest: intervals and texts take several lines."""
    out = io.StringIO()
    columns = {"Task": ["canopy-height"], "A": ["12.345"]}
    for letter in "BCD":
        columns |= {letter: ["22.123"], f"{letter} − A": ["+9.778 [+9.100, +10.200] *"]}
    Console(file=out, width=width).print(table_of(columns, "Q"))
    cells = zip(
        *(line.split("│")[1:-1] for line in out.getvalue().splitlines() if line.startswith("│")), strict=True
    )
    assert ["".join("".join(cell).split()) for cell in cells] == [
        cell.replace(" ", "") for (cell,) in columns.values()
    ]


@pytest.mark.processes
def test_commands_show_untrusted_text_without_any_effect(harness: Harness, worker: StepWorker) -> None:
    """For example a team's name in the list of submissions and the awards, or a server's text in the status."""
    harness.submit(HOSTILE)
    worker.drive()
    with worker.store.write() as tx:
        tx.raise_alert("odd", "unexpected", f"The server said: {HOSTILE}", now=worker.clock.now())
    worker.stop()
    try:
        for command in (
            ("status",),
            ("status", "--json"),
            ("submissions",),
            ("board", "show", "--awards"),
        ):
            done = harness.command(*command)
            assert done.returncode == 0, done.stderr
            assert "Ada" in done.stdout
            assert not set(done.stdout + done.stderr) & OBEYED, command
        fingerprint = json.loads(harness.command("status", "--json").stdout)["fingerprint"]
        assert fingerprint in "".join(harness.command("status", COLUMNS="80").stdout.split())
    finally:
        worker.start()
