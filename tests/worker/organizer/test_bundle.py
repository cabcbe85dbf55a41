"""The EvalAI challenge bundle and its checker."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from scoring.errors import OrganizerError
from worker.challenge.configuration import EXAMPLE_REPOSITORY, Configuration, load, web_address
from worker.cli.init import bundle as bundle_command
from worker.organizer import bundle, scaffold
from worker.organizer.bundle_check import bundle_faults
from worker.organizer.doctor import examine

NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new challenge with a title that is difficult for YAML and HTML; it is not changed."""
    folder = tmp_path_factory.mktemp("made") / "challenge"
    plan = scaffold.NewChallenge(title='Émbed: "2" <b>&amp; #1', phases={"dev": 4, "eval": 5}, dim=64)
    scaffold.create(folder, plan, now=NOW)
    return folder


@pytest.fixture
def challenge(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "challenge")


def contents(archive: Path) -> dict[str, bytes]:
    """Every file of a zip."""
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def document(challenge: Path) -> dict[str, Any]:
    """The bundle's YAML, parsed."""
    return yaml.safe_load((challenge / "bundle" / bundle.CONFIG_NAME).read_text(encoding="utf-8"))


def faults_after(challenge: Path, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Plant a change in the YAML and check the zip."""
    changed, configuration = document(challenge), load(challenge / "challenge.yaml")
    change(changed)
    (challenge / "bundle" / bundle.CONFIG_NAME).write_text(yaml.safe_dump(changed), encoding="utf-8")
    files = bundle.read_sources(challenge / "bundle")
    packed = bundle.pack({**files, **bundle.renewed_sources(files, configuration, now=NOW)}, configuration)
    return bundle_faults(io.BytesIO(packed), configuration)


def test_the_yaml_follows_the_configuration(made: Path) -> None:
    """It has the phases, splits and metric that the worker looks for, the limits of 2025, and no fault; a title is text."""
    written, configuration = document(made), load(made / "challenge.yaml")
    dev, last = written["challenge_phases"]
    assert [dev["codename"], last["codename"]] == list(configuration.phases)
    assert [split["codename"] for split in written["dataset_splits"]] == ["dev_split", "eval_split"]
    assert written["leaderboard"][0]["schema"]["labels"] == ["q_mean"]
    assert written["remote_evaluation"] is True
    assert (dev["max_submissions_per_day"], dev["max_submissions"]) == (10, bundle.UNLIMITED)
    assert last["max_submissions"] == 3
    # before the approval, hosts submit to every phase; participants enter a phase once it is made public
    assert {phase["start_date"] for phase in written["challenge_phases"]} == {written["start_date"]}
    ends = [dev["end_date"], last["end_date"]]
    assert written["start_date"] < NOW.replace(tzinfo=None) < ends[0] < ends[1] == written["end_date"]
    assert (dev["is_public"], last["is_public"]) == (False, False)
    texts = contents(made / "bundle.zip")
    for codename, phase in configuration.phases.items():
        assert f"{phase.opens:%Y-%m-%d %H:%M:%S} to " in texts[f"phase_{codename}.html"].decode()
    assert not any(
        split["show_leaderboard_by_latest_submission"] for split in written["challenge_phase_splits"]
    )
    assert bundle_faults(made / "bundle.zip", configuration) == []
    assert written["title"] == 'Émbed: "2" <b>&amp; #1'
    files = contents(made / "bundle.zip")
    page = files["description.html"].decode()
    assert "&lt;b&gt;&amp;amp; #1" in page
    assert "<b>" not in page
    with zipfile.ZipFile(io.BytesIO(files["evaluation_script.zip"])) as script:
        assert sorted(script.namelist()) == [
            "__init__.py",
            "main.py",
        ]  # EvalAI imports `evaluate` from its top


def test_pages_tell_nothing_about_tasks(made: Path) -> None:
    """The bundle contains neither names nor types nor the number of the example tasks, and no label file."""
    names = {path.name for path in made.glob("tasks/*/*")} | {"digit", "ink"}
    for name, data in contents(made / "bundle.zip").items():
        assert Path(name).name not in names
        if not name.endswith((".png", ".zip")):
            assert not any(f" {word} " in data.decode() for word in ("digit", "ink", "six", "three tasks"))


@pytest.mark.parametrize(
    ("repository", "address"),
    [
        ("git@github.com:organizer/board.git", "https://github.com/organizer/board"),
        ("https://github.com/organizer/board.git", "https://github.com/organizer/board"),
        ("https://someone:hidden@github.com/organizer/board", "https://github.com/organizer/board"),
        ("https://git.example.org:8443/group/sub/board/", "https://git.example.org:8443/group/sub/board"),
        ("ssh://git@git.example.org:2222/group/board.git", "https://git.example.org/group/board"),
        ("git@github.com:organizer/challenge-supplement.git", None),  # the example's: nobody's yet
        ("./board.git", None),
        ("/srv/git/board.git", None),
        ("file:///srv/git/board.git", None),
        ("http://127.0.0.1:3000/a/b.git", None),
        ("git@github.com:board", None),
        ("https://github.com/a/b?x=1", None),
        ('https://github.com/a/b"onclick=', None),
        ("https://[broken/a/b", None),
        ("C:\\boards\\board.git", None),
    ],
)
def test_a_repositorys_page_follows_from_its_address(repository: str, address: str | None) -> None:
    """The address has no password; it is None if it cannot be derived."""
    assert web_address(repository) == address


def test_the_pages_link_the_leaderboard_once_it_is_known(
    challenge: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Packing never leaves a placeholder: without an address it writes words, and says so; the page's own address goes first."""
    path, name, guide = challenge / "challenge.yaml", "evaluation_details.html", "submission_guidelines.html"

    def packed(repository: str, page: str = "") -> tuple[str, str]:
        document = yaml.safe_load(path.read_text())
        document["leaderboard"] |= {"repository": repository, "page": page}
        path.write_text(yaml.safe_dump(document))
        bundle_command(challenge)
        files = contents(challenge / "bundle.zip")
        assert not any(b"ADDRESS-OF" in data for data in files.values())
        return files[name].decode(), files[guide].decode()

    for repository in (EXAMPLE_REPOSITORY, "./board.git"):
        details, guidelines = packed(repository)
        assert f"a browser cannot open leaderboard.repository ({repository})" in capfd.readouterr().err
        assert "is at an address that the organizers announce" in details
        assert "--challenge REPOSITORY --phase PHASE" in guidelines
    details, guidelines = packed("git@github.com:us/board.git")
    assert '<a href="https://github.com/us/board">https://github.com/us/board</a>' in details
    details, guidelines = packed("git@github.com:us/board.git", "https://us.github.io/board/")
    assert '<a href="https://us.github.io/board/">https://us.github.io/board/</a>' in details
    assert "--challenge https://github.com/us/board --phase PHASE" in guidelines
    assert capfd.readouterr().err == ""


def _phase(document: dict[str, Any]) -> dict[str, Any]:
    return document["challenge_phases"][0]


def _split(document: dict[str, Any]) -> dict[str, Any]:
    return document["challenge_phase_splits"][0]


FAULTS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda d: d.pop("title"), "title must be a text"),
    (lambda d: d.update(title=""), "title must not be ''"),
    (lambda d: d.update(description="lost.html"), "description must be description.html"),
    (lambda d: d.update(image="logo.svg"), "not a PNG or JPEG"),
    (lambda d: d.update(remote_evaluation=False), "remote_evaluation must be True"),
    (lambda d: d.update(is_docker_based=True), "is_docker_based must be False"),
    (lambda d: d.update(published="soon"), "published must be True or False"),
    (lambda d: d.update(evaluation_script="x.zip"), "evaluation_script must be evaluation_script.zip"),
    (lambda d: d.update(end_date=d["start_date"]), "challenge: start_date must be before"),
    (lambda d: _phase(d).update(start_date=d["end_date"]), "phase dev: start_date must be before"),
    (lambda d: d.update(start_date="1 January"), "start_date must be YYYY-MM-DD"),
    (lambda d: d.update(challenge_phases=[]), "challenge_phases must be a list of 2"),
    (lambda d: d["challenge_phases"].__setitem__(0, "dev"), "challenge_phases 1 must have the keys id, name"),
    (lambda d: _phase(d).update(codename="eval"), "has the phases eval, but challenge.yaml has dev, eval"),
    (lambda d: _phase(d).update(codename="x"), "has the phases x, eval, but challenge.yaml has dev, eval"),
    (lambda d: _phase(d).update(disable_logs=True), "disable_logs must be False"),
    (
        lambda d: _phase(d).update(end_date=d["end_date"] + timedelta(1)),
        "phase dev ends on 2027-01-29 23:59:59, after",
    ),
    (lambda d: _phase(d).update(id=2), "id must be 1"),
    (lambda d: _phase(d).update(test_annotation_file="logo.png"), "must be annotations/dev.txt"),
    (lambda d: _phase(d).update(is_restricted_to_select_one_submission=True), "excludes"),
    (lambda d: _phase(d).update(max_submissions_per_day=400), "more submissions than a month"),
    (lambda d: _phase(d).update(max_submissions=True), "max_submissions must be a whole number"),
    (lambda d: _phase(d).update(max_concurrent_submissions_allowed=0), "allowed must not be 0"),
    (lambda d: _split(d).update(challenge_phase_id=9), "challenge_phase_id must be 1"),
    (lambda d: _split(d).pop("show_execution_time"), "show_execution_time must be True or False"),
    (lambda d: d["leaderboard"][0]["schema"].update(labels=["q"]), "schema.labels 1 must be q_mean"),
    (lambda d: d.update(end_date=datetime(2030, 1, 1, tzinfo=UTC)), "end_date must be YYYY-MM-DD"),
]


@pytest.mark.parametrize(("change", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_planted_fault_is_found(
    challenge: Path, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    """What EvalAI refuses, or the worker cannot serve, is found before the upload."""
    faults = faults_after(challenge, change)
    assert any(words in sentence for sentence in faults), faults


@pytest.mark.parametrize(
    "name", ["description.html", "phase_dev.html", "annotations/dev.txt", "evaluation_script"]
)
def test_a_missing_file_is_found(challenge: Path, name: str) -> None:
    """Each file that the YAML names has to be there."""
    (challenge / "bundle" / name).rename(challenge / "elsewhere")
    assert [
        sentence.split()[0].removesuffix(".zip") for sentence in faults_after(challenge, lambda _: None)
    ] == [name]


def test_what_an_organizer_decides_is_no_fault(challenge: Path) -> None:
    """Texts, dates, limits, switches, tags and additional questions to participants can be edited."""

    def decide(written: dict[str, Any]) -> None:
        written |= {"title": "Ours", "published": True, "tags": ["a"], "end_date": datetime(2030, 1, 1)}  # noqa: DTZ001
        question = {"name": "a", "description": "b", "type": "text"}
        _phase(written).update(name="First", max_submissions_per_day=1, submission_meta_attributes=[question])
        _split(written).update(visibility=1, leaderboard_decimal_precision=1)

    assert faults_after(challenge, decide) == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("innocent.txt", None, "innocent.txt contains a file of a hidden task"),
        ("description.html~", "<p>Ours.</p>", "description.html~ is not a file that EvalAI needs"),
        (bundle.CONFIG_NAME, "a: [", "challenge_config.yaml, line 1, column 5: this is not valid YAML"),
        (bundle.CONFIG_NAME, "- 1", "challenge_config.yaml must have the keys"),
        (bundle.CONFIG_NAME, "a: 1\nb: caf\xe9", "line 2 is not UTF-8; save the file as UTF-8"),
        (
            "terms_and_conditions.html",
            "<p>Ours.</p>",
            "does not say what fairness.publish_files: baselines means",
        ),
    ],
)
def test_a_bad_file_is_found_before_the_upload(
    challenge: Path, name: str, text: str | None, words: str
) -> None:
    """A hidden task under any name, broken YAML, or terms that say something else."""
    label_file = next((challenge / "tasks" / "dev").glob("*.csv"))
    content = label_file.read_text() if text is None else text
    (challenge / "bundle" / name).write_text(content, encoding="latin-1")
    with pytest.raises(OrganizerError, match=re.escape(words)):
        scaffold.pack_bundle(challenge, load(challenge / "challenge.yaml"), now=NOW)
    (challenge / "bundle.zip").write_bytes(b"no zip")
    assert (
        "is not a zip file" in bundle_faults(challenge / "bundle.zip", load(challenge / "challenge.yaml"))[0]
    )


def configure(challenge: Path, change: Callable[[dict[str, Any]], object]) -> Configuration:
    """Change the configuration."""
    path = challenge / "challenge.yaml"
    settings = yaml.safe_load(path.read_text("utf-8"))
    change(settings)
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return load(path)


def repack(challenge: Path, configuration: Configuration) -> list[str]:
    """What `bundle` renews."""
    return scaffold.pack_bundle(challenge, configuration, now=NOW)


def edit(page: Path, before: str, after: str) -> None:
    """Edit a source as an organizer does."""
    text = page.read_text("utf-8")
    assert before in text
    page.write_text(text.replace(before, after), encoding="utf-8")


def of_the_bundle(challenge: Path) -> str:
    """What the doctor finds about the bundle."""
    report = examine(
        challenge / "challenge.yaml", clock=lambda: NOW, offline=True, only={"configuration.bundle"}
    )
    return " ".join(finding.sentence for outcome in report.outcomes for finding in outcome.findings)


STALE: list[tuple[Callable[[dict[str, Any]], object], dict[str, str]]] = [
    (
        lambda s: s["submission"].update(embedding_dim=48),
        {"description.html": "48 numbers", "submission_guidelines.html": "<code>47</code>"},
    ),
    (
        lambda s: s["phases"]["dev"].update(selection="best"),
        {"phase_dev.html": "highest mean Q counts", "evaluation_details.html": "highest mean Q counts"},
    ),
    (
        lambda s: s["phases"]["eval"].pop("eligible_if_scored_in"),
        {"phase_eval.html": "Eval phase", "evaluation_details.html": "Eval phase"},
    ),
    (lambda s: s["fairness"].update(publish_files="top:2"), {"terms_and_conditions.html": "first 2 teams"}),
    (
        lambda s: s["fairness"].update(access="We have\nthe labels <b>"),
        {"terms_and_conditions.html": "Who knows the hidden tasks: We have the labels &lt;b&gt;"},
    ),
    (lambda s: s["phases"]["dev"].update(opens="2026-12-24"), {"phase_dev.html": "2026-12-24 00:00:00 to"}),
    (
        lambda s: s.update(scoring={"epsilon": 0.5, "test_size": 0.25}),
        {"evaluation_details.html": "&epsilon; = 0.5"},
    ),
]
"""Changes of the configuration, and the pages that then say something else."""


@pytest.mark.parametrize(("change", "pages"), STALE)
def test_pages_follow_the_configuration(
    challenge: Path, change: Callable[[dict[str, Any]], object], pages: dict[str, str]
) -> None:
    """The doctor names the pages that are out of date; packing renews their marked parts and no other text."""
    for page in pages:
        with (challenge / "bundle" / page).open("a", encoding="utf-8") as file:
            file.write("<p>Our own words.</p>")
    configuration = load(challenge / "challenge.yaml")
    assert repack(challenge, configuration) == []
    assert of_the_bundle(challenge) == ""
    configuration = configure(challenge, change)
    assert all(f"{page} does not say what" in of_the_bundle(challenge) for page in pages)
    assert repack(challenge, configuration) == sorted(pages)
    packed = contents(challenge / "bundle.zip")
    for page, words in pages.items():
        assert words in packed[page].decode()
        assert "Our own words." in packed[page].decode()
    assert of_the_bundle(challenge) == ""


def test_pages_follow_the_dates_and_limits(challenge: Path) -> None:
    """What the organizer writes into the YAML about a phase is what its page says."""
    written = challenge / "bundle" / bundle.CONFIG_NAME
    dev = document(challenge)["challenge_phases"][0]
    edit(written, f"{dev['end_date']}", "2026-12-31 12:00:00")
    edit(written, "max_submissions: 100000", "max_submissions: 777")
    edit(written, 'name: "Dev phase"', "name: Warm-up")
    assert of_the_bundle(challenge) == "bundle.zip is not what `bundle` makes of bundle/ now."
    renewed = repack(challenge, load(challenge / "challenge.yaml"))
    assert renewed == ["evaluation_details.html", "phase_dev.html"]
    page = (challenge / "bundle" / "phase_dev.html").read_text("utf-8")
    assert "<strong>Warm-up</strong>" in page
    assert "to 2026-12-31 12:00:00 (UTC). Submissions of one team: at most 10 a day and 777 in all." in page


def test_a_part_without_marks_is_the_organizers(challenge: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It stays, whatever the configuration says, and `bundle` and the doctor name it as soon as it says something else."""
    page = challenge / "bundle" / "description.html"
    page.write_text(re.sub("<!-- .* -->\n", "", page.read_text("utf-8")), encoding="utf-8")
    repack(challenge, load(challenge / "challenge.yaml"))
    assert of_the_bundle(challenge) == ""
    configure(challenge, lambda settings: settings["submission"].update(embedding_dim=48))
    bundle_command(challenge)
    named = "no longer marked: description.html (task)."
    assert named in capfd.readouterr().out
    assert "embedding of 64 numbers" in page.read_text("utf-8")
    assert "description.html (task)" in of_the_bundle(challenge)


def test_a_phase_that_is_added_gets_its_page_and_its_place(challenge: Path) -> None:
    """Its page, placeholder and items in the YAML are added behind the others; comments and edited values stay."""
    written = challenge / "bundle" / bundle.CONFIG_NAME
    edit(written, "published: False  ", "published: True  # we said so\n")
    before = written.read_text("utf-8")
    configuration = configure(
        challenge, lambda settings: settings["phases"].update(final={"folds": 3, "metric": "q_final"})
    )
    assert "has the phases dev, eval, but challenge.yaml has dev, eval, final" in of_the_bundle(challenge)
    renewed = repack(challenge, configuration)
    assert {"annotations/final.txt", bundle.CONFIG_NAME, "phase_final.html"} < set(renewed)
    after = document(challenge)
    assert [phase["codename"] for phase in after["challenge_phases"]] == ["dev", "eval", "final"]
    assert after["end_date"] == after["challenge_phases"][2]["end_date"]
    kept = [line for line in before.splitlines() if not line.startswith("end_date")]
    lines = iter(written.read_text("utf-8").splitlines())
    assert all(line in lines for line in kept)  # all of them, in their order
    assert of_the_bundle(challenge) == ""
    assert repack(challenge, configuration) == []


def test_phases_in_another_order_are_one_fault(challenge: Path) -> None:
    """It says what is there and what is configured; nothing is written."""

    def reverse(settings: dict[str, Any]) -> None:
        settings["phases"] = dict(reversed(settings["phases"].items()))

    configuration, packed = configure(challenge, reverse), (challenge / "bundle.zip").read_bytes()
    with pytest.raises(OrganizerError, match=r"has the phases dev, eval, but challenge\.yaml has eval, dev"):
        repack(challenge, configuration)
    assert (challenge / "bundle.zip").read_bytes() == packed


BOARD = "The leaderboard that counts is the one that the organizers publish"
CLOSES = "Values and ranks are shown only after the organizers have closed this phase."
LATEST = "A team's last scored public submission counts."
SENTENCES: list[tuple[dict[str, Any], str, dict[str, str]]] = [
    ({"selection": "last"}, "", {"phase_dev": LATEST, "evaluation_details": LATEST, "phase_eval": LATEST}),
    ({"selection": "best"}, "", {"phase_dev": "public submission with the highest mean Q counts."}),
    (
        {"selection": "ladder", "ladder_step": 0.25},
        "",
        {"phase_dev": "more than 0.25 above the value shown for the one that counts", "phase_eval": LATEST},
    ),
    (
        {"shown": "at_once"},
        "",
        {"phase_eval": CLOSES, "submission_guidelines": "In the Eval phase, you see mean Q only after"},
    ),
    ({"shown": "at_end", "selection": "last"}, "", {"phase_dev": CLOSES}),
    (
        {},
        "",
        {"phase_dev": BOARD, "evaluation_details": "EvalAI's own leaderboard and its badges do not count"},
    ),
    (
        {},
        "",
        {"terms_and_conditions": "scores and the dates of submissions are published in a public repository"},
    ),
    ({}, "", {"terms_and_conditions": "the history keeps the earlier one"}),
    (
        {},
        "baselines",
        {"terms_and_conditions": "publish the embeddings of their baselines, but not those of participants."},
    ),
    ({}, "top:1", {"terms_and_conditions": "of the first team on the final board"}),
    ({}, "top:3", {"terms_and_conditions": "of the first 3 teams on the final board"}),
]
"""Rules of the phase dev and `fairness.publish_files`, and what pages say about them."""


@pytest.mark.parametrize(("rules", "published", "sentences"), SENTENCES)
def test_the_pages_say_what_participants_need_to_know(
    made: Path, tmp_path: Path, rules: dict[str, Any], published: str, sentences: dict[str, str]
) -> None:
    """Which submission counts, which board, when values are shown, whose files are published, and what stays public."""
    settings, path = yaml.safe_load((made / "challenge.yaml").read_text("utf-8")), tmp_path / "challenge.yaml"
    settings["phases"]["dev"] |= rules
    settings["fairness"] |= {"publish_files": published or "baselines"}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    pages = bundle.sources(load(path), now=NOW)
    for name, sentence in sentences.items():
        assert sentence in pages[f"{name}.html"].decode().replace("&#39;", "'")
    assert (CLOSES in pages["phase_dev.html"].decode()) == (rules.get("shown") == "at_end")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("challenge.secret", "challenge.secret"),
        ("description.html", "evalai.token"),
        ("evaluation_script/main.py", "leaderboard.ssh_key"),
    ],
)
def test_what_holds_the_secret_or_a_token_is_refused(
    challenge: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    """Under any name, and inside another text; the doctor refuses it, too. It is never quoted."""
    monkeypatch.setenv("EVALAI_TOKEN", "t" * 40)
    (challenge / "key").write_text("k" * 40)
    configuration = configure(
        challenge, lambda settings: settings["leaderboard"].update(ssh_key="file:./key")
    )
    value = configuration.private_values()[key]
    place = challenge / "bundle" / name
    place.write_text((place.read_text("utf-8") if place.exists() else "") + value, encoding="utf-8")
    with pytest.raises(OrganizerError, match=re.escape(f"{name} contains {key}")) as refused:
        repack(challenge, configuration)
    assert value not in refused.value.message
    files = bundle.read_sources(challenge / "bundle")
    (challenge / "bundle.zip").write_bytes(bundle.pack(files, configuration))
    assert f"{name} contains {key}" in of_the_bundle(challenge)
