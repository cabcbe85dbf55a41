"""``python -m tests.benchmarks``: the figures in docs/performance.md."""

from __future__ import annotations

from tests.benchmarks import bench_scoring

bench_scoring.main()
