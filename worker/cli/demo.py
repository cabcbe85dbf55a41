"""``neuco-worker demo``: a complete challenge on one machine."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer


def demo(
    *,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Folder to write to; by default a new temporary one."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Train at most this many folds, to finish sooner.", min=1)
    ] = None,
) -> None:
    """Run a whole challenge on this machine, with a sandbox in place of EvalAI, and publish its leaderboard in git.

    Five teams and two baselines submit embeddings of 1,797 images of handwritten digits in two phases. The hidden tasks ask which digit
    an image shows and where its ink is. At the end, everything is revealed and verified.

    Example: `neuco-worker demo --dir my-demo`
    """
    from worker.cli.rehearse import show_rehearsal
    from worker.cli.terminal import Console
    from worker.organizer.demo.demo import run_demo

    # ends the worker, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(highlight=False, soft_wrap=True)
    path = (directory or Path(tempfile.mkdtemp(prefix="neuco-demo-"))).resolve()
    console.print(f"Running a hidden-task challenge in {path}", markup=False)
    began = time.monotonic()
    folder, rehearsal = run_demo(
        path,
        folds=folds,
        tell=lambda sentence: console.print(f"{time.monotonic() - began:5.1f} s  {sentence}", markup=False),
    )
    show_rehearsal(console, rehearsal)
    if rehearsal.faults:
        raise typer.Exit(1)
    *_, last = rehearsal.phases
    entry = [entry for entry in last.entries if entry["rank"] is not None][-1]
    receipt = folder.answer(last.codename, entry["submission"])
    program = sys.argv[0] if Path(sys.argv[0]).name == "neuco-worker" else "neuco-worker"
    console.print(
        f"""
Leaderboard:     {path / "leaderboard" / "README.md"}
Web page:        {path / "leaderboard" / "index.html"}
Git repository:  {folder.repository}
Submissions:     {receipt.parent.parent}
Worker's log:    {folder.log}
Verdict:         {rehearsal.verified[-1]}

The hidden tasks are now published; the web page shows them. Next, {entry["team"]}, who came last, can check the result with the receipt:

  {program} verify --receipt {receipt} {folder.repository}""",
        markup=False,
    )
