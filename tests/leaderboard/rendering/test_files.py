"""The published files are a pure function of the site, equal to the byte, and reveal nothing hidden."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import timedelta

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from leaderboard.ranking.board import from_json, to_json
from leaderboard.rendering.assets import schemas
from leaderboard.rendering.documents import MODELS, PhaseDocument, schema
from leaderboard.rendering.files import CSV_COLUMNS, render
from leaderboard.rendering.names import display_name
from leaderboard.rendering.page import UPDATES
from leaderboard.rendering.rows import minute, public_rows
from leaderboard.rules import PhaseRules, Rounding, Selection
from leaderboard.snapshot import Decision, DecisionKind, MoveKind, Site
from tests.leaderboard.harness.phases import entry
from tests.leaderboard.harness.played import PlayedPhase
from tests.leaderboard.harness.revealed import revealed_site
from tests.leaderboard.harness.site_fixtures import (
    START,
    board,
    embed2scale_site,
    moving_site,
    phase_site,
    simple_site,
    standing,
)
from tests.leaderboard.rendering.test_names import HOSTILE, names, read_html

BEGIN, END = "<!-- neuco-worker:begin -->", "<!-- neuco-worker:end -->"
PUBLIC = (
    ".gitattributes",
    "README.md",
    "index.html",
    "leaderboard/dev-evolution-dark.svg",
    "leaderboard/dev-evolution-light.svg",
    "leaderboard/dev.csv",
    "leaderboard/dev.json",
    "leaderboard/history.jsonl",
    "leaderboard/schema/history-v1.json",
    "leaderboard/schema/phase-v1.json",
)


def table(readme: bytes, number: int = 0) -> list[list[str]]:
    """Return the cells of a README's table as GitHub would show them."""
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(readme.decode())
    rendered = re.findall(r"<table>.*?</table>", html, re.DOTALL)[number]
    return [
        ["".join(read_html(cell).text) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>(.*?)</tr>", rendered, re.DOTALL)
    ]


def world(tasks: int) -> PlayedPhase:
    """Return a phase with this many hidden tasks, three teams and a baseline."""
    phase = PlayedPhase([f"secret_task_{number}" for number in range(tasks)])
    for step in range(8):
        team, at = step % 4, START + timedelta(hours=5 * step)
        level = 0.2 + 0.1 * team + 0.01 * step
        scores = {
            task: [level + 0.002 * ((fold * 7 + place) % 5) for fold in range(6)]
            for place, task in enumerate(phase.snapshot.row_sets)
        }
        phase.receive(entry(4000 + step, team, scores, submitted_at=at, baseline=team == 3))
        phase.make_board(at + timedelta(minutes=3))
    return phase


def test_files_of_a_site() -> None:
    """Every phase has its table, data and figures, next to the common files."""
    assert tuple(render(simple_site(), readme=None)) == PUBLIC


def test_the_readme_table_shows_the_board() -> None:
    """The README's table has rank, movement, team, mean Q and the last submission; a team's notes follow its name."""
    rows = [
        standing(1, "Alpha", rank_by_mean=2, q_mean=14.8742, move=1, move_kind=MoveKind.PASSIVE),
        standing(2, "Beta", rank_by_mean=1, q_mean=15.2249, move=-1, move_kind=MoveKind.OWN),
        standing(3, "Mean baseline", q_mean=-0.78351, baseline=True),
        standing(3, "Late", eligible=False, apart=True, move_kind=MoveKind.NEW, team_key=9),
        standing(3, "Gamma", q_mean=-0.00004, team_key=10),
    ]
    site = Site(title="T", phases=(phase_site(board(rows)),))
    cells = table(render(site, readme=None)["README.md"])
    assert cells[0] == ["Rank", "Movement", "Team", "Mean Q", "Last submission"]
    assert [row[:4] for row in cells[1:]] == [
        ["1", "▲ 1 passive", "Alpha", "14.874"],
        ["2", "▼ 1 own", "Beta", "15.225"],
        ["–", "–", "Mean baseline (baseline, unreliable: mean Q below zero)", "-0.784"],
        ["(3)", "new", "Late (out of competition)", "20.250"],
        ["3", "–", "Gamma", "0.000"],
    ]
    assert cells[1][4:] == ["2026-03-02 08:00 UTC"]


@pytest.mark.parametrize(
    ("existing", "before", "after"),
    [
        (b"# Mine\r\n\r\nText.\r\n", b"# Mine\r\n\r\nText.\r\n", b""),
        (b"no newline", b"no newline", b""),
        (f"top\n{BEGIN}\nold\n{END}\nbottom".encode(), b"top\n", b"\nbottom"),
        (
            f"\xff\xfe top\n  {BEGIN}  \nold\n{END}\t\n\nbottom \xe9\n".encode("latin-1"),
            b"\xff\xfe top\n",
            b"\n\nbottom \xe9\n",
        ),
        (
            f"{BEGIN}\nnot closed\n{BEGIN}\nold\n{END}\nend\n".encode(),
            f"{BEGIN}\nnot closed\n".encode(),
            b"\nend\n",
        ),
        (f"Write `{BEGIN}` inline.\n".encode(), f"Write `{BEGIN}` inline.\n".encode(), b""),
        (f"{END}\nwrong way\n{BEGIN}\n".encode(), f"{END}\nwrong way\n{BEGIN}\n".encode(), b""),
        (f"a\r\n{BEGIN}\r\nold\r\n{END}\r\nb\r\n".encode(), b"a\r\n", b"\r\nb\r\n"),
    ],
)
def test_readme_keeps_the_text_of_others(existing: bytes, before: bytes, after: bytes) -> None:
    """Every byte outside our block stays, whatever encoding and line ends it has, and a second run changes nothing."""
    readme = render(simple_site(), readme=existing)["README.md"]
    assert readme.startswith(before)
    assert readme.endswith(after)
    assert len(table(readme.decode("latin-1").replace("\r\n", "\n").encode())) == 5
    assert b"\nold\n" not in readme
    assert render(simple_site(), readme=readme)["README.md"] == readme


@given(st.binary(max_size=200))
def test_rendering_the_readme_again_changes_nothing(existing: bytes) -> None:
    """A second rendering of any README changes nothing."""
    readme = render(simple_site(), readme=existing)["README.md"]
    assert render(simple_site(), readme=readme)["README.md"] == readme
    assert existing.strip() == b"" or readme.startswith(existing)


@settings(max_examples=40, deadline=None)
@given(st.lists(names, min_size=1, max_size=5))
def test_hostile_names_are_the_same_in_all_files(teams: list[str]) -> None:
    """README, CSV, JSON, history, page and figure all show the same name for the same row, in the same table."""
    site = simple_site(teams)
    files = render(site, readme=None)
    shown = [entry["team"] for entry in json.loads(files["leaderboard/dev.json"])["entries"]]
    assert [display_name(team) for team in teams][:1] == shown[:1]
    assert len(set(shown)) == len(teams)
    assert [row[2] for row in table(files["README.md"])[1:]] == shown
    assert files["README.md"].decode().count(END) == 1
    lines = list(csv.DictReader(io.StringIO(files["leaderboard/dev.csv"].decode(), newline="")))
    pieces = (line["team"].split(";") for line in lines)
    assert [";".join(piece.removeprefix("'") for piece in line) for line in pieces] == shown
    (line,) = files["leaderboard/history.jsonl"].splitlines()
    assert [row["team"] for row in json.loads(line)["changed"]] == shown
    page = files["index.html"].decode()
    body = page.split("<tbody>", 1)[1].split("</tbody>", 1)[0]
    assert ["".join(read_html(name).text) for name in re.findall(r"<bdi>(.*?)</bdi>", body)] == shown
    assert read_html(page).tags.count("script") == 1
    figure = files["leaderboard/dev-evolution-light.svg"].decode()
    assert sorted(
        "".join(read_html(t).text) for t in re.findall(r"<g[^>]*><title>(.*?)</title>", figure)
    ) == sorted(f"{rank} {team}" for rank, team in enumerate(shown, 1))


def test_the_schemas_are_those_of_the_models() -> None:
    """The schemas that are published describe the models; `python docs/reference.py` writes them again."""
    assert schemas() == {name: schema(model) for name, model in MODELS.items()}


@pytest.mark.parametrize(
    "site",
    [moving_site(), simple_site(HOSTILE), world(5).revealed_site("T")],
    ids=["moving", "hostile", "revealed"],
)
def test_json_follows_its_schema(site: Site) -> None:
    """Every phase's JSON and every line of the history validate against the schemas that are published with them."""
    files = render(site, readme=None)
    validators = {}
    for name in MODELS:
        described = json.loads(files[f"leaderboard/schema/{name}"])
        jsonschema.Draft202012Validator.check_schema(described)
        validators[name] = jsonschema.Draft202012Validator(described)
    for phase in site.phases:
        content = files[f"leaderboard/{phase.codename}.json"]
        validators["phase-v1.json"].validate(json.loads(content))
        assert PhaseDocument.model_validate_json(content).file_text().encode() == content
    for line in files["leaderboard/history.jsonl"].splitlines():
        validators["history-v1.json"].validate(json.loads(line))


def test_the_csv_shows_the_board() -> None:
    """The CSV has one typed line per row."""
    first, *_ = csv.DictReader(
        io.StringIO(render(moving_site(), readme=None)["leaderboard/dev.csv"].decode())
    )
    assert tuple(first) == CSV_COLUMNS
    assert (first["position"], first["rank"], first["baseline"], first["eligible"]) == (
        "1",
        "1",
        "false",
        "true",
    )
    assert float(first["q_mean"]) > 0


def test_history_replays_every_board() -> None:
    """Applying the lines in order, by the number of a row, gives the ranks, moves and scores of every board of 2025."""
    site = embed2scale_site()
    rows: dict[tuple[str, int], dict[str, object]] = {}
    seen = {(phase.codename, made.sequence): made for phase in site.phases for made in phase.history}
    lines = render(site, readme=None)["leaderboard/history.jsonl"].splitlines()
    assert len(lines) == len(seen) > 80
    for text in lines:
        line = json.loads(text)
        phase = line["phase"]
        rows |= {(phase, row["row"]): row for row in line["changed"]}
        shown = [(rows[phase, number]["team"], rows[phase, number]["q_mean"]) for number in line["order"]]
        standings = seen[phase, line["sequence"]].standings
        assert shown == [(row.team, round(row.q_mean, 3)) for row in standings]
        assert line["rank"] == [row.rank if row.numbered else None for row in standings]
        assert line["move"] == [row.move for row in standings]


def test_decisions_are_told_with_their_effect_and_move_entries() -> None:
    """README.md, page and JSON tell what was decided, when, why and with what effect; a moved row names all causes in their order."""
    first = board([standing(rank, name, team_key=rank) for rank, name in enumerate("ABCD", 1)], sequence=1)
    rows = [
        standing(1, "C", team_key=3, submission=1009, move=2, move_kind=MoveKind.OWN),
        standing(2, "B", team_key=2),
        standing(3, "D", team_key=4, move=1, move_kind=MoveKind.PASSIVE, submission=1004),
    ]
    second = board(rows, sequence=2, triggers=(1009,))
    between = START + timedelta(hours=1, minutes=30)

    def decided(kind: DecisionKind, text: str, reason: str = "", **facts: object) -> Decision:
        return Decision(at=between, kind=kind, text=text, reason=reason, **facts)  # type: ignore[arg-type]

    decisions = (
        decided(DecisionKind.ENTRY, "submission 1001 of A was disqualified", "a copy", submission=1001),
        decided(
            DecisionKind.RESCORE, "the tasks changed, and all submissions were scored again", "a wrong label"
        ),
        decided(DecisionKind.OTHER, "team E is now called F"),
        decided(DecisionKind.ENTRY, "submission 7 of <b>|X was disqualified", submission=7),
    )
    phase = phase_site(first, second, decisions=decisions, only_if_shown=frozenset({7, 1001}))
    files = render(Site(title="T", phases=(phase,)), readme=None)
    document = json.loads(files["leaderboard/dev.json"])
    effect = "On the next board, these ranks changed: “A” from 1 to none, “C” from 3 to 1, “D” from 4 to 3."
    assert [
        (decision["text"], decision["board"], decision["effect"]) for decision in document["decisions"]
    ] == [
        ("submission 1001 of A was disqualified", 2, effect),
        ("the tasks changed, and all submissions were scored again", 2, effect),
        ("team E is now called F", None, ""),
    ]
    causes = "the tasks changed, and all submissions were scored again (a wrong label); submission 1001 of A was disqualified (a copy)."
    assert [row["why"] for row in document["entries"]] == [
        f"3 → 1: another submission of its own counts; {causes}",
        "",
        f"4 → 3: newly counted: a submission of “C”; {causes}",
    ]
    html = MarkdownIt("commonmark").enable("table").render(files["README.md"].decode())
    text = "".join(read_html(html).text)
    page = " ".join("".join(read_html(files["index.html"].decode()).text).split())
    for words in (
        f"2026-03-02 10:30 UTC: Submission 1001 of A was disqualified (a copy). {effect}",
        "2026-03-02 10:30 UTC: Team E is now called F.",
    ):
        assert words in text
        assert words.partition(": ")[2] in page
    assert "<b>|X" not in text + page
    assert f"Newly counted: a submission of “C”; {causes}" in page


def test_the_page_tells_what_has_counted_and_who_moved() -> None:
    """The newest submission comes first, a baseline has no rank, and of many moves twelve are told, with the number of the others."""
    facts = [{"team_key": rank, "baseline": rank == 2} for rank in range(1, 16)]
    first = [standing(rank, f"T{rank}", **its) for rank, its in enumerate(facts, 1)]
    moved = [
        replace(row, submission=row.submission + 1000, move=1, move_kind=MoveKind.PASSIVE) for row in first
    ]
    phase = phase_site(board(first, sequence=1), board(moved, sequence=2))
    page = " ".join(render(Site(title="T", phases=(phase,)), readme=None)["index.html"].decode().split())
    told = dict(re.findall(r'<details class="past"><summary><bdi>(T\d+)</bdi>.*?<ol>(.*?)</ol>', page))
    times = re.findall(r"<time>2026-03-02 (\d+)", told["T1"])
    assert (times, told["T1"].count("rank 1<"), told["T2"].count("rank")) == (["11", "10"], 2, 0)
    assert "<li>and 3 more</li>" in page


@pytest.mark.parametrize("more", [0, 1, 20])
def test_the_page_of_a_long_history_has_its_newest_updates(more: int) -> None:
    """A page has a limited number of updates, the newest ones, and says how many others only the history has."""
    site = moving_site(UPDATES + more)
    page = render(site, readme=None)["index.html"].decode()
    times = re.findall(r"<li><time>(.*?)</time><p>", page)
    assert times == [minute(board.made_at) for board in site.phases[0].history[: -UPDATES - 1 : -1]]
    assert re.findall(r"(\d+) earlier update", page) == ([str(more)] if more else [])


def test_history_is_only_appended_to() -> None:
    """A new board adds a line; existing bytes stay, even if a person wrote them."""
    site, grown = moving_site(6), moving_site(7)
    first = render(site, readme=None)["leaderboard/history.jsonl"]
    assert render(site, readme=None, history=first)["leaderboard/history.jsonl"] == first
    for kept in (first, b"by hand\n" + first, first + b'{"phase": 1}'):
        later = render(grown, readme=None, history=kept)["leaderboard/history.jsonl"]
        assert later.startswith(kept)
        assert len(later.splitlines()) == len(kept.splitlines()) + 1


def test_empty_and_closed_phases_and_their_rules() -> None:
    """A phase without a board says so, a closed one says since when, and each says by which settings its boards are made."""
    rules = PhaseRules(selection=Selection.BEST, baselines_weigh=False, eligible_if_scored_in="dev")
    closed = phase_site(
        board([standing(1)], phase="x.y"), codename="x.y", closed_at=START + timedelta(days=3), rules=rules
    )
    files = render(Site(title="T", phases=(phase_site(), closed)), readme=None)
    readme = files["README.md"].decode()
    for sentence in (
        "No team has a scored public submission in this phase.",
        "This phase was closed on 2026-03-05 09:00 UTC; its board is final.",
        "ordered by the dynamic rank",
        "highest mean Q counts",
        "do not affect ranks or weights",
        "the phase dev are out of competition",
    ):
        assert readme.count(sentence) == (2 if sentence.startswith(("ordered", "made it public")) else 1)
    assert "Closed on 2026-03-05 09:00 UTC" in files["index.html"].decode()
    assert json.loads(files["leaderboard/x.y.json"])["closed_at"] == "2026-03-05T09:00:00Z"


def test_only_a_phase_has_an_id_that_a_codename_may_be() -> None:
    """A link to a phase that is called like another place on the page would show that."""
    page = render(replace(revealed_site(), committed=True), readme=None)["index.html"].decode()
    ids = re.findall(r'\bid="(.*?)"', page)
    assert len(ids) > 8
    assert [name for name in ids if re.fullmatch("[0-9A-Za-z][0-9A-Za-z_.-]*", name)] == ["eval"]


def test_files_do_not_depend_on_the_number_of_hidden_tasks() -> None:
    """Sites with 3 and with 12 hidden tasks publish the same files, up to numbers of mean Q."""
    few, many = (render(world(tasks).site("T"), readme=None) for tasks in (3, 12))
    assert few.keys() == many.keys()
    for path in few:
        # Mean Q always has decimals; ranks are equal in these sites, so figures are equal to the byte.
        number = re.compile(rb"(?!)" if path.endswith(".svg") else rb"-?\d+\.\d{1,3}\b")
        few_text, many_text = (number.sub(b"Q", files[path]) for files in (few, many))
        assert few_text == many_text, path


def test_nothing_private_shows_before_the_reveal() -> None:
    """No file has a task name, weight, weighted rank or interval, although boards and snapshot have them all."""
    files = render(world(5).site("T"), readme=None)
    everything = b"".join(content for path, content in files.items() if "schema" not in path).lower()
    for secret in (
        b"secret_task",
        b"p_first",
        b"q_interval",
        b"fingerprint",
        b'heat"',
        b"% interval",
        b'stable"',
        b"any one of the",
    ):
        assert secret not in everything, secret
    document = json.loads(files["leaderboard/eval.json"])
    assert [
        document[key] for key in ("intervals", "leave_one_out", "stability", "tasks", "weighted_ranks")
    ] == [None] * 5


def test_reveal_opens_everything() -> None:
    """After the reveal page and JSON show the tasks with their real names, Q and mean score, and weights that sum to one."""
    phase = world(5)
    files = render(phase.revealed_site("T"), readme=None)
    document = json.loads(files["leaderboard/eval.json"])
    tasks = document["tasks"]
    assert {task["name"] for task in tasks} == set(phase.snapshot.row_sets)
    assert sum(task["weight"] for task in tasks) == pytest.approx(1)
    sent = {submission.submission: submission for submission in phase.snapshot.entries}
    for place, row in enumerate(document["entries"]):
        assert row["q_mean"] == pytest.approx(sum(task["quality"][place] for task in tasks) / 5, abs=0.0005)
        low, high = document["intervals"]["entries"][place]["q_mean"]
        assert low - 0.0005 <= row["q_mean"] <= high + 0.0005
        for task in tasks:
            folds = sent[row["submission"]].scores[task["name"]]
            assert task["score"][place] == pytest.approx(sum(folds) / len(folds))
    assert len(document["weighted_ranks"]) == len(document["stability"]) == len(document["entries"])
    for row, stable in zip(document["entries"], document["stability"], strict=True):
        assert (stable["submission"], len(stable["without"])) == (row["submission"], 5)
    page = files["index.html"].decode()
    assert "Without secret_<wbr>task_<wbr>4" in page
    assert "Without any one of the 5 tasks, " in page
    assert f"<small>{tasks[0]['score'][0]:.2f}</small>" in page


def test_a_stored_board_gives_the_same_files() -> None:
    """Storing sorts the keys of figures: a board that was made now and one that was read have the same page, in the same order."""
    site = revealed_site()
    (phase,) = site.phases
    last = phase.history[-1]
    figures = last.figures
    assert figures is not None
    first, second, third = (row.submission for row in figures.rows[:3])
    reversals = dict.fromkeys(sorted((first, second, third), reverse=True), ((first, second),))
    made = (*phase.history[:-1], replace(last, figures=replace(figures, leave_one_out=reversals)))
    stored = tuple(from_json(to_json(board)) for board in made)
    files, again = (
        render(replace(site, phases=(replace(phase, history=history),)), readme=None)
        for history in (made, stored)
    )
    assert files == again
    assert "Pairs whose order depends on a third entry" in files["index.html"].decode()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"A": (1, 1, MoveKind.OWN), "B": (2, -1, MoveKind.PASSIVE)}, "1 → 2: overtaken by “A”;"),
        ({"B": (1, 1, MoveKind.PASSIVE), "A": (2, -1, MoveKind.OWN)}, "2 → 1: “A” fell behind it;"),
        ({"A": (1, 0, MoveKind.NEW), "B": (2, -1, MoveKind.PASSIVE)}, "1 → 2: overtaken by “A”;"),
        (
            {"C": (1, 1, MoveKind.PASSIVE), "B": (2, -1, MoveKind.PASSIVE), "A": (3, 0, MoveKind.NONE)},
            "1 → 2: no other team's own move passed it; ranks on the tasks, or their weights, changed;",
        ),
    ],
)
def test_a_passive_move_says_what_passed_the_row(
    changed: dict[str, tuple[int, int, MoveKind]], reason: str
) -> None:
    """Another team's own move did, or only ranks on the tasks and their weights changed."""
    rows = [
        standing(rank, team, move=move, move_kind=kind, submission=1 if team == "A" else 2)
        for team, (rank, move, kind) in changed.items()
    ]
    shown = {row.team: row.why for row in public_rows(board(rows, triggers=(1,)), Rounding())}
    assert shown["B"] == f"{reason} newly counted: a submission of “A”."
    rows = [replace(row, baseline=row.team == "B") for row in rows]
    shown = {row.team: row.why for row in public_rows(board(rows, triggers=(1,)), Rounding())}
    assert "passed" not in shown["B"], "a baseline has no rank number by which that could be known"


def test_a_team_that_comes_into_competition_or_leaves_it_is_the_reason_for_moves() -> None:
    """What it did in another phase decides that, and there is no submission or decision in this one. A baseline never competes."""
    host = standing(3, "Host", baseline=True, eligible=False)
    out = [standing(1, "A"), standing(1, "B", team_key=2, eligible=False, apart=True), host]
    moved = standing(2, "A", team_key=out[0].team_key, move=-1, move_kind=MoveKind.PASSIVE)
    within = [replace(out[1], eligible=True, apart=False), replace(moved, submission=out[0].submission)]
    within.append(replace(host, eligible=True))
    files = render(Site(title="T", phases=(phase_site(board(out), board(within, sequence=2)),)), readme=None)
    entries = json.loads(files["leaderboard/dev.json"])["entries"]
    assert [row["why"] for row in entries] == ["", "1 → 2: now in competition: “B”.", ""]
    files = render(Site(title="T", phases=(phase_site(board(within), board(out, sequence=2)),)), readme=None)
    assert "<p>Now out of competition: “B”. Nobody moved.</p>" in files["index.html"].decode()


def test_a_row_with_a_lower_mean_says_why_it_is_ahead() -> None:
    """Before the reveal in general; after it, with the tasks, the heaviest first. Ranks that cannot be told apart are named."""
    before = render(embed2scale_site(), readme=None)["index.html"].decode()
    assert before.count("ahead of the next by the weighted ranks on the tasks</span>") == 3
    after = render(revealed_site(), readme=None)["index.html"].decode()
    assert "ahead of the next on land_cover_forest, crop_type, nitrogen_dioxide and 1 more</span>" in after
    assert "cannot be told apart: 1–3,</span>" in after


def test_only_what_the_first_rank_of_a_group_does_not_beat_cannot_be_told_apart_from_it() -> None:
    """An entry ahead of that rank is in its group too, and may be far better: a baseline between two teams, or one out of competition."""
    rows = [
        standing(1, group=1),
        standing(2, group=2, baseline=True, team_key=9),
        standing(2, group=2),
        standing(3, group=3),
        standing(4, group=3, baseline=True, team_key=10),
        standing(1, group=1, eligible=False, apart=True, team_key=11),
        standing(2, group=1, eligible=False, apart=True, team_key=12),
        standing(3, group=4, eligible=False, apart=True, team_key=13),
    ]
    page = render(Site(title="T", phases=(phase_site(board(rows)),)), readme=None)["index.html"].decode()
    told = re.findall(r'<td class="num group wide" data-v="\d">(.*?)</td>', page)
    assert told == ["1", "–", "–", "3", "3", "–", "1", "–"]
    assert re.findall(r'<tr data-row="(\d)" class="ends">', page) == list("012456")
