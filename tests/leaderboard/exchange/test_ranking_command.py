"""``neuco-worker rank``: its JSON, its table and its faults."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from leaderboard.exchange.table import rank_table, read_table, table_document
from leaderboard.ranking.dynamic_rank import rank as ranked
from scoring.errors import OrganizerError
from worker.cli.rank import rank

DATA = Path(__file__).parents[1] / "data"
APP = typer.Typer()
APP.command()(rank)


def run(*arguments: str, text: str | None = None) -> str:
    """Run the command and return what it printed."""
    result = CliRunner().invoke(APP, list(arguments), input=text, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_json_has_exactly_the_documented_form() -> None:
    """Weights by task in column order, entries from the top, and with two tasks what becomes of each with others."""
    other = {"p_first": 1.0, "keeps_order": 1.0}, {"p_first": 0.0, "keeps_order": None}
    printed = json.loads(run("-", "--json", text="name,t1,t2\nx,1,10\ny,3,20\n"))
    assert printed == {
        "weights": {"t1": pytest.approx(1 / 6), "t2": pytest.approx(5 / 6)},
        "entries": [
            {"entry": "y", "rank": 1, "weighted_rank": 1.0, "mean": 11.5, "without": {"t1": 1, "t2": 1}}
            | other[0],
            {"entry": "x", "rank": 2, "weighted_rank": 2.0, "mean": 5.5, "without": {"t1": 2, "t2": 2}}
            | other[1],
        ],
        "stability": "Without any one of the 2 tasks, no two teams change places.",
    }
    alone = json.loads(run("-", "--json", text="name,t\nx,1\ny,3\n"))
    assert (alone["stability"], list(alone["entries"][0])) == ("", ["entry", "rank", "weighted_rank", "mean"])


def test_the_real_table_prints() -> None:
    """The paper's table is ranked with names, weights, and what becomes of the ranks without one task, for people."""
    printed = run(str(DATA / "neuco_bench_table4_r2.csv"))
    assert "TerraMind (Post-Enc)" in printed
    assert (
        "Without any one of the 8 tasks, 1 stays 1; 3 and 4 change places without clouds, heatisland"
        in printed
    )


def test_baselines_and_ghost_task() -> None:
    """A named baseline gets no number and takes none away, may be kept out of the weights, and the ghost task dilutes them."""
    text = "name,t\na,3\nb,2\nc,1\n"
    entries = json.loads(run("-", "--json", "--baselines", "b", text=text))["entries"]
    assert [(entry["entry"], entry["rank"]) for entry in entries] == [("a", 1), ("b", None), ("c", 2)]
    out = json.loads(run("-", "--json", "--baselines", "b", "--no-baselines-weigh", text=text))["entries"]
    assert {entry["entry"]: entry["weighted_rank"] for entry in out} == {"a": 1.0, "b": 2.0, "c": 2.0}
    assert json.loads(run("-", "--json", "--ghost-task", "1", text="n,t\na,1\nb,3\n"))["weights"] == {
        "t": 0.5
    }


@pytest.mark.parametrize("weigh", [True, False])
def test_the_order_of_lines_decides_nothing(weigh: bool) -> None:
    """Neither a rank nor what becomes of it with other tasks, also where a baseline is somewhere among the lines."""
    table = read_table((DATA / "neuco_bench_table4_r2.csv").read_text())[0]

    def document(lines: list[int]) -> dict[str, object]:
        shuffled = table.iloc[lines]
        return table_document(
            shuffled, rank_table(shuffled, baselines=table.index[2:4].tolist(), baselines_weigh=weigh)
        )

    given = list(range(len(table)))
    assert document(given) == document(given[::-1]) == document(given[3:] + given[:3])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read as CSV"),
        ('"",\n\u00a0,\n', "The table is empty."),
        ("name\nx\n", "no task columns"),
        ("experiment,mean_score,weighted_score,aggregated_rank\nx,1,1,1\n", "no task columns"),
        ("mean_score,weighted_score,aggregated_rank\n1,1,1\n", "no task columns"),
        (
            "name,depth,avg\nx,1,2\n",
            "neither tasks nor entries: depth, avg. Choose tasks with --tasks",
        ),
        (
            "name;t\nx;1,5\n",
            "is separated by semicolons. Save it as CSV: commas between columns, decimal points",
        ),
        ("name\tt\nx\t1\n", "is separated by tabs"),
        ("| name | t |\n|---|---|\n| x | 1 |\n", "is in Markdown"),
        (
            "name,t\nx,n/a\n",
            "has 'n/a' in task 't'; a score is a number of at most 1e+100. Every entry needs a score",
        ),
        ("name,t\nx,61.2 ± 0.3\n", "Write the score alone, without its uncertainty."),
        ("name,t\nx,**61.2**\n", "Write numbers without signs around them, such as asterisks"),
        *(
            (f"name,t\nx,61.2{mark}\n", "or marks of footnotes")
            for mark in ("*", " [1]", "(3)", "†", "^a", "²")
        ),
        ("name,t\nx,\u221261.2\n", "Write numbers with the characters 0 to 9, point, hyphen and e."),
        ("Task,x,y\nt,1,2\n", "The first column is called 'Task', so rows seem to be tasks."),
        ("x,61.2,60\ny,60,61\n", "The first line has numbers instead of column names."),
        *(
            (f"name,{task}\nx,1\n", f"The column '{task}' seems to have errors, but higher")
            for task in (
                "RMSE",
                "MAE ↓",
                "test_loss",
                "NRMSE (m)",
                "a↓",
                "Brier score",
                "a (lower is better)",
            )
        ),
        ("name,t\nx,61.2%\n", "Write numbers without percent signs."),
        ('name,t\nx,"61,2"\n', "Write numbers with decimal points and without commas."),
        ("name,notes,t\nx,good,1\n", "If the column is not a task, name those that are with --tasks"),
        (
            "name,a,b,tokens\nx,1,2,1000\ny,2,1,40000\n",
            "The column 'tokens' would decide the ranking alone: its values spread over 100 times as far",
        ),
        ("name,t\n", "no entries"),
        ("pooling,t\nmean,1\nmax,2\n", "neither tasks nor entries: mean, max."),
        ("name,\nx,1\n", "A task has no name"),
        ("name,t,t\nx,1,2\n", "The task 't' occurs 2 times"),
        ("name,t\nx,1\nx,2\n", "The entry 'x' occurs 2 times"),
        ("name,t\n ,1\n", "An entry has no name"),
        ("name,t\nx,1,2\n", "Expected 2 fields in line 2, saw 3"),
        ("name,t\nx\n", "Entry 'x' has no score in task 't'"),
        ("name,t\nx,\n", "Entry 'x' has no score in task 't'"),
        ("name,t\nx,nan\n", "Entry 'x' has 'nan' in task 't'"),
        ("name,t\nx,inf\n", "'inf'"),
        ("name,t\nx,1_0\n", "'1_0'"),
        ("name,t\nx,\uff11\n", "'\uff11'"),
        ("name,t\nx,good\n", "'good'"),
        ("name,t\nx,1e200\ny,2\n", "at most 1e+100"),
        ("name,t\nx,1\ny,-1.1e100\n", "Entry 'y' has '-1.1e100'"),
        ('name,t\nx,"' + "1" * 200_000 + "\n", "cannot be read as CSV"),
    ],
)
def test_a_bad_table_is_refused_with_its_hint(text: str, words: str) -> None:
    """Every fault of a table has a sentence that names what was seen, and gives the exit status of wrong usage."""
    with pytest.raises(OrganizerError) as caught:
        read_table(text)
    assert words in caught.value.message
    assert (caught.value.code, caught.value.exit_code) == ("rank.table", 2)


def test_the_largest_scores_still_give_numbers() -> None:
    """Scores up to the limit never overflow, with any signs."""
    text = "name,t1,t2\na,1e100,-1e100\nb,-1e100,1e100\nc,1e100,1\n"
    for options in ((), ("--ghost-task", "1e308")):
        printed = json.loads(run("-", "--json", *options, text=text), parse_constant=pytest.fail)
        assert len(printed["entries"]) == 3
    with pytest.raises(ValueError, match="finite scores"):
        ranked(np.array([[1e200], [2.0]]))


def test_bad_options_and_files_are_refused(tmp_path: Path) -> None:
    """Unknown baselines, negative ghosts, missing files and other encodings are wrong usage too."""
    table = read_table("name,t\nx,1\n")[0]
    for facts in ({"baselines": ["z"]}, {"ghost_task": -1.0}, {"ghost_task": float("nan")}):
        with pytest.raises(OrganizerError):
            rank_table(table, **facts)  # type: ignore[arg-type]
    (tmp_path / "latin.csv").write_bytes("näme,t\nx,1\n".encode("latin-1"))
    for path in (tmp_path / "missing.csv", tmp_path, tmp_path / "latin.csv"):
        with pytest.raises(OrganizerError):
            rank(path)
    with pytest.raises(typer.BadParameter, match="--tasks needs a table"):  # and not a rank by all tasks
        rank(tmp_path, tasks=["t"])


def test_a_leaderboard_is_ranked_by_its_tasks() -> None:
    """Means, ranks and other scores in NeuCo-Bench's leaderboard, and in ours, are no tasks."""
    plain = read_table("experiment,a,b\nx,1,4\ny,3,2\n")[0]
    theirs = "experiment,mean_score,weighted_score,aggregated_rank,a,b\nx,2.5,1,1,1,4\ny,2.5,2,2,3,2\n"
    ours = (
        "experiment,mean_score,weighted_score,aggregated_rank,q::a,q::b,acc::a,acc::b,overall_q_score,overall_acc_score\n"
        "x,2.5,1,1,1,4,0.1,0.2,2.5,\ny,2.5,2,2,3,2,0.3,,2.5,\n"
    )
    cut = "\n".join(",".join([line.split(",")[0], *line.split(",")[2:]]) for line in theirs.splitlines())
    assert read_table(theirs)[0].equals(plain)
    assert read_table(cut)[0].equals(plain)  # without mean_score
    assert read_table(ours)[0].equals(plain)


def test_no_name_of_a_task_or_run_takes_it_out_of_a_leaderboard() -> None:
    """Its columns say what they are, so a task may be called depth or forest_loss and decide alone, and a run mean."""
    text = (
        "experiment,mean_score,weighted_score,aggregated_rank,q::depth,q::forest_loss,year\n"
        "mean_20260314_120000,1.5,1,1,2,1,2025\nbest_20260314_120000,0.5,2,2,1,-1000,2026\n"
    )
    table, left_out = read_table(text)
    assert table.index.tolist() == ["mean_20260314_120000", "best_20260314_120000"]
    assert (table.columns.tolist(), left_out) == (["depth", "forest_loss"], ["year"])
    assert read_table(text, ["depth"])[0].shape == (2, 1)


def test_summaries_and_descriptions_are_no_tasks() -> None:
    """Leaderboards have columns and rows that would decide the ranking; they are left out and named, unless --tasks says otherwise."""
    text = (
        "Rank (Borda),Model,Zero-shot,Number of Parameters (B),Embedding Dimensions,Mean (Task),a,b_mean,size\n"
        "1,x,100%,7.1,4096,60.5,61,60,0.1\n2,y,99%,Unknown,768,55.0,60,50,0.2\n,Average,,,,58,60.5,55,0.1\n"
    )
    scores, left_out = read_table(text)
    assert (scores.index.tolist(), scores.columns.tolist()) == (["x", "y"], ["a", "b_mean", "size"])
    left = [
        "Rank (Borda)",
        "Zero-shot",
        "Number of Parameters (B)",
        "Embedding Dimensions",
        "Mean (Task)",
        "Average",
    ]
    assert left_out == left
    assert json.loads(run("-", "--json", text=text))["left_out"] == left
    assert f"Not counted as tasks or entries: {', '.join(left)}." in run("-", text=text)
    chosen = read_table(text, ("a", "Embedding Dimensions"))[0]
    assert chosen.to_dict("list") == {"Embedding Dimensions": [4096, 768], "a": [61, 60]}
    spread, _ = read_table(
        "name,id,a,a (std. dev.),a 95% CI,± a,a_sd,a_lower,a (SE),IQM,b_std,version,train_s,n_samples\n"
        "x,8,1,2,3,5,6,7,8,9,4,1,9,10\nBest,,1,2,3,5,,,,,4,,,\nStd. dev.,,1,2,3,5,,,,,4,,,\n"
    )
    assert (spread.columns.tolist(), spread.index.tolist()) == (["a", "b_std"], ["x"])
    assert read_table("name,mse,1\nx,-1,2\n", ("mse",))[0].shape == (1, 1)
    for ranks in (("#1", "#2"), ("1st", "2nd"), ("=1", "=1"), ("🥇", "🥈")):
        assert read_table("Rank,Model,a\n{},x,1\n{},y,2\n".format(*ranks))[0].index.tolist() == ["x", "y"]
    with pytest.raises(OrganizerError, match="No column is named 'c'"):
        read_table(text, ("c",))


def test_spreadsheet_exports_read_the_same() -> None:
    """A byte-order mark, CRLF, quotes, spaces around numbers, blank lines and blank columns change nothing."""
    plain = read_table("name,t\nx,1\ny,2\n")[0]
    shuffled = read_table("name,b,a\ny,1,2\nx,2,1\nz,3,0\n")[0]
    ordered = rank_table(shuffled[["a", "b"]].sort_index())
    assert [rank_table(shuffled).stability[place] for place in (1, 0, 2)] == list(ordered.stability)
    exported = read_table('\ufeffname,"t",,\r\n"x", 1 ,,\r\n,,,\r\ny,2,, \r\n')[0]
    assert plain.equals(exported)
    assert table_document(plain, rank_table(plain)) == table_document(exported, rank_table(exported))
