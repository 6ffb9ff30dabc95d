#!/bin/sh
# Builds the dashboard into frontend/build, where the API finds it: once, and again when something of it has changed.
#   frontend.sh          packages and build
#   frontend.sh check    also its lint, types and unit tests
set -eu
cd "$(dirname "$0")/.."

fits() {
    command -v node >/dev/null &&
        node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
}

# A Node of its own, where the machine has none that is new enough: a wheel, like everything else in setup.
if ! fits; then
    PATH="$PWD/frontend/.node/bin:$PATH"
    if ! fits; then
        echo "frontend: fetching Node"
        .venv/bin/uv venv -q --allow-existing frontend/.node
        .venv/bin/uv pip install -q --python frontend/.node/bin/python --require-hashes -r frontend/node.lock
    fi
fi
cd frontend

# npm writes this file last, so what is there is whole.
if [ node_modules/.package-lock.json -ot package-lock.json ] || [ ! -f node_modules/.package-lock.json ]; then
    npm ci --no-audit --no-fund
fi
if [ "${1:-}" = check ]; then
    npm run --silent lint
    npm run --silent typecheck
    npm test --silent
fi
npm run --silent check:api
if [ ! -f build/.ready ] || [ -n "$(find src public package.json package-lock.json tsconfig.json -newer build/.ready | head -n 1)" ]; then
    CI=true npm run --silent build
    touch build/.ready
fi
