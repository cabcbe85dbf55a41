"""Checks of the configuration file and the secret."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from zipfile import BadZipFile

from scoring.printable import count_of
from worker.challenge.web_address import web_address
from worker.organizer.bundle import LEADERBOARD
from worker.organizer.bundle_check import pages_to_fill_in
from worker.organizer.doctor.check import Checks, Finding, fail, note, warn
from worker.organizer.doctor.examination import Examination
from worker.organizer.scaffold import EXAMPLE_QUEUE
from worker.state import is_host_team

FEW_FOLDS = 10
LADDER_FOLDS = 40  # with which the Ladder was measured, see SECURITY.md
DISTINCT_BYTES = 16  # of 32; random secrets have about 30 different bytes, and never as few as this
GIT_S = 20.0
_GIVES_AWAY = {
    "intervals": "intervals show how much fold scores vary and, with several teams, something of how many tasks there are",
    "stable_views": "stable views (agreement, ranks under other rules) show how much the tasks disagree",
}
CHECKS = Checks()


@CHECKS.add("configuration.file", "The configuration file can be read and every key is right")
def _file(exam: Examination) -> Iterator[Finding]:
    phases = ", ".join(exam.configuration.phases)
    yield note(f"“{exam.configuration.challenge.title}” with the phases {phases}.")


@CHECKS.add("configuration.placeholders", "The examples that `init` wrote are replaced")
def _placeholders(exam: Examination) -> Iterator[Finding]:
    """Name all placeholders at once. What depends on one of them is not checked until it is replaced."""
    configuration = exam.configuration
    values = {
        "leaderboard.repository": exam.has_example_repository,
        "evalai.challenge": not configuration.evalai.challenge,
        "evalai.queue": configuration.evalai.queue == EXAMPLE_QUEUE,
    }
    examples = ", ".join([*_example_files(exam), *(key for key, is_example in values.items() if is_example)])
    if examples:
        yield fail(
            f"What `init` wrote as an example is still in place: {examples}.",
            "Replace the files with your own label files and ids, and leaderboard.repository with the address of your own repository."
            " Upload bundle.zip to EvalAI: evalai.challenge is the number in the address of the challenge's page, and evalai.queue is"
            " in its Manage tab.",
        )


@CHECKS.add("configuration.phases", "Every phase has tasks and ids of its own")
def _phases(exam: Examination) -> Iterator[Finding]:
    configuration = exam.configuration
    for (first, one), (second, other) in combinations(configuration.phases.items(), 2):
        if configuration.path(one.tasks) == configuration.path(other.tasks):
            yield warn(
                f"{first} and {second} have the same hidden tasks. What a team learns in one phase helps it in the other.",
                "Give the last phase tasks and samples that no team has been scored on.",
            )
        elif configuration.path(one.ids) == configuration.path(other.ids):
            yield warn(
                f"{first} and {second} have the same public ids. Teams can tune embeddings for one phase in the other.",
                "Publish other samples for the last phase.",
            )


@CHECKS.add("configuration.folds", "Every phase has enough folds for a steady score")
def _folds(exam: Examination) -> Iterator[Finding]:
    for codename, phase in exam.configuration.phases.items():
        if phase.folds < FEW_FOLDS:
            yield warn(
                f"Phase {codename} has only {count_of(phase.folds, 'fold')}. With so few, the standard deviation in Q is mostly chance.",
                f"Set phases.{codename}.folds to 40 or more, as in 2025.",
            )
        elif phase.selection == "ladder" and phase.folds < LADDER_FOLDS:
            yield warn(
                f"Phase {codename} has selection: ladder, but only {count_of(phase.folds, 'fold')}. With so few, small changes of a file"
                f" change mean Q by more than ladder_step ({phase.ladder_step:g}), so a team can still learn much from many submissions.",
                f"Set phases.{codename}.folds to {LADDER_FOLDS} or more.",
            )


@CHECKS.add("configuration.early_release", "Nothing about the tasks is released before the reveal")
def _early_release(exam: Examination) -> Iterator[Finding]:
    for item in exam.configuration.leaderboard.publish:
        yield warn(
            f"leaderboard.publish releases {item} while the challenge runs: {_GIVES_AWAY[item]}.",
            "Remove it from leaderboard.publish, unless you accept that.",
        )


@CHECKS.add("configuration.baselines", "Baselines are named by their methods")
def _baselines(exam: Examination) -> Iterator[Finding]:
    board = exam.configuration.leaderboard
    for name in board.baselines:
        if name in board.hidden_teams or is_host_team(name):
            yield warn(
                f"“{name}” in leaderboard.baselines is the name of a team, but baselines are listed by their method names.",
                "In leaderboard.baselines, write the method name of the hosts' submission. Or mark that submission as a baseline at"
                " EvalAI.",
            )


@CHECKS.add("configuration.bundle", "The challenge's pages say where the leaderboard is")
def _bundle(exam: Examination) -> Iterator[Finding]:
    reachable = web_address(exam.repository) is not None
    archive = exam.base / "bundle.zip"
    if not archive.is_file():
        yield note("There is no bundle.zip next to the configuration.")
        return
    pack = f"neuco-worker bundle {exam.base}"
    try:
        pages = pages_to_fill_in(archive)
    except (OSError, BadZipFile):
        yield warn("bundle.zip is not a zip file.", f"Pack the bundle again: {pack}")
        return
    for page in pages:
        yield warn(
            f"bundle.zip: {page} has the placeholder {LEADERBOARD} where participants look for the leaderboard's address.",
            f"Pack the bundle again: {pack}. If the page is on EvalAI already, edit it there."
            if reachable
            else f"Write the leaderboard's address into bundle/{page}, because no browser can open leaderboard.repository. "
            f"Then pack the bundle again: {pack}",
        )


@CHECKS.add("secret.file", "The challenge secret is there, and only its owner can read it")
def _secret(exam: Examination) -> Iterator[Finding]:
    exam.secret  # noqa: B018 - this raises an error
    yield from ()


@CHECKS.add("secret.random", "The challenge secret looks random")
def _random(exam: Examination) -> Iterator[Finding]:
    if len(set(exam.secret)) < DISTINCT_BYTES:
        yield fail(
            "The challenge secret is not 32 random bytes. A participant could guess it, and with it every split.",
            "Create a new one before the first submission: python3 -c 'import secrets; print(secrets.token_hex(32))'",
        )


@CHECKS.add("secret.versioned", "No git repository holds the secret or the tasks")
def _versioned(exam: Examination) -> Iterator[Finding]:
    configuration = exam.configuration
    places = [
        _secret_path(exam),
        *(configuration.path(phase.tasks) for phase in configuration.phases.values()),
    ]
    for path in dict.fromkeys(places):
        if _tracked(path):
            yield fail(
                f"git tracks {path}, so the next push would publish it.",
                f"Run: git rm -r --cached {path.name}, add it to .gitignore, and replace it if it was ever pushed.",
            )


@CHECKS.add("secret.tasks", "Other users of this machine cannot read the hidden tasks")
def _tasks(exam: Examination) -> Iterator[Finding]:
    configuration = exam.configuration
    for folder in dict.fromkeys(configuration.path(phase.tasks) for phase in configuration.phases.values()):
        if folder.is_dir() and _open_to_others(folder, exam.base):
            yield warn(
                f"Every user of this machine can read the label files in {folder}.",
                f"Run: chmod -R o-rwx {folder}",
            )


@CHECKS.add("secret.tokens", "Only their owner can read the files that hold tokens")
def _tokens(exam: Examination) -> Iterator[Finding]:
    for key, reference in exam.configuration.references().items():
        if not reference.startswith("file:"):
            continue
        path = exam.base / Path(reference.removeprefix("file:")).expanduser()
        if path.is_file() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield fail(
                f"{path}, which {key} points to, can be read by other users.", f"Run: chmod 600 {path}"
            )


def _example_files(exam: Examination) -> list[str]:
    """Return which files are examples: the id lists by name, the label files by number."""
    said = []
    for codename, paths in exam.examples.items():
        phase = exam.configuration.phases[codename]
        ids = exam.configuration.path(phase.ids)
        labels = len([path for path in paths if path != ids])
        said += [f"{labels} label file{'s' * (labels > 1)} in {phase.tasks}"] * (labels > 0)
        said += [str(phase.ids)] * (ids in paths)
    return said


def _secret_path(exam: Examination) -> Path:
    return exam.configuration.path(exam.configuration.challenge.secret)


def _tracked(path: Path) -> bool:
    """Return whether a git repository around a path tracks it, or something in it."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        return False
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        listed = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--", str(path)],
            env=environment,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False  # without git nothing is tracked, and another check reports that git is missing
    return listed.returncode == 0 and bool(listed.stdout.strip())


def _open_to_others(folder: Path, base: Path) -> bool:
    """Return whether other users can reach a file from the challenge's folder and read it; folders above are not checked."""
    way = [folder]
    while way[-1].parent not in (base, way[-1]) and base in way[-1].parents:
        way.append(way[-1].parent)
    if not all(step.stat().st_mode & stat.S_IXOTH for step in way):
        return False
    return any(
        file.is_file() and file.stat().st_mode & stat.S_IROTH and file.parent.stat().st_mode & stat.S_IXOTH
        for file in folder.rglob("*")
    )
