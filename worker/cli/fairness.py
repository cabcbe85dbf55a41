"""``neuco-worker challenge reveal`` and ``neuco-worker verify``: how anybody can check a challenge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scoring.documents import UNREADABLE, contents
from scoring.errors import OrganizerError
from scoring.printable import count_of, printable
from worker.cli.terminal import (
    ConfigOption,
    JsonOption,
    YesOption,
    ask,
    open_session,
    progress_bar,
)
from worker.participant.process import no_verdict

if TYPE_CHECKING:
    from worker.verify import Verdict
    from worker.verify.public import PublicRepository

CHANGED = 3  # exit code


def reveal(
    *,
    config: ConfigOption,
    phase: Annotated[
        list[str] | None, typer.Option("--phase", help="Only this phase; may be repeated.", metavar="NAME")
    ] = None,
    labels: Annotated[bool, typer.Option(help="Publish the labels, or only their hashes.")] = True,
    open_too: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Also reveal open phases, although teams may still submit; not with `shown: at_end`.",
        ),
    ] = False,
    yes: YesOption = False,
) -> None:
    """Publish what was hidden in a phase: tasks, labels, scores, weights, history, and the key of its splits.

    Reveals every closed phase (`board close`) that has not been revealed yet. This cannot be undone.

    Next: `neuco-worker verify` with the address of the repository, as anyone can.

    Example: `neuco-worker challenge reveal --phase dev --yes --config challenge.yaml`
    """
    from worker.organizer import reveal as revealing
    from worker.organizer.bundle import verification

    with open_session(config) as session:
        names, left_out = revealing.choose(session, phase, open_too=open_too)
        if left_out:
            print(f"Not revealed, because still open or not in the configuration: {', '.join(left_out)}.")
        shown = "labels" if labels else "hashes of the labels"
        rest = "" if phase else "; of a phase that was revealed before, only what is new"
        ask(
            f"The tasks, {shown} and all scores of {', '.join(names)} are published{rest}. This cannot be undone.",
            yes=yes,
        )
        fresh, published, unpublished = revealing.publish_revealed(
            session, names, labels=labels, open_too=open_too, named=phase or (), tell=print
        )
    if already := [name for name in names if name not in fresh]:
        print(f"Already revealed and unchanged since: {', '.join(already)}.")
    if unpublished:
        print(
            f"{count_of(unpublished, 'part')} of published files could not be pushed to the branch `files`. The worker tries again; one on"
            " another machine does not find them, so run this command there."
        )
    done = "Revealed and pushed" if fresh else "The repository already has everything"
    print(
        f"{done}, commit {published.commit}. Anyone can check it with: {verification(session.configuration)}"
    )


@no_verdict()
def verify(
    repository: Annotated[
        str,
        typer.Argument(
            help="The challenge's leaderboard repository: a git URL, a clone, or a folder.",
            show_default=False,
        ),
    ],
    *,
    submission: Annotated[
        list[Path] | None,
        typer.Option(
            help="A submission file whose scores to recompute; may be repeated.",
            exists=True,
            dir_okay=False,
            readable=True,
            metavar="FILE",
        ),
    ] = None,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(
            help="EvalAI's stdout of a submission, as a file; may be repeated.",
            exists=True,
            dir_okay=False,
            readable=True,
            metavar="FILE",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Fingerprint of the challenge's key; by default, the one in --receipt, or the only one.",
            metavar="FINGERPRINT",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="An older clone of the repository, to see whether history was rewritten."),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the submission files, for a copy of REPOSITORY without the branch `files`.",
            metavar="DIR",
        ),
    ] = None,
    recompute: Annotated[
        bool, typer.Option(help="Recompute the scores of all published submissions.")
    ] = True,
    engine: Annotated[
        Literal["local", "torch", "reference"],
        typer.Option(help="What recomputes the scores, as in scoring.engine."),
    ] = "local",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every finding, not only the answers.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Check a challenge from its public repository alone. Anyone can do this.

    Answers five questions: was it the same game from the start, is everybody on the board who should be, are the scores true, is what you
    see what was computed, has anybody else changed it? Each answer is consistent (✓), not revealed yet (?), changed by somebody else (!)
    or contradicted (✗). What has to be taken on trust (~) is listed once.

    The scores of all published submission files are recomputed. The newest commit that the challenge has signed is checked, and the
    newest commit of the branch is compared with it.

    Exits with 0 if nothing is contradicted, 1 if something is, 3 if somebody else changed what visitors see or two keys claim the
    repository, 2 if the check itself fails.

    Next: with --receipt, check what EvalAI showed about your own submission.

    Example: `neuco-worker verify https://github.com/organizer/challenge-leaderboard`
    """
    from worker.verify import Status, key_in, make_report, older_verdicts, verdicts
    from worker.verify.public import only_key, opened, with_contents
    from worker.verify.recompute import published_verdicts

    receipts = [(path, *_receipt(path)) for path in receipt or ()]
    signers = (
        {key} if key is not None else {found for _, document, _ in receipts if (found := key_in(document))}
    )
    name = signers.pop() if len(signers) == 1 else None
    with opened(repository, partial(only_key, name=name)) as as_pushed:
        _check_is_leaderboard(as_pushed)
        public = as_pushed if files is None else with_contents(as_pushed, files)
        with progress_bar("Checking what was published", "checks") as progress:
            results = [_counted(verdict, progress) for verdict in verdicts(public)]
        with progress_bar("Recomputing published submissions", "folds") as progress:
            results += published_verdicts(public, engine=engine, recompute=recompute, progress=progress)
        if against is not None:
            with opened(against, lambda _: public.key) as older:
                _check_is_leaderboard(older)
                results += older_verdicts(public, older)
        results += _brought(public, receipts, submission or (), engine)
        report = make_report(public, results)
    if json_output:
        print(json.dumps(report.to_json(), indent=1))
    else:
        for line in report.lines(verbose=verbose):
            print(printable(line))
    if report.number(Status.CONTRADICTED):
        raise typer.Exit(1)
    if report.number(Status.CHANGED):
        raise typer.Exit(CHANGED)


def _brought(
    public: PublicRepository,
    receipts: Sequence[tuple[Path, dict[str, Any], float | None]],
    files: Sequence[Path],
    engine: str,
) -> Iterator[Verdict]:
    """Check a participant's receipts and files, receipts first."""
    from worker.verify import entry_of, receipt_verdicts

    for path, receipt, q_mean in receipts:
        yield from receipt_verdicts(public, receipt, q_mean, check=f"your receipt {path}")
    if not files:
        return
    from worker.verify.recompute import submission_verdicts

    scored = [entry for _, receipt, _ in receipts if (entry := entry_of(public, receipt)) is not None]
    for path in files:
        with progress_bar(f"Recomputing {printable(path.name)}", "folds") as progress:
            yield from submission_verdicts(
                public,
                path,
                engine=engine,
                progress=progress,
                scored=scored,
                check=f"your submission {path}",
            )


def _counted(verdict: Verdict, progress: Callable[[int, int | None], None]) -> Verdict:
    progress(1, None)
    return verdict


def _check_is_leaderboard(public: PublicRepository) -> None:
    """Refuse a folder without any file of a challenge: a wrong path must not count as a contradiction."""
    if not any(
        path.startswith(("commitment.json", "receipts.jsonl", "leaderboard/", "reveal/"))
        for path in public.files
    ):
        raise OrganizerError(
            f"{public.address} is not a challenge's leaderboard repository.",
            hint="Name the repository's address, a clone of it, or a folder with its files.",
            code="verify.not_a_leaderboard",
        )


def _receipt(path: Path) -> tuple[dict[str, Any], float | None]:
    """Read the receipt and mean Q of a stdout that EvalAI showed."""
    try:
        document = json.loads(contents(path))
        q_mean = document.get("q_mean")  # absent while values are withheld
        return dict(document["receipt"]), None if q_mean is None else float(q_mean)
    except (OSError, *UNREADABLE):
        raise OrganizerError(
            f"{path} does not contain a receipt.",
            hint="Save the whole stdout that EvalAI shows for your submission. Only a scored submission has a receipt.",
            code="verify.receipt",
        ) from None
