"""Faults of a configuration are reported with line, key, value and what is allowed, and in our words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from scoring.errors import OrganizerError
from scoring.tasks import read_package
from tests.test_rooms import PACKAGES, ROOT, modules
from worker.challenge.configuration import Configuration, load
from worker.challenge.faults import FORMS
from worker.challenge.sections import PhaseSection
from worker.challenge.setups import read_phase

VALID = """\
challenge:
  title: Practice
evalai:
  challenge: 0
  queue: q
phases:
  dev:
    folds: 3
leaderboard:
  repository: ./board.git
"""
WRONG: tuple[Any, ...] = ("?", "", -1, 0.5, 10**400, True, None, [None], {"x": 1}, float("nan"), "caf\udce9")


def refused(folder: Path, text: str) -> str:
    """Return what the error says about a file."""
    path = folder / "challenge.yaml"
    path.write_text(text)
    with pytest.raises(OrganizerError) as error:
        load(path)
    return error.value.sentence.replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("folds: 3", "folds: 20\n    folds: 3", "FILE, line 9, column 5: the key `folds` is already in line 8."),
        ("leaderboard:", "phases:\n  x:\nleaderboard:", "FILE, line 9, column 1: the key `phases` is already in line 6."),
        ("folds: 3", "folds: yes", "FILE: line 8: phases.dev.folds is `true`; it must be a number."),
        ("folds: 3", "ladder_step: on", "FILE: line 8: phases.dev.ladder_step is `true`; it must be a number."),
        ("leaderboard:", "submission: {answer_grid: off}\nleaderboard:", "answer_grid is `false`; it must be a number."),
        ("folds: 3", "folds: many", "FILE: line 8: phases.dev.folds is `many`; it must be a whole number."),
        ("folds: 3", "selection: lst", "FILE: line 8: phases.dev.selection is `lst`; it must be 'last', 'best' or 'ladder'."),
        ("  title", "  titles: x\n  title", "FILE: line 2: challenge.titles is not a key; did you mean title?"),
        ("  title", "  color: x\n  title", "FILE: line 2: challenge.color is not a key here; the keys are: title, secret, signing_key."),
        ("  title", "  2026: x\n  title", "FILE: line 2: challenge.2026 is not a key here; the keys are: title, secret, signing_key."),
        ("leaderboard:", "scoring: {test_size: 0,2}\nleaderboard:", "line 9: scoring.2 is not a key here; the keys are: engine,"),
        ("  queue: q\n", "", "FILE: line 3: evalai.queue is missing."),
        ("challenge: 0", "challenge: 0\n  server: http://x", "FILE: line 5: evalai.server is `http://x`; it must begin with https://"),
        ("challenge: 0", "challenge: 0\n  server: http://me:secret@x", "evalai.server is `http://…@x`; it must be a URL"),
        ("leaderboard:", "state: postgresql://me:s@c/r@t@x/y\nleaderboard:", "state is `postgresql://…@x/y`; it must be"),
        ("leaderboard:", "state: postgresql://me:secret@x/y\nleaderboard:", "state is `postgresql://…@x/y`; it must be written like"),
        ("leaderboard:", "submission: {deadline: .inf}\nleaderboard:", "deadline is `Infinity`; it must be a finite number."),
        ("leaderboard:", "submission: {answer_grid: 99999}\nleaderboard:", "answer_grid is `99999`; it must be at most 86400."),
        ("leaderboard:", "fairness: {beacon_notice: 999999}\nleaderboard:", "`999999`; it must be at most 604800."),
        ("folds: 3", "eligible_if_scored_in: ev", "FILE: line 8: phases.dev.eligible_if_scored_in is `ev`, which is not another phase"),
        ("  dev:\n    folds: 3", "  dev:\n  Dev:", "phases.dev differs from another phase only in case."),
        ("  dev:", "  my phase:", "FILE: line 7: phases.my phase is not a codename"),
        ("leaderboard:", "scoring: {epochs: 100001}\nleaderboard:", "scoring.epochs is `100001`; it must be at most 100000."),
        ("leaderboard:", "scoring: {batch_size: 99999999}\nleaderboard:", "it must be at most 1000000."),
        ("folds: 3", "opens: 13.12.2026", "FILE: line 8: phases.dev.opens is `13.12.2026`; it must be written like 2026-12-12 00:00:00."),
        ("folds: 3", "opens: 0001-01-01 00:00:00+14:00", "it must be written like 2026-12-12 00:00:00."),
        ("./board.git", "https://[git.example.org/o/x", "leaderboard.repository is `https://[git.example.org/o/x`; it must be written"),
        ("./board.git", "ssh://git@git.example.org:o/x", "leaderboard.repository is `ssh://…@git.example.org:o/x`; it must be written"),
        ("leaderboard:", "leaderboard:\n  branch: files/board", "leaderboard.branch is `files/board`; it must be the short name"),
        ("folds: 3", "opens: 9999-12-31", "; it must not be after the year 9000."),
        ("folds: 3", "opens: 2026-13-12", "FILE, line 8, column 12: `2026-13-12`: month must be in 1..12."),
        ("title: Practice", 'title: "\\udce9"', "FILE, line 2, column 10: a text has the character NUL, or half a character."),
        ("leaderboard:", "scoring: {threads: lots}\nleaderboard:", "scoring.threads is `lots`; it must be 'auto' or a whole number."),
        ("leaderboard:", "healthz: 0.0.0.0:1\nleaderboard:", "`0.0.0.0:1`; it must be written like 127.0.0.1:9464."),
        ("leaderboard:", "healthz: 127.0.0.1:65536\nleaderboard:", "`127.0.0.1:65536`; it must be written like 127.0.0.1:9464."),
        ("leaderboard:", "healthz: 127.0.0.1:0\nleaderboard:", "`127.0.0.1:0`; it must be written like 127.0.0.1:9464."),
        ("challenge: 0", "challenge: 0\n  server: https://x:65536", "FILE: line 5: evalai.server: Port out of range 0-65535."),
        ("challenge: 0", "challenge: 0\n  media_hosts: [x, 'x:65536']", "FILE: line 5: evalai.media_hosts: Port out of range 0-65535."),
        ("leaderboard:", "fairness: {drand_servers: ['https://x:y']}\nleaderboard:", "fairness.drand_servers: Port could not be cast"),
        ("leaderboard:", "fairness: {beacon: Lotto@tomorrow}\nleaderboard:", "`Lotto@tomorrow`; it must be 'drand' or 'none'."),
        ("folds: 3", "selection: ladder\n    shown: at_end", "shows no values to climb by"),
        ("folds: 3", "selection: ladder\n    ladder_step: 0.0001", "shows nothing finer than 0.001"),
        ("folds: 3", "selection: ladder\n    ladder_step: 0", "greater than 0"),
    ],
)  # fmt: skip
def test_a_fault_has_its_line_value_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """The file without the fault is accepted."""
    (tmp_path / "valid.yaml").write_text(VALID)
    load(tmp_path / "valid.yaml")
    assert message in refused(tmp_path, VALID.replace(old, new, 1))


@pytest.mark.parametrize(
    ("content", "words", "hint"),
    [
        (VALID.replace("queue: q", "queue: gr\xfcn").encode("latin1"), "is not UTF-8 text, first on line 5", "iconv -f latin1"),
        (b"\xef\xbb\xbf\n", "is empty", "Restore it from a backup"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_text_or_empty_has_its_own_hint(
    tmp_path: Path, content: bytes, words: str, hint: str
) -> None:
    """The hint is another one than for a file that is missing; a task package says the same."""
    (tmp_path / "challenge.yaml").write_bytes(content)
    (tmp_path / "task.yaml").write_bytes(content)
    with pytest.raises(OrganizerError) as error:
        load(tmp_path / "challenge.yaml")
    assert words in error.value.sentence
    assert hint in error.value.hint
    with pytest.raises(OrganizerError, match=words):
        read_package(tmp_path)


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    """Such as one of an old disk, in Latin-1: the worker could not store its path."""
    folder = tmp_path / "f\udcfcr"
    folder.mkdir()
    (folder / "challenge.yaml").write_text(VALID)
    with pytest.raises(OrganizerError, match="is not UTF-8"):
        load(folder / "challenge.yaml")


def test_every_fault_of_a_value_is_in_our_words() -> None:
    """No wrong value of any key causes an error of pydantic for which there are no words."""
    kinds = set()
    for name, field in Configuration.model_fields.items():
        keys = getattr(field.annotation, "model_fields", {})
        for value in WRONG:
            wrong: list[Any] = [value, *({key: value} for key in keys)]
            if name == "phases":
                wrong += [{"dev": value}, *({"dev": {key: value}} for key in PhaseSection.model_fields)]
            for part in wrong:
                try:
                    Configuration.model_validate({name: part})
                except ValidationError as error:
                    kinds |= {fault["type"] for fault in error.errors()}
    assert kinds - {"missing", "extra_forbidden", "value_error"} <= FORMS.keys()


def test_every_key_is_read_somewhere() -> None:
    """A key that no code outside its section names has no effect."""
    own = {"worker/challenge/sections.py", "leaderboard/rules.py"}
    paths = (path for package in PACKAGES for path in modules(package))
    code = "\n".join(path.read_text() for path in paths if path.relative_to(ROOT).as_posix() not in own)
    schema = Configuration.model_json_schema()["$defs"].values()
    unused = {
        key for part in schema for key in part.get("properties", ()) if not re.search(rf"\b{key}\b", code)
    }
    assert unused == set(), "No code reads these keys."


def test_only_changed_rules_are_named(tmp_path: Path) -> None:
    """The step of the Ladder belongs to the rules only if the phase uses it."""
    (tmp_path / "plain.yaml").write_text(VALID)
    (tmp_path / "ladder.yaml").write_text(VALID.replace("folds: 3", "selection: ladder"))
    plain, ladder = (load(tmp_path / name).phases["dev"].rules for name in ("plain.yaml", "ladder.yaml"))
    assert plain.changed(ladder) == ("selection", "ladder_step")


@pytest.mark.parametrize("place", ["loop", "~nobody-has-this-name/x"])
def test_a_path_that_leads_nowhere_is_refused_where_it_is_used(tmp_path: Path, place: str) -> None:
    """A loop of links, or a home that is not there: the file loads, and the path is named with the system's reason."""
    (tmp_path / "loop").symlink_to("loop")
    path = tmp_path / "challenge.yaml"
    path.write_text(
        VALID.replace("Practice", f"Practice\n  secret: {place}").replace("folds: 3", f"ids: {place}")
    )
    configuration = load(path)
    assert configuration.private_places()[0] == configuration.challenge_secret
    with pytest.raises(OrganizerError, match=place) as error:
        read_phase(configuration, "dev", bytes(32))
    assert error.value.code == "ids.unreadable"


def test_only_a_secret_can_be_a_credential(tmp_path: Path) -> None:
    """A folder that is named like a credential is a folder, so the error is about the tasks and not about the challenge's secret."""
    (tmp_path / "ids").mkdir()
    (tmp_path / "ids" / "dev.txt").write_text("a\nb\n")
    path = tmp_path / "challenge.yaml"
    path.write_text(VALID.replace("folds: 3", "tasks: credential:dev"))
    with pytest.raises(OrganizerError, match=r"There is no tasks folder .*/credential:dev"):
        read_phase(load(path), "dev", bytes(32))


def test_a_byte_order_mark_is_no_part_of_a_secret(tmp_path: Path) -> None:
    """Some editors write it at the beginning of every file, unseen; the configuration may have one, too."""
    (tmp_path / "challenge.yaml").write_text(VALID, encoding="utf-8-sig")
    (tmp_path / "token").write_text("0123abcd\r\n", encoding="utf-8-sig")
    configuration = load(tmp_path / "challenge.yaml")
    assert configuration.secret("file:token", "evalai.token").get_secret_value() == "0123abcd"


@pytest.mark.parametrize(
    ("repository", "place"),
    [
        ("board.git", "{folder}/board.git"),
        ("../boards/board.git", "{folder.parent}/boards/board.git"),
        ("./a:b.git", "{folder}/a:b.git"),
        ("/srv/board.git", "/srv/board.git"),
        ("host:board.git", "host:board.git"),
        ("https://host/board.git", "https://host/board.git"),
    ],
)
def test_a_relative_repository_is_relative_to_the_file(tmp_path: Path, repository: str, place: str) -> None:
    """Like every other path, with a dot at its beginning or not; what git takes for an address stays."""
    (tmp_path / "challenge.yaml").write_text(VALID.replace("./board.git", repository))
    assert load(tmp_path / "challenge.yaml").repository_url == place.format(folder=tmp_path)
