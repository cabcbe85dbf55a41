"""Files are written as a whole, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def write_files(folder: Path, files: Mapping[str, bytes], *, private: tuple[str, ...] = ()) -> None:
    """Write files into a folder; if one cannot be written, nothing is left that was not there before.

    Each is written under another name, and all are renamed, in their order, when all are complete.

    Args:
        folder: The folder, which is made if it does not exist.
        files: Contents by path relative to it.
        private: Beginnings of the paths that only their owner may read, such as ``tasks/``; an empty one stands for all.

    Raises:
        OSError: With the path that could not be written.
    """
    place, made = folder, []
    # another process may write the same files
    parts = {folder / name: (folder / name).with_name(f".{secrets.token_hex(8)}.part") for name in files}
    try:
        for (place, part), (name, content) in zip(parts.items(), files.items(), strict=True):
            if os.path.lexists(place) and not stat.S_ISREG(place.lstat().st_mode):  # a device would be gone
                raise OSError(errno.EINVAL, "it is a folder, a link or a device")
            for parent in reversed([path for path in place.parents if not path.exists()]):
                below = f"{parent.relative_to(folder)}/" if parent.is_relative_to(folder) else "/"
                with suppress(FileExistsError):  # the other process was quicker
                    parent.mkdir(0o700 if below.startswith(private) else 0o777)
                    made.append(parent)
            mode = 0o600 if name.startswith(private) else 0o666
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                made.append(part)
                file.write(content)
        for place, part in parts.items():
            part.replace(place)
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(place), None
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        raise
