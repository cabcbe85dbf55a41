"""Write a valid submission, as CSV and as Parquet, from a NumPy array.

Needs numpy, pandas and pyarrow. Replace ``embed`` with your model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd


def embed(ids: list[str], dim: int) -> np.ndarray:
    """Return one embedding per id, in the order of the ids; here random numbers instead of a model."""
    return np.random.default_rng(0).standard_normal((len(ids), dim)).astype(np.float32)


def write_submission(ids: list[str], embeddings: np.ndarray, folder: Path) -> None:
    """Write submission.csv and submission.parquet."""
    table = pd.DataFrame(embeddings, columns=[str(column) for column in range(embeddings.shape[1])])
    table.insert(0, "id", pd.Series(ids, dtype="string"))  # ids are text, or leading zeros get lost
    table.to_csv(folder / "submission.csv", index=False)
    table.to_parquet(folder / "submission.parquet", index=False)


def main() -> None:
    """Read the id list, embed, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ids", type=Path, required=True, help="public id list, one id per line")
    parser.add_argument("--dim", type=int, required=True, help="numbers in one embedding")
    parser.add_argument("--folder", type=Path, default=Path(), help="where to write")
    options = parser.parse_args()
    ids = [line.strip() for line in options.ids.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    write_submission(ids, embed(ids, options.dim), options.folder)


if __name__ == "__main__":
    main()
