"""Known vulnerabilities of what is pinned: `make audit`. It asks advisories on the network.

Exit status: 0 none is known; 1 some are, or a package was skipped; 3 advisories cannot be reached: nothing is known.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scripts.lockfiles import ROOT, of_python

UNREACHED = 3
LOCK = ROOT / "requirements.lock"


def of_pip(report: Mapping[str, Any], asked: Iterable[str]) -> list[str]:
    """What pip-audit's report says is wrong.

    Args:
        asked: names of the packages that it was to look at; one that it says nothing of was skipped.
    """
    wrong, told = [], set()
    for package in report["dependencies"]:
        name = package["name"].lower()
        told.add(name)
        if reason := package.get("skip_reason"):
            wrong.append(f"{name} was skipped: {reason}")
        wrong += [f"{name} {package['version']}: {one['id']}" for one in package.get("vulns", ())]
    return [*wrong, *(f"{name} was skipped: nothing is said of it" for name in sorted(set(asked) - told))]


def of_npm(report: Mapping[str, Any]) -> list[str]:
    """What npm's report says is wrong."""
    return [f"{name} (npm): {one['severity']}" for name, one in sorted(report["vulnerabilities"].items())]


def main() -> None:
    """Ask, and say what is wrong."""
    pip_audit = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--no-deps", "-r", str(LOCK),
                 "--format", "json", "--progress-spinner", "off"]  # fmt: skip
    python = _report(pip_audit, ROOT, "dependencies")
    npm = _report(["npm", "audit", "--json"], ROOT / "frontend", "vulnerabilities")
    wrong = of_pip(python, [one.name for one in of_python(LOCK)]) if python else []
    wrong += of_npm(npm) if npm else []
    for line in wrong:
        print(f"audit: {line}")
    if wrong:
        sys.exit(1)
    if python is None or npm is None:
        sys.exit(UNREACHED)
    print("audit: no vulnerability is known, and nothing was skipped")


def _report(command: list[str], folder: Path, field: str) -> Any:
    """What was said; None, and why, where advisories cannot be reached."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    if isinstance(found, dict) and field in found:
        return found
    last = (done.stderr or done.stdout).strip().splitlines()[-1:]
    print(f"audit: {command[0]}: advisories cannot be reached: {' '.join(last)[:300]}", file=sys.stderr)
    return None


if __name__ == "__main__":
    main()
