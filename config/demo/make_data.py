"""Make digits.npz, the demo's data, from scikit-learn's copy of the handwritten digits.

Run it from the root of a checkout: ``.venv/bin/python config/demo/make_data.py``. Needs scikit-learn, which the demo itself does not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def write_data(target: Path) -> None:
    """Write images (1797 x 8 x 8, values 0 to 16) and the digits that they show, as bytes."""
    digits = load_digits()
    np.savez_compressed(target, images=digits.images.astype(np.uint8), digits=digits.target.astype(np.uint8))


if __name__ == "__main__":
    write_data(Path(__file__).with_name("digits.npz"))
