"""Measure reading of a challenge-size CSV into a float32 matrix, with each reader in a cold process, alternately.

Run with ``python -m tests.benchmarks.bench_reading``. The target for our reader, which also checks the file, is 148 MB of CSV in at most
0.6 s on 2 cores (with libraries loaded) and 350 MB of peak memory. The other readers only parse valid files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.benchmarks.challenge_data import DIM, generate

ROOT = Path(__file__).parents[2]
COLUMNS = [str(column) for column in range(DIM)]


def ours(path: Path, ids: list[str]) -> np.ndarray:
    """Read and check with the worker's reader."""
    from scoring.inputs.submission import read_submission

    return read_submission(path, ids, DIM, max_expanded_bytes=1 << 32).matrix


def pandas_whole(path: Path, ids: list[str]) -> np.ndarray:
    """Read with pandas' C parser at once."""
    import pandas as pd

    types = {"id": str} | dict.fromkeys(COLUMNS, np.float32)
    return pd.read_csv(path, dtype=types, engine="c", na_filter=False)[COLUMNS].to_numpy()


def pandas_chunks(path: Path, ids: list[str]) -> np.ndarray:
    """Read with pandas' C parser in chunks."""
    import pandas as pd

    types = {"id": str} | dict.fromkeys(COLUMNS, np.float32)
    matrix = np.empty((len(ids), DIM), dtype=np.float32)
    row = 0
    for frame in pd.read_csv(path, dtype=types, engine="c", na_filter=False, chunksize=2048):
        matrix[row : row + len(frame)] = frame[COLUMNS].to_numpy()
        row += len(frame)
    return matrix


def polars_whole(path: Path, ids: list[str]) -> np.ndarray:
    """Read with polars at once."""
    import polars as pl

    schema = {"id": pl.String} | dict.fromkeys(COLUMNS, pl.Float32)
    return np.ascontiguousarray(pl.read_csv(path, schema=schema).select(COLUMNS).to_numpy())


def polars_blocks(path: Path, ids: list[str]) -> np.ndarray:
    """Read with polars, 16 MB at a time."""
    import polars as pl

    schema = {"id": pl.String} | dict.fromkeys(COLUMNS, pl.Float32)
    matrix = np.empty((len(ids), DIM), dtype=np.float32)
    row = 0
    with path.open("rb") as file:
        file.readline()
        while lines := file.readlines(16 << 20):
            frame = pl.read_csv(b"".join(lines), has_header=False, schema=schema).select(COLUMNS)
            matrix[row : row + len(frame)] = frame.to_numpy()
            row += len(frame)
    return matrix


def pyarrow_stream(path: Path, ids: list[str]) -> np.ndarray:
    """Read with pyarrow's streaming reader."""
    import pyarrow as pa
    import pyarrow.csv as pc

    types = {"id": pa.string()} | dict.fromkeys(COLUMNS, pa.float32())
    matrix = np.empty((len(ids), DIM), dtype=np.float32)
    row = 0
    options = {
        "read_options": pc.ReadOptions(block_size=4 << 20),
        "convert_options": pc.ConvertOptions(column_types=types),
    }
    for batch in pc.open_csv(path, **options):
        for column, name in enumerate(COLUMNS):
            matrix[row : row + len(batch), column] = batch.column(name).to_numpy(zero_copy_only=False)
        row += len(batch)
    return matrix


CANDIDATES: dict[str, tuple[Callable[[Path, list[str]], np.ndarray], str]] = {
    "ours": (ours, "scoring.engines.registry"),
    "pandas": (pandas_whole, "pandas"),
    "pandas, chunks": (pandas_chunks, "pandas"),
    "polars": (polars_whole, "polars"),
    "polars, blocks": (polars_blocks, "polars"),
    "pyarrow, stream": (pyarrow_stream, "pyarrow.csv"),
}


def child(name: str, path: Path, ids_path: Path) -> None:
    """Measure one reader in this process and print the figures as JSON."""
    function, library = CANDIDATES[name]
    ids = ids_path.read_text().splitlines()
    start = time.perf_counter()
    __import__(library)
    if name == "ours":  # as in the worker, where numba is loaded before
        sys.modules[library].warm()
    loaded = time.perf_counter()
    matrix = function(path, ids)
    done = time.perf_counter()
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    figures = {"load": loaded - start, "read": done - loaded, "peak": peak / 1024, "rows": len(matrix)}
    sys.stdout.write(json.dumps(figures))


def measure(name: str, path: Path, ids: Path) -> dict[str, float]:
    """Measure one reader in a cold process."""
    command = [sys.executable, "-m", __spec__.name, "--child", name, "--path", str(path), "--ids", str(ids)]
    figures: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    )
    return figures


def other_forms(folder: Path, submission: Path) -> dict[str, Path]:
    """Write the submission in the other accepted forms."""
    import polars as pl

    forms = {name: folder / f"submission.{name}" for name in ("csv.gz", "parquet", "npz")}
    if not all(path.exists() for path in forms.values()):
        frame = pl.read_csv(submission, schema={"id": pl.String} | dict.fromkeys(COLUMNS, pl.Float32))
        frame.write_parquet(forms["parquet"])
        np.savez(
            forms["npz"], ids=frame["id"].to_numpy().astype(str), embeddings=frame.select(COLUMNS).to_numpy()
        )
        with submission.open("rb") as source, gzip.open(forms["csv.gz"], "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target)
    return forms


def report(title: str, figures: list[dict[str, float]], base: float) -> str:
    """Return a line of the table."""
    load, read, peak = (statistics.median(one[key] for one in figures) for key in ("load", "read", "peak"))
    fastest = min(one["read"] for one in figures)
    return f"| {title} | {load:.2f} | {read:.2f} | {fastest:.2f} | {read / base:.1f} | {peak:.0f} |\n"


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "neuco-worker-bench")
    parser.add_argument("--child", choices=CANDIDATES)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--ids", type=Path)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.path, options.ids)
        return
    data = generate(options.folder)
    forms = other_forms(options.folder, data.submission)
    for name in CANDIDATES:  # compiles, and loads the file into the page cache
        measure(name, data.submission, data.ids)
    taken: dict[str, list[dict[str, float]]] = {}
    for _ in range(options.turns):
        for name in CANDIDATES:
            taken.setdefault(name, []).append(measure(name, data.submission, data.ids))
        for form, path in forms.items():
            taken.setdefault(f"ours, {form}", []).append(measure("ours", path, data.ids))
    base = statistics.median(one["read"] for one in taken["ours"])
    megabytes = data.submission.stat().st_size / 1e6
    sys.stdout.write(f"{megabytes:.0f} MB of CSV, {options.turns} turns, cold processes.\n\n")
    sys.stdout.write(
        "| reader | load s | read s, median | fastest | ratio | peak MiB |\n|---|---|---|---|---|---|\n"
    )
    for name, figures in taken.items():
        sys.stdout.write(report(name, figures, base))


if __name__ == "__main__":
    main()
