"""Checks of this machine: state, disk, memory, processors, service, compiled code."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from scoring.printable import count_of
from worker.organizer.doctor.check import Finding, fail, warn
from worker.organizer.doctor.subjects import Challenge
from worker.organizer.service import instance_of, not_open
from worker.runtime.storage import GIGABYTE


def state(challenge: Challenge) -> Iterator[Finding]:
    """Check that the state can be written, and only its owner can look into it; open the database."""
    folder = challenge.configuration.state_dir
    place = _existing(folder)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        yield fail(
            f"state: {place} is not a folder that this user may write to.",
            "Create the folder for the user that runs the worker, or correct the key state.",
        )
    if folder.is_dir() and folder.stat().st_mode & stat.S_IRWXO:
        yield fail(
            f"Every user of this machine can look into {folder}, where submissions and fold scores are kept.",
            f"Run: chmod 700 {folder}",
        )
    with challenge.state():
        pass  # a database that cannot be opened is an error


def disk(challenge: Challenge) -> Iterator[Finding]:
    """Compare the free space with the reserve and one submission."""
    limits = challenge.configuration.submission
    free = shutil.disk_usage(_existing(challenge.configuration.state_dir)).free / GIGABYTE
    reserve, largest = limits.disk_reserve_gigabytes, limits.max_megabytes / 1000
    if free < reserve + largest:
        yield fail(
            f"{free:.1f} GB are free, too little for the reserve of {reserve:g} GB and one submission of {largest:g} GB."
        )


def capacity(challenge: Challenge) -> Iterator[Finding]:
    """Compare this machine's memory and processors with what evaluations may use."""
    import psutil

    configuration = challenge.configuration
    total, cores = psutil.virtual_memory().total / GIGABYTE, len(os.sched_getaffinity(0))
    at_once, threads = configuration.scoring.at_once, configuration.scoring.threads
    allowed = configuration.submission.memory_gigabytes * at_once
    if total < allowed:
        yield warn(
            f"This machine has {total:.1f} GB of memory, but {count_of(at_once, 'evaluation')} at once may take {allowed:g} GB.",
            "Lower submission.memory_gigabytes or scoring.at_once, or use a machine with more memory.",
        )
    if threads != "auto" and threads > cores:
        yield warn(
            f"scoring.threads is {threads}, but this process may use {count_of(cores, 'processor')}.",
            "Set scoring.threads: auto",
        )


def service(challenge: Challenge) -> Iterator[Finding]:
    """Check that the service's units open every place that the configuration names."""
    instance = instance_of(challenge.exam.path)
    if instance is None or not instance.units():
        return
    if missing := not_open(challenge.configuration, instance):
        named = ", ".join(f"{place.path} ({place.key})" for place in missing)
        yield fail(
            f"The units of the service do not open what the configuration names: {named}.",
            f"Run: sudo neuco-challenge {instance.name} paths; then restart the service, if it runs.",
        )


def cache(_: Challenge) -> Iterator[Finding]:
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
