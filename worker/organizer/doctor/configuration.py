"""Checks of the configuration, the secret and the bundle."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from zipfile import BadZipFile

from scoring.errors import NeucoError
from scoring.printable import count_of
from worker.challenge.configuration import EXAMPLE_REPOSITORY
from worker.challenge.files import differences
from worker.challenge.setups import open_phase
from worker.fairness import disclosure
from worker.organizer.bundle import page_address, published
from worker.organizer.bundle_check import TERMS, links_to, states_rule
from worker.organizer.doctor.check import Finding, fail, warn
from worker.organizer.doctor.subjects import GIT_S, Challenge
from worker.organizer.scaffold import EXAMPLE_QUEUE

FEW_FOLDS = 10
LADDER_FOLDS = 40  # with which the Ladder was measured, see SECURITY.md
DISTINCT_BYTES = 16  # of 32; random secrets have about 30 different bytes, and never as few as this
_GIVES_AWAY = {
    "intervals": "intervals show how much fold scores vary and, with several teams, something of how many tasks there are",
    "stable_views": "stable views (agreement, ranks under other rules) show how much the tasks disagree",
}


def placeholders(challenge: Challenge) -> Iterator[Finding]:
    """Name all placeholders at once. What depends on one of them is not checked until it is replaced."""
    configuration = challenge.configuration
    todo = {
        f"{count_of(len(paths), 'file')} of phase {name}": "Replace the files with your own label files and ids."
        for name, paths in challenge.examples.items()
    }
    if configuration.leaderboard.repository == EXAMPLE_REPOSITORY:
        todo["leaderboard.repository"] = "Enter the address of your own repository."
    if not configuration.evalai.challenge:
        todo["evalai.challenge"] = (
            "Upload bundle.zip to EvalAI: evalai.challenge is the number in the address of the challenge's page."
        )
    if configuration.evalai.queue == EXAMPLE_QUEUE:
        todo["evalai.queue"] = "After the upload, EvalAI shows evalai.queue in the challenge's Manage tab."
    if todo:
        yield fail(
            f"What `init` wrote as an example is still in place: {', '.join(todo)}.",
            " ".join(dict.fromkeys(todo.values())),
        )


def phases(challenge: Challenge) -> Iterator[Finding]:
    """Compare the phases with one another, and their folds with what a steady score needs."""
    configuration = challenge.configuration
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
    for codename, phase in configuration.phases.items():
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


def early_release(challenge: Challenge) -> Iterator[Finding]:
    """Name what the board gives away before the reveal."""
    for item in challenge.configuration.leaderboard.publish:
        yield warn(f"leaderboard.publish releases {item} while the challenge runs: {_GIVES_AWAY[item]}.")


def bundle(challenge: Challenge) -> Iterator[Finding]:
    """Look in the bundle for pages without the leaderboard's address, and compare whose embeddings the terms say are published."""
    yield from _promised(challenge)
    rule = challenge.configuration.fairness.publish_files
    archive, pack = challenge.base / "bundle.zip", f"neuco-worker bundle {challenge.base}"
    if not archive.is_file():
        return
    try:
        address = page_address(challenge.configuration)
        is_linked, is_stated = address is not None and links_to(archive, address), states_rule(archive, rule)
    except (OSError, BadZipFile):
        yield warn("bundle.zip is not a zip file.", f"Pack the bundle again: {pack}")
        return
    if not is_stated:
        yield fail(
            f"bundle.zip: the terms do not match fairness.publish_files, which is {rule}.",
            f"Write in bundle/{TERMS}: “the organizers publish the embeddings of {published(rule)}”. Then pack the bundle again:"
            f" {pack}. If the terms are on EvalAI already, edit them there.",
        )
    if challenge.configuration.leaderboard.repository == EXAMPLE_REPOSITORY:
        return  # which is reported as a placeholder
    if address is None:
        yield warn(
            "The pages of bundle.zip do not link to the leaderboard, because a browser cannot open leaderboard.repository.",
            f"Set leaderboard.page, and pack the bundle again: {pack}",
        )
    elif not is_linked:
        yield warn(
            f"No page of bundle.zip links to the leaderboard ({address}).",
            f"Pack the bundle again: {pack}. Pages that are on EvalAI already have to be edited there.",
        )


def _promised(challenge: Challenge) -> Iterator[Finding]:
    """Compare whose embeddings the configuration and the commitments say are published."""
    configured = challenge.configuration.fairness.publish_files
    with challenge.state() as tx:
        entries = [] if tx is None else [public for public, _ in tx.commitments()]
    for codename in challenge.configuration.phases:
        rule = disclosure.rule_of(entries, codename)
        if rule not in (None, configured):
            yield warn(
                f"The commitment to phase {codename} promised fairness.publish_files: {rule},"
                f" but the configuration says {configured}, which has no effect on this phase.",
                f"Set fairness.publish_files: {rule} again.",
            )


def secret(challenge: Challenge) -> Iterator[Finding]:
    """Read the secret, as the worker does; a guessable one is refused here."""
    if len(set(challenge.secret())) < DISTINCT_BYTES:
        yield fail(
            "The challenge secret is not 32 random bytes. A participant could guess it, and with it every split."
        )


def versioned(challenge: Challenge) -> Iterator[Finding]:
    """Look for hidden files in a git repository around them."""
    configuration = challenge.configuration
    hidden = [configuration.challenge.secret, *(phase.tasks for phase in configuration.phases.values())]
    for path in dict.fromkeys(configuration.path(place) for place in hidden):
        if _tracked(path):
            yield fail(
                f"git tracks {path}, so the next push would publish it.",
                f"Run: git rm -r --cached {path.name}, add it to .gitignore, and replace it if it was ever pushed.",
            )


def readable(challenge: Challenge) -> Iterator[Finding]:
    """Look for hidden files that other users of this machine can read."""
    configuration = challenge.configuration
    for folder in dict.fromkeys(configuration.path(phase.tasks) for phase in configuration.phases.values()):
        if folder.is_dir() and _open_to_others(folder, challenge.base):
            yield warn(
                f"Every user of this machine can read the label files in {folder}.",
                f"Run: chmod -R o-rwx {folder}",
            )
    for key, reference in configuration.references().items():
        path = challenge.base / Path(reference.removeprefix("file:")).expanduser()
        if (
            reference.startswith("file:")
            and path.is_file()
            and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        ):
            yield fail(
                f"{path}, which {key} points to, can be read by other users.", f"Run: chmod 600 {path}"
            )


def recorded(challenge: Challenge) -> Iterator[Finding]:
    """Compare each record with the files."""
    secret = challenge.secret()
    with challenge.state() as tx:
        for codename in challenge.configuration.phases:
            if tx is None or tx.phase_record(codename) is None:
                continue  # the first start records it
            try:
                open_phase(tx, codename, secret)
            except NeucoError as error:
                yield fail(error.sentence, error.cure)
                continue
            for difference in differences(tx, challenge.configuration, codename, secret):
                yield warn(difference.sentence, difference.cure)


def _tracked(path: Path) -> bool:
    """Return whether a git repository around a path tracks it, or something in it."""
    folder = path if path.is_dir() else path.parent
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
