#!/usr/bin/env bash
# Install what the tests need from the system: a browser for the leaderboard's page, a PostgreSQL server, systemd's and logrotate's checkers.
# Quick when they are there. Without the right to install, or without network, all but the browser is left out and their tests are skipped.
set -euo pipefail

needed=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || needed+=(chromium)
optional=()
command -v systemd-analyze >/dev/null || optional+=(systemd)
command -v logrotate >/dev/null || [ -x /usr/sbin/logrotate ] || optional+=(logrotate)
compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || command -v initdb >/dev/null || optional+=(postgresql)
if [ "${#needed[@]}" -eq 0 ] && [ "${#optional[@]}" -eq 0 ]; then
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
