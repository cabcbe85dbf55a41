"""Every field of every published document, and every published file, matters: a change of one is contradicted or named."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leaderboard.rendering import HISTORY
from scoring.documents import canonical
from tests.acceptance.fair_challenge import (
    REVEAL,
    Fair,
    changed,
    lies,
    named,
    revealed,
    to,
    with_file,
    with_reveal,
)
from tests.acceptance.liar import Git
from tests.acceptance.test_fairness_commits import clone
from tests.worker.harness.commits import sign_head
from worker.challenge import signing
from worker.challenge.signing import Signer
from worker.fairness import commitments, events, receipts
from worker.fairness.documents import digest
from worker.fairness.manifests import commitment_of
from worker.verify import Status, make_report, receipt_verdicts, verdicts
from worker.verify.commits import is_own
from worker.verify.public import PublicRepository, read_folder
from worker.verify.recompute import published_verdicts

__all__ = ["clone"]
pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("fairness")]

FILES = "reveal/files.json"
SIGNED = ("previous", "head", "commitment", "signature")  # made again for each forgery
Mutant = tuple[str, PublicRepository]
HARMLESS: dict[str, str] = {
    r"submission\.superseded_by altered .": "a re-run replaces only a submission without an answer",
    r"submission\.reason altered .": "the organizers' words, which are shown with the decision that they explain",
    r"phase\.record altered .": "a hash of what the organizers keep secret; tasks, protocol and rules are bound by themselves",
    r"commitment\[\]\.(reason|software) altered .": "the organizers' words",
    r"manifest\.(nonce altered 0|tasks reversed)": "it decides nothing; a receipt shows that the hash was another one",
    r"commitment\[\]\.receipts_every altered 0": "another promise from the start, which this log keeps too",
    r"reveal\.revealed_at altered 0": "only boards from after it would wait for another reveal",
    r"files\.commit altered .": "where the published contents are, which are known by their hashes",
}
"""What may change without a word, each as a pattern, with the reason why it decides nothing."""
DISCLOSED = (
    r"(commitment\[\]\.made_at|line\[\]\.made_at|reveal\.revealed_at) altered .",
    r"event first repeated",
)
"""What changes what the report says without contradicting anything; everything else is contradicted."""


def altered(value: Any) -> Iterator[Any]:
    """Yield other values of a JSON value's type, and null."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, -value - 1)
    elif isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT.*", value):
        moment = datetime.fromisoformat(value)
        yield from ((moment + timedelta(days=sign)).isoformat() for sign in (-1, 1))
    elif isinstance(value, str) and re.fullmatch("[0-9a-f]{32,}", value):
        yield f"{'1' if value[0] == '0' else '0'}{value[1:]}"
    elif isinstance(value, str):
        yield f"{value}x"
    yield None if value is not None else 1


def mutants(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a document with one place changed: a key dropped, added or altered; an element dropped, repeated or moved."""
    if isinstance(value, dict):
        yield f"{where} + a key", {**value, "another": 0}
        for name, inner in value.items():
            yield f"{where}.{name} dropped", {key: item for key, item in value.items() if key != name}
            for place, mutant in mutants(inner, f"{where}.{name}") if name not in SIGNED else ():
                yield place, {**value, name: mutant}
    elif isinstance(value, list):
        if value:
            yield f"{where} first dropped", value[1:]
            yield f"{where} first repeated", [value[0], *value]
            for place, mutant in mutants(value[-1], f"{where}[]"):
                yield place, [*value[:-1], mutant]
        if value != value[::-1]:
            yield f"{where} reversed", value[::-1]
    else:
        for number, other in enumerate(altered(value)):
            if other != value:
                yield f"{where} altered {number}", other


def signed_log(lines: list[Any], signer: Signer) -> bytes:
    """Chain and sign lines again."""
    previous, text = receipts.GENESIS, ""
    for line in lines:
        body = {name: value for name, value in line.items() if name not in ("head", "signature")}
        body |= {"previous": previous} if "previous" in body else {}
        previous = digest("chain", bytes.fromhex(previous), canonical(body))
        signed = {**body, "head": previous, "signature": signer.sign(receipts.BATCH, previous)}
        text += json.dumps({name: value for name, value in signed.items() if name in line}) + "\n"
    return text.encode()


def with_entries(public: PublicRepository, entries: list[Any], signer: Signer) -> PublicRepository:
    """Return the files with other commitments, signed again."""
    made = []
    for entry in entries:
        body = {name: value for name, value in entry.items() if name not in ("commitment", "signature")}
        body |= {"commitment": commitment_of(body)} if "commitment" in entry else {}
        signature = {"signature": signer.sign(signing.COMMITMENT, body)} if "signature" in entry else {}
        made.append({**body, **signature})
    return with_file(public, commitments.PATH, json.dumps(made).encode())


def changed_events(public: PublicRepository, signer: Signer) -> Iterator[Mutant]:
    """Yield changes of the newest event of each kind, with log and signatures to match."""
    document, lines = revealed(public), list(map(json.loads, public.files[receipts.PATH].splitlines()))
    for kind in (events.SUBMISSION, events.SCORE, events.PHASE):
        number, opening = [
            (number, opening)
            for number, opening in enumerate(document["register"])
            if opening.get("fields", {}).get("kind") == kind
        ][-1]
        before = events.read_opening(opening)[0]
        for where, fields in mutants(opening["fields"], kind):
            forged = copy.deepcopy(document)
            forged["register"][number]["fields"] = fields
            after = events.read_opening(forged["register"][number])[0]
            log = [
                {**line, "entries": sorted(after if entry == before else entry for entry in line["entries"])}
                for line in lines
            ]
            changed = with_reveal(public, forged)
            yield where, with_file(changed, receipts.PATH, signed_log(log, signer))


def changed_commitments(public: PublicRepository, signer: Signer) -> Iterator[Mutant]:
    """Yield changes of a commitment and of the manifest that it covers."""
    entries, document = json.loads(public.files[commitments.PATH]), revealed(public)
    for where, mutant in mutants(entries, "commitment"):
        yield where, with_entries(public, mutant, signer)
    number = str(len(entries))
    for where, manifest in mutants(document["manifests"][number], "manifest"):
        forged, listed = copy.deepcopy(document), copy.deepcopy(entries)
        forged["manifests"][number] = manifest
        listed[-1]["phases"]["dev"]["manifest"] = digest("phase", canonical(manifest))
        yield where, with_entries(with_reveal(public, forged), listed, signer)


def changed_documents(public: PublicRepository, signer: Signer) -> Iterator[Mutant]:
    """Yield changes of the log's last line, of the reveal, of the last board, and of the list of files."""
    lines, document = list(map(json.loads, public.files[receipts.PATH].splitlines())), revealed(public)
    for where, mutant in mutants(lines, "line"):
        yield where, with_file(public, receipts.PATH, signed_log(mutant, signer))
    for where, mutant in mutants(document["register"], "event"):
        if "[]" not in where or where == "event[] + a key":  # see changed_events
            yield where, with_reveal(public, {**document, "register": mutant})
    rest = {name: value for name, value in document.items() if name != "register"}
    for where, mutant in mutants(rest, "reveal"):
        if not where.startswith("reveal.manifests."):
            yield where, with_reveal(public, {**mutant, "register": document["register"]})
    *earlier, last = public.files[HISTORY].splitlines()
    for where, mutant in mutants(json.loads(last), "board"):
        text = json.dumps(mutant, ensure_ascii=False, separators=(",", ":")).encode()
        yield where, with_file(public, HISTORY, b"\n".join([*earlier, text]) + b"\n")
    for where, listed in mutants(json.loads(public.files[FILES]), "files"):
        yield where, with_file(public, FILES, json.dumps(listed).encode())


def contradictions(public: PublicRepository) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the checks that contradict a repository, with their phases, and everything that is said about it."""
    all_verdicts = [*verdicts(public), *published_verdicts(public, recompute=False)]
    return (
        {named(verdict) for verdict in all_verdicts if verdict.status is Status.CONTRADICTED},
        {(verdict.check, verdict.sentence) for verdict in all_verdicts},
    )


def test_every_field_matters(ended: Fair) -> None:
    """A change that the organizers sign again is contradicted; the report discloses a few decisions; what is listed is harmless."""
    public = read_folder(ended.public)
    _, honest = contradictions(public)
    silent, disclosed = [], []
    for change in (changed_events, changed_commitments, changed_documents):
        for where, mutant in change(public, ended.signer):
            wrong, sentences = contradictions(mutant)
            if not wrong:
                (silent if sentences <= honest else disclosed).append(where)
    for places, patterns in ((silent, HARMLESS), (disclosed, DISCLOSED)):
        assert [
            place for place in places if not any(re.fullmatch(pattern, place) for pattern in patterns)
        ] == []
        assert [
            pattern for pattern in patterns if not any(re.fullmatch(pattern, place) for place in places)
        ] == []


PLACES = 4  # at which a byte of each file is changed
FREE = {"reveal/files.json", "leaderboard/eval.json", "commitment.json"}
"""Files of which single bytes may be the organizers' own words: limits, a reason, the place of the published contents."""
MISSED = {"commitment.json"}
"""Files without which nobody knows whose files the others are."""


@pytest.mark.parametrize("moment", [0, 1], ids=["a phase is open", "ended"])
def test_every_file_matters(moments: list[Fair], moment: int) -> None:
    """A file with another byte, one that lacks its last line, and one that is missing are contradictions, also while a phase is open."""
    public = read_folder(moments[moment].public)
    for path, content in public.files.items():
        letters = [place for place, byte in enumerate(content) if chr(byte).isalnum() and byte < 128]
        for number in range(PLACES if path not in FREE else 0):
            place = letters[(2 * number + 1) * len(letters) // (2 * PLACES)]
            other = (
                content[:place]
                + (b"1" if content[place : place + 1] == b"0" else b"0")
                + content[place + 1 :]
            )
            assert contradictions(with_file(public, path, other))[0], (path, place)
        if path == FILES:  # see HARMLESS
            continue
        assert contradictions(with_file(public, path, content.rstrip().rpartition(b"\n")[0]))[0], path
        if path.startswith("ids/") or path in MISSED:
            continue
        assert contradictions(with_file(public, path, None))[0], path


def test_an_entry_that_nobody_opens_matters(fair: Fair) -> None:
    """The chain of the public log covers every entry, so none can be replaced, even one that stays closed."""
    public = read_folder(fair.public)
    opened = {events.read_opening(opening)[0] for opening in revealed(public)["register"]}

    def spoil(lines: list[Any]) -> list[Any]:
        entries = lines[0]["entries"]
        place = next(place for place, entry in enumerate(entries) if entry not in opened)
        entries[place] = entries[place][:-1] + ("1" if entries[place][-1] == "0" else "0")
        return lines

    assert contradictions(changed(public, receipts.PATH, spoil))[0] == {"receipts"}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(data=st.data())
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_document_breaks_the_verdict(fair: Fair, data: st.DataObject) -> None:
    """The check ends with verdicts, never with a traceback, if any value of a published document is replaced by another one."""
    repository = read_folder(fair.public)
    path = data.draw(st.sampled_from([REVEAL, "commitment.json", "leaderboard/dev.json", receipts.PATH]))
    value = data.draw(ANYTHING)

    def spoil(document: Any) -> Any:
        place, parent, key = document, None, None
        for _ in range(data.draw(st.integers(1, 7))):
            if isinstance(place, dict) and place:
                parent, key = place, data.draw(st.sampled_from(sorted(place)))
            elif isinstance(place, list) and place:
                parent, key = place, data.draw(st.integers(0, len(place) - 1))
            else:
                break
            place = parent[key]
        if parent is not None:
            parent[key] = value
        return document

    if path == REVEAL and data.draw(st.booleans()):  # the document itself, which lists its parts
        spoilt = with_file(repository, path, json.dumps(spoil(json.loads(repository.files[path]))).encode())
    else:
        spoilt = changed(repository, path, spoil)
    receipt = {"commitment": "00", "nonce": "11", "challenge": "22", "chain": "33"}
    all_verdicts = [*verdicts(spoilt), *receipt_verdicts(spoilt, receipt, 1.0)]
    assert {verdict.status for verdict in all_verdicts} <= set(Status)
    report = make_report(spoilt, all_verdicts)
    assert report.heading()
    json.dumps(report.to_json())


def test_a_board_that_the_reveal_does_not_open_is_found(fair: Fair) -> None:
    """Every push opens what is new, so there is no board from after the reveal."""
    repository = changed(read_folder(fair.public), REVEAL, to("boards", value=lambda boards: boards[:-1]))
    assert "dev: boards" in lies(repository)


LINES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a row twice": lambda line: {name: line[name] * 2 for name in ("order", "rank", "rank_by_mean", "move")},
    "a list too short": lambda line: {"rank": line["rank"][1:]},
    "a row changed twice": lambda line: {
        "changed": [{**line["changed"][0], "q_mean": 1.0}, *line["changed"]]
    },
    "a row nowhere": lambda line: {"changed": [*line["changed"], {**line["changed"][0], "row": 99}]},
    "a move of no row": lambda line: {"own": [99]},
    "too many decimals": lambda line: {"decimals": 10**6},
}
"""What a line of the history may say that no board shows."""


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_shows_no_board_is_found_before_the_reveal(fair: Fair, name: str) -> None:
    """The worker never writes it, so it needs no register to contradict it, and takes no time."""
    public = read_folder(fair.public)
    *earlier, text = public.files[HISTORY].splitlines()
    line = json.loads(text)
    assert line["phase"] == "eval"
    lines = [*earlier, canonical({**line, **LINES[name](line)})]
    spoilt = with_file(public, HISTORY, b"\n".join(lines) + b"\n")
    found = [verdict.sentence for verdict in verdicts(spoilt) if verdict.status is Status.CONTRADICTED]
    assert [sentence for sentence in found if sentence.startswith(f"{HISTORY}, line {len(lines)}: ")]


@pytest.mark.parametrize("other", [{"rank": [None]}, {"rank_by_mean": [None]}, {"own": [1]}])
def test_a_line_with_other_ranks_than_its_board_is_found_before_the_reveal(
    fair: Fair, other: dict[str, Any]
) -> None:
    """Only a row that does not compete has no rank, and only a row of the board before can have moved."""
    public = read_folder(fair.public)
    *earlier, text = public.files[HISTORY].splitlines()
    lines = [*earlier, canonical({**json.loads(text), **other})]
    assert lies(with_file(public, HISTORY, b"\n".join(lines) + b"\n")) == {"page"}


def test_boards_of_a_phase_that_nobody_committed_to_are_found(fair: Fair) -> None:
    """The page shows only phases that were committed to, so nothing else would compare these lines."""
    public = read_folder(fair.public)
    line = json.loads(public.files[HISTORY].splitlines()[-1])
    spoilt = with_file(public, HISTORY, public.files[HISTORY] + canonical({**line, "phase": "ghost"}) + b"\n")
    assert lies(spoilt) == {"page"}


def test_an_earlier_version_of_a_file_and_one_of_another_phase_are_found(ended: Fair, clone: Git) -> None:
    """Only the place of the published contents may be an earlier one, because the contents are known by their hashes."""
    public = read_folder(ended.public)
    first, *_, last = clone.git("rev-list", "HEAD~1").split()
    versions = [(path, clone.blob(name, path)) for name in (first, last) for path in public.files]
    versions += [(path, public.files.get(path.replace("dev", "eval", 1))) for path in public.files]
    for path, content in versions:
        if content not in (None, public.files[path]) and path != FILES:
            assert contradictions(with_file(public, path, content))[0], path


def a_link(clone: Git, path: str) -> None:
    """Add a symbolic link."""
    place = clone.folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to("README.md")
    clone.git("add", path)


def a_submodule(clone: Git, path: str) -> None:
    """Add a submodule."""
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{clone.git('rev-parse', 'HEAD')},{path}")


def a_file(clone: Git, path: str) -> None:
    """Add a file."""
    name = clone.git("hash-object", "-w", "README.md")
    clone.git("update-index", "--add", "--cacheinfo", f"100755,{name},{path}")


def test_a_file_twice_is_named(clone: Git) -> None:
    """A tree that git itself would not make can have two files with one name, of which visitors see the other one."""
    listed = ["git", "-C", str(clone.folder), "cat-file", "tree", "HEAD^{tree}"]
    tree = subprocess.run(listed, check=True, capture_output=True).stdout
    place = clone.folder.parent / "tree"
    other = b"100644 index.html\0" + bytes.fromhex(clone.git("hash-object", "-w", "README.md"))
    place.write_bytes(tree.replace(b"100644 index.html\0", other + b"100644 index.html\0"))
    name = clone.git("hash-object", "-t", "tree", "-w", "--literally", str(place))
    clone.git("reset", "-q", "--soft", clone.git("commit-tree", name, "-p", "HEAD", "-m", "mine"))
    sign_head(clone.folder, clone.signer)
    with clone.checked() as repository:
        assert "may change what visitors see: index.html." in " ".join(
            verdict.sentence for verdict in verdicts(repository)
        )


@pytest.mark.parametrize("kind", [a_file, a_link, a_submodule])
def test_whatever_else_is_signed_is_named(clone: Git, kind: Callable[[Git, str], None]) -> None:
    """In the worker's folders it is a contradiction; elsewhere, the report says whether visitors may see it."""
    for path in (
        "leaderboard/x.json",
        "ids/x",
        "reveal/dev/x",
        "reveal/x",
        "404.html",
        "CNAME",
        "notes/other",
    ):
        clone.git("reset", "-q", "--hard", "origin/main")
        kind(clone, path)
        clone.git("commit", "-qm", "mine")
        sign_head(clone.folder, clone.signer)
        with clone.checked() as repository:
            all_verdicts = list(verdicts(repository))
        wrong = [verdict for verdict in all_verdicts if verdict.status is Status.CONTRADICTED]
        assert all(path in verdict.sentence for verdict in wrong)
        assert bool(wrong) == is_own(path), path
        assert [
            verdict for verdict in all_verdicts if verdict.check != "signature" and path in verdict.sentence
        ]
