"""Every published file, rendered again from what was revealed and compared byte for byte.

What the organizers say themselves is taken from the page's own data and must be trusted: the title, the links, the order of the phases,
when each was closed, and the text around the board in README.md. The same holds for what participants
say of their methods. What shows a phase that is not revealed, or that was changed after its reveal, is compared after the next reveal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leaderboard import Method, PhaseSite, Site
from leaderboard.rendering import BEGIN, END, PhaseDocument, markdown, render
from scoring.printable import name_some
from worker.fairness import commitments, receipts
from worker.fairness.decisions import public_decisions
from worker.fairness.disclosure import FILES_PATH, reveal_path
from worker.fairness.documents import read
from worker.participant.challenge import list_path
from worker.verify.commits import HISTORY
from worker.verify.public import PublicRepository
from worker.verify.revealed import RevealedPhase
from worker.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed

SHOWN_CHARACTERS = 500  # of the organizers' own text
PAGE, README = "index.html", "README.md"
_SECTION = re.compile(rb'<section class="phase" id="([\w.-]+)".*?</section>', re.DOTALL)
_TABLE = re.compile(rb"^## .*?(?=^## |^\*\*How )", re.DOTALL | re.MULTILINE)  # of README.md


@dataclass(frozen=True, kw_only=True)
class ShownPhase:
    """One phase as it is published.

    Attributes:
        document: Its JSON.
        site: What it is rendered from.
        complete: Whether everything that is shown of it was revealed, or nothing is shown; otherwise its files are not compared.
    """

    document: PhaseDocument
    site: PhaseSite
    complete: bool

    @property
    def stem(self) -> str:
        """Stem of its files' names."""
        return self.document.phase

    @property
    def files(self) -> tuple[str, ...]:
        """Its own files."""
        suffixes = (".json", ".csv", "-evolution-light.svg", "-evolution-dark.svg")
        return tuple(f"leaderboard/{self.stem}{suffix}" for suffix in suffixes)


def page(repository: PublicRepository, revealed: Mapping[str, RevealedPhase]) -> Iterator[Verdict]:
    """Render everything that is published again, and compare it.

    Args:
        repository: The public files.
        revealed: Codename to revealed phase.
    """
    stems = [stem.decode() for stem in _SECTION.findall(repository.files[PAGE])]
    shown = [_shown(repository, stem, revealed) for stem in stems]
    words = shown[0].document
    rendered = _rendered(repository, words, shown)
    links = " and ".join(f"“{address}”" for address in (words.link, words.page) if address)
    sentence = f"the title “{words.challenge}”, the link {links or 'to EvalAI'}, deadlines and limits are the organizers' own words"
    yield replace(believed(sentence), check="words")
    own = {path for phase in shown for path in phase.files}
    if all(phase.complete for phase in shown):
        yield _compared(repository.files, {path: rendered[path] for path in rendered if path not in own})
    published, expected = (_by_phase(files, shown) for files in (repository.files, rendered))
    for phase in shown:
        name = phase.site.codename
        if not phase.complete and name not in repository.phases:
            yield contradicted("the page shows a phase to which the challenge never committed", phase=name)
        if phase.complete:
            yield _compared(published[phase.stem], expected[phase.stem], phase=name)
        if name in revealed and (waits := _waits(phase, revealed[name])) is not None:
            yield not_revealed(waits, phase=name)
    for name in revealed.keys() - {phase.site.codename for phase in shown}:
        yield contradicted("the page does not show this phase", phase=name)
    if around := _around(repository.files.get(README, b""), words.challenge):
        yield believed(
            f"the text around the board in README.md is the organizers' own, and is not checked: “{around[:SHOWN_CHARACTERS]}”"
        )
    if strangers := _strangers(repository, {*rendered, *own}, revealed):
        yield believed(f"these files are not the worker's, and are not checked: {name_some(strangers)}")


def _shown(repository: PublicRepository, stem: str, revealed: Mapping[str, RevealedPhase]) -> ShownPhase:
    path = f"leaderboard/{stem}.json"
    document = read(PhaseDocument, repository.files[path], path)
    name, phase = document.phase, revealed.get(document.phase)
    if phase is None:
        nothing = not (document.entries or document.decisions) and document.waiting is None
        site = PhaseSite(codename=name, rules=document.rules, history=(), terms=document.terms)
        return ShownPhase(document=document, site=site, complete=nothing)
    decisions, only_if_shown = public_decisions(phase.replay)
    site = replace(
        phase.site(phase.boards),
        revealed=True,
        frozen_at=document.frozen_at,
        methods=_methods(document),
        terms=document.terms,
        decisions=decisions,
        only_if_shown=only_if_shown,
    )
    last = max([phase.replay.end, *(note.at for note in phase.replay.notes)])
    later = phase.later or any(decision.at > last for decision in document.decisions)
    return ShownPhase(document=document, site=site, complete=not later and phase.replay.unknown_phase is None)


def _by_phase(files: Mapping[str, bytes], shown: Sequence[ShownPhase]) -> dict[str, dict[str, bytes]]:
    """Return each phase's own files, and its parts of the page and of README.md, by the stem of its files."""
    sections = {match[1].decode(): match[0] for match in _SECTION.finditer(files.get(PAGE, b""))}
    tables = dict(zip((phase.stem for phase in shown), _TABLE.findall(files.get(README, b"")), strict=False))
    return {
        phase.stem: {
            **{path: files[path] for path in phase.files if path in files},
            PAGE: sections.get(phase.stem, b""),
            README: tables.get(phase.stem, b""),
        }
        for phase in shown
    }


def _methods(document: PhaseDocument) -> dict[int, Method]:
    """Return what participants say of their methods, which has no other source."""
    return {
        row.submission: Method(
            name=row.method, project_url=row.project_url, publication_url=row.publication_url
        )
        for row in document.entries
    }


def _rendered(
    repository: PublicRepository, words: PhaseDocument, shown: list[ShownPhase]
) -> dict[str, bytes]:
    """Render all files; title and links are those in the first phase's JSON."""
    files = repository.files
    site = Site(
        title=words.challenge,
        link=words.link,
        phases=tuple(phase.site for phase in shown),
        repository=words.repository,
        page=words.page,
        committed=commitments.PATH in files,
    )
    return render(site, readme=files.get(README), history=files.get(HISTORY))


def _compared(
    published: Mapping[str, bytes], expected: Mapping[str, bytes], *, phase: str | None = None
) -> Verdict:
    wrong = [path for path, content in expected.items() if published.get(path) != content]
    if wrong:
        sentence = f"{', '.join(wrong)}: the boards give something else. These files were changed by hand"
        return contradicted(sentence, phase=phase)
    names = ", ".join(path.removeprefix("leaderboard/") for path in expected)
    return consistent(f"rendered again, these files are identical, byte for byte: {names}", phase=phase)


def _waits(shown: ShownPhase, phase: RevealedPhase) -> str | None:
    """Return what on a phase's page may come from after its reveal, such as another close; None if nothing does."""
    if not shown.complete:
        return "its files show changes made after the reveal; they can be checked after another reveal"
    registered, stated = phase.replay.frozen_at, shown.site.frozen_at
    if stated == (registered and registered.replace(microsecond=0)):
        return None
    page_minute, registered_minute = (
        moment.isoformat()[:16] if moment else "never" for moment in (stated, registered)
    )
    return (
        f"closed, according to the page: {page_minute}; according to the register until the reveal: {registered_minute}. This can be"
        " checked after another reveal"
    )


def _around(readme: bytes, title: str) -> str:
    """Return the text around the board in README.md, without the title."""
    text = readme.decode(errors="replace")
    around = (text.partition(BEGIN)[0] + text.rpartition(END)[2]).strip()
    return "" if around == f"# {markdown(title)}" else around


def _strangers(
    repository: PublicRepository, ours: set[str], revealed: Mapping[str, RevealedPhase]
) -> list[str]:
    checked = {*ours, commitments.PATH, receipts.PATH, FILES_PATH}
    checked |= {list_path(name) for name in repository.phases}
    for name, phase in revealed.items():
        folder = reveal_path(name).rpartition("/")[0]
        checked |= {reveal_path(name), f"{folder}/ids.txt"}
        checked |= {f"{folder}/labels/{file}" for file in phase.labels}
        checked |= {f"{folder}/{part.name}" for part in phase.document.parts}
    return sorted(repository.files.keys() - checked)
