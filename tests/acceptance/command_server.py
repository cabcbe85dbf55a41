"""A program that an installation's Python runs: it imports the worker once, and forks for each command that it is given.

Importing takes most of the time of a short command. That no command needs another's imports is what ``tests/test_rooms.py`` checks.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from worker.cli import main

for module in ("worker.daemon", "worker.organizer.session"):  # most commands import both
    importlib.import_module(module)
for line in sys.stdin:
    words, folder, outputs = json.loads(line)
    if child := os.fork():
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
        continue
    os.chdir(folder)
    for target, path in enumerate((os.devnull, *outputs)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), target)
    sys.argv[1:] = words
    main()
