"""Try actions that the service should and should not be able to do; the unit runs this program, fully sandboxed, before the daemon.

The result is printed as one JSON object: each action with ``allowed`` or the error. The program uses only the system's Python and none of
the project's code.
"""

import ctypes
import json
import mmap
import os
import signal
import socket
import sys
from pathlib import Path

NAME = sys.argv[1]
LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER_NAMESPACE = 0x10000000


def write(folder: str) -> None:
    """Create a file in a folder and remove it."""
    path = Path(folder) / "probe"
    path.write_text("x")
    path.unlink()


def listed(folder: str) -> None:
    """List a folder, and treat an empty one as hidden, because no folder that is tried is empty on the machine."""
    if not list(Path(folder).iterdir()):
        raise PermissionError("hidden")


def call(function, *arguments) -> None:
    """Call a function of the C library, and raise an error if it returns -1."""
    if function(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def set_user_bit() -> None:
    """Create a set-user-ID file."""
    path = Path(f"/var/lib/neuco-worker/{NAME}/probe")
    path.write_text("x")
    try:
        path.chmod(0o4755)
    finally:
        path.unlink()


def others_processes() -> None:
    """See a process of another user."""
    if not Path("/proc/1/status").exists():
        raise PermissionError("hidden")


def compile_code() -> None:
    """Map memory that is both writable and executable, as the compiler does."""
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()


def connect() -> None:
    """Connect over the network; a refused connection also shows that the network can be used."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as channel:
        try:
            channel.connect(("127.0.0.1", 1))
        except ConnectionRefusedError:
            return


def use_sudo() -> None:
    """Run a command as root with sudo."""
    if os.spawnlp(os.P_WAIT, "sudo", "sudo", "-n", "true") != 0:
        raise PermissionError("refused")


TRIED = {
    "write its state": lambda: write(f"/var/lib/neuco-worker/{NAME}"),
    "write the cache": lambda: write("/var/cache/neuco-worker"),
    "write its own /tmp": lambda: write("/tmp"),
    "compile code": compile_code,
    "read its credential": lambda: Path(os.environ["CREDENTIALS_DIRECTORY"], "evalai.token").read_text(),
    "connect to a server": connect,
    "count memory": lambda: Path("/proc/meminfo").read_text(),
    "write /etc": lambda: write("/etc/neuco-worker"),
    "write its configuration": lambda: write(f"/etc/neuco-worker/{NAME}"),
    "write the software": lambda: write("/opt/neuco-worker"),
    "write /usr": lambda: write("/usr/local/bin"),
    "write backups": lambda: write("/var/backups/neuco-worker"),
    "write another challenge's state": lambda: write("/var/lib/neuco-worker/other"),
    "see the machine's /tmp": lambda: Path("/tmp/secret-of-the-machine").read_text(),
    "see home folders": lambda: listed("/home"),
    "see root's folder": lambda: listed("/root"),
    "see the folder of credentials": lambda: listed(f"/etc/neuco-worker/{NAME}/credentials"),
    "see another challenge's credentials": lambda: listed("/etc/neuco-worker/other/credentials"),
    "see another service's credentials": lambda: listed("/run/credentials/neuco-worker@other.service"),
    "see passwords": lambda: Path("/etc/shadow").read_text(),
    "see others' processes": others_processes,
    "signal the first process": lambda: os.kill(1, signal.SIGCONT),
    "write kernel settings": lambda: Path("/proc/sys/vm/swappiness").write_text("60"),
    "read the kernel's log": lambda: os.close(os.open("/dev/kmsg", os.O_RDONLY)),
    "open a disk": lambda: os.close(
        os.open(next(iter(Path("/dev").glob("[uvs]d*[a-z]")), "/dev/mem"), os.O_RDONLY)
    ),
    "become root": lambda: os.setuid(0),
    "make a set-user-ID program": set_user_bit,
    "mount something": lambda: call(LIBC.mount, b"none", b"/tmp", b"tmpfs", 0, None),
    "make a user namespace": lambda: call(LIBC.unshare, NEW_USER_NAMESPACE),
    "set the clock": lambda: call(LIBC.settimeofday, ctypes.byref(ctypes.c_longlong(0)), None),
    "rename the machine": lambda: socket.sethostname("other"),
    "listen to raw packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "speak netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "take real-time priority": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "use sudo": use_sudo,
}


def main() -> None:
    """Try everything and print what happened."""
    told = {}
    for what, attempt in TRIED.items():
        try:
            attempt()
            told[what] = "allowed"
        except (OSError, AttributeError) as problem:
            told[what] = str(problem)
    print(json.dumps({"event_key": "probe", "tried": told}))  # noqa: T201 - to the journal


if __name__ == "__main__":
    main()
