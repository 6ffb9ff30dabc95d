#!/bin/sh
# Sees that there is a chromium for the dashboard's tests, where it can be installed; without one they are skipped.
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "browser: installing chromium"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0
fi
echo "browser: there is no chromium, so the dashboard's tests will be skipped; install the package chromium" >&2
