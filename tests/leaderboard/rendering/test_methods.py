"""Names and links of methods: any input is shown as text, or as a link that only opens a web page."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.rendering import render
from leaderboard.rendering.files import CSV_COLUMNS, METHOD_COLUMNS
from leaderboard.rendering.names import ADDRESS_LIMIT, shown_method, web_address
from leaderboard.snapshot import Method, Site
from tests.leaderboard.harness.site_fixtures import board, phase_site, simple_site, standing
from tests.leaderboard.rendering.test_names import HOSTILE, names, read_html

PAPER, CODE = "https://arxiv.org/abs/2510.17914v1", "http://git.example:8080/~a/b?c=d&e=(f)#g"
NO_LINKS = (
    "", " ", "javascript:alert(1)", "JavaScript:alert(1)//https://a.example", "data:text/html,x", "file:///etc/passwd",
    "ftp://a.example", "//a.example", "a.example", "https://", "https:///path", "https://user:secret@a.example/",
    "https://a.example@evil.example", "https://a.example:port/", "https://[a.example/", "https://a.example/b c",
    'https://a.example/"onclick="alert(1)', "https://a.example/<script>", "https://a.example/\\evil", "https://a.example/`",
    "https://a.example/\nb", "https://a.example/\x00", "https://\u0430.example/", "https://a.example/\u202e", '=HYPERLINK("https://a.example")',
    "https://a.example/" + "x" * ADDRESS_LIMIT,
)  # fmt: skip


def with_methods(*methods: Method, **facts: object) -> Site:
    """Return a site whose rows have these methods."""
    site = simple_site([f"Team {number}" for number, _ in enumerate(methods, 1)], **facts)
    told = {1000 + number: method for number, method in enumerate(methods, 1)}
    return replace(site, phases=(replace(site.phases[0], methods=told),))


@pytest.mark.parametrize("address", [PAPER, CODE, "HTTPS://A.Example", "https://a.example/%20%22;x'y"])
def test_web_pages_are_links(address: str) -> None:
    """A web address is accepted unchanged, without blanks around it."""
    assert web_address(f" {address}\n") == address


@pytest.mark.parametrize("text", NO_LINKS)
def test_other_texts_are_no_links(text: str) -> None:
    """Other schemes, users, and characters that end an attribute or disguise the address are refused."""
    assert web_address(text) == ""


@given(names, st.one_of(st.sampled_from(NO_LINKS), st.text(max_size=60)))
def test_rendering_a_method_twice_changes_nothing(name: str, address: str) -> None:
    """Rendering from the published data gives the same bytes."""
    once = shown_method(Method(name=name, project_url=address, publication_url=address))
    assert shown_method(once) == once


def test_given_methods_are_in_json_and_csv_only() -> None:
    """JSON has the given values and CSV has the columns for all rows; README.md and the history do not mention them."""
    site = with_methods(
        Method(name="pooled means", publication_url=PAPER), Method(project_url=CODE), Method()
    )
    files = render(site, readme=None)
    entries = json.loads(files["leaderboard/dev.json"])["entries"]
    assert [[entry[key] for key in METHOD_COLUMNS] for entry in entries] == [
        ["pooled means", "", PAPER],
        ["", CODE, ""],
        ["", "", ""],
    ]
    lines = list(csv.DictReader(io.StringIO(files["leaderboard/dev.csv"].decode(), newline="")))
    assert [[line[key] for key in METHOD_COLUMNS] for line in lines] == [
        ["pooled means", "", PAPER],
        ["", CODE, ""],
        ["", "", ""],
    ]
    for name in ("README.md", "leaderboard/history.jsonl"):
        assert files[name] == render(simple_site(["Team 1", "Team 2", "Team 3"]), readme=None)[name]


def test_without_methods_there_is_no_column() -> None:
    """If no participant describes a method, no file mentions methods."""
    files = render(with_methods(Method(name=" \u3164"), Method(project_url="a.example")), readme=None)
    assert files["leaderboard/dev.csv"].decode().splitlines()[0] == ",".join(CSV_COLUMNS)
    assert not any(json.loads(files["leaderboard/dev.json"])["entries"][0][key] for key in METHOD_COLUMNS)
    assert 'data-sort="method"' not in files["index.html"].decode()


def test_hostile_methods_are_shown_as_text() -> None:
    """The text is the same in JSON and on the page, never a formula in the CSV, and never markup."""
    site = with_methods(*(Method(name=text, project_url=text, publication_url=text) for text in HOSTILE))
    files = render(site, readme=None)
    entries = json.loads(files["leaderboard/dev.json"])["entries"]
    shown = [entry["method"] for entry in entries if entry["method"]]
    assert len(shown) > len(HOSTILE) / 2
    page = files["index.html"].decode()
    cells = re.findall(r'<td class="method" data-v="[^"]*">(?:<bdi>(.*?)</bdi>)?</td>', page)
    assert ["".join(read_html(cell).text) for cell in cells if cell] == shown
    assert len(cells) == len(HOSTILE)
    assert read_html(page).tags.count("script") == 1
    for line in csv.DictReader(io.StringIO(files["leaderboard/dev.csv"].decode(), newline="")):
        assert not line["method"].startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_baseline_is_not_named_twice() -> None:
    """A baseline's row is named by its method, so only its links are added."""
    rows = [standing(1, "Baseline mean", baseline=True, method="Baseline mean")]
    method = Method(name="Baseline mean", project_url=CODE)
    site = Site(title="T", phases=(phase_site(board(rows), methods={1001: method}),))
    (entry,) = json.loads(render(site, readme=None)["leaderboard/dev.json"])["entries"]
    assert entry["method"] == ""
    assert entry["project_url"] == CODE


def test_the_page_links_to_the_repository_that_verifies_it() -> None:
    """Adjacent links are distinct; without a commitment or a page of the repository there is no link."""
    site = simple_site(link="https://eval.ai/x", repository="https://github.com/o/board", committed=True)
    page = render(site, readme=None)["index.html"].decode()
    lead = re.search(r'<p class="lead">(.*?)</p>', page, re.DOTALL)
    assert lead is not None
    assert (
        "".join(read_html(lead[1]).text).strip()
        == "Challenge page · Repository · Commitment · How to check this"
    )
    assert "neuco-worker verify https://github.com/o/board<" in page
    assert 'id="check"' in page
    assert json.loads(render(site, readme=None)["leaderboard/dev.json"])["repository"] == site.repository
    alone = render(simple_site(repository="https://github.com/o/board"), readme=None)["index.html"].decode()
    assert "#check" not in alone
    local = render(simple_site(committed=True), readme=None)["index.html"].decode()
    assert "neuco-worker verify REPOSITORY<" in local
    assert ">Repository<" not in local
