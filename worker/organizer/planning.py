"""Planning: what a challenge of a given size needs, computed from the measured speed of this machine.

Measured here: training probes with the local engine at the given shape, reading a CSV, starting the evaluation's process, the size of a
submission. Assumed, and stated in the result: when submissions arrive, how many calls to EvalAI one takes, and that a machine's cores work
in parallel like those measured. The queue before the deadline is simulated, not solved: arrivals are random in the last hour, each
evaluation occupies one machine, and EvalAI's calls are a server that all machines share.
"""

from __future__ import annotations

import gzip
import heapq
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

CALLS_PER_SUBMISSION = 6.0
"""Receive, delete, read (shared by a listing if many wait), running, read before the answer, answer."""
EVALAI_CALLS_PER_MINUTE = 60
HOUR_S = 3600.0
ROUNDS = 20  # simulations of the last hour
MOST_MACHINES = 64
PATIENCE = 0.95  # share of the last hour's submissions that must be answered in time
READ_ROWS = 200  # of a CSV, from which the time to read all of it is estimated
LEAST_S = 0.5  # core seconds of training to measure at least


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a challenge.

    Attributes:
        submissions: Number in the whole period.
        days: Length of the period.
        tasks: Hidden tasks.
        folds: Splits per task.
        dim: Dimension of an embedding.
        samples: Public ids; every task is assumed to use all of them.
        epochs: Number per fold.
        last_hour: Share of all submissions that arrive in the hour before the deadline.
        patience_s: How long participants may wait in the last hour, in seconds.
        calls_per_minute: Our share of EvalAI's limit.
        megabits: Download speed, Mbit/s.
        cores: Number per machine.
    """

    submissions: int
    days: float
    tasks: int
    folds: int
    dim: int
    samples: int
    epochs: int
    last_hour: float
    patience_s: float
    calls_per_minute: float
    megabits: float
    cores: int


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The speed of this machine.

    Attributes:
        probe_core_s: Core seconds for one probe (one fold of one task) at the shape of the load.
        read_s: Seconds to read one submission as CSV.
        start_s: Seconds to start the process that evaluates.
        csv_bytes: Size of a plain CSV with all digits of a float32.
        kept_bytes: Size in which it is stored after the answer.
        cores: Cores that were measured together.
    """

    probe_core_s: float
    read_s: float
    start_s: float
    csv_bytes: int
    kept_bytes: int
    cores: int


@dataclass(frozen=True, kw_only=True)
class Waits:
    """How long participants wait for their answers in the last hour, in seconds."""

    machines: int
    median_s: float
    most_s: float  # 95 of 100 participants wait at most this long
    longest_s: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the load needs.

    Attributes:
        load: The given load.
        pace: The measured speed.
        evaluation_s: Seconds for one submission on one machine, from its file to its score.
        machines: The smallest number that answers the last hour in time; None if no number does.
        machine_hours: Evaluation time of all submissions, which a complete rescore takes as well.
        disk_bytes: Size of all submissions as they are stored.
        memory_bytes: Memory for one evaluation, without the process itself.
        calls_in_all: Calls to EvalAI.
        calls_per_minute: Calls to EvalAI that the last hour needs so that they do not pile up.
        calls_limit_submissions: How many submissions an hour our share of EvalAI's limit allows.
        bound_by: What limits the last hour: ``arrivals``, ``scoring`` or ``calls``.
        waits: Waits with 1, 2, 4 ... machines.
        assumptions: What was not measured, in sentences.
    """

    load: Load
    pace: Pace
    evaluation_s: float
    machines: int | None
    machine_hours: float
    disk_bytes: int
    memory_bytes: int
    calls_in_all: int
    calls_per_minute: float
    calls_limit_submissions: float
    bound_by: str
    waits: tuple[Waits, ...]
    assumptions: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return asdict(self)


def measure(load: Load) -> Pace:
    """Measure this machine's speed at the load's shape; takes a few seconds."""
    import numpy as np

    from scoring.engines import LocalEngine, Unit, available_cores
    from scoring.inputs.submission import read_submission
    from scoring.kernel import aligned
    from scoring.protocol import Recipe
    from scoring.warm import warm

    warm()
    generator = np.random.default_rng(0)
    rows = aligned((load.samples, load.dim))
    rows[:] = generator.standard_normal((load.samples, load.dim), dtype=np.float32)
    targets = generator.random((2, load.samples), dtype=np.float32)
    cores = available_cores()
    seeds = generator.integers(0, 2**32, size=(2, 64 * cores), dtype=np.uint32)
    unit = Unit(
        rows=rows,
        targets=targets,
        classification=np.array([False, False]),
        split_seeds=seeds[0],
        training_seeds=seeds[1],
        recipe=Recipe(epochs=load.epochs),
    )
    engine = LocalEngine(threads=cores)
    folds, spent = cores, 0.0
    while True:
        begun = time.process_time()  # of all threads; other processes on this machine do not count
        engine.score(replace(unit, split_seeds=seeds[0][:folds], training_seeds=seeds[1][:folds]))
        spent = time.process_time() - begun
        if spent >= LEAST_S or 4 * folds > seeds.shape[1]:
            break
        folds *= 4
    some = tuple(f"id_{row:08d}" for row in range(min(READ_ROWS, load.samples)))
    share = load.samples / len(some)
    with tempfile.TemporaryDirectory(prefix="neuco-plan-") as folder:
        file = Path(folder) / "embeddings.csv"
        content = _csv(some, rows[: len(some)].tolist())
        file.write_bytes(content)
        begun = time.process_time()
        read_submission(file, some, load.dim, max_expanded_bytes=10 * len(content))
        read_s = (time.process_time() - begun) * share
    begun = time.perf_counter()
    code = "import worker.evaluation.evaluate_child, scoring.kernel.train, scoring.inputs.submission, scoring.evaluate"
    subprocess.run([sys.executable, "-c", code], check=True)
    return Pace(
        probe_core_s=spent / (folds * len(targets)),
        read_s=read_s,
        start_s=time.perf_counter() - begun,
        csv_bytes=round(len(content) * share),
        kept_bytes=round(len(gzip.compress(content, 1)) * share),
        cores=cores,
    )


def _csv(ids: Sequence[str], rows: Sequence[Sequence[float]]) -> bytes:
    """Write rows with all digits of a float32."""
    lines = [",".join(["id", *map(str, range(len(rows[0])))])]
    lines += [
        ",".join([name, *(f"{value:.9g}" for value in row)]) for name, row in zip(ids, rows, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def make_plan(load: Load, pace: Pace) -> Plan:
    """Compute machines, hours, disk, calls and waits from load and speed; this function is pure."""
    training_s = load.tasks * load.folds * pace.probe_core_s / load.cores
    evaluation_s = pace.start_s + pace.read_s + training_s
    crowd = max(1, round(load.submissions * load.last_hour))
    numbers = [2**power for power in range(int(math.log2(MOST_MACHINES)) + 1)]
    tried = {number: simulate(load, pace, evaluation_s, crowd, number) for number in numbers}
    machines = _fewest(load, pace, evaluation_s, crowd, tried)
    shown = [number for number in numbers if number <= 2 * (machines or 4)]
    calls_an_hour = load.calls_per_minute * 60 / CALLS_PER_SUBMISSION
    scored_an_hour = (machines or MOST_MACHINES) * HOUR_S / evaluation_s
    bound_by = "arrivals"
    if crowd > min(calls_an_hour, scored_an_hour):
        bound_by = "calls" if calls_an_hour <= scored_an_hour else "scoring"
    return Plan(
        load=load,
        pace=pace,
        evaluation_s=evaluation_s,
        machines=machines,
        machine_hours=load.submissions * evaluation_s / HOUR_S,
        disk_bytes=load.submissions * pace.kept_bytes + pace.csv_bytes,
        memory_bytes=pace.csv_bytes + 2 * 4 * load.samples * load.dim,
        calls_in_all=round(load.submissions * CALLS_PER_SUBMISSION),
        calls_per_minute=crowd * CALLS_PER_SUBMISSION / 60,
        calls_limit_submissions=calls_an_hour,
        bound_by=bound_by,
        waits=tuple(tried[number] for number in shown),
        assumptions=_assumptions(load, crowd),
    )


def simulate(load: Load, pace: Pace, evaluation_s: float, crowd: int, machines: int) -> Waits:
    """Simulate the hour before the deadline several times.

    Submissions arrive at independent uniform times in the hour, and are served in their order. Each takes its share of EvalAI's calls from
    one server that allows ``calls_per_minute`` (all of them before its evaluation, because answers have a reserve of the budget and do not
    queue), is downloaded, and occupies one machine for its evaluation.
    """
    random = Random(0)  # noqa: S311 - a fixed seed, so that the plan is reproducible
    before_s = CALLS_PER_SUBMISSION / load.calls_per_minute * 60
    transfer_s = pace.csv_bytes * 8 / (load.megabits * 1e6)
    waits = []
    for _ in range(ROUNDS):
        api_free = 0.0
        free = [0.0] * machines
        for arrival in sorted(random.uniform(0, HOUR_S) for _ in range(crowd)):
            api_free = max(api_free, arrival) + before_s
            begun = max(api_free + transfer_s, heapq.heappop(free))
            heapq.heappush(free, begun + evaluation_s)
            waits.append(begun + evaluation_s - arrival)
    waits.sort()
    return Waits(
        machines=machines,
        median_s=waits[len(waits) // 2],
        most_s=waits[min(len(waits) - 1, int(PATIENCE * len(waits)))],
        longest_s=waits[-1],
    )


def _fewest(load: Load, pace: Pace, evaluation_s: float, crowd: int, tried: dict[int, Waits]) -> int | None:
    """Find the smallest number of machines that is fast enough, by bisection between powers of two."""
    enough = next((number for number in sorted(tried) if tried[number].most_s <= load.patience_s), None)
    if enough is None:
        return None
    low, high = enough // 2, enough
    while high - low > 1:
        middle = (low + high) // 2
        if simulate(load, pace, evaluation_s, crowd, middle).most_s <= load.patience_s:
            high = middle
        else:
            low = middle
    return high


def _assumptions(load: Load, crowd: int) -> tuple[str, ...]:
    return (
        f"{load.last_hour:.0%} of all submissions ({crowd}) arrive in the last hour, at random times.",
        f"A submission takes {CALLS_PER_SUBMISSION:g} calls to EvalAI. EvalAI allows an account {EVALAI_CALLS_PER_MINUTE}"
        f" a minute; the worker uses {load.calls_per_minute:g} of them.",
        f"Every task uses all {load.samples:,} ids; submissions are plain CSV, downloaded at {load.megabits:g} Mbit/s.",
        (
            f"A machine has {load.cores} cores as fast as those of this machine, and twice the cores score twice as"
            " fast."
        ),
        "A team's files are scored one after the other: with an answer grid of 30 s, a team gets at most two answers"
        " a minute, however many machines there are.",
        "Each machine evaluates one submission at a time. To use several machines, run the `ray` engine on a cluster.",
    )
