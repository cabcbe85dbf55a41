"""Every published file, made again and compared byte for byte.

A revealed phase is rendered from its register. A phase that is not revealed, or that was changed after its reveal, is rendered from its own
JSON and the history: its values cannot be checked, but nothing else may stand on the page. Which phases there are, the commitments say.
The organizers' own words have no other source and are named: the title, the links, the order of the phases, when each was closed, and the
text around the board in README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from leaderboard import PhaseSite, Site, Terms
from leaderboard.rendering import HISTORY, PhaseDocument, around_block, markdown, read_site, render
from scoring.printable import count_of, name_some
from worker.fairness import commitments, receipts
from worker.fairness.decisions import public_decisions
from worker.fairness.disclosure import FILES_PATH, register_path, reveal_path
from worker.fairness.documents import read
from worker.participant.challenge import list_path
from worker.verify.commits import is_own
from worker.verify.public import PublicRepository
from worker.verify.revealed import RevealedPhase
from worker.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed

SHOWN_CHARACTERS = 500  # of the organizers' own text
EXCERPT = 60  # characters of a line that differs
SUFFIXES = (".json", ".csv", "-evolution-light.svg", "-evolution-dark.svg")
"""What the names of the files that show one phase end with, after its codename."""
PAGE, README = "index.html", "README.md"
_GENERATOR = re.compile(rb'<meta name="generator" content="([^"\n]{1,60})">')


def page(repository: PublicRepository, revealed: Mapping[str, RevealedPhase]) -> Iterator[Verdict]:
    """Make everything again that is published, and compare it.

    Args:
        repository: The public files.
        revealed: Codename to revealed phase.
    """
    if repository.uncommitted:
        yield contradicted(
            f"the history has boards of {name_some(repository.uncommitted)}, to which there is no commitment"
        )
    if (software := _rendered_by(repository.files.get(PAGE, b""))) != commitments.SOFTWARE:
        rows = ", and the rows of each phase's JSON" if repository.commit else ""
        yield believed(
            f"the pages were rendered by “{software}”, so only that version can compare their bytes. This is {commitments.SOFTWARE}, which"
            f" compares values alone: the boards in the history{rows}"
        )
        return
    shown = _shown(repository)
    for name in repository.phases:
        if name not in shown:
            sentence = "the page does not show this phase"
            yield (believed if name in revealed else not_revealed)(sentence, phase=name)
    if not shown:
        return
    for name, document in shown.items():
        newest = repository.newest_board(name, len(repository.files.get(HISTORY, b"")) + 1)
        if document.sequence != newest:
            older = f"the page shows board {document.sequence}, and the newest one in the history is board {newest}"
            is_restored = repository.may_show_again(document.made_at)
            yield (believed if is_restored else contradicted)(older, phase=name)
    words = next(iter(shown.values()))
    links = " and ".join(f"“{address}”" for address in (words.link, words.page) if address)
    sentence = f"the title “{words.challenge}”, the link {links or 'to EvalAI'}, deadlines and limits are the organizers' own words"
    yield replace(believed(sentence), check="words")
    access = repository.commitments[0].access
    said = f"the organizers say: “{access}”" if access else "the organizers do not say it"
    yield replace(believed(f"who knew the hidden tasks, and whether they compete: {said}"), check="access")
    follow = {name: phase for name, phase in revealed.items() if phase.replay.unknown_phase is None}
    sites = [_site(repository, name, document, follow.get(name)) for name, document in shown.items()]
    rendered = _rendered(repository, words, sites)
    sources: dict[str | None, str] = {
        name: "the register" if name in follow else "its own JSON and the history" for name in shown
    }
    sources[None] = "these and the commitments"
    yield from _compared(repository.files, rendered, sources)
    if around := _around(repository.files.get(README, b""), words.challenge):
        yield believed(
            f"the text around the board in README.md ({count_of(len(around), 'character')}) is the organizers' own, and is not checked:"
            f" “{around[:SHOWN_CHARACTERS]}”"
        )
    if unexplained := _unexplained(repository, rendered, revealed):
        sentence = f"these files are not the worker's: {name_some(unexplained)}"
        signed = f"the challenge has signed them, but {sentence}"
        yield contradicted(signed) if repository.history.key else believed(sentence)


def _rendered_by(content: bytes) -> str:
    """Return the software that rendered a page, as the page says; this one if it says nothing."""
    stated = _GENERATOR.search(content)
    return commitments.SOFTWARE if stated is None else stated[1].decode(errors="replace")


def _shown(repository: PublicRepository) -> dict[str, PhaseDocument]:
    """Return the JSON of the phases that were committed to, in the order in which the page shows them."""
    content = repository.files.get(PAGE, b"")
    places = {
        name: content.find(f'<section class="phase" id="{name}"'.encode()) for name in repository.phases
    }
    paths = {name: f"leaderboard/{name}.json" for name in sorted(repository.phases, key=places.__getitem__)}
    return {
        name: read(PhaseDocument, repository.files[path], path)
        for name, path in paths.items()
        if path in repository.files
    }


def _site(
    repository: PublicRepository, name: str, document: PhaseDocument, phase: RevealedPhase | None
) -> PhaseSite:
    """Return what a phase is rendered from: its register if that is known, otherwise its JSON and the history."""
    terms = _terms(repository, name, document.terms)
    if phase is not None:
        decisions, only_if_shown = public_decisions(phase.replay)
        return replace(
            phase.site,
            revealed=True,
            closed_at=phase.replay.closed_at,
            methods=phase.replay.methods,
            terms=terms,
            decisions=decisions,
            only_if_shown=only_if_shown,
        )
    lines = [line for line, _ in repository.boards(name)]
    revealed = name in repository.revealed  # whatever the JSON shows
    return replace(read_site(document, lines), codename=name, terms=terms, revealed=revealed)


def _terms(repository: PublicRepository, phase: str, stated: Terms | None) -> Terms:
    """Return what a submission must have, by the newest commitment; deadline and limits are those that the page states."""
    announced = repository.announced(phase)[-1]
    path = list_path(phase)
    return replace(
        stated or Terms(embedding_dim=announced.embedding_dim),
        embedding_dim=announced.embedding_dim,
        ids=path if path in repository.files else "",
    )


def _rendered(
    repository: PublicRepository, words: PhaseDocument, sites: Sequence[PhaseSite]
) -> dict[str, bytes]:
    """Render all files; title and links are those in the first phase's JSON."""
    files = repository.files
    site = Site(
        title=words.challenge,
        link=words.link,
        phases=tuple(sites),
        repository=words.repository,
        page=words.page,
        committed=True,
        software=commitments.SOFTWARE,
        access=repository.commitments[0].access,
        logged_at=repository.log[-1].made_at if repository.log else None,
    )
    return render(site, readme=files.get(README), history=files.get(HISTORY))


def _compared(
    published: Mapping[str, bytes], rendered: Mapping[str, bytes], sources: Mapping[str | None, str]
) -> Iterator[Verdict]:
    """Compare each phase's own files, and those that show all phases, with what was rendered from their sources."""
    owner = {f"leaderboard/{name}{suffix}": name for name in sources if name for suffix in SUFFIXES}
    for name, source in sources.items():
        paths = [path for path in rendered if owner.get(path) == name]
        found = [difference(path, published.get(path), rendered[path]) for path in paths]
        for differs in filter(None, found):
            yield contradicted(f"{differs}. This was not made by the worker", phase=name)
        if not any(found):
            listed = ", ".join(path.removeprefix("leaderboard/") for path in paths)
            yield consistent(
                f"rendered again from {source}, these files are identical, byte for byte: {listed}",
                phase=name,
            )


def difference(path: str, published: bytes | None, follows: bytes) -> str | None:
    """Return the first place at which a file, or another thing with a name, differs from what follows, with both."""
    if published == follows:
        return None
    if published is None:
        return f"{path} is missing"
    lines = zip_longest(*(content.decode(errors="replace").split("\n") for content in (published, follows)))
    for number, (found, expected) in enumerate(lines, 1):
        if found != expected:
            return f"{path}, line {number}: published {_excerpt(found, expected)}, follows {_excerpt(expected, found)}"
    return f"{path} has other bytes than follow"


def _excerpt(line: str | None, other: str | None) -> str:
    """Quote a line from shortly before the place where it differs from the other one."""
    if line is None:
        return "nothing"
    pairs = enumerate(zip(line, other or "", strict=False))
    begins = max(0, next((place for place, (ours, theirs) in pairs if ours != theirs), 0) - EXCERPT // 3)
    return f"“{line[begins : begins + EXCERPT]}”"


def _around(readme: bytes, title: str) -> str:
    """Return the text around the board in README.md, without the title."""
    text = b"".join(around_block(readme) or ()).decode(errors="replace").strip()
    return "" if text == f"# {markdown(title)}" else text


def _unexplained(
    repository: PublicRepository, rendered: Mapping[str, bytes], revealed: Mapping[str, RevealedPhase]
) -> list[str]:
    """Return what is in the worker's places and it would not publish."""
    explained = {*rendered, commitments.PATH, receipts.PATH, FILES_PATH}
    explained |= {list_path(name) for name in repository.phases}
    for name, phase in revealed.items():
        folder = reveal_path(name).rpartition("/")[0]
        explained |= {reveal_path(name), f"{folder}/ids.txt"}
        explained |= {f"{folder}/labels/{file}" for file in phase.labels if phase.with_labels}
        explained |= {register_path(name, part) for part in range(1, phase.document.parts + 1)}
    found = {*repository.files, *filter(is_own, repository.foreign_paths)}
    return sorted(found - explained)
