"""Draws in the liar's kit: organizers commit, announce values and mix them in, with the product's own functions and any clock.

The organizers have the secret, the key and the software. They can repeat these steps, look at each result, and publish the one that they
like best. All scores are then computed again on the resulting splits, and everything else is made consistent with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from scoring.engines import make_engine
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.inputs.submission import read_submission
from scoring.metrics import shown
from scoring.randomness import phase_key, secret_commitment
from scoring.scorecard import folds_to_json
from scoring.tasks import load_tasks
from tests.acceptance.fair_challenge import PHASES
from tests.acceptance.liar import EVERY, Story
from tests.acceptance.lies import score
from worker.challenge.records import PhaseRecord
from worker.challenge.secrets import public_value, split_key
from worker.challenge.setups import PhaseSetup, put_on_record
from worker.fairness import commitments, events
from worker.fairness.drand import QUICKNET, value_of
from worker.organizer.reveal import label_csv
from worker.state import Store

# Real rounds of the network. Their signatures cannot be made without the network's keys.
ROUND, EARLIER = 657413, 1000
SIGNATURES = {
    ROUND: "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
    EARLIER: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
}
AT = QUICKNET.made_at(ROUND)
NAMED, MIXED = AT - timedelta(minutes=11), AT + timedelta(minutes=1)
BEGUN = AT + timedelta(minutes=15)
"""The time at which submissions begin, after all commitments."""
TEAMS, WINNER = ("A", "B", "C"), "C"
"""The teams, and the one that dishonest organizers want to win."""


def named(number: int = ROUND, **otherwise: Any) -> dict[str, Any]:
    """Return the announcement of a round as a commitment publishes it."""
    told = {"source": QUICKNET.name, "at": QUICKNET.made_at(number).isoformat(), "round": number}
    return {**told, "chain": QUICKNET.to_json(), **otherwise}


def mixed(number: int = ROUND, **otherwise: Any) -> dict[str, Any]:
    """Return the record of a mixed-in round as a commitment publishes it."""
    signature = otherwise.get("signature", SIGNATURES[number])
    return {"round": number, "signature": signature, "value": value_of(signature), **otherwise}


@dataclass(frozen=True)
class Sent:
    """The unpublished data that organizers have of a challenge.

    Attributes:
        records: Phase to its record.
        contents: Content hash to the submitted embeddings.
        secret: The challenge's secret.
    """

    records: Mapping[str, PhaseRecord]
    contents: Mapping[str, Embeddings]
    secret: bytes


def read_sent(records: Mapping[str, PhaseRecord], files: Sequence[Path], secret: bytes) -> Sent:
    """Read the submitted files."""
    record = records["dev"]
    dim = record.protocol.embedding_dim
    read = [read_submission(file, record.ids, dim, max_expanded_bytes=10**7) for file in files]
    return Sent(records=records, contents={one.content_hash: one for one in read}, secret=secret)


class Organizers:
    """Organizers who commit, in a database of their own.

    Args:
        story: The story, which their actions change.
        sent: Their unpublished data.
        folder: Folder of their database.
    """

    def __init__(self, story: Story, sent: Sent, folder: Path) -> None:
        self.secret = sent.secret
        self.records = dict(sent.records)
        self._story, self._sent, self._folder = story, sent, folder
        self._state().close()

    def commit(
        self,
        at: datetime,
        *,
        draw: Mapping[str, Any] | None = None,
        drawn: Mapping[str, Any] | None = None,
    ) -> None:
        """Commit to the current secret and tasks.

        Args:
            at: The claimed time of the commitment.
            draw: The announcement of a value for all phases.
            drawn: The value of a draw that they mix in.
        """
        with closing(self._state()) as store, store.write() as tx:
            before = [entry for entry, _ in tx.commitments()]
            values = (
                {}
                if drawn is None
                else {name: {"round": None, "signature": None, **drawn} for name in PHASES}
            )
            setups = [self._setup(name, public_value([*before, {"drawn": values}], name)) for name in PHASES]
            for setup in setups:
                put_on_record(tx, setup.record, now=at)
            commitments.commit(
                tx,
                self.secret,
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
        record, folder = self.records["dev"], self._folder / "labels"
        folder.mkdir()
        for task in record.tasks:
            name = f"{task.name}__{task.type.value}.csv"
            lines = label_csv(task).splitlines()
            if task.name == "alpha":
                lines[5] = lines[5].rpartition(",")[0] + ",0.125"
            (folder / name).write_text("\n".join(lines) + "\n")
            self._story.hidden["dev"][f"reveal/dev/labels/{name}"] = (folder / name).read_bytes()
        self.records["dev"] = replace(record, tasks=tuple(load_tasks(folder, record.ids)))

    def grind(self, value: str | None) -> None:
        """Try secrets until the wanted team wins, given the value that is mixed in."""
        tried = iter(range(1, 1000))
        while self.best(value) != WINNER:
            self.secret = next(tried).to_bytes(32, "big")

    def grind_value(self) -> str:
        """Try values until the wanted team wins, and return that value."""
        values = (f"{number:02} 15 26 35 41 49" for number in range(1, 1000))
        return next(value for value in values if self.best(value) == WINNER)

    def tell(self) -> Story:
        """Return the story with the commitments, their openings, and the scores on the resulting splits."""
        with closing(self._state()) as store, store.read() as tx:
            made = tx.commitments()
        story = self._story
        story.entries = [entry for entry, _ in made]
        for name in PHASES:
            setup = self._setup(name, public_value(story.entries, name))
            story.reveals[name] |= {
                "key": phase_key(self.secret, name).hex(),
                "commitments": [
                    {
                        "sequence": entry["sequence"],
                        "opening": private["opening"],
                        "manifest": private["manifests"].get(name),
                    }
                    for entry, private in made
                ],
            }
            for told in story.of(events.PHASE, name):
                changed = {
                    "record": setup.record.hash,
                    "protocol": setup.record.protocol.hash,
                    "tasks": setup.record.versions,
                }
                told.fields |= {**changed, "tasks": dict(setup.record.versions)}
            for told in story.of(events.SCORE, name):
                self._score(told.fields, setup)
        return story

    def _score(self, fields: dict[str, Any], setup: PhaseSetup) -> None:
        card = self._card(fields["content"], setup)
        fields["protocol"] = setup.record.protocol.hash
        fields["q_mean"] = shown(card.q_mean, setup.record.rules.decimals)
        for task in card.tasks:
            cell = fields["cells"][task.task]
            cell |= {"version": task.version, "folds": folds_to_json(task.folds)}

    def best(self, value: str | None = None) -> str:
        """Return the team whose last submission has the highest mean Q in phase dev, given the value that is mixed in."""
        setup = self._setup("dev", value)
        means = {team: self._card(score(self._story, team).fields["content"], setup).q_mean for team in TEAMS}
        return max(means, key=lambda team: means[team])

    def _card(self, content: str, setup: PhaseSetup) -> Any:
        return score_embeddings(
            self._sent.contents[content],
            setup.record.tasks,
            setup.record.protocol,
            setup.key,
            engine=make_engine("local"),
        )

    def _setup(self, name: str, value: str | None) -> PhaseSetup:
        record, key = self.records[name], split_key(self.secret, name, value)
        protocol = replace(record.protocol, secret_commitment=secret_commitment(key))
        return PhaseSetup(record=replace(record, protocol=protocol), key=key)

    def _state(self) -> Store:
        store = Store(f"sqlite:///{self._folder / 'organizers.db'}")
        with store.write() as tx:
            tx.set_fact("signing_key", self._story.signer.seed.hex())
        return store
