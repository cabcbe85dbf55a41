"""Draws in the liar's kit: organizers commit, announce values and mix them in, with the product's own functions and any clock.

The organizers have the secret, the key and the software. They can repeat these steps, look at each result, and publish the one that they
like best. All scores are then computed again on the resulting splits, and everything else is made consistent with them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scoring.engines import make_engine
from scoring.evaluate import score_embeddings
from scoring.metrics import shown
from scoring.randomness import phase_key, secret_commitment
from scoring.scorecard import folds_to_json
from scoring.tasks import load_tasks
from tests.acceptance.fair_challenge import PHASES
from tests.acceptance.liar import EVERY, Story
from tests.acceptance.lie import Lie, Tell, score
from tests.worker.harness.harness import SECRET
from worker.challenge.secrets import public_value, split_key, value_of
from worker.challenge.setups import PhaseSetup, put_on_record
from worker.fairness import commitments, events
from worker.fairness.drand import QUICKNET, Chain
from worker.organizer.rehearsal.practice_draw import practice_chain, sign
from worker.publishing.reveals import label_csv
from worker.state import Store

# Real rounds of the network. Their signatures cannot be made without the network's keys.
ROUND, EARLIER = 657413, 1000
SIGNATURES = {
    ROUND: "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
    EARLIER: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
}
AT = QUICKNET.made_at(ROUND)
NAMED, MIXED = AT - timedelta(minutes=11), AT + timedelta(minutes=1)
TEAMS, WINNER = ("A", "B", "C"), "C"
"""The teams, and the one that dishonest organizers want to win."""


def named(number: int = ROUND, chain: Chain = QUICKNET) -> dict[str, Any]:
    """Return the announcement of a round as a commitment publishes it."""
    return {"round": number, "chain": chain.to_json()}


class Organizers:
    """Organizers who commit, in a database of their own.

    Args:
        story: The story, which their actions change.
        folder: Folder of their database.
    """

    def __init__(self, story: Story, folder: Path) -> None:
        self.secret = bytes.fromhex(SECRET)
        self._story, self._folder = story, folder

    def commit(self, at: datetime, draw: dict[str, Any] | None = None, drawn: str | None = None) -> None:
        """Commit to the current secret and tasks.

        Args:
            at: The claimed time of the commitment.
            draw: The announcement of a round for all phases.
            drawn: The signature of the round that they mix in.
        """
        values = {} if drawn is None else dict.fromkeys(PHASES, drawn)
        with closing(self._state()) as store, store.write() as tx:
            before = [*(entry for entry, _ in tx.commitments()), {"drawn": values}]
            setups = [self._setup(name, public_value(before, name)) for name in PHASES]
            for setup in setups:
                put_on_record(tx, setup.record)
            commitments.commit(
                tx,
                self._story.signer,
                setups,
                reason="as announced",
                now=at,
                draws=None if draw is None else dict.fromkeys(PHASES, draw),
                drawn=values,
                publish_files="baselines",
                receipts_every=EVERY.total_seconds(),
            )

    def change_label(self) -> None:
        """Change one label of a task in phase dev."""
        record, folder = self._story.records["dev"], self._folder / "labels"
        folder.mkdir()
        for task in record.tasks:
            name = f"{task.name}__{task.type.value}.csv"
            lines = label_csv(task).splitlines()
            if task.name == "alpha":
                identifier, _, group = lines[5].split(",")
                lines[5] = f"{identifier},0.125,{group}"
            (folder / name).write_text("\n".join(lines) + "\n")
            self._story.hidden["dev"][f"reveal/dev/labels/{name}"] = (folder / name).read_bytes()
        self._story.records["dev"] = replace(record, tasks=tuple(load_tasks(folder, record.ids)))

    def grind(self, value: str | None) -> None:
        """Try secrets until the wanted team wins, given the value that is mixed in."""
        tried = iter(range(1, 1000))
        while self._best(value) != WINNER:
            self.secret = next(tried).to_bytes(32, "big")

    def tell(self) -> None:
        """Put the commitments, their openings, and the scores on the resulting splits into the story."""
        with closing(self._state()) as store, store.read() as tx:
            made = tx.commitments()
        story = self._story
        story.entries = [entry for entry, _ in made]
        for name in PHASES:
            setup = self._setup(name, public_value(story.entries, name))
            story.reveals[name] |= {
                "key": phase_key(self.secret, name).hex(),
                "manifests": {
                    str(entry["sequence"]): private["manifests"][name]
                    for entry, private in made
                    if name in private["manifests"]
                },
            }
            record = setup.record
            for event in story.of(events.PHASE, name):
                versions = dict(record.versions)
                event.fields |= {"record": record.hash, "protocol": record.protocol.hash, "tasks": versions}
            for event in story.of(events.SCORE, name):
                card = self._card(event.fields["content"], setup)
                event.fields |= {
                    "protocol": record.protocol.hash,
                    "q_mean": shown(card.q_mean, record.rules.decimals),
                }
                for task in card.tasks:
                    event.fields["cells"][task.task] |= {
                        "version": task.version,
                        "test_parts": list(task.test_parts),
                        "folds": folds_to_json(task.folds),
                    }

    def _best(self, value: str | None) -> str:
        """Return the team whose last submission has the highest mean Q in phase dev, given the value that is mixed in."""
        setup = self._setup("dev", value)
        means = {team: self._card(score(self._story, team).fields["content"], setup).q_mean for team in TEAMS}
        return max(TEAMS, key=means.__getitem__)

    def _card(self, content: str, setup: PhaseSetup) -> Any:
        record, embeddings = setup.record, self._story.embeddings[content]
        engine = make_engine("local")
        return score_embeddings(embeddings, record.tasks, record.protocol, setup.key, engine=engine)

    def _setup(self, name: str, value: str | None) -> PhaseSetup:
        record, key = self._story.records[name], split_key(self.secret, name, value)
        protocol = replace(record.protocol, secret_commitment=secret_commitment(key))
        return PhaseSetup(record=replace(record, protocol=protocol), key=key)

    def _state(self) -> Store:
        return Store(f"sqlite:///{self._folder / 'organizers.db'}")


Step = Callable[[Organizers], object]
OURS = practice_chain(genesis=QUICKNET.genesis, period_s=QUICKNET.period_s)


def drawn(*steps: Step) -> Tell:
    """Return a lie: organizers take these steps instead of those of the true story."""

    def tell(story: Story) -> None:
        with TemporaryDirectory() as folder:
            organizers = Organizers(story, Path(folder))
            for step in steps:
                step(organizers)
            organizers.tell()

    return tell


def commit(at: datetime, **options: Any) -> Step:
    """Commit at a claimed time."""
    return lambda organizers: organizers.commit(at, **options)


def grind(value: str | None) -> Step:
    """Try secrets until the friend wins."""
    return lambda organizers: organizers.grind(value)


NAME, MIX = commit(NAMED, draw=named()), commit(MIXED, drawn=SIGNATURES[ROUND])
VALUE = value_of(SIGNATURES[ROUND])
BEFORE, AFTER = AT - timedelta(minutes=1), MIXED + timedelta(minutes=1)
FIRST_AT = QUICKNET.made_at(EARLIER)
NAME_FIRST = commit(FIRST_AT - timedelta(minutes=11), draw=named(EARLIER))
MIX_FIRST = commit(FIRST_AT + timedelta(minutes=1), drawn=SIGNATURES[EARLIER])
RELABEL: Step = Organizers.change_label
CONTRADICTED: dict[str, tuple[tuple[Step, ...], str]] = {
    "a signature of our own": ((NAME, commit(MIXED, drawn=sign(ROUND))), "is not the one of round"),
    "another round": ((NAME, commit(MIXED, drawn=SIGNATURES[EARLIER])), "is not the one of round"),
    "a chain of our own by drand's name": (
        (commit(NAMED, draw=named(chain=OURS.model_copy(update={"name": QUICKNET.name}))), MIX),
        "names drand quicknet, but gives the key of another chain",
    ),
    "a round that was known": (
        (commit(AT + timedelta(seconds=30), draw=named()), MIX),
        "which was already known",
    ),
    "an earlier round": (
        (commit(NAMED, draw=named(EARLIER)), commit(MIXED, drawn=SIGNATURES[EARLIER])),
        "which was already known",
    ),
    "a round before it was made": (
        (NAME, commit(BEFORE, drawn=SIGNATURES[ROUND])),
        "which did not exist yet",
    ),
    "a round that nobody named": ((MIX,), "that no commitment had announced"),
    "a round that was named and not used": (
        (grind(None), NAME),
        "was never mixed into its splits",
    ),
    "a second round for one name": (
        (NAME, MIX, commit(AFTER, drawn=SIGNATURES[EARLIER])),
        "that no commitment had announced",
    ),
    "another secret when it was known": (
        (NAME, grind(VALUE), MIX),
        "its secret changed in commitment 2",
    ),
    "other tasks when it was known": ((NAME, RELABEL, MIX), "its tasks changed in commitment 2"),
}
BELIEVED: dict[str, tuple[tuple[Step, ...], str]] = {
    "secrets tried without a value": (
        (grind(None), commit(NAMED)),
        "the organizers could have tried many and chosen some",
    ),
    "a chain of our own": (
        (
            commit(NAMED, draw=named(chain=OURS)),
            commit(MIXED, drawn=sign(ROUND)),
        ),
        "that nobody could choose the values of this chain is taken on trust",
    ),
    "two draws": (
        (NAME_FIRST, MIX_FIRST, NAME, MIX),
        "another round had been named 1 time before, as happens after an interruption or a change",
    ),
    "named again when it was known": ((NAME_FIRST, NAME, MIX), "another round had been named 1 time before"),
    "another secret after the draw": (
        (NAME, MIX, grind(VALUE), commit(AFTER)),
        "its secret changed in commitment 3, when the value was known, so these splits could have been chosen",
    ),
    "other tasks after the draw": (
        (NAME, MIX, RELABEL, commit(AFTER)),
        "its tasks changed in commitment 3, when the value was known, so these splits could have been chosen",
    ),
    "an honest draw": ((NAME, MIX), f"round {ROUND} of drand quicknet (value {VALUE[:16]}"),
}
DRAWS = {
    name: Lie(drawn(*steps), check, words)
    for check, table in (("dev: beacon", CONTRADICTED), ("", BELIEVED))
    for name, (steps, words) in table.items()
}
"""What organizers do to choose a draw, and what the report says of it."""
