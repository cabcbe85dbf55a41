"""Checks of what is on this machine: configuration, secret and bundle; state, disk, memory, processors, service, compiled code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import psutil

from leaderboard.git import Repository
from scoring.errors import NeucoError, OrganizerError
from scoring.printable import count_of
from worker.challenge.configuration import EXAMPLE_REPOSITORY
from worker.challenge.setups import differences, open_phase, read_secret, removed
from worker.challenge.signing import check_signer, fingerprint, read_signer
from worker.fairness import commitments, disclosure
from worker.organizer.bundle import pack, read_sources, verification
from worker.organizer.bundle_check import bundle_faults, has_text, own_parts
from worker.organizer.doctor.check import Finding, fail, note, skipped, warn
from worker.organizer.doctor.subjects import CheckedChallenge, check_git
from worker.organizer.scaffold import EXAMPLE_QUEUE
from worker.organizer.service import unreachable
from worker.runtime.storage import GIGABYTE

FEW_FOLDS = 10
LADDER_FOLDS = 40  # with which the Ladder was measured, see SECURITY.md
MEMORY_SHARE = 0.8  # of the machine's; MemoryMax= of the units
# Types of file systems on another machine's disk.
NETWORK = re.compile(r"9p|afs|beegfs|ceph|cifs|fuse\.(glusterfs|sshfs)|gpfs|lustre|nfs4?|smb3|vboxsf")
DISTINCT_BYTES = 16  # of 32; random secrets have about 30 different bytes, and never as few as this


def placeholders(challenge: CheckedChallenge) -> Iterator[Finding]:
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


def pause(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Look for a pause that somebody may have forgotten."""
    with challenge.state() as tx:
        found = tx and tx.pause()
    if found:
        yield fail(found.sentence, "End the pause, unless you want it now.")


def phases(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Compare the folds of the phases with what a steady score needs."""
    for codename, phase in challenge.configuration.phases.items():
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


def bundle(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Compare the bundle with the configuration, and look in it for pages without the leaderboard's address."""
    configuration, archive = challenge.configuration, challenge.base / "bundle.zip"
    if not archive.is_file():
        yield skipped(f"There is no {archive}.")
        return
    faults = bundle_faults(archive, configuration)
    for fault in faults:
        yield fail(f"bundle.zip: {fault}")
    folder = challenge.base / "bundle"
    if folder.is_dir() and not faults:
        files = read_sources(folder)
        if pack(files, configuration) != archive.read_bytes():
            yield warn("bundle.zip is not what `bundle` makes of bundle/ now.")
        elif own := own_parts(files, configuration):
            yield note(f"Check yourself what is no longer marked in bundle/: {', '.join(own)}.")
    if faults or configuration.leaderboard.repository == EXAMPLE_REPOSITORY:
        return  # the example is reported as a placeholder
    address = configuration.board_address
    if address is None or not has_text(archive, address):
        yield warn(
            "The pages of bundle.zip do not link to the leaderboard.",
            "Set leaderboard.page if a browser cannot open leaderboard.repository, and pack the bundle again.",
        )
    if not has_text(archive, fingerprint(read_signer(configuration).public)):
        yield warn(
            "The pages of bundle.zip do not name the fingerprint of the challenge's key, so nobody can tell it from another one.",
            f"Add this to a page: {verification(configuration)}",
        )


def secret(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Read the secret and the signing key, as the worker does; a guessable secret is refused here."""
    secret, seed = read_secret(challenge.configuration), read_signer(challenge.configuration).seed
    for content, name, power in (
        (secret, "secret", "every split"),
        (seed, "signing key", "the right to sign as the challenge"),
    ):
        if len(set(content)) < DISTINCT_BYTES:
            yield fail(
                f"The challenge's {name} is not 32 random bytes. A participant could guess it, and with it {power}."
            )
    if secret == seed:
        yield fail(
            "The challenge's secret and its signing key are the same. Whoever gets to know one of them has both."
        )
    with challenge.state() as tx:
        if tx is not None:
            check_signer(tx, challenge.configuration)
    yield note(f"Anyone can check the challenge, and its key: {verification(challenge.configuration)}")


def versioned(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Look for hidden files in a git repository around them."""
    check_git()
    for path in challenge.configuration.private_places():
        if _tracked(path):
            yield fail(
                f"git tracks {path}, so the next push would publish it.",
                f"Run: git rm -r --cached {shlex.quote(path.name)}, add it to .gitignore, and replace it if it was ever pushed.",
            )


def readable(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Look for hidden files that other users of this machine can read or replace."""
    configuration = challenge.configuration
    if challenge.base.stat().st_mode & stat.S_IWOTH:
        yield fail(
            f"Every user of this machine can replace the files in {challenge.base}.",
            f"Run: chmod o-w {shlex.quote(str(challenge.base))}",
        )
    for folder in dict.fromkeys(configuration.path(phase.tasks) for phase in configuration.phases.values()):
        open_files = (
            file.is_file()
            and file.stat().st_mode & stat.S_IROTH
            and file.parent.stat().st_mode & stat.S_IXOTH
            for file in folder.rglob("*")
        )
        if folder.is_dir() and _others_enter(folder, challenge.base) and any(open_files):
            yield warn(
                f"Every user of this machine can read the label files in {folder}.",
                f"Run: chmod -R o-rwx {shlex.quote(str(folder))}",
            )
    for key, reference in configuration.references().items():
        path = configuration.path(Path(reference.removeprefix("file:")))
        if (
            reference.startswith("file:")
            and path.is_file()
            and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        ):
            yield fail(
                f"{path}, which {key} points to, can be read by other users.",
                f"Run: chmod 600 {shlex.quote(str(path))}",
            )


def recorded(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Compare each record with the files, and what was promised with the configuration."""
    secret, configured = read_secret(challenge.configuration), challenge.configuration.fairness.publish_files
    access = " ".join(challenge.configuration.fairness.access.split())
    receipts_every = challenge.configuration.leaderboard.receipts_every
    with challenge.state() as tx:
        for first in () if tx is None else commitments.public(tx)[:1]:
            for key, fixed, written in (
                ("fairness.access", first.access, access),
                ("leaderboard.receipts_every", f"{first.receipts_every:g}", f"{receipts_every:g}"),
            ):
                if fixed != written:
                    yield warn(
                        f"The first commitment says of {key}: “{fixed}”. The configuration says something else, which has no effect.",
                        f"Write the same into {key}.",
                    )
        for codename in challenge.configuration.phases:
            if tx is None or tx.phase_record(codename) is None:
                continue  # the first start records it
            rule = disclosure.rule_of(commitments.public(tx), codename)
            if rule not in (None, configured):
                yield warn(
                    f"The commitment to phase {codename} promised fairness.publish_files: {rule},"
                    f" but the configuration says {configured}, which has no effect on this phase.",
                    f"Set fairness.publish_files: {rule} again.",
                )
            try:
                open_phase(tx, codename, secret)
            except NeucoError as error:
                yield fail(error.sentence, error.hint)
                continue
            for difference in differences(tx, challenge.configuration, codename, secret):
                yield warn(difference.sentence, difference.hint)
        for difference in () if tx is None else removed(tx, challenge.configuration):
            yield warn(difference.sentence, difference.hint)


def _tracked(path: Path) -> bool:
    """Return whether a git repository around a path tracks it, or something in it."""
    folder = path if path.is_dir() else path.parent
    try:
        return bool(Repository(folder).run("ls-files", "--", str(path)))
    except OrganizerError:
        return False  # no repository


def _others_enter(folder: Path, base: Path) -> bool:
    """Return whether other users can enter a folder; folders above the challenge's are not checked."""
    way = [folder, *takewhile(lambda step: step != base.parent, folder.parents)]
    return all(step.stat().st_mode & stat.S_IXOTH for step in way)


def state(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Check that the state can be written, is on this machine, and only its owner can look into it; open the database."""
    folder = challenge.configuration.state_dir
    place = _existing(folder)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        yield fail(
            f"state: {place} is not a folder that this user may write to.",
            "Create the folder for the user that runs the worker, or correct the key state.",
        )
    file = challenge.configuration.database_file
    if file is not None and file.exists() and not file.is_file():
        yield fail(
            f"state: {file} is not a file.",
            "Name a file in a folder of its own, as in sqlite:///./state/worker.db.",
        )
    if file is not None and NETWORK.fullmatch(kind := _file_system(place)):
        yield warn(
            f"state: {place} is on a network file system ({kind}), for which the database in {file.name} is not made.",
            "Move the state to a disk of this machine, or to PostgreSQL, and correct the key state.",
        )
    if folder.is_dir() and _others_enter(folder, challenge.base):
        yield fail(
            f"Every user of this machine can look into {folder}, where submissions and fold scores are kept.",
            f"Run: chmod 700 {shlex.quote(str(folder))}",
        )
    with challenge.state():
        pass  # a database that cannot be opened is an error


def _file_system(folder: Path) -> str:
    """Return the type of the file system that has a folder; empty if it is unknown."""
    place = folder.resolve()
    mounts = reversed(psutil.disk_partitions(all=True))  # what was mounted last hides the others
    above = (mount for mount in mounts if place.is_relative_to(mount.mountpoint))
    found = max(above, key=lambda mount: len(mount.mountpoint), default=None)
    return found.fstype if found else ""


def disk(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Compare the free space with the reserve and one submission."""
    limits = challenge.configuration.submission
    free = shutil.disk_usage(_existing(challenge.configuration.state_dir)).free / GIGABYTE
    reserve, largest = limits.disk_reserve_gigabytes, limits.max_megabytes / 1000
    if free < reserve + largest:
        yield fail(
            f"{free:.1f} GB are free, too little for the reserve of {reserve:g} GB and one submission of {largest:g} GB."
        )


def capacity(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Compare this machine's memory and processors with what evaluations may use."""
    configuration = challenge.configuration
    total, cores = psutil.virtual_memory().total / GIGABYTE, len(os.sched_getaffinity(0))
    at_once, threads = configuration.scoring.at_once, configuration.scoring.threads
    allowed = configuration.submission.memory_gigabytes * at_once
    if MEMORY_SHARE * total < allowed:
        yield warn(
            f"This machine has {total:.1f} GB of memory, of which a service may use {MEMORY_SHARE:.0%}, but"
            f" {count_of(at_once, 'evaluation')} at once may take {allowed:g} GB.",
            "Lower submission.memory_gigabytes or scoring.at_once, or use a machine with more memory.",
        )
    if threads != "auto" and threads > cores:
        yield warn(
            f"scoring.threads is {threads}, but this process may use {count_of(cores, 'processor')}.",
            "Set scoring.threads: auto",
        )


def service(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Look for places that the service's units do not open."""
    for key, place, written in unreachable(challenge.path, challenge.configuration):
        yield fail(
            f"The service may not write to {place} ({key})."
            if written
            else f"The service cannot see {place} ({key})."
        )


def cache(_: CheckedChallenge) -> Iterator[Finding]:
    """Look for a folder for compiled code."""
    from scoring.jit import cache_candidates, cache_directory

    if cache_directory() is None:
        tried = ", ".join(map(str, cache_candidates()))
        yield warn(
            f"No folder for compiled code can be written to (tried: {tried}). Every evaluation has to compile again."
        )


def _existing(path: Path) -> Path:
    """Return the nearest part of a path that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
