"""The figure agrees with the boards, stays readable with any number of entries and updates, and is well-formed SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unicodedata import east_asian_width

import pytest

from leaderboard.rendering import render
from leaderboard.rendering.charts import (
    COLUMNS,
    LABEL,
    LANES,
    Evolution,
    evolution,
    evolution_figures,
)
from leaderboard.rendering.rows import public_rows
from leaderboard.snapshot import MoveKind, PhaseSite, Site
from tests.leaderboard.harness.site_fixtures import (
    board,
    embed2scale_site,
    moving_site,
    phase_site,
    simple_site,
    standing,
)
from tests.leaderboard.rendering.test_names import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


def drawn(phase: PhaseSite) -> Evolution:
    """Return the bump chart of a phase."""
    return evolution(phase.history, public_rows(phase.history[-1], phase.rules.rounding))


def moves(path: str) -> int:
    """Return how many curves a path has."""
    return path.count("c")


def test_moves_are_drawn_by_kind() -> None:
    """An own move is drawn as own, a passive one as passive, and a submission without a move as a dot."""
    first = board(
        [standing(1, "A", team_key=1, submission=1), standing(2, "B", team_key=2, submission=2)],
        triggers=(1, 2),
    )
    rows = [
        standing(1, "B", team_key=2, submission=3, move=1, move_kind=MoveKind.OWN),
        standing(2, "A", team_key=1, submission=1, move=-1, move_kind=MoveKind.PASSIVE),
    ]
    chart = drawn(phase_site(first, board(rows, sequence=2, triggers=(3,))))
    assert [
        (lane.row.team, moves(lane.own), moves(lane.passive), lane.dots.count("M")) for lane in chart.lanes
    ] == [
        ("B", 1, 0, 2),
        ("A", 0, 1, 1),
    ]


@pytest.mark.parametrize("updates", [1, 2, COLUMNS - 1, COLUMNS, COLUMNS + 1, 3 * COLUMNS + 7])
def test_long_histories_are_thinned(updates: int) -> None:
    """At most ``COLUMNS`` boards are drawn, including the newest, inside the figure."""
    phase = moving_site(updates).phases[0]
    chart = drawn(phase)
    assert chart.updates == updates
    assert [lane.row.team for lane in chart.lanes] == [row.team for row in phase.history[-1].standings]
    xs = {
        int(x)
        for lane in chart.lanes
        for x in re.findall(r"M(\d+) ", lane.dots + lane.own + lane.passive + lane.run)
    }
    assert len(xs) <= COLUMNS
    assert max(xs) <= chart.right
    assert all(0 < lane.y < chart.height for lane in chart.lanes)


def test_many_entries() -> None:
    """Only the first of 1,000 entries are drawn, and the figure says so; its text in README.md claims no more."""
    rows = [standing(rank, q_mean=-0.001 * rank) for rank in range(1, 1001)]
    phase = phase_site(board(rows), board(rows[::-1], sequence=2), board(rows, sequence=3))
    chart = drawn(phase)
    assert (len(chart.lanes), chart.total) == (LANES, 1000)
    assert f"the first {LANES} of 1000 entries" in chart.summary
    assert chart.height < 700
    readme = render(Site(title="T", phases=(phase,)), readme=None)["README.md"].decode()
    assert 'alt="Ranks after each update of the board"' in readme


def test_the_text_of_a_figure_names_what_it_draws() -> None:
    """Entries without a rank have a line too: a board may have no others, as before the first team's submission."""
    rows = [standing(1, "Mean", baseline=True), standing(2, "B", eligible=False, apart=True)]
    assert drawn(phase_site(board(rows))).summary.endswith("Newest order: – Mean, (2) B.")


def test_figures_are_well_formed() -> None:
    """With hostile names the SVG is still well-formed and has no external reference; light and dark differ only in colors."""
    for phase in (*embed2scale_site().phases, simple_site(HOSTILE).phases[0]):
        light, dark = evolution_figures(phase.codename, drawn(phase))
        assert re.sub(rb"#[0-9a-f]{6}", b"", light) == re.sub(rb"#[0-9a-f]{6}", b"", dark)
        assert light != dark
        root = ET.fromstring(light)
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags == {"svg", "title", "desc", "style", "path", "text", "g"}
        assert b"href" not in light
        assert b"url(" not in light
        names = [team for team in root.iter(f"{SVG}g") if team.find(f"{SVG}text[@class='rank']") is not None]
        for team, lane in zip(names, drawn(phase).lanes, strict=True):
            _, *lines = team.iterfind(f"{SVG}text")
            assert "".join(line.text or "" for line in lines).replace(" ", "") == lane.row.team.replace(
                " ", ""
            )
            for line in lines:
                breadth = sum(20 if east_asian_width(char) in "WF" else 10 for char in line.text or "")
                assert breadth <= LABEL or line.get("textLength")


@pytest.mark.parametrize(
    ("name", "lines"), [("dAADBdCAdDDcEDcdaab", 1), ("-EeCdedADBccDdaB ECE", 1), ("ABCDEFGHIJ abcdefghij", 2)]
)
def test_a_name_that_just_fits_has_one_line(name: str, lines: int) -> None:
    """In every version of Python, although the sum of such floats depends on it; another machine renders the same bytes."""
    (lane,) = drawn(phase_site(board([standing(1, name)]))).lanes
    assert len(lane.lines) == lines


@pytest.mark.parametrize(
    ("hours", "labels"),
    [
        ((0, 1, 2), ["2 Mar 10:00", "2 Mar 12:00"]),
        ((0, 20), ["2 Mar", "3 Mar"]),
        ((0,), ["2 Mar 10:00"]),
    ],
)
def test_the_time_axis_has_two_ends(hours: tuple[int, ...], labels: list[str]) -> None:
    """Within one day, they have hours."""
    boards = [
        replace(
            board([standing(1)], sequence=number),
            made_at=datetime(2026, 3, 2, 10, tzinfo=UTC) + timedelta(hours=hour),
        )
        for number, hour in enumerate(hours, 1)
    ]
    assert [label for _, label in drawn(phase_site(*boards)).ticks] == labels
