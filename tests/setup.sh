#!/usr/bin/env bash
# Install what the tests need from the system: a browser for the leaderboard's page, a PostgreSQL server, and the checkers of the deployment's formats.
# Quick when they are there. Without the right to install, or without network, all but the browser is left out and their tests are skipped.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$here/.cache/tools

needed=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || needed+=(chromium)
optional=()
command -v systemd-analyze >/dev/null || optional+=(systemd)
command -v logrotate >/dev/null || [ -x /usr/sbin/logrotate ] || optional+=(logrotate)
compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || command -v initdb >/dev/null || optional+=(postgresql)
unpacked=()
[ -e "$tools/usr/lib/python3/dist-packages/cloudinit" ] || unpacked+=(cloud-init)
[ -e "$tools/usr/lib/python3/dist-packages/compose" ] || unpacked+=(docker-compose)
if [ "${#needed[@]}" -eq 0 ] && [ "${#optional[@]}" -eq 0 ] && [ "${#unpacked[@]}" -eq 0 ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    [ "${#needed[@]}" -eq 0 ] && exit 0
    echo "The tests need ${needed[*]}; install it with this system's package manager." >&2
    exit 2
fi
apt=()
if [ "$(id -u)" = 0 ]; then
    apt=(apt-get)
elif sudo -n true 2>/dev/null; then
    apt=(sudo -n apt-get)
elif [ "${#needed[@]}" -gt 0 ]; then
    echo "The tests need ${needed[*]}: sudo apt-get install ${needed[*]}" >&2
    exit 2
fi
export DEBIAN_FRONTEND=noninteractive
if [ "${#apt[@]}" -gt 0 ]; then "${apt[@]}" update -qq || true; fi
if [ "${#needed[@]}" -gt 0 ]; then
    echo "Installing ${needed[*]} ..."
    "${apt[@]}" install -y -qq --no-install-recommends "${needed[@]}" >/dev/null
fi
if [ "${#optional[@]}" -gt 0 ] && [ "${#apt[@]}" -gt 0 ]; then
    echo "Installing ${optional[*]} ..."
    "${apt[@]}" install -y -qq --no-install-recommends "${optional[@]}" >/dev/null || echo "Without ${optional[*]}: tests are skipped."
fi
# Only a program or a schema of each is wanted, not its service: unpacked here, not installed.
if [ "${#unpacked[@]}" -gt 0 ]; then
    echo "Unpacking ${unpacked[*]} ..."
    mkdir -p "$tools"
    download=$(mktemp -d)
    trap 'rm -rf "$download"' EXIT
    for package in "${unpacked[@]}"; do
        if (cd "$download" && apt-get download -qq "$package" >/dev/null 2>&1); then
            dpkg-deb --extract "$download/$package"_*.deb "$tools"
        else
            echo "Without $package: tests are skipped."
        fi
    done
fi
