#!/bin/sh
# Makes .venv with everything pinned, and sees that there is a Java that Spark can run on.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}

if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "setup: Python 3.11 or newer is needed, and '$PYTHON' is not; install it or run make PYTHON=/path/to/python3.11" >&2
    exit 1
fi

java_version() {
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

major=$(java_version 2>/dev/null || true)
if [ "${major:-0}" -lt 17 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing Java 17"
        apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null
    else
        echo "setup: Spark needs Java 17 or 21 and there is none on PATH; install one (such as openjdk-17-jre-headless) or set JAVA_HOME" >&2
        exit 1
    fi
fi

[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
# All that is fetched has its hash: uv here, everything else in requirements.lock, hatchling for the last step as well.
.venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r scripts/uv.lock
# Compiled here, for every process starts three times as fast with it, and some machines never write it by themselves.
.venv/bin/uv pip sync -q --python .venv/bin/python --require-hashes --compile-bytecode requirements.lock
.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
.venv/bin/uv pip install -q --python .venv/bin/python --no-deps --no-build-isolation -e .
.venv/bin/python -m compileall -q streamjoin backend worker migrations demo
# Half a minute once; from then on Spark starts in half the time. Without it everything works all the same.
.venv/bin/python -m streamjoin.spark.archive || echo "setup: Spark will start slowly" >&2
echo "setup: ready; .venv/bin/streamjoin --help"
