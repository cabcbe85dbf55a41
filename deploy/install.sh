#!/usr/bin/env bash
# Install neuco-worker on Ubuntu 22.04 or 24.04 or Debian 12: packages, a user, /opt/neuco-worker, the units, the command neuco-challenge.
# Run it again at any time, to upgrade or to repair the installation. It starts nothing and touches no challenge.
set -euo pipefail
umask 022

usage() {
    cat <<'END'
Usage: sudo deploy/install.sh [OPTIONS]

  --dry-run          print what would be done, and do nothing
  --uninstall        remove what was installed; challenges, state and the user stay
  --source PATH      what to install: a clone of the repository (default: the one that contains this script) or a wheel
  --python PROGRAM   the Python to use, 3.11 or newer (default: python3.12 on Ubuntu 24.04, otherwise python3.11 or, if it is missing, what is installed)
  --libraries DIR    take Python libraries from this site-packages folder instead of downloading them
  --root DIR         install below DIR instead of /: no packages, no user, no systemd (for images and tests)
  --help             show this
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(dirname "$here")
root="" python="" libraries="" dry="" uninstall=""
while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry=1 ;;
        --uninstall) uninstall=1 ;;
        --source) source=$(realpath -e -- "${2:?--source needs a path}"); shift ;;
        --python) python=${2:?--python needs a program}; shift ;;
        --libraries) libraries=$(realpath -e -- "${2:?--libraries needs a folder}"); shift ;;
        --root) root=${2:?--root needs a folder}; root=${root%/}; shift ;;
        --help | -h) usage; exit 0 ;;
        *) echo "install.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done

prefix=$root/opt/neuco-worker
units=$root/etc/systemd/system
challenges=$root/etc/neuco-worker
command=$root/usr/local/bin/neuco-challenge
rotation=$root/etc/logrotate.d/neuco-worker
journal=$root/etc/systemd/journald.conf.d/neuco-worker.conf
user=neuco-worker

say() { echo "==> $*"; }
# Say what is done and do it, unless this is a dry run.
run() {
    echo "    $*"
    [ -n "$dry" ] || "$@"
}
live() { [ -z "$root" ] && [ -d /run/systemd/system ]; }

if [ -z "$root" ] && [ -z "$dry" ] && [ "$(id -u)" != 0 ]; then
    echo "install.sh: this must be run as root: sudo $0" >&2
    exit 2
fi

if [ -n "$uninstall" ]; then
    say "Removing neuco-worker"
    if live; then
        running=$(systemctl list-units --all --plain --no-legend 'neuco-worker@*' 'neuco-worker-once@*' | cut -d ' ' -f 1)
        for unit in $running; do run systemctl stop "$unit"; done
    fi
    # Links of enabled instances, running or not, and drop-ins of single instances.
    for left in "$units"/*.wants/neuco-worker{,-once}@*.{service,timer} "$units"/neuco-worker{,-once}@*.{service,timer}.d; do
        if [ -e "$left" ] || [ -L "$left" ]; then run rm -rf "$left"; fi
    done
    for unit in "$here"/systemd/*; do run rm -f "$units/$(basename "$unit")"; done
    run rm -f "$command" "$rotation" "$journal"
    run rm -rf "$prefix" "$root/var/cache/neuco-worker"
    if live; then run systemctl daemon-reload; fi
    say "Done. Not removed: $challenges (configurations, hidden tasks, secrets), $root/var/lib/neuco-worker (state),"
    say "$root/var/backups/neuco-worker (backups, which hold the secrets too), the user $user."
    exit 0
fi

# --- packages ---
first_python() {
    local candidate
    for candidate in python3.11 python3.12 python3.13 python3; do
        if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            command -v "$candidate"
            return
        fi
    done
}
if [ -z "$root" ]; then
    say "Packages"
    # shellcheck source=/dev/null
    . /etc/os-release
    case ${ID:-}-${VERSION_ID:-} in
        ubuntu-22.04) version=3.11 ;; # from "universe"; the default there is 3.10
        ubuntu-24.04) version=3.12 ;;
        debian-12) version=3.11 ;;
        *)
            version=""
            echo "    ${PRETTY_NAME:-This system} is not a tested system; the installed Python is used."
            ;;
    esac
    packages=(git openssh-client ca-certificates util-linux)
    if [ -n "$version" ] && [ -z "$python" ]; then packages+=("python$version" "python$version-venv"); fi
    missing=()
    for package in "${packages[@]}"; do
        dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    if [ "${#missing[@]}" -gt 0 ]; then
        run apt-get update --quiet=2
        run env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends "${missing[@]}"
    else
        echo "    already installed: ${packages[*]}"
    fi
    # With its full path: root's PATH may name another Python first, in a folder that the service's user cannot enter.
    if [ -n "$version" ] && [ -z "$python" ]; then python=/usr/bin/python$version; fi
fi
python=${python:-$(first_python)}
if [ -z "$python" ]; then
    echo "install.sh: no Python 3.11 or newer was found; name one with --python" >&2
    exit 2
fi

if [ -n "$libraries" ] && [ -d "$source" ] && [ -z "$dry" ] &&
    ! PYTHONPATH=$libraries "$python" -S -c 'import hatchling, hatch_fancy_pypi_readme' 2>/dev/null; then
    echo "install.sh: to install a clone, hatchling and hatch-fancy-pypi-readme must be in $libraries; or give a wheel with --source" >&2
    exit 1
fi

# --- user and folders ---
if [ -z "$root" ]; then
    say "User"
    if id "$user" >/dev/null 2>&1; then
        echo "    $user already exists"
    else
        run useradd --system --user-group --home-dir /var/lib/neuco-worker --shell /usr/sbin/nologin "$user"
    fi
fi
say "Folders"
owner=()
if [ -z "$root" ]; then owner=(--owner "$user" --group "$user"); fi
run install -d -m 0755 "$prefix" "$units" "$(dirname "$command")" "$challenges"
run install -d -m 0750 "${owner[@]}" "$root/var/lib/neuco-worker"
run install -d -m 0700 "${owner[@]}" "$root/var/cache/neuco-worker" "$root/var/backups/neuco-worker"

# --- the software ---
say "Software into $prefix"
pip=("$prefix/bin/python" -P -m pip --disable-pip-version-check --quiet)
pipless=()
if [ -n "$libraries" ] && [ -d "$libraries/pip" ]; then pipless=(--without-pip); fi # that one is used
# Anew, also if python3-venv was missing, the script was interrupted, or an upgrade of the system has removed its Python.
if ! "${pip[@]}" --version >/dev/null 2>&1; then run "$python" -P -m venv --clear "${pipless[@]}" "$prefix"; fi
if [ -z "$root" ] && [ -z "$dry" ] && ! setpriv --reuid "$user" --regid "$user" --init-groups "$prefix/bin/python" -c ''; then
    echo "install.sh: the user $user cannot run $(readlink -f "$prefix/bin/python"); run --uninstall, then again with another --python" >&2
    exit 1
fi
if [ -n "$libraries" ]; then
    echo "    $prefix: libraries from $libraries"
    if [ -z "$dry" ]; then
        echo "$libraries" >"$("$prefix/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/libraries.pth"
    fi
    # The build tools come from the libraries too, so nothing is downloaded.
    run "${pip[@]}" install --no-index --no-build-isolation --no-deps --force-reinstall "$source"
else
    run "${pip[@]}" install --constraint "$here/../constraints.txt" "$source"
    run "${pip[@]}" install --constraint "$here/../constraints.txt" --no-deps --force-reinstall "$source"
fi
run install -d -m 0755 "$prefix/share/doc"
run install -m 0644 "$here/RUNBOOK.md" "$prefix/share/doc/"

# --- units and command ---
say "Units and the command neuco-challenge"
for unit in "$here"/systemd/*; do run install -m 0644 "$unit" "$units/"; done
run install -m 0755 "$here/neuco-challenge" "$command"
if live; then run systemctl daemon-reload; fi

# --- logs ---
say "Limits of the logs"
run install -D -m 0644 "$here/logrotate" "$rotation"
if grep -qs '^SystemMaxUse=' "$root/etc/systemd/journald.conf" "${journal%/*}"/*.conf && [ ! -e "$journal" ]; then
    echo "    the journal already has a limit, which is kept"
elif ! cmp -s "$here/journald.conf" "$journal"; then
    run install -D -m 0644 "$here/journald.conf" "$journal"
    if live; then run systemctl restart systemd-journald; fi
fi

say "Done. Next: sudo neuco-challenge NAME adopt DIR, where DIR is a folder that \`neuco-worker init\` or \`challenge restore\` wrote."
if [ -z "$root" ]; then echo "    neuco-worker is $prefix/bin/neuco-worker"; fi
