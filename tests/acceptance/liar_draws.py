"""The liar's kit and its draws: organizers commit, name values and mix them in, with the product's own functions and any clock.

They have secret, key and software, so they may do it as often as they like, look what comes of it, and publish what suits them; then all
scores are computed again on the splits that follow, and everything else is made to fit.
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
from scoring.quality import shown
from scoring.randomness import phase_key, secret_commitment
from scoring.scorecard import folds_to_json
from scoring.tasks import load_tasks
from tests.acceptance.liar import PHASES, Story
from tests.acceptance.lies import score
from worker.challenge.keys import public_value, split_key
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import PhaseSetup, put_on_record
from worker.fairness import commitments, events
from worker.fairness.drand import QUICKNET, value_of
from worker.organizer.reveal import label_csv
from worker.state import Store

# Rounds that the network has made; nobody here can make another one.
ROUND, EARLIER = 657413, 1000
SIGNATURES = {
    ROUND: "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
    EARLIER: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
}
AT = QUICKNET.made_at(ROUND)
NAMED, MIXED = AT - timedelta(minutes=11), AT + timedelta(minutes=1)
BEGUN = AT + timedelta(minutes=15)
"""When the first file was sent, and nothing was committed to any more."""
TEAMS, WINNER = ("A", "B", "C"), "C"
"""Whom organizers would like to win."""


def named(number: int = ROUND, **otherwise: Any) -> dict[str, Any]:
    """Return how a round is named."""
    told = {"source": QUICKNET.name, "at": QUICKNET.made_at(number).isoformat(), "round": number}
    return {**told, "chain": QUICKNET.to_json(), **otherwise}


def mixed(number: int = ROUND, **otherwise: Any) -> dict[str, Any]:
    """Return what is published of a round that was mixed in."""
    signature = otherwise.get("signature", SIGNATURES[number])
    return {"round": number, "signature": signature, "value": value_of(signature), **otherwise}


@dataclass(frozen=True)
class Sent:
    """What organizers have of a challenge besides what is published.

    Attributes:
        records: Phase to its record.
        contents: Content hash to the embeddings that were sent.
        secret: The challenge's.
    """

    records: Mapping[str, PhaseRecord]
    contents: Mapping[str, Embeddings]
    secret: bytes


def read_sent(records: Mapping[str, PhaseRecord], files: Sequence[Path], secret: bytes) -> Sent:
    """Read what was sent."""
    record = records["dev"]
    dim = record.protocol.embedding_dim
    read = [read_submission(file, record.ids, dim, max_expanded_bytes=10**7) for file in files]
    return Sent(records=records, contents={one.content_hash: one for one in read}, secret=secret)


class Organizers:
    """Organizers at work: a state of their own, in which they commit.

    Args:
        story: What happened; it is told by what they do here.
        sent: What they have besides.
        folder: Where their state is.
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
        beacon: str | None = None,
    ) -> None:
        """Commit to everything as it is now, whatever that means for whom.

        Args:
            at: When, as they say.
            draw: The value that they name for all phases.
            drawn: The value that they mix in.
            beacon: A value that they mix in without having named it.
        """
        with closing(self._state()) as store, store.write() as tx:
            before = [entry for entry, _ in tx.commitments()]
            told = {"beacon": beacon, "drawn": None if drawn is None else dict.fromkeys(PHASES, drawn)}
            setups = [self._setup(name, public_value([*before, told], name)) for name in PHASES]
            for setup in setups:
                put_on_record(tx, setup.record, files=None, now=at)
            commitments.commit(
                tx,
                self.secret,
                setups,
                reason="as announced",
                now=at,
                beacon=beacon,
                draws=None if draw is None else dict.fromkeys(PHASES, draw),
                drawn=told["drawn"],
                publish_files="baselines",
            )

    def change_label(self) -> None:
        """Change a label of a task of phase dev."""
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
        """Try secrets until the winner is whom they like, with a value that is mixed in."""
        tried = iter(range(1, 1000))
        while self.best(value) != WINNER:
            self.secret = next(tried).to_bytes(32, "big")

    def grind_value(self) -> str:
        """Try values until the winner is whom they like, and return the value."""
        values = (f"{number:02} 15 26 35 41 49" for number in range(1, 1000))
        return next(value for value in values if self.best(value) == WINNER)

    def tell(self) -> Story:
        """Publish all of it: scores on the splits that follow, commitments, what opens them."""
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
                changed = {"record": setup.record.hash, "protocol": setup.protocol.hash, "tasks": setup.tasks}
                told.fields |= {**changed, "tasks": dict(setup.tasks)}
            for told in story.of(events.SCORE, name):
                self._score(told.fields, setup)
        return story

    def _score(self, fields: dict[str, Any], setup: PhaseSetup) -> None:
        card = self._card(fields["content"], setup)
        fields["protocol"] = setup.protocol.hash
        fields["q_mean"] = shown(card.q_mean, setup.rules.decimals)
        for task in card.tasks:
            cell = fields["cells"][task.task]
            cell |= {"version": task.version, "folds": folds_to_json(task.folds)}

    def best(self, value: str | None = None) -> str:
        """Return the team whose last submission has the highest mean Q in phase dev, with a value that is mixed in."""
        setup = self._setup("dev", value)
        means = {team: self._card(score(self._story, team).fields["content"], setup).q_mean for team in TEAMS}
        return max(means, key=lambda team: means[team])

    def _card(self, content: str, setup: PhaseSetup) -> Any:
        return score_embeddings(
            self._sent.contents[content],
            setup.record.tasks,
            setup.protocol,
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
