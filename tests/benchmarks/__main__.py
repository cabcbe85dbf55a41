"""``python -m tests.benchmarks``: the figures in tests/README.md."""

from __future__ import annotations

from tests.benchmarks import bench_scoring

bench_scoring.main()
