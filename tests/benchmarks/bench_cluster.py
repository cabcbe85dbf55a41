"""``python -m tests.benchmarks.bench_cluster``: how busy the worker keeps a Ray cluster while a queue of submissions waits.

A sandbox of EvalAI with its limit of calls, a queue of submissions of as many teams, ``neuco-worker once`` as a process, and a Ray cluster
whose head gives no cores, as in deploy/ray. All of it is on this machine; if it has more cores than the cluster, the cluster has its own
and everything else the others. The engines take turns. *Seconds* are from the start of the first evaluation to the end of the last one;
the cluster is *busy* for the core seconds of its actors divided by these seconds times the cluster's cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from scoring.warm import warm
from tests.benchmarks.bench_scaling import layout, show
from tests.benchmarks.challenge_data import DIM, ChallengeData, generate
from tests.worker.harness.callers import DOWNLOAD, CallersJournal
from worker.challenge.configuration import load
from worker.runtime.child_main import NICENESS
from worker.sandbox import PhaseSettings, Sandbox, SandboxSettings
from worker.state import Attempt, Store

PHASE = "eval"
STORE_BYTES = 512 * 2**20


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run through the queue.

    Attributes:
        seconds: From the start of the first evaluation to the end of the last one.
        training_s: Core seconds of the cluster's actors.
        worker_s: Core seconds of the worker and its children.
        scores: Content and task to the scores of the folds.
        calls: How many calls reached EvalAI, by what made them.
    """

    seconds: float
    training_s: float
    worker_s: float
    scores: dict[tuple[str, str], tuple[float, ...]]
    calls: Counter[str]


def submissions(data: ChallengeData, count: int) -> Iterator[bytes]:
    """Yield files that differ in their first value, so that each has to be scored."""
    header, first, rest = data.submission.read_bytes().split(b"\n", 2)
    name, _, values = first.split(b",", 2)
    for number in range(count):
        yield b"\n".join((header, b"%b,0.%03d,%b" % (name, number, values), rest))


def actor_seconds() -> float:
    """Return the core seconds that the cluster's actors have used."""
    used = 0.0
    for process in psutil.process_iter(["cmdline", "cpu_times"]):
        if any("ray::Scorer" in word for word in process.info["cmdline"] or ()):
            used += process.info["cpu_times"].user + process.info["cpu_times"].system
    return used


def children_seconds() -> float:
    """Return the core seconds of those of our processes that have ended, with their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def challenge(
    folder: Path, data: ChallengeData, sandbox: Sandbox, scoring: dict[str, Any], folds: int
) -> Path:
    """Write the challenge of the evaluation phase of 2025 and return its configuration; what is not named here has its default."""
    secret = folder / "challenge.secret"
    secret.write_text("5a" * 32)
    secret.chmod(0o600)
    (folder / "token").write_text(sandbox.token("host"))
    subprocess.run(["git", "init", "-q", "--bare", str(folder / "board.git")], check=True)
    document = {
        "challenge": {"title": "Benchmark"},
        "evalai": {
            "server": sandbox.url,
            "challenge": sandbox.challenge,
            "queue": sandbox.queue,
            "token": "file:token",
            "media_hosts": [sandbox.media_host],
        },
        "phases": {PHASE: {"tasks": str(data.tasks), "ids": str(data.ids), "folds": folds}},
        "submission": {"embedding_dim": DIM, "answer_grid": 0},
        "scoring": scoring,
        "leaderboard": {"repository": "./board.git"},
    }
    path = folder / "challenge.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def run(
    data: ChallengeData, count: int, scoring: dict[str, Any], folds: int, *, watched: bool = False
) -> Measured:
    """Let a new worker score the queue.

    Args:
        data: The files.
        count: Number of submissions, each by its own team.
        scoring: Keys of the configuration's section.
        folds: Number of folds of each submission.
        watched: Whether the process behind every call is looked up, which takes time.
    """
    settings = SandboxSettings(phases=(PhaseSettings(codename=PHASE),))
    with tempfile.TemporaryDirectory() as folder, Sandbox(settings) as sandbox:
        if watched:
            sandbox.world.journal = CallersJournal()
        for number, content in enumerate(submissions(data, count)):
            sandbox.submit(f"Team {number}", PHASE, content)
        path = challenge(Path(folder), data, sandbox, scoring, folds)
        before, spent = actor_seconds(), children_seconds()
        command = [sys.executable, "-m", "worker.cli", "once", "--config", str(path)]
        with (
            (Path(folder) / "log").open("w") as log,
            subprocess.Popen(command, stdout=log, stderr=log) as daemon,
        ):
            if daemon.wait():
                raise RuntimeError((Path(folder) / "log").read_text()[-3000:])
        after, spent = actor_seconds(), children_seconds() - spent
        with closing(Store(load(path).database_url)) as store, store.read() as tx:
            attempts = [attempt for attempt in tx.attempts() if attempt.kind == Attempt.EVALUATE]
            cells = tx.all_cells()
        if len(attempts) != count:
            raise RuntimeError(f"{len(attempts)} attempts at {count} submissions")
        ends = [attempt.closed_at for attempt in attempts if attempt.closed_at is not None]
        calls: Counter[str] = Counter({"somebody": len(sandbox.journal.requests())})
        if isinstance(sandbox.journal, CallersJournal):
            calls = by_role(sandbox.journal, daemon.pid)
        return Measured(
            seconds=(max(ends) - min(attempt.opened_at for attempt in attempts)).total_seconds(),
            training_s=after - before,
            worker_s=spent,
            scores={(cell.content_hash, cell.task): tuple(cell.folds) for cell in cells},
            calls=calls,
        )


def by_role(journal: CallersJournal, worker: int) -> Counter[str]:
    """Count calls by what their process is to the worker."""
    calls: Counter[str] = Counter()
    for caller, number in journal.made.items():
        if caller.pid == worker:
            calls["the worker"] += number
        elif caller.parent == worker and DOWNLOAD in caller.command:
            calls["its downloads"] += number
        else:
            calls["others"] += number
    return calls


@contextmanager
def cluster(nodes: int, cores: int) -> Iterator[str]:
    """Start a cluster on cores of its own, if there are enough, and yield its address; until it ends, everything else has the others."""
    # The actors compete with the worker's children for this machine's cores, so they get the same priority.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness=str(NICENESS))
    from ray.cluster_utils import Cluster

    everything = sorted(os.sched_getaffinity(0))
    own, others = everything[: nodes * cores], everything[nodes * cores :]
    if others:
        os.sched_setaffinity(0, own)
    started = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES},
    )
    try:
        for _ in range(nodes):
            started.add_node(num_cpus=cores, object_store_memory=STORE_BYTES)
        started.wait_for_nodes()
        os.sched_setaffinity(0, others or everything)
        yield started.address
    finally:
        os.sched_setaffinity(0, everything)
        started.shutdown()


def compare(
    data: ChallengeData, nodes: int, cores: int, count: int, folds: int, at_once: Sequence[str], rounds: int
) -> Iterator[str]:
    """Measure the local engine on as many threads and the cluster alternately, and yield the rows of their medians."""
    total = nodes * cores
    local = f"local, {total} threads"
    with cluster(nodes, cores) as address:
        on_ray = {"engine": "ray", "ray_address": address}
        choices: dict[str, dict[str, Any]] = {local: {"engine": "local", "threads": total}}
        for value in at_once:
            choices[f"Ray, at_once: {value}"] = on_ray | {"at_once": value if value == "auto" else int(value)}
        watched = run(data, count, on_ray, folds, watched=True)  # the actors are warm afterwards
        show(f"{nodes} x {cores}, calls to EvalAI with Ray: {dict(watched.calls)}")
        measured: dict[str, list[Measured]] = {name: [] for name in choices}
        for _ in range(rounds):
            for name, scoring in choices.items():
                found = run(data, count, scoring, folds)
                if found.scores != watched.scores:
                    raise RuntimeError("the engines disagree")
                measured[name].append(found)
                used = f"{found.seconds:.2f} s, actors {found.training_s:.2f} core s, worker {found.worker_s:.2f}"
                show(f"{name}: {used}, {found.calls.total()} calls, load {os.getloadavg()[0]:.1f}")
    for name, found in measured.items():
        pairs = zip(found, measured[local], strict=True)
        seconds = statistics.median(each.seconds for each in found)
        ratio = statistics.median(each.seconds / alone.seconds for each, alone in pairs)
        row = f"| {nodes} x {cores} | {name} | {seconds:.1f} | {ratio:.2f} |"
        worker = statistics.median(each.worker_s for each in found)
        if name == local:
            yield f"{row} {worker:.1f} | | |"
            continue
        training = statistics.median(each.training_s for each in found)
        busy = statistics.median(each.training_s / (each.seconds * total) for each in found)
        yield f"{row} {worker:.1f} | {training:.1f} | {busy:.0%} |"


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=8)
    parser.add_argument(
        "--folds", type=int, default=200, help="of each submission (default: 200, as in 2025)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", nargs="+", default=["1", "auto"], metavar="N")
    parser.add_argument(
        "--layouts",
        type=layout,
        nargs="+",
        default=[(1, 1), (2, 1)],
        metavar="NODESxCORES",
        help="clusters to measure, all on this machine (default: 1x1 2x1)",
    )
    options = parser.parse_args()
    warm()
    with tempfile.TemporaryDirectory() as folder:
        data = generate(Path(folder))
        show(
            f"{options.rounds} rounds of {options.submissions} submissions with {options.folds} folds, load {os.getloadavg()[0]:.1f}"
        )
        rows = []
        for nodes, cores in options.layouts:
            rows += compare(
                data, nodes, cores, options.submissions, options.folds, options.at_once, options.rounds
            )
        show("| nodes x cores | | seconds | times local | worker, core s | actors, core s | cluster busy |")
        show("|---|---|---|---|---|---|---|")
        show("\n".join(rows))


if __name__ == "__main__":
    main()
