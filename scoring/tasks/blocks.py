"""Groups from coordinates: blocks of the Earth's surface."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

KM_PER_DEGREE = 111.195  # of latitude; of longitude, times the cosine of the latitude


def blocks(latitudes: ArrayLike, longitudes: ArrayLike, km: float) -> list[str]:
    """Name the block of each place: bands of latitude of ``km`` kilometres, each cut into blocks as wide.

    Args:
        latitudes: n degrees.
        longitudes: n degrees, from -180 to 180 or from 0 to 360.
        km: Height and width of a block.
    """
    bands = np.floor(np.asarray(latitudes, dtype=float) * KM_PER_DEGREE / km)
    middle = np.radians((bands + 0.5) * km / KM_PER_DEGREE)
    east = (np.asarray(longitudes, dtype=float) + 180) % 360
    columns = np.floor(east * KM_PER_DEGREE * np.maximum(np.cos(middle), 0) / km)
    return [f"{band:.0f} {column:.0f}" for band, column in zip(bands, columns, strict=True)]
