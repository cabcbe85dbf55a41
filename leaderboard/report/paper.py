"""A phase for a paper or a workshop, made from its published document alone: table, badges of the winners, and citation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import yaml

from leaderboard.rendering import EntryRow, PhaseDocument, csv_cell, templates

if TYPE_CHECKING:
    import pandas as pd

PLACES = ("First", "Second", "Third")

OneRow = TypeVar("OneRow", bound=EntryRow)


def places(rows: Sequence[OneRow]) -> list[tuple[str, str, list[OneRow]]]:
    """Return the first three places of both awards, each with the teams that have it; the first two parts name the award and the place."""
    awards = (("dynamic rank", "rank"), ("mean Q", "rank_by_mean"))
    return [
        (award, place, [row for row in rows if getattr(row, field) == rank])
        for award, field in awards
        for rank, place in enumerate(PLACES, 1)
    ]


def table(document: PhaseDocument) -> pd.DataFrame:
    """Return the final table; intervals and tasks are in it if the document has them, which is after the reveal."""
    import pandas as pd  # takes a second to load, and other commands use this module

    rows = document.entries
    columns: dict[str, Sequence[object]] = {
        "Rank": [row.shown_rank for row in rows],
        "Team": [row.team for row in rows],
        "Mean Q": [document.text(row.q_mean) for row in rows],
        "By mean Q": [row.rank_by_mean or "–" for row in rows],
    }
    if document.intervals:
        intervals = document.intervals.entries
        columns |= {
            "95 % interval": [
                " to ".join(map(document.text, one.q_mean)) if one.q_mean else "–" for one in intervals
            ],
            "Ranks": [
                "–".join(map(str, dict.fromkeys(one.rank))) if row.rank else "–"
                for row, one in zip(rows, intervals, strict=True)
            ],
        }
    columns |= {task.name: [f"{q:.1f}" for q in task.quality] for task in document.tasks or ()}
    return pd.DataFrame(columns)


def paper_files(document: PhaseDocument, form: str) -> dict[str, bytes]:
    """Return the phase's table as ``latex`` or ``csv``, or the winners' badges as ``svg``, and how to cite the challenge."""
    phase, files = document.phase, citation(document)
    if form == "latex":
        text = table(document).to_latex(index=False, escape=True)
        # the mark of a Ladder's values, which pdfTeX does not know
        return files | {f"{phase}.tex": text.replace("≈", r"$\approx$").encode()}
    if form == "csv":
        cells = table(document).rename(columns=csv_cell)
        cells["Team"] = cells["Team"].map(csv_cell)
        return files | {f"{phase}.csv": cells.to_csv(index=False).encode()}
    badge = templates().get_template("badge.svg.j2")
    for award, place, winners in places(document.entries):
        for number, row in enumerate(winners, 1):
            name = f"{phase}-{place.lower()}-{award.lower().replace(' ', '-')}-{number}.svg"
            text = badge.render(title=document.challenge, award=f"{place} by {award}", team=row.team)
            files[name] = text.encode()
    return files


def citation(document: PhaseDocument) -> dict[str, bytes]:
    """Return the challenge's CITATION.cff, and the metadata with which Zenodo archives its repository under a DOI."""
    title, authors = document.challenge, f"The organizers of {document.challenge}"
    web = document.repository or document.page or document.link
    cff = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite the challenge.",
        "type": "dataset",
        "title": title,
        "authors": [{"name": authors}],
        **({"url": web} if web else {}),
    }
    zenodo = {
        "title": title,
        "upload_type": "dataset",
        "description": "Leaderboards, hidden tasks and evidence of a challenge on embeddings.",
        "creators": [{"name": authors}],
        "keywords": ["challenge", "embeddings", "leaderboard"],
    }
    return {
        "CITATION.cff": yaml.safe_dump(cff, sort_keys=False, allow_unicode=True).encode(),
        ".zenodo.json": (json.dumps(zenodo, indent=1, ensure_ascii=False) + "\n").encode(),
    }
