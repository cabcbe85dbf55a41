"""The Debian root file system that both kinds of machine start from, with packages, libraries and this checkout.

It is built once from this computer's own apt source and kept in ``build/systemd``; each run updates the libraries and the checkout.
Nothing is downloaded inside it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

from tests.acceptance.installation import BUILD, DECLARED, ROOT, closure, copy_checkout
from tests.systemd.machine import Impossible

FOLDER = ROOT / "build" / "systemd"
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "iproute2", "procps", "sudo"),
    *("python3", "python3-venv", "git", "openssh-server", "openssh-client", "ca-certificates", "util-linux"),
)
"""The first line is for the machine, the second for the product."""
LIBRARIES = "/usr/local/lib/neuco-libraries"
CLONE = "/usr/local/src/neuco-worker"
QUIETLY = ("nice", "-n", "15")
HOST, GUEST = "169.254.213.1", "169.254.213.2"  # for User-Mode Linux, which is reached over a network
ENTRANCE_PORT = 2222
KEY = FOLDER / "key"
ENTRANCE = f"""[Unit]
ConditionVirtualization=uml
[Service]
Type=notify
RuntimeDirectory=sshd
ExecStartPre=/usr/sbin/ip address replace {GUEST}/30 dev vec0
ExecStartPre=/usr/sbin/ip link set vec0 up
ExecStart=/usr/sbin/sshd -D -p {ENTRANCE_PORT} -o MaxSessions=100
"""


def needs(*programs: tuple[str, str]) -> None:
    """Require root and some programs, each given with the package that contains it.

    Raises:
        Impossible: If this is not root, or a program is missing.
    """
    if os.geteuid() != 0:
        raise Impossible("only root can start it: sudo make systemd")
    missing = [package for program, package in programs if shutil.which(program) is None]
    if missing:
        raise Impossible(f"these packages are missing: sudo apt-get install {' '.join(missing)}")


def base() -> Path:
    """Build or update the root file system, and return its folder.

    Raises:
        Impossible: If it cannot be built on this computer.
    """
    needs(("debootstrap", "debootstrap"), ("ssh-keygen", "openssh-client"))
    root, stamp = FOLDER / "base", FOLDER / "base.packages"
    if not stamp.exists() or stamp.read_text() != " ".join(PACKAGES):
        shutil.rmtree(root, ignore_errors=True)
        _debootstrap(root)
        stamp.write_text(" ".join(PACKAGES))
    _bring_libraries(root)
    shutil.rmtree(_below(root, CLONE), ignore_errors=True)
    _below(root, CLONE).parent.mkdir(parents=True, exist_ok=True)
    copy_checkout(_below(root, CLONE))
    return root


def mirror(sources: Path = Path("/etc/apt"), release: Path = Path("/etc/os-release")) -> tuple[str, str]:
    """Return the address and the suite of this computer's own distribution, from its apt sources.

    Raises:
        Impossible: If no source has it.
    """
    named = re.search(r"^VERSION_CODENAME=(\S+)$", release.read_text(), re.MULTILINE)
    suite = named[1] if named else ""
    for path in sorted([sources / "sources.list", *sources.glob("sources.list.d/*")]):
        text = path.read_text() if path.is_file() else ""
        for line in re.findall(rf"^deb (?:\[[^]]*\] )?(\S+) {suite} .*\bmain\b", text, re.MULTILINE):
            return str(line), suite
        for block in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^([\w-]+): *(.*)$", block, re.MULTILINE))
            if suite in fields.get("Suites", "").split() and "main" in fields.get("Components", "").split():
                return str(fields["URIs"].split()[0]), suite
    raise Impossible(f"no apt source in {sources} has the suite {suite or 'of this system'}")


def _debootstrap(root: Path) -> None:
    address, suite = mirror()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "debootstrap.log").open("wb") as log:
        done = subprocess.run(
            [
                *QUIETLY,
                "debootstrap",
                "--variant=minbase",
                f"--include={','.join(PACKAGES)}",
                suite,
                root,
                address,
            ],
            stdout=log,
            stderr=log,
            check=False,
        )
    if done.returncode != 0:
        last = (FOLDER / "debootstrap.log").read_text().strip().splitlines()[-1:]
        raise Impossible(f"debootstrap ended with status {done.returncode}: {' '.join(last)}")
    shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
    (root / "etc/hostname").write_text("earth\n")
    for timer in ("apt-daily", "apt-daily-upgrade", "e2scrub_all", "dpkg-db-backup"):
        (root / "etc/systemd/system" / f"{timer}.timer").symlink_to("/dev/null")
    (root / "etc/systemd/system/ssh.service").symlink_to("/dev/null")  # a check starts its own server
    _open_entrance(root)


def _open_entrance(root: Path) -> None:
    """Set up ssh access to User-Mode Linux; a container does not need it."""
    KEY.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(KEY)], check=True)
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(KEY.with_suffix(".pub"), root / "root/.ssh/authorized_keys")
    unit = root / "etc/systemd/system/entrance.service"
    unit.write_text(ENTRANCE)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit.name).symlink_to(f"../{unit.name}")


def _bring_libraries(root: Path) -> None:
    """Copy the libraries that the product and its build need, except PyTorch, which only cross-checks scores."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not (root / "usr/bin" / version).exists():
        raise Impossible(f"the libraries here are for {version}, which this Debian does not have")
    packages = closure([line for line in (*DECLARED, *BUILD) if Requirement(line).name != "torch"])
    stamp, wanted = FOLDER / "base.libraries", "\n".join(f"{p.name} {p.version}" for p in packages.values())
    target = _below(root, LIBRARIES)
    if target.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for package in packages.values():
        for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            source, place = Path(str(package.locate_file(name))), target / name
            if source.is_dir():
                shutil.copytree(
                    source, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(source, place)
    stamp.write_text(wanted)


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")
