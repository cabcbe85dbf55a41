"""Participants' text is shown unchanged, and only as text, in every format."""

from __future__ import annotations

import csv
import hashlib
import io
import unicodedata
from html.parser import HTMLParser

import pytest
from confusable_homoglyphs.confusables import confusables_data
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from leaderboard.rendering import names as names_module
from leaderboard.rendering.names import (
    MARKS_LIMIT,
    NAME_LIMIT,
    UNNAMED,
    csv_cell,
    display_name,
    distinct_names,
    markdown,
    quoted,
    skeleton,
)

HOSTILE = (
    "__#bold team__|[e]",
    "- team_<1>_\\",
    "Team_Crumels",
    "TerraBytes-OpenLab",
    "a | b `code` **bold** ~~gone~~",
    "[click](https://evil.example) ![x](http://evil.example/x.png)",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp; &#42;",
    "<!-- neuco-worker:end -->",
    "@octocat mailto:a@b.example www.evil.example https://evil.example",
    "fixes #12 GH-12 :tada: $x^2$ {{ site.secret }} {% raw %}",
    '=HYPERLINK("http://evil.example","x")',
    "+1", "-1", "@SUM(A1)", "'quoted", "＝1+1", "\t=1", "A;=1+1", 'A; "=1+1";\'b',
    "1. list", "# heading", "> quote", "--- | ---", "    code",
    "line\nbreak\r\nand\u2028more",
    "\u202egnirts\u202c esrever\u200b\ufeff\u00ad",
    "\x00\x07\x1b[31mred",
    "فريق التضمين", "צוות", "嵌入压缩小组", "👩‍🔬🏳️‍🌈 1️⃣", "Z\u0341\u0342\u0343\u0344\u0345\u0346\u0347a",
    "x" * 300, "é" * 300, "👩‍🔬" * 200, "", " \u3164\u2800 ", "\u0301start", "\ud800 lone", "\ufffe\U0001ffff",
    "trailing backslash \\", "``", "|", "\\|", "\\\\|",
)  # fmt: skip
names = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=120), st.text("|\\`*_<>[]()!#@:&$~-+=.'\"w\n 1a", max_size=40)
)


class Text(HTMLParser):
    """Collects the text of a page and the tags it met."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text.append(data)


def read_html(html: str) -> Text:
    """Parse a piece of HTML."""
    parser = Text()
    parser.feed(html)
    parser.close()
    return parser


@given(names)
def test_display_name_applied_twice_changes_nothing(text: str) -> None:
    """A display name is one short visible line, and its own display name."""
    name = display_name(text)
    assert name == display_name(name)
    assert 1 <= len(name) <= NAME_LIMIT
    assert name == unicodedata.normalize("NFC", name)
    assert name == name.strip()
    kinds = {unicodedata.category(char) for char in name if char not in "\u200c\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    name.encode()  # no surrogate survived
    marks = 0
    for char in name:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Mc", "Me") else 0
        assert marks <= MARKS_LIMIT


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  Two \n\t words ", "Two words"),
        ("Alpha\u202e\u200b\ufeff", "Alpha"),
        ("", UNNAMED),
        ("\u3164\u2800", UNNAMED),
        ("x" * 300, "x" * (NAME_LIMIT - 1) + "…"),
        ("👩‍🔬", "👩‍🔬"),
        ("می‌خواهم", "می‌خواهم"),
        ("a\u200db", "ab"),
        ("e\u0301", "é"),
        ("\u0301x", "\u25cc\u0301x"),
        ("\x1b[31mred", "[31mred"),
        ("\ud800", "\ufffd"),
    ],
)
def test_display_name_of(text: str, shown: str) -> None:
    """The display form of a name is what a person would read."""
    assert display_name(text) == shown


@pytest.mark.parametrize("new", ["\U0001fae8", "\U00031350", "\U00010efd", "\ua7da", "\U00010d50", "\u1c89"])
def test_newer_characters_are_replaced(new: str) -> None:
    """A newer Python knows whether they join, combine, have a case or look like others; no byte may depend on that."""
    text = "a{0}\u200d👍 {0}\ufe0f e{0}\u0301 #{0}"
    assert display_name(text.format(new)) == display_name(text.format("\ufffd"))
    assert display_name(f"A{new}") == "A\ufffd"


def test_a_character_is_known_if_python_3_11_knows_it() -> None:
    """The table is that of Unicode 14, and newer versions of Unicode only add to it."""
    known = {char for char in map(chr, range(0x110000)) if names_module._is_assigned(char)}
    here = {char for char in map(chr, range(0x110000)) if unicodedata.category(char) != "Cn"}
    assert known == here if unicodedata.unidata_version == "14.0.0" else known < here


def test_the_table_of_look_alikes_is_the_one_that_the_page_depends_on() -> None:
    """Another version of the library may number other names, so that older pages of ours would not be rendered alike."""
    listed = sorted(char for char in confusables_data if len(char) == 1 and display_name(char) == char)
    alike = "".join(map(skeleton, listed))
    assert hashlib.sha256(alike.encode()).hexdigest()[:16] == "04e0e7695868c96c"


def test_names_that_look_alike_get_numbers() -> None:
    """The first team keeps the plain name, even if another one's has letters of another alphabet."""
    listed = {7: "Alpha\u200b", 3: "Alpha", 5: "Beta", 9: "Alpha (2)", 11: "\u0391lpha"}
    names = distinct_names(((key, ""), name) for key, name in listed.items())
    assert {key: name for (key, _), name in names.items()} == {
        3: "Alpha",
        5: "Beta",
        7: "Alpha (2)",
        9: "Alpha (2) (2)",
        11: "\u0391lpha (3)",
    }


def markup(text: str) -> str:
    """Render Markdown as GitHub does."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)


@given(names)
def test_markdown_reads_back(text: str) -> None:
    """In a cell of a GitHub table and in a sentence, a hostile name is shown as its display name, without markup."""
    name = display_name(text)
    html = markup(f"| A | B |\n| --- | --- |\n| {markdown(name)} | end |\n")
    page, sentence = read_html(html), read_html(markup(f"By {markdown(name)} now"))
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "span"}
    assert page.tags.count("td") == 2
    assert "".join(read_html(html.split("<td>", 1)[1].split("</td>", 1)[0]).text) == name
    assert "".join(sentence.text).strip() == f"By {name} now"
    assert set(sentence.tags) <= {"p", "span"}


@pytest.mark.parametrize(
    "bait", ["@octocat", "a@b.example", "#12", ":tada:", "https://evil.example", "www.evil.example", "$x$"]
)
def test_text_that_github_rewrites_is_split(bait: str) -> None:
    """After rendering, mentions, references, emoji codes, formulas and bare links are not in one piece of text."""
    page = read_html(markup(f"x {markdown(bait)} y"))
    assert "".join(page.text).strip() == f"x {bait} y"
    assert not any(bait in piece for piece in page.text)


@pytest.mark.parametrize(
    "name", ["Team_Crumels", "TerraBytes-OpenLab", "AI4G (Intern) Squad!", "嵌入压缩小组"]
)
def test_ordinary_names_stay_readable(name: str) -> None:
    """Names without markup are unchanged in README.md."""
    assert markdown(name) == name


@given(st.one_of(names, st.text('"“”„‟❞＂ A', max_size=20)))
def test_a_quoted_name_does_not_end_its_quotation(text: str) -> None:
    """What follows in a name, such as a sentence about another team, does not look as if the organizers had decided it."""
    said = quoted(display_name(text))
    assert (said[0], said[-1]) == ("“", "”")
    assert not set(said[1:-1]) & set('"“”„‟❞＂')


@given(names)
def test_csv_cell_reads_back(text: str) -> None:
    """A CSV reader restores the name, and a spreadsheet sees no formula."""
    name = display_name(text)
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow((1, csv_cell(name), 2))
    ((_, cell, last),) = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert last == "2"
    pieces = cell.split(";")  # cells where numbers have decimal commas
    assert not any(
        piece.lstrip(' "').startswith(("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")) for piece in pieces
    )
    assert ";".join(piece.removeprefix("'") for piece in pieces) == name
