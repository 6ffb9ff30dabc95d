"""What the lock files pin, with hashes."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
_HASH = re.compile(r"--hash=(sha256):([0-9a-f]{64})")
_ALGORITHMS = {"sha1": "SHA-1", "sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}


@dataclass(frozen=True, slots=True)
class Package:
    """A package of one version.

    Args:
        kind: pypi or npm, as in package URLs.
        hashes: algorithm, as CycloneDX calls it, and hexadecimal digits; of each file that may be it.
    """

    kind: str
    name: str
    version: str
    hashes: tuple[tuple[str, str], ...]


def of_python(lock: Path) -> list[Package]:
    """The packages of a requirements file."""
    found: list[Package] = []
    for line in lock.read_text().splitlines():
        if match := _PINNED.match(line):
            found.append(Package("pypi", match[1].lower(), match[2], ()))
        elif match := _HASH.search(line):
            last = found[-1]
            found[-1] = Package(last.kind, last.name, last.version, (*last.hashes, ("SHA-256", match[2])))
    return found


def of_npm(lock: Path) -> list[Package]:
    """The packages of npm's lock file; those without a hash have none."""
    found = {}
    for place, entry in json.loads(lock.read_text())["packages"].items():
        if place and not entry.get("link"):
            name = entry.get("name") or place.rpartition("node_modules/")[2]
            hashes = tuple(_of_integrity(one) for one in entry.get("integrity", "").split())
            package = Package("npm", name, entry["version"], hashes)
            found[package.name, package.version] = package
    return list(found.values())


def everything() -> list[Package]:
    """All that is installed to run, build or test the platform, by kind and name."""
    python = {(one.name, one.version): one for name in ("requirements.lock", "frontend/node.lock")
              for one in of_python(ROOT / name)}  # fmt: skip
    found = [*python.values(), *of_npm(ROOT / "frontend" / "package-lock.json")]
    return sorted(found, key=lambda one: (one.kind, one.name, one.version))


def _of_integrity(text: str) -> tuple[str, str]:
    algorithm, _, digest = text.partition("-")
    return _ALGORITHMS[algorithm], base64.b64decode(digest).hex()
