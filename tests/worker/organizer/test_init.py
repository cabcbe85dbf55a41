"""`init` and the annotated configuration."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.tasks import load_tasks
from tests.worker.harness.terminal import shown
from worker.challenge.configuration import Configuration, load
from worker.challenge.secrets import read_challenge_secret
from worker.cli import guarded
from worker.organizer import scaffold
from worker.organizer.resources import shipped

NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
CODENAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,9}", fullmatch=True) | st.sampled_from(
    ["on", "no", "null", "12", "1e3"]
)
PLAN = scaffold.NewChallenge(title="A challenge", phases={"dev": 4, "eval": 6}, dim=64)


def keys(document: Mapping[str, Any]) -> set[str]:
    """Return the dotted keys of a document."""
    return set(pd.json_normalize(document).columns)


def test_example_has_every_key_and_no_other() -> None:
    """The annotated example and the model have the same keys."""
    path = shipped("config/challenge.yaml")
    configuration = load(path)
    assert keys(yaml.safe_load(path.read_text(encoding="utf-8"))) == keys(configuration.model_dump())
    assert set(configuration.phases) == {"dev", "eval"}


def test_values_called_default_are_the_defaults() -> None:
    """A value whose comment calls it the default can be left out without any change."""
    path = shipped("config/challenge.yaml")
    whole = load(path)
    lean = [line for line in path.read_text(encoding="utf-8").splitlines() if "# default" not in line]
    document = {key: value for key, value in yaml.safe_load("\n".join(lean)).items() if value is not None}
    assert len(lean) < len(path.read_text(encoding="utf-8").splitlines()) - 30
    assert Configuration.model_validate(document).model_dump() == whole.model_dump()


def test_init_makes_a_challenge_that_loads(tmp_path: Path) -> None:
    """The worker can load configuration, secret, tasks and ids; the rules proposed are the Ladder, and no values before the end."""
    scaffold.create(tmp_path / "c", PLAN, now=NOW)
    configuration = load(tmp_path / "c" / "challenge.yaml")
    assert {name: phase.folds for name, phase in configuration.phases.items()} == {"dev": 4, "eval": 6}
    assert configuration.submission.embedding_dim == 64
    dev, last = configuration.phases.values()
    assert (dev.selection, dev.ladder_step, dev.shown) == ("ladder", 0.5, "at_once")
    assert (last.selection, last.shown, last.eligible_if_scored_in) == ("last", "at_end", "dev")
    secret = configuration.path(configuration.challenge.secret)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    for phase in configuration.phases.values():
        ids = read_ids(configuration.path(phase.ids))
        assert list(ids) == sorted(set(ids))
        tasks = load_tasks(configuration.path(phase.tasks), ids)
        assert {i for task in tasks for i in task.ids} == set(ids)
        assert len({task.row_set for task in tasks}) == 2
    scaffold.create(tmp_path / "one", replace(PLAN, phases={"dev": 4}), now=NOW)
    (only,) = load(tmp_path / "one" / "challenge.yaml").phases.values()
    assert (only.selection, only.shown) == ("ladder", "at_once")
    other = read_challenge_secret(tmp_path / "one" / "challenge.secret")
    assert len(read_challenge_secret(secret)) == len(other) == 32
    assert read_challenge_secret(secret) != other


@pytest.mark.parametrize("name", ["challenge.yaml", "challenge.secret", "tasks", "bundle.zip"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    """If any file of a challenge exists, nothing is written."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(OrganizerError, match="exists"):
        scaffold.create(tmp_path, PLAN, now=NOW)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_folds_for_all_or_for_each() -> None:
    """One number applies to all phases; otherwise each phase has one."""
    assert scaffold.with_folds(["a", "b"], [3]) == {"a": 3, "b": 3}
    assert scaffold.with_folds(["a", "b"], [3, 4]) == {"a": 3, "b": 4}
    for phases, folds in ((["a", "b", "c"], [1, 2]), (["dev", "Dev"], [1]), (["a/b"], [1])):
        with pytest.raises(OrganizerError):
            scaffold.with_folds(phases, folds)


@given(
    title=st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1),
    phases=st.lists(CODENAMES, min_size=1, max_size=4, unique_by=str.casefold),
    dim=st.integers(1, 4096),
)
def test_any_plan_becomes_its_configuration(title: str, phases: list[str], dim: int) -> None:
    """Values are kept exactly, whatever YAML would make of them."""
    new = scaffold.NewChallenge(title=title, phases=dict.fromkeys(phases, 7), dim=dim)
    configuration = Configuration.model_validate(yaml.safe_load(scaffold.new_configuration(new)))
    assert configuration.challenge.title == title
    assert configuration.submission.embedding_dim == dim
    assert list(configuration.phases) == phases
    *_, last = configuration.phases.values()
    assert last.eligible_if_scored_in == (phases[0] if len(phases) > 1 else None)


def test_init_writes_what_an_organizer_decides_and_nothing_else(tmp_path: Path) -> None:
    """About fifteen lines, without another challenge's values or a path on this machine, and with every key for editors."""
    scaffold.create(tmp_path / "c", PLAN, now=NOW)
    text = (tmp_path / "c" / "challenge.yaml").read_text(encoding="utf-8")
    keys_said = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(keys_said) <= 20
    assert "2465" not in text
    assert "Embed2Scale" not in text
    assert str(shipped("config")) not in text
    (schema,) = re.findall(r"\$schema=(\S+)$", text, re.MULTILINE)
    written = json.loads((tmp_path / "c" / schema).read_text(encoding="utf-8"))
    assert written == Configuration.model_json_schema()
    assert "required" not in written["$defs"]["Phase"]
    assert yaml.safe_load(text)["evalai"]["challenge"] == 0


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--dim=many", "Invalid value for '--dim'"),
        ("--folds=0", "Invalid value for '--folds'"),
        ("--phase=a/b", "'a/b' cannot be a phase's codename"),
        ("--repository=hmm", "'hmm' is not the address of a git repository"),
    ],
)
def test_wrong_options_get_a_sentence(
    tmp_path: Path, option: str, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It names the option or what it stands for, and the given value; nothing is written."""
    assert guarded(["init", str(tmp_path / "c"), "--yes", option]) == 2
    assert sentence in capfd.readouterr().err
    assert not (tmp_path / "c").exists()


def test_wrong_answers_are_asked_again(tmp_path: Path) -> None:
    """At a terminal, each wrong answer gets a sentence and the same question; the next commands come last."""
    text = shown("init", str(tmp_path / "c"), answers="Mine\nmany\n64\na/b\ndev\nlater\n", COLUMNS="200")
    assert "must be a whole number of at least 1, not 'many'" in text
    assert "'a/b' cannot be a phase's codename" in text
    configuration = load(tmp_path / "c" / "challenge.yaml")
    assert configuration.challenge.title == "Mine"
    assert (configuration.submission.embedding_dim, list(configuration.phases)) == (64, ["dev"])
    assert "neuco-worker rehearse --config" in text.partition("Try it now")[2]
    steps = text.partition("Before launch:")[2]
    assert "neuco-worker doctor --config" in steps
    assert "After the upload" in steps  # the queue exists from the upload on, before the approval
