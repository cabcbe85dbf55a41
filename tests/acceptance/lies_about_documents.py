"""Lies about what is published: the register, the log, commitments, the reveal, the page."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pandas as pd

from scoring.evaluate import tested
from scoring.inputs.tables import LabelRow
from scoring.randomness import test_parts
from scoring.tasks import Task, TaskType, make_task
from tests.acceptance.fair_challenge import REVEAL, revealed, with_reveal
from tests.acceptance.liar import EVERY, Story
from tests.acceptance.lie import Lie, Tell, score
from tests.worker.harness.harness import IDS
from worker.fairness import commitments, events, manifests, receipts
from worker.verify.public import PublicRepository


def _leave_out(team: str) -> Tell:
    def tell(story: Story) -> None:
        sent = {event.fields["submission"] for event in story.events if event.fields.get("team") == team}
        for event in story.events:
            event.left_out = event.left_out or event.fields.get("submission") in sent

    return tell


def _in_another_format(story: Story) -> None:
    _leave_out("C")(story)
    lines = {story.due(event.at) for event in story.events if event.left_out}

    def line(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "format": 2} if body["sequence"] in lines else body

    story.on_lines = line


def _restored(story: Story, *, later: int) -> None:
    _leave_out("C")(story)
    lines = [story.due(event.at) for event in story.events if event.left_out]
    fields = {"kind": events.CHALLENGE, "phase": None, "what": "restored", "text": "A backup was restored."}
    story.add(
        fields,
        story.log[max(lines) - 1 + later] + timedelta(minutes=5),
    )
    lost = {"first": min(lines), "last": max(lines)}
    number = max(lines) + 1 + later
    story.on_lines = lambda body: {**body, "restored": lost} if body["sequence"] == number else body


def _without_register(story: Story) -> None:
    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        document = json.loads(before[REVEAL])
        for part in range(1, document.pop("parts") + 1):
            del before[f"reveal/dev/register-{part}.jsonl"]
        return {**before, REVEAL: json.dumps(document).encode()}

    story.on_files = files


def _all_in_the_last_line(story: Story) -> None:
    for event in story.events:
        event.line = len(story.log)


def _one_line(story: Story) -> None:
    story.log = story.log[-1:]


def _line_runs_back(story: Story) -> None:
    story.log[3] -= 3 * EVERY
    for event in story.events:
        event.line = event.line or (4 if event.at > story.log[2] and event.at <= story.log[4] else None)


def _before_its_line(story: Story) -> None:
    score(story, "C").line = 1


def _regrouped(group: Callable[[int, str], str]) -> Callable[[Story], dict[str, list[LabelRow]]]:
    """Return a lie that gives the samples of phase dev other groups, also in the published label files, and returns the rows of each."""

    def change(story: Story) -> dict[str, list[LabelRow]]:
        tables = {}
        for path, content in story.hidden["dev"].items():
            if "/labels/" in path:
                table = pd.read_csv(io.BytesIO(content), dtype={"id": str, "label": str})
                table["group"] = [group(row, name) for row, name in enumerate(table["group"])]
                if not table["group"].all():
                    table = table.drop(columns="group")
                story.hidden["dev"][path] = table.to_csv(index=False, lineterminator="\n").encode()
                tables[path.rpartition("/")[2]] = [
                    LabelRow(line, name, float(label), *rest)
                    for line, (name, label, *rest) in enumerate(table.itertuples(index=False), 2)
                ]
        return tables

    return change


def regroup_from_the_start(story: Story) -> None:
    """Give samples other groups, and commit to these, as if the scores had been made with them."""
    versions: dict[str, str] = {}
    tasks: dict[str, Task] = {}
    tables = _regrouped(lambda row, _: f"tile {row % 12}")(story)
    manifests_of_dev = story.reveals["dev"]["manifests"].values()
    grouped = {task["version"] for manifest in manifests_of_dev for task in manifest["tasks"]}

    def change(manifest: dict[str, Any], _: dict[str, Any]) -> None:
        for task in manifest["tasks"]:
            if task["version"] in grouped:
                rows = tables[f"{task['identifier']}__{task['type']}.csv"]
                made = make_task(
                    task["identifier"], TaskType(task["type"]), rows, frozenset(IDS), source="a lie"
                )
                versions[task["version"]], tasks[made.version] = made.version, made
                task["version"], task["labels"] = (
                    made.version,
                    manifests.labels_hash(rows, bytes.fromhex(task["salt"])),
                )

    story.recommit(change)
    _rename_versions(story, versions)
    protocol, key = story.records["dev"].protocol, bytes.fromhex(story.reveals["dev"]["key"])
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            made = tasks[cell["version"]]
            tests = tested(made.row_set, made.groups, protocol, key)
            cell |= {"row_set": made.row_set, "test_parts": list(test_parts(tests))}


def _rename_versions(story: Story, others: dict[str, str]) -> None:
    """Give tasks other versions in what is registered."""
    for event in story.of(events.PHASE):
        event.fields["tasks"] = {
            name: others.get(version, version) for name, version in event.fields["tasks"].items()
        }
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            cell["version"] = others.get(cell["version"], cell["version"])


def _other_versions(story: Story) -> None:
    """Name a version of a task that is not the hash of its labels, wherever it is named."""
    other: dict[str, str] = {}

    def change(manifest: dict[str, Any], _: dict[str, Any]) -> None:
        task = manifest["tasks"][0]
        task["version"] = other.setdefault(task["version"], "ab" * 32)

    story.recommit(change)
    _rename_versions(story, other)


def _once_more(**keys: Any) -> Tell:
    """Commit to the same again after the scores, with other values of some keys."""

    def tell(story: Story) -> None:
        entry = copy.deepcopy(story.entries[-1])
        after = max(event.at for event in story.of(events.SCORE)) + timedelta(minutes=1)
        entry |= {"sequence": len(story.entries) + 1, "made_at": after.isoformat(timespec="seconds"), **keys}
        story.entries.append(entry)
        for reveal in story.reveals.values():
            (*_, manifest) = reveal["manifests"].values()
            reveal["manifests"][str(entry["sequence"])] = copy.deepcopy(manifest)
        story.sign_entries()

    return tell


def _epochs_in_a_last_commitment(story: Story) -> None:
    _once_more()(story)
    story.recommit(lambda _, announced: announced["recipe"].update(epochs=30), first=len(story.entries) - 1)


def _drop_a_phase(story: Story) -> None:
    """Commit again to all phases but one."""
    _once_more()(story)
    *earlier, last = story.entries
    last = {**last, "phases": {"dev": last["phases"]["dev"]}}
    listed = [*earlier, commitments.signed(last, story.signer)]
    story.on_files = lambda files: {**files, commitments.PATH: json.dumps(listed).encode()}


def _entry(change: Callable[[dict[str, Any]], object]) -> Tell:
    def tell(story: Story) -> None:
        change(story.entries[0])
        story.sign_entries()

    return tell


def _line(**keys: Any) -> Tell:
    return lambda story: setattr(story, "on_lines", lambda body: {**body, **keys})


def _key_twice(story: Story) -> None:
    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        listed = before["commitment.json"].replace(b'"reason"', b'"reason": "none", "reason"', 1)
        return {**before, "commitment.json": listed}

    story.on_files = files


def _reveal_with(**keys: Any) -> Tell:
    return lambda story: story.reveals["dev"].update(keys)


def _in_another_order(files: dict[str, bytes]) -> dict[str, bytes]:
    """Put the events of phase dev in the order of their submissions, as if one had happened after the other."""
    repository = PublicRepository(files=files)
    document = revealed(repository)
    document["register"].sort(key=lambda opening: opening.get("fields", {}).get("submission", 0))
    return dict(with_reveal(repository, document).files)


def _other_line_ends(files: dict[str, bytes]) -> dict[str, bytes]:
    return {**files, receipts.PATH: files[receipts.PATH].replace(b"\n", b"\r")}


def _hidden_signatures(files: dict[str, bytes]) -> dict[str, bytes]:
    """Write signatures so that a search for them does not find them in an older copy."""
    return {**files, receipts.PATH: files[receipts.PATH].replace(b'"signature"', rb'"\u0073ignature"')}


def _old_board_on_the_page(story: Story) -> None:
    """Show the board from before the winner's last submission, while the history goes on."""
    story.revealed = ()
    path = "leaderboard/history.jsonl"
    history = copy.deepcopy(story).publish().files[path]
    story.on_boards = lambda made: made[:-1]
    story.on_files = lambda files: {**files, path: history}


def _shown_without_a_reveal(story: Story) -> None:
    """Show tasks, weights and intervals on the page, and reveal nothing."""
    shown = copy.deepcopy(story).publish().files
    story.revealed = ()
    story.on_files = lambda files: {path: shown[path] for path in files}


def _another_board(files: dict[str, bytes]) -> dict[str, bytes]:
    """Put a board of one's own after a marker without an end, before the challenge's."""
    title, marker, rest = files["README.md"].partition(b"<!-- neuco-worker:begin -->\n")
    return {**files, "README.md": title + marker + b"\nThe winner is B.\n\n" + marker + rest}


def _text_around(files: dict[str, bytes]) -> dict[str, bytes]:
    return {
        **files,
        "README.md": b"# Tiny\n\nThe winner is B.\n\n" + files["README.md"].partition(b"\n\n")[2],
    }


DOCUMENTS: dict[str, Lie] = {
    "a team left out of the reveal": Lie(_leave_out("C"), "register"),
    "lines of another format, which nobody opens": Lie(_in_another_format, "receipts"),
    "a restore of lines long ago": Lie(lambda story: _restored(story, later=2), "receipts"),
    "a reveal without its register": Lie(_without_register, "dev: reveal"),
    "all in the last line": Lie(_all_in_the_last_line, "dev: register"),
    "an event in a line before it": Lie(_before_its_line, "dev: register"),
    "lines whose times run back": Lie(_line_runs_back, "receipts"),
    "another grouping in the reveal": Lie(
        _regrouped(lambda row, _: f"tile {row // 5}"),
        "dev: labels",
        "The labels of task alpha are not the ones committed to",
    ),
    "a reveal without groups": Lie(
        _regrouped(lambda *_: ""), "dev: labels", "The labels of task alpha are not the ones committed to"
    ),
    "versions that the labels do not have": Lie(
        _other_versions,
        "dev: labels",
        "The version of task alpha in commitment 1 is not the hash of its labels",
    ),
    "other epochs in a last commitment": Lie(
        _epochs_in_a_last_commitment,
        "dev: fixed",
        "the protocol of commitment 2 were never registered as a decision",
    ),
    **{
        f"a last commitment with another {name}": Lie(
            _once_more(**{name: value}),
            "commitment",
            "commitment 2 states something that only the first one may",
        )
        for name, value in (
            ("access", "Nobody"),
            ("receipts_every", 60.0),
            ("publish_files", "top:3"),
            ("drawn", {"ghost": "ab" * 48}),
            ("key", "ab" * 32),
        )
    },
    "a last commitment without a phase": Lie(_drop_a_phase, "commitment", "or lacks a phase that"),
    "no rule for published files": Lie(
        _entry(lambda entry: entry.pop("publish_files")),
        "commitment",
        "commitment.json, entry 1: publish_files: is missing",
    ),
    "a protocol without epochs": Lie(
        _entry(lambda entry: entry["phases"]["dev"]["recipe"].pop("epochs")),
        "commitment",
        "commitment.json, entry 1: phases.dev.recipe.epochs: is missing",
    ),
    "a commitment in another time zone": Lie(
        _entry(lambda entry: entry.update(made_at="2023-09-15T13:00:00+01:00")),
        "commitment",
        "made_at: Value error, not a time in UTC",
    ),
    "a commitment from the future": Lie(
        _entry(lambda entry: entry.update(made_at="2999-01-01T00:00:00+00:00")),
        "times",
        "entry 1 of commitment.json is dated in the future",
    ),
    "a key twice": Lie(_key_twice, "commitment", "a key occurs twice"),
    "a line with its own cadence": Lie(_line(every=315360000), "receipts", "line 1: every: is unknown"),
    "a line with too few entries": Lie(_line(entries=[]), "receipts", "receipts.jsonl, line 1: entries: "),
    "another key in a reveal": Lie(_reveal_with(rules={}), "dev: reveal", "reveal.json: rules: is unknown"),
    "a reveal of another phase": Lie(_reveal_with(phase="eval"), "dev: reveal", "phase: is eval"),
    "an entry that was never registered": Lie(
        lambda story: story.drop(story.about(story.sent_by("A")[-1])),
        words="whether one is missing from the register",
        receipt="The public log was changed after you were answered.",
    ),
    "a score that was never registered": Lie(
        lambda story: story.drop([score(story, "A")]),
        words="(it has no score on the present tasks; registered on",
        receipt="Every phase has been revealed, but your score is in none of them.",
    ),
    "entries lost with a backup": Lie(
        lambda story: _restored(story, later=0), words="the keys were lost when the state was restored"
    ),
    "one line for a whole day": Lie(_one_line, words="hours later than announced"),
    "other labels next to their hashes": Lie(
        _reveal_with(labels="hashes"), words="these files are not the worker's: reveal/dev/labels/"
    ),
    "half a reveal": Lie(
        lambda story: setattr(story, "revealed", ("dev",)),
        words="Not revealed: tasks, splits, scores and ranks cannot be checked.",
    ),
    "the other half": Lie(
        lambda story: setattr(story, "revealed", ("eval",)),
        words="its rules ask for a score in phase dev, which has not been revealed",
    ),
    "another close on the page": Lie(lambda story: setattr(story, "closed_told", story.log[1]), "dev: page"),
    "a renewal without a reason": Lie(_once_more(reason=""), words="They renewed it 1 time"),
    "events in another order": Lie(
        lambda story: setattr(story, "on_files", _in_another_order), "dev: reveal", "events are not in order"
    ),
    "a log with other line ends": Lie(
        lambda story: setattr(story, "on_files", _other_line_ends), "receipts", "it is not valid JSON"
    ),
    "signatures that a search does not find": Lie(
        lambda story: setattr(story, "on_files", _hidden_signatures),
        "signatures",
        "line 1 of the public log is not signed",
    ),
    "an older board on the page than in the history": Lie(
        _old_board_on_the_page,
        "dev: page",
        "the page shows board 4, and the newest one in the history is board 5",
    ),
    "tasks on the page without a reveal": Lie(_shown_without_a_reveal, "dev: page", "leaderboard/dev.json"),
    "another board next to the board": Lie(
        lambda story: setattr(story, "on_files", _another_board), words="The winner is B."
    ),
    "words around the board": Lie(
        lambda story: setattr(story, "on_files", _text_around), words="The winner is B.”"
    ),
    "chosen splits": Lie(lambda _: None, words="the organizers could have tried many and chosen some"),
    "earlier boards": Lie(lambda _: None, words="tie groups and intervals of all boards but the last"),
}
