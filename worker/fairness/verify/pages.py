"""Every published file, rendered again from what was revealed and compared byte for byte.

What the organizers say themselves is taken from the page's own data and must be trusted: the title, the links, the order of the phases,
when each was closed, which engines trained the probes, and the text around the board in README.md. The same holds for what participants
say of their methods, and for the board of a phase that is not revealed; its other files are compared with its JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leaderboard import Board, Method, MoveKind, PhaseSite, Rules, Selection, Site, Standing, WaitingTeam
from leaderboard.rendering import BEGIN, END, markdown, render
from scoring.printable import name_some
from worker.fairness import commitments, receipts
from worker.fairness.reveals import reveal_path
from worker.fairness.verify.growth import HISTORY
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import UNREADABLE, RevealedPhase, phases
from worker.fairness.verify.verdict import (
    Verdict,
    believed,
    consistent,
    contradicted,
    not_revealed,
)
from worker.participant.layout import list_path

CHECK, WORDS = "page", "words"
SHOWN_CHARACTERS = 500  # of the organizers' own text
PAGE, README = "index.html", "README.md"
_SECTION = re.compile(rb'<section class="phase" id="([\w-]+)"')
# The contents of an opened row, after the method: text in elements without attributes, so that nothing else can be hidden in it.
_PAST = re.compile(
    rb'(<details class="past"><summary><bdi>[^<]*</bdi></summary><div>(?:<p class="by">.*?</p>)?)'
    rb"(?:[^<]|</?(?:p|b|ol|li|time|span)>)*</div></details>"
)
_MAIN_ENDS = b"</main>"


@dataclass(frozen=True, kw_only=True)
class ShownPhase:
    """One phase as it is published.

    Attributes:
        stem: Stem of its files' names.
        site: What it is rendered from.
        revealed: Whether that was revealed. Otherwise it comes from the phase's own JSON, which is enough for some of the files.
    """

    stem: str
    site: PhaseSite
    revealed: bool

    @property
    def files(self) -> tuple[str, ...]:
        """Its own files."""
        suffixes = (".json", ".csv", "-evolution-light.svg", "-evolution-dark.svg")
        return tuple(f"leaderboard/{self.stem}{suffix}" for suffix in suffixes)

    @property
    def believed(self) -> frozenset[str]:
        """Its files that cannot be compared with anything."""
        if self.revealed or not self.site.history:
            return frozenset()
        return frozenset(path for path in self.files if not path.endswith(".csv"))


def page_verdicts(repository: PublicRepository, revealed: Mapping[str, RevealedPhase]) -> Iterator[Verdict]:
    """Render everything that is published again, and compare it.

    Args:
        repository: The public files.
        revealed: Codename to revealed phase.
    """
    try:
        shown = [_shown(repository, stem.decode(), revealed) for stem in _stems(repository)]
        expected = _rendered(repository, shown)
        differing = set(_differing(repository, shown, expected))
    except UNREADABLE as error:
        yield contradicted(CHECK, f"The published files cannot be rendered again ({type(error).__name__}).")
        return
    ours = {*expected, *(path for phase in shown for path in phase.files)}
    common = sorted(set(expected) - {path for phase in shown for path in phase.files})
    words = repository.json(shown[0].files[0])
    yield _compared(common, differing, phase=None)
    yield believed(
        WORDS,
        f"The title “{words['challenge']}” and the link “{words['link'] or ''}” are the organizers' own words.",
    )
    for phase in shown:
        name = phase.site.codename
        compared = [path for path in phase.files if path in expected and path not in phase.believed]
        yield _compared(compared, differing, phase=name)
        if phase.believed and name in revealed:
            yield not_revealed(
                CHECK,
                "Its files show changes made after the reveal; they can be checked after another reveal.",
                phase=name,
            )
        elif phase.revealed and (waits := _closed_otherwise(phase, revealed[name])) is not None:
            yield not_revealed(CHECK, waits, phase=name)
        elif phase.believed:
            yield believed(
                CHECK,
                (
                    "Its board is taken on trust until the reveal. The page's table, the CSV and README.md agree with its JSON;"
                    " the charts and the history cannot be compared with it."
                ),
                phase=name,
            )
    for name in revealed.keys() - {phase.site.codename for phase in shown}:
        yield contradicted(CHECK, "The page does not show this phase.", phase=name)
    if around := _around(repository.files.get(README, b""), str(words["challenge"])):
        yield believed(
            CHECK,
            f"The text around the board in README.md is the organizers' own, and is not checked: “{around[:SHOWN_CHARACTERS]}”.",
        )
    strangers = _strangers(repository, ours, revealed)
    if strangers:
        yield believed(
            CHECK,
            f"These files are not the worker's, and are not checked: {name_some(strangers)}.",
        )


def _stems(repository: PublicRepository) -> list[bytes]:
    """Return the stems of the phases on the page, in their order."""
    stems = list(dict.fromkeys(_SECTION.findall(repository.files[PAGE])))
    if not stems:
        raise ValueError("the page shows no phase")
    return stems


def _shown(repository: PublicRepository, stem: str, revealed: Mapping[str, RevealedPhase]) -> ShownPhase:
    document = repository.json(f"leaderboard/{stem}.json")
    codename, closed = str(document["title"]), document["frozen_at"]
    phase = revealed.get(codename)
    follows = phase is not None and _is_newest(phase.boards, document)
    if phase is not None and follows:
        history, rules = phase.boards, phase.rules
    else:
        history, rules = _as_published(document, codename), _rules(document)
    return ShownPhase(
        stem=stem,
        site=PhaseSite(
            codename=codename,
            title=codename,
            rules=rules,
            history=history,
            waiting=_waiting(document),
            revealed=phase is not None,
            frozen_at=None if closed is None else datetime.fromisoformat(closed),
            methods=_methods(document),
            engines=tuple(document.get("engines", ())),
        ),
        revealed=follows,
    )


def _is_newest(boards: Sequence[Board], document: Mapping[str, Any]) -> bool:
    """Return whether the last revealed board is the published one, with everything that its rendering needs."""
    if not boards:
        return not document["entries"]
    last = boards[-1]
    return document["sequence"] <= last.sequence and (last.private.figures is not None or not last.standings)


def _rules(document: Mapping[str, Any]) -> Rules:
    said = {key: value for key, value in document["rules"].items() if key != "ranking"}
    return Rules(**{**said, "selection": Selection(said["selection"])})


def _as_published(document: Mapping[str, Any], codename: str) -> tuple[Board, ...]:
    """Return the newest board of a phase, as far as its JSON describes it."""
    if not document["entries"]:
        return ()
    board = Board(
        phase=codename,
        sequence=document["sequence"],
        made_at=datetime.fromisoformat(document["made_at"]),
        triggers=tuple(document["triggers"]),
        standings=tuple(_standing(number, entry) for number, entry in enumerate(document["entries"])),
    )
    return (board,)


def _methods(document: Mapping[str, Any]) -> dict[int, Method]:
    """Return what participants say of their methods, which has no other source."""
    return {
        entry["submission"]: Method(
            name=entry.get("method", ""),
            project_url=entry.get("project_url", ""),
            publication_url=entry.get("publication_url", ""),
        )
        for entry in document["entries"]
    }


def _waiting(document: Mapping[str, Any]) -> tuple[WaitingTeam, ...] | None:
    """Return the teams that wait for their values, in the published order."""
    if "waiting" not in document:
        return None
    return tuple(
        WaitingTeam(
            key=(number, ""),
            team=team["team"],
            submissions=team["submissions"],
            last_submitted_at=datetime.fromisoformat(team["last_submission"]),
        )
        for number, team in enumerate(document["waiting"])
    )


def _standing(number: int, entry: Mapping[str, Any]) -> Standing:
    return Standing(
        rank=entry["rank"] or 0,
        rank_by_mean=entry["rank_by_mean"] or 0,
        team_key=number,  # all names are different already
        team=entry["team"],
        submission=entry["submission"],
        q_mean=entry["q_mean"],
        baseline=entry["baseline"],
        eligible=entry["eligible"],
        group=entry["group"],
        submissions=entry["submissions"],
        last_submitted_at=datetime.fromisoformat(entry["last_submission"]),
        move=entry["move"],
        move_kind=MoveKind(entry["move_kind"]),
    )


def _rendered(repository: PublicRepository, shown: Sequence[ShownPhase]) -> dict[str, bytes]:
    """Render all files; title and links are those in the first phase's JSON."""
    first = repository.json(shown[0].files[0])
    site = Site(
        title=str(first["challenge"]),
        link=str(first["link"]),
        phases=tuple(phase.site for phase in shown),
        repository=str(first.get("repository", "")),
        committed=commitments.PATH in repository.files,
    )
    files = repository.files
    return render(site, readme=files.get(README), history=files.get(HISTORY))


def _differing(
    repository: PublicRepository, shown: Sequence[ShownPhase], expected: Mapping[str, bytes]
) -> Iterator[str]:
    """Yield the files that differ."""
    believed_files = {path for phase in shown for path in phase.believed}
    for path, content in expected.items():
        published = repository.files.get(path)
        if path == PAGE and published is not None:
            if _parts(published, shown) != _parts(content, shown):
                yield path
        elif path not in believed_files and published != content:
            yield path


def _parts(page: bytes, shown: Sequence[ShownPhase]) -> list[bytes]:
    """Return the page in parts; for phases of which too little was revealed, only what is above their charts."""
    content, main_ends, rest = page.partition(_MAIN_ENDS)
    starts = [match.start() for match in _SECTION.finditer(content)]
    sections = [content[start:end] for start, end in zip(starts, [*starts[1:], len(content)], strict=True)]
    hidden = {phase.stem.encode() for phase in shown if phase.believed}
    kept = []
    for section in sections:
        found = _SECTION.match(section)
        stem = found[1] if found else b""
        kept.append(_above_charts(section, stem) if stem in hidden else section)
    return [content[: starts[0] if starts else None], *kept, main_ends, rest]


def _above_charts(section: bytes, stem: bytes) -> bytes:
    """Return what is above a phase's charts, without the contents of opened rows, which come from boards that are not revealed."""
    return _PAST.sub(rb"\1", section.partition(b'<h3 id="%b-evolution">' % stem)[0])


def _compared(paths: Sequence[str], differing: set[str], *, phase: str | None) -> Verdict:
    wrong = [path for path in paths if path in differing]
    names = ", ".join(path.removeprefix("leaderboard/") for path in paths)
    if not wrong:
        return consistent(
            CHECK, f"Rendered again, these files are identical, byte for byte: {names}.", phase=phase
        )
    return contradicted(
        CHECK,
        f"{', '.join(wrong)}: the boards give something else. These files were changed by hand.",
        phase=phase,
    )


def _closed_otherwise(shown: ShownPhase, phase: RevealedPhase) -> str | None:
    """Report that the page's time of closing contradicts the register before the reveal; None if it does not."""
    try:
        registered = phase.fold.frozen_at
    except UNREADABLE:
        return None  # which is reported where it is read
    then = None if registered is None else registered.replace(microsecond=0)
    said = shown.site.frozen_at
    if said == then:
        return None
    told, known = (moment.isoformat()[:16] if moment else "never" for moment in (said, then))
    return (
        f"Closed, according to the page: {told}; according to the register until the reveal: {known}. This can be"
        " checked after another reveal."
    )


def _around(readme: bytes, title: str) -> str:
    """Return the text around the board in README.md, without the title."""
    text = readme.decode(errors="replace")
    around = (text.partition(BEGIN)[0] + text.rpartition(END)[2]).strip()
    return "" if around == f"# {markdown(title)}" else around


def _strangers(
    repository: PublicRepository, ours: set[str], revealed: Mapping[str, RevealedPhase]
) -> list[str]:
    known = {*ours, commitments.PATH, receipts.PATH}
    known |= {list_path(name) for name in phases(repository)}
    for name, phase in revealed.items():
        folder = reveal_path(name).rpartition("/")[0]
        known |= {reveal_path(name), f"{folder}/ids.txt", f"{folder}/files.json"}
        known |= {f"{folder}/labels/{file}" for file in phase.label_files}
        known |= {path for listed in phase.document.parts.values() for path in phase.parts(listed)}
    return sorted(repository.files.keys() - known)
