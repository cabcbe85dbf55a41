"""The table of all checks, by what they examine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from worker.organizer.doctor import board, evalai, groups, launch, local, tasks
from worker.organizer.doctor.check import Check, note
from worker.organizer.doctor.subjects import (
    CheckedChallenge,
    CheckedEvalAI,
    CheckedFiles,
    CheckedRepository,
    ask_evalai,
    read_files,
    read_repository,
)

RENAME = "Rename the samples, for example to hashes, before anything is published."

CHALLENGE: tuple[Check[CheckedChallenge], ...] = (
    Check(
        "configuration.file",
        "Can the configuration file be read, and has every key a possible value?",
        lambda challenge: [
            note(
                f"“{challenge.configuration.challenge.title}” with the phases {', '.join(challenge.configuration.phases)},"
                f" in {challenge.path}.",
            )
        ],
    ),
    Check("records.pause", "Is the challenge not paused?", local.pause),
    Check(
        "configuration.placeholders",
        "Have the examples that `init` wrote been replaced?",
        local.placeholders,
    ),
    Check(
        "configuration.phases",
        "Does every phase have enough folds?",
        local.phases,
    ),
    Check(
        "configuration.bundle",
        "Does the bundle say what configuration and dates say, and where the leaderboard is?",
        local.bundle,
        "Pack it again: neuco-worker bundle DIR, which renews the marked parts. What is on EvalAI already has to be edited there.",
    ),
    Check(
        "secret.file",
        "Are the challenge's secret and signing key there, random, and readable only by their owner?",
        local.secret,
        "Create a new one before the first submission: python3 -c 'import secrets; print(secrets.token_hex(32))'",
    ),
    Check(
        "secret.versioned",
        "Does git track neither secret, signing key, tokens, tasks nor state?",
        local.versioned,
    ),
    Check(
        "secret.readable",
        "Are tokens closed to all other users, and hidden tasks to those outside their group?",
        local.readable,
    ),
    Check(
        "evalai.token",
        "Is the EvalAI token there, and not about to expire?",
        evalai.token,
        "Copy a new one from the EvalAI profile page.",
    ),
    Check("board.address", "Can git, the repository's address and credentials be used?", board.address),
    Check(
        "alerts.webhook",
        "Does the server of the alerts accept a connection (nothing is posted)?",
        board.webhook,
        "Create an incoming webhook (Slack, Mattermost), write its address into webhook.token,"
        " and set alerts.webhook: file:./webhook.token",
        remote=True,
    ),
    Check("beacon.chosen", "Can nobody choose the splits?", board.beacon),
    Check(
        "beacon.servers",
        "Does a server of drand answer?",
        board.drand,
        "Open the firewall to one of fairness.drand_servers, or name others there (every answer is checked, so any mirror is safe)."
        " Otherwise set fairness.beacon: none before the first start; the choice of the secret is then taken on trust.",
        remote=True,
    ),
    Check(
        "machine.state",
        "Can the state be written, and is it on this machine, and closed to users outside its group?",
        local.state,
    ),
    Check(
        "machine.disk",
        "Is there room on the disk?",
        local.disk,
        "Use a larger disk, or lower submission.disk_reserve_gigabytes or submission.max_megabytes.",
    ),
    Check(
        "machine.capacity",
        "Does this machine have the memory and the processors that evaluations may use?",
        local.capacity,
    ),
    Check(
        "machine.service",
        "May an installed service reach every place that the configuration names?",
        local.service,
        "Move it to /srv and correct the key. Or open it with `sudo systemctl edit neuco-worker@NAME`, and restart the service: below"
        " [Service], write ReadWritePaths=PLACE or, for a place in a home folder, ProtectHome=tmpfs and BindPaths=PLACE.",
    ),
    Check(
        "machine.cache",
        "Can compiled code be kept?",
        local.cache,
        "Set NUMBA_CACHE_DIR to a folder of the user that runs the worker.",
    ),
    Check(
        "machine.proxies",
        "Do the proxies that the environment names accept connections?",
        board.proxies,
        "Correct HTTPS_PROXY or HTTP_PROXY in the worker's environment, or list hosts that need no proxy in NO_PROXY.",
        remote=True,
    ),
    Check(
        "records.same",
        "Are phases scored as their files and the configuration describe them?",
        local.recorded,
    ),
)
FILES: tuple[Check[CheckedFiles], ...] = (
    Check("labels.files", "Can the worker load every list of ids and every hidden task?", tasks.examined),
    Check("ids.sorted", "Are the id lists sorted, so that their order tells nothing?", tasks.in_order),
    Check("ids.neutral", "Do the ids name no task, and look alike for all tasks?", tasks.neutral, RENAME),
    Check("ids.separate", "Does every phase have samples of its own?", tasks.separate),
    Check("ids.labeled", "Does every task label every public id?", tasks.labeled),
    Check(
        "labels.enough",
        "Does every task have enough samples to test on?",
        tasks.enough,
        "Label more samples, or raise scoring.test_size.",
    ),
    Check("labels.groups", "Do groups of samples allow different test parts?", groups.grouped),
    Check("labels.distinct", "Are all tasks different?", tasks.distinct),
    Check("labels.order", "Do the labels have nothing to do with the order of the ids?", tasks.order, RENAME),
    Check(
        "labels.spread",
        "Are the labels of regressions without extreme outliers?",
        tasks.spread,
        "Look for a missing-value code such as -9999, clip the labels, or take their logarithm.",
    ),
    Check("labels.steps", "Does every probe train enough steps to learn?", tasks.steps),
    Check("labels.cost", "Does a submission fit its limits, and the grid of answers?", tasks.cost),
)
EVALAI: tuple[Check[CheckedEvalAI], ...] = (
    Check(
        "evalai.server",
        "Does EvalAI know the configured challenge, and accept token and queue?",
        evalai.examined,
        remote=True,
    ),
    Check(
        "evalai.challenge",
        "Has the challenge the settings that the worker needs?",
        evalai.challenge,
        remote=True,
    ),
    Check(
        "evalai.launch",
        "Can participants find it and submit to it, until the end?",
        launch.launch,
        "Move the end date on EvalAI.",
        remote=True,
    ),
    Check(
        "evalai.clock",
        "Does this machine's clock agree with EvalAI's?",
        evalai.clock,
        "Let it follow a time server: sudo timedatectl set-ntp true",
        remote=True,
    ),
    Check(
        "evalai.storage",
        "May files be downloaded from where EvalAI stores them?",
        evalai.storage,
        remote=True,
    ),
    Check(
        "evalai.phases",
        "Does EvalAI have exactly the configured phases, dataset splits and metrics?",
        evalai.phases,
        remote=True,
    ),
    Check(
        "evalai.phase_settings",
        "Do the phases' settings suit participants and the board?",
        evalai.phase_settings,
        remote=True,
    ),
    Check(
        "evalai.limits",
        "Do limits of submissions and end dates agree with the bundle and with EvalAI's rate limit?",
        evalai.limits,
        "Set them on EvalAI, or correct the bundle's pages, which state them.",
        remote=True,
    ),
    Check(
        "evalai.leaderboards",
        "Do EvalAI's own leaderboards show mean Q, and nothing that is hidden?",
        evalai.leaderboards,
        remote=True,
    ),
)
REPOSITORY: tuple[Check[CheckedRepository], ...] = (
    Check(
        "board.push",
        "Does a dry run of a push succeed, to the branch that visitors see?",
        board.examined,
        remote=True,
    ),
    Check(
        "board.foreign",
        "Would the first push leave the files of others alone?",
        board.foreign,
        remote=True,
    ),
    Check(
        "board.history",
        "Is there no board and no commitment that this state does not know?",
        board.history,
        "Use another branch or an empty repository, or restore the state that the history belongs to.",
        remote=True,
    ),
)
SUBJECTS: Mapping[Callable[[CheckedChallenge], Any], tuple[Check[Any], ...]] = {
    lambda challenge: challenge: CHALLENGE,
    read_files: FILES,
    ask_evalai: EVALAI,
    read_repository: REPOSITORY,
}
"""What reads a subject, and its checks; the first one says what was read."""
CHECKS: tuple[Check[Any], ...] = tuple(check for checks in SUBJECTS.values() for check in checks)
