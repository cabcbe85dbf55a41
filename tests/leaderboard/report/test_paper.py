"""What is exported for a paper shows what is public, in each format, and nothing in it is obeyed by its reader."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import yaml

from leaderboard.rendering import PhaseDocument, render
from leaderboard.report import paper_files
from leaderboard.rules import PhaseRules, Selection
from leaderboard.snapshot import Site
from tests.leaderboard.harness.revealed import TASKS, TEAMS, revealed_site
from tests.leaderboard.harness.site_fixtures import simple_site


def published(site: Site) -> PhaseDocument:
    """Return the public document of a site's first phase."""
    name = site.phases[0].codename
    return PhaseDocument.model_validate_json(render(site, readme=None)[f"leaderboard/{name}.json"])


def test_the_table_has_tasks_and_intervals_only_after_the_reveal() -> None:
    """Before, none of their names and figures is in any format."""
    site = revealed_site()
    hidden = replace(site, phases=tuple(replace(phase, revealed=False) for phase in site.phases))
    for form, name in (("latex", "eval.tex"), ("csv", "eval.csv")):
        open_text = paper_files(published(site), form)[name].decode().replace("\\_", "_")
        assert all(task in open_text for task in TASKS)
        assert "interval" in open_text
        closed = b"".join(paper_files(published(hidden), form).values()).decode().replace("\\_", "_")
        assert not any(task in closed for task in TASKS)
        assert "interval" not in closed
        assert TEAMS[0] in closed


@pytest.mark.parametrize("name", ["=1+1", "a & b \\input{x} $", "<script>&"])
def test_hostile_names_are_escaped_in_every_format(name: str) -> None:
    """A spreadsheet runs no formula, LaTeX no command, and a badge is well-formed."""
    document = published(simple_site((name, "B", "C", "D")))
    rows = list(csv.DictReader(io.StringIO(paper_files(document, "csv")["dev.csv"].decode())))
    assert not rows[0]["Team"].startswith("=")
    latex = paper_files(document, "latex")["dev.tex"].decode()
    assert "\\input" not in latex
    badges = {path: text for path, text in paper_files(document, "svg").items() if path.endswith(".svg")}
    assert len(badges) == 6
    assert name in [
        text.text for text in ET.fromstring(badges["dev-first-dynamic-rank-1.svg"]).iter() if text.text
    ]


def test_values_of_a_ladder_are_marked_in_latex() -> None:
    """TeX knows the sign only as a formula, and stops at the character."""
    [phase] = simple_site().phases
    ladder = replace(phase, rules=PhaseRules(selection=Selection.LADDER))
    text = paper_files(published(Site(title="T", phases=(ladder,))), "latex")["dev.tex"].decode()
    assert text.count("$\\approx$") == 4
    assert text.isascii()


@pytest.mark.parametrize(
    ("name", "is_broad"), [("北" * 20, True), ("L" * 24, True), ("l" * 28, True), ("l" * 24, False)]
)
def test_a_name_is_no_broader_than_its_badge(name: str, is_broad: bool) -> None:
    """How many letters have room depends on the letters."""
    badge = paper_files(published(simple_site((name, "B"))), "svg")["dev-first-mean-q-1.svg"]
    assert (b"textLength" in badge) is is_broad


def test_the_challenge_can_be_cited_and_archived() -> None:
    """Both files name the challenge."""
    files = paper_files(published(simple_site(repository="https://example.org/board")), "csv")
    cited, archived = yaml.safe_load(files["CITATION.cff"]), json.loads(files[".zenodo.json"])
    assert cited["title"] == archived["title"] == "Test challenge"
    assert cited["url"] == "https://example.org/board"
    assert archived["upload_type"] == "dataset"
