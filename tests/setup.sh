#!/usr/bin/env bash
# Install what the tests need from the system: a browser for the leaderboard's page. Quick when it is there.
set -euo pipefail

needed=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || needed+=(chromium)
if [ "${#needed[@]}" -eq 0 ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "The tests need ${needed[*]}; install it with this system's package manager." >&2
    exit 2
fi
if [ "$(id -u)" = 0 ]; then
    apt=(apt-get)
elif sudo -n true 2>/dev/null; then
    apt=(sudo -n apt-get)
else
    echo "The tests need ${needed[*]}: sudo apt-get install ${needed[*]}" >&2
    exit 2
fi
echo "Installing ${needed[*]} ..."
export DEBIAN_FRONTEND=noninteractive
"${apt[@]}" update -qq
"${apt[@]}" install -y -qq --no-install-recommends "${needed[@]}" >/dev/null
