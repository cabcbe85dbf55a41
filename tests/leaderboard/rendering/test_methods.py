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


def with_methods(*methods: Method) -> Site:
    """Return a site whose rows have these methods; the last row is a baseline."""
    rows = [standing(number, f"Team {number}") for number, _ in enumerate(methods, 1)]
    rows[-1] = replace(rows[-1], baseline=True)
    methods_of = {row.submission: method for row, method in zip(rows, methods, strict=True)}
    return Site(title="T", phases=(phase_site(board(rows), methods=methods_of),))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        *((link, link) for link in (PAPER, CODE, "HTTPS://A.Example", "https://a.example/%20%22;x'y")),
        *((text, "") for text in NO_LINKS),
    ],
)
def test_only_web_pages_are_links(text: str, address: str) -> None:
    """Other schemes, users, and characters that end an attribute or disguise the address are refused."""
    assert web_address(f" {text}\n") == address


@given(names, st.one_of(st.sampled_from(NO_LINKS), st.text(max_size=60)))
def test_rendering_a_method_twice_changes_nothing(name: str, address: str) -> None:
    """Rendering from the published data gives the same bytes."""
    once = shown_method(Method(name=name, project_url=address, publication_url=address))
    assert shown_method(once) == once


def test_given_methods_are_in_json_and_csv_only() -> None:
    """JSON and CSV have the given values, and a baseline is not named twice; README.md and the history do not mention them."""
    site = with_methods(
        Method(name="pooled means", publication_url=PAPER), Method(project_url=CODE), Method(name="Team 3")
    )
    files = render(site, readme=None)
    entries = json.loads(files["leaderboard/dev.json"])["entries"]
    lines = csv.DictReader(io.StringIO(files["leaderboard/dev.csv"].decode(), newline=""))
    expected = [["pooled means", "", PAPER], ["", CODE, ""], ["", "", ""]]
    for rows in (entries, lines):
        assert [[row[key] for key in METHOD_COLUMNS] for row in rows] == expected
    plain = render(
        with_methods(Method(name=" \u3164"), Method(project_url="a.example"), Method()), readme=None
    )
    for name in ("README.md", "leaderboard/history.jsonl"):
        assert files[name] == plain[name]
    assert plain["leaderboard/dev.csv"].decode().splitlines()[0] == ",".join(CSV_COLUMNS)
    assert 'data-sort="method"' not in plain["index.html"].decode()


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


def test_the_page_links_to_the_repository_that_verifies_it() -> None:
    """Without a commitment or a page of the repository there is no link."""
    site = simple_site(link="https://eval.ai/x", repository="https://github.com/o/board", committed=True)
    page = render(site, readme=None)["index.html"].decode()
    lead = re.search(r'<p class="lead">(.*?)</p>', page, re.DOTALL)
    assert lead is not None
    assert "".join(read_html(lead[1]).text) == "Challenge page · Repository · Commitment · How to check this"
    assert "neuco-worker verify https://github.com/o/board<" in page
    for name, other in (
        ("#_check", replace(site, committed=False)),
        (">Repository<", replace(site, repository="")),
    ):
        assert name in page
        assert name not in render(other, readme=None)["index.html"].decode()
