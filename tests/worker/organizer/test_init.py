"""`init` and the annotated configuration."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.tasks import load_tasks
from tests.worker.harness.harness import clean_environment
from tests.worker.harness.terminal import shown
from worker.challenge.configuration import Configuration, load
from worker.challenge.secrets import SECRET, SIGNING_KEY, read_bytes
from worker.challenge.signing import fingerprint, read_signer
from worker.cli import guarded
from worker.organizer import scaffold, shipped

NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
CODENAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,9}", fullmatch=True) | st.sampled_from(
    ["on", "no", "null", "12", "1e3"]
)
PLAN = scaffold.NewChallenge(title="A challenge", phases={"dev": 4, "eval": 6}, dim=64)


def test_the_example_has_every_key_and_names_the_defaults() -> None:
    """The annotated example and the model have the same keys; a value whose comment calls it the default can be left out."""
    text = shipped("config/challenge.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    whole = Configuration.model_validate(document).model_dump()
    written, known = (set(pd.json_normalize(keys).columns) for keys in (document, whole))
    assert known - written == set(), "config/challenge.yaml has no line for these keys."
    lean = [line for line in text.splitlines() if "# default" not in line]
    left = {key: value for key, value in yaml.safe_load("\n".join(lean)).items() if value is not None}
    assert len(lean) < len(text.splitlines()) - 30
    assert Configuration.model_validate(left).model_dump() == whole


def test_init_makes_a_challenge_that_loads(tmp_path: Path) -> None:
    """It has what an organizer decides, and every key for editors; the rules proposed are the Ladder, and no values before the end."""
    folder = tmp_path / "c"
    scaffold.create(folder, PLAN, now=NOW)
    text, configuration = (
        (folder / "challenge.yaml").read_text(encoding="utf-8"),
        load(folder / "challenge.yaml"),
    )
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith("#")]) <= 22
    assert not [word for word in ("2465", "Embed2Scale", str(shipped("config"))) if word in text]
    (schema,) = re.findall(r"\$schema=(\S+)$", text, re.MULTILINE)
    written = json.loads((folder / schema).read_text(encoding="utf-8"))
    assert written == Configuration.model_json_schema()
    assert "required" not in written["$defs"]["PhaseSection"]
    dev, last = configuration.phases.values()
    assert NOW < dev.opens < last.opens
    assert (dev.selection, dev.ladder_step, dev.shown) == ("ladder", 0.5, "at_once")
    assert (last.selection, last.shown, last.eligible_if_scored_in) == ("last", "at_end", "dev")
    for phase in configuration.phases.values():
        ids = read_ids(configuration.path(phase.ids))
        assert list(ids) == sorted(set(ids))
        tasks = load_tasks(configuration.path(phase.tasks), ids)
        assert {i for task in tasks for i in task.ids} == set(ids)
        assert len({task.row_set for task in tasks}) == 2
    scaffold.create(tmp_path / "one", replace(PLAN, phases={"dev": 4}), now=NOW)
    (only,) = load(tmp_path / "one" / "challenge.yaml").phases.values()
    assert (only.selection, only.shown) == ("ladder", "at_once")
    files = [
        (tmp_path / folder / name, key)
        for folder in ("c", "one")
        for name, key in (("challenge.secret", SECRET), ("signing.key", SIGNING_KEY))
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path, _ in files} == {0o600}
    assert len({read_bytes(path, key) for path, key in files}) == 4
    told = f"verify REPOSITORY --key {fingerprint(read_signer(configuration).public)}"
    with zipfile.ZipFile(folder / "bundle.zip") as bundle:
        assert any(told in bundle.read(name).decode() for name in bundle.namelist() if name.endswith("html"))


@pytest.mark.parametrize("name", ["challenge.yaml", "challenge.secret", "signing.key", "tasks", "bundle.zip"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    """If any file of a challenge exists, nothing is written."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(OrganizerError, match="exists"):
        scaffold.create(tmp_path, PLAN, now=NOW)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_of_two_at_once_one_makes_the_challenge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other finds the folder still free, fails at the first key, and removes nothing that the first has written."""
    scaffold.create(tmp_path / "c", PLAN, now=NOW)
    written = {path: path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file()}
    monkeypatch.setattr(scaffold, "check_free", lambda _: None)  # as it was a moment ago
    with pytest.raises(FileExistsError, match=r"challenge\.secret"):
        scaffold.create(tmp_path / "c", PLAN, now=NOW)
    assert {path: path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file()} == written


def test_the_configuration_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed `init` leaves no folder that works but lacks, for example, what keeps the secrets out of git."""
    replace_file, missing = Path.replace, list[str]()

    def replaced(part: Path, place: Path) -> Path:
        if place.name == "challenge.yaml":
            missing.extend(name for name in scaffold.WRITTEN if not (place.parent / name).exists())
        return replace_file(part, place)

    monkeypatch.setattr(Path, "replace", replaced)
    scaffold.create(tmp_path / "c", PLAN, now=NOW)
    assert missing == ["challenge.yaml"]


@pytest.mark.processes
def test_git_takes_only_what_may_be_published(tmp_path: Path) -> None:
    """Whatever else is put into the folder, such as a token, a backup or a report, `git add` leaves it out."""
    scaffold.create(tmp_path / "c", PLAN, now=NOW)
    for name in (
        "eval.token",
        "c-2026-11-28T12-00-00Z.zip",
        "report/dev.html",
        "state/worker.db",
        "preview/x",
    ):
        (tmp_path / "c" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "c" / name).touch()
    for command in ("init -q", "add -A", "ls-files"):
        listed = subprocess.run(
            ["git", *command.split()],
            cwd=tmp_path / "c",
            check=True,
            env=clean_environment(),
            text=True,
            capture_output=True,
        ).stdout.splitlines()
    public = {".gitignore", "challenge.schema.json", "challenge.yaml", "bundle", "ids"}
    assert {name.split("/")[0] for name in listed} == public


@given(
    title=st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).filter(str.split),
    phases=st.dictionaries(CODENAMES, st.integers(1, 99), min_size=1, max_size=4),
    dim=st.integers(1, 4096),
)
def test_any_plan_becomes_its_configuration(title: str, phases: dict[str, int], dim: int) -> None:
    """Values are kept exactly, whatever YAML would make of them; a title is one line."""
    assume(len({name.casefold() for name in phases}) == len(phases))
    new = scaffold.NewChallenge(title=title, phases=phases, dim=dim)
    configuration = Configuration.model_validate(yaml.safe_load(scaffold.new_configuration(new, now=NOW)))
    assert configuration.challenge.title == " ".join(title.split())
    assert configuration.submission.embedding_dim == dim
    assert [(name, phase.folds) for name, phase in configuration.phases.items()] == list(phases.items())
    *_, last = configuration.phases.values()
    assert last.eligible_if_scored_in == (next(iter(phases)) if len(phases) > 1 else None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--dim=many", "Invalid value for '--dim'"),
        ("--folds=0", "Invalid value for '--folds'"),
        ("--folds=1 --folds=2 --folds=3", "The numbers of folds (3) do not match the phases (2)."),
        ("--phase=dev --phase=Dev", "codenames that differ only in case"),
        ("--phase=a/b", "'a/b' cannot be a phase's codename"),
        ("--phase=übung", "Use letters a to z, digits,"),
        ("--repository=hmm", "'hmm' is not the address of a git repository"),
    ],
)
def test_wrong_options_get_a_sentence(
    tmp_path: Path, options: str, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It names the option or what it stands for, and the given value; nothing is written."""
    assert guarded(["init", str(tmp_path / "c"), "--yes", *options.split()]) == 2
    assert sentence in capfd.readouterr().err
    assert not (tmp_path / "c").exists()


@pytest.mark.processes
def test_wrong_answers_are_asked_again(tmp_path: Path) -> None:
    """At a terminal, each wrong answer gets a sentence and the same question; the next commands come last, quoted for a shell."""
    text = shown(
        "init",
        str(tmp_path / "a c"),
        answers=f"Mine\nmany\n{'9' * 5000}\n64\na/b\ndev\nlater\n",
        COLUMNS="200",
    )
    assert "must be a whole number of at least 1, not 'many'" in text
    assert "'a/b' cannot be a phase's codename" in text
    configuration = load(tmp_path / "a c" / "challenge.yaml")
    assert configuration.challenge.title == "Mine"
    assert (configuration.submission.embedding_dim, list(configuration.phases)) == (64, ["dev"])
    assert f"neuco-worker rehearse --config '{tmp_path}/a c/" in text.partition("Try it now")[2]
    steps = text.partition("Before launch:")[2]
    assert f"neuco-worker doctor --config '{tmp_path}/a c/" in steps
    assert "After the upload" in steps  # the queue exists from the upload on, before the approval
