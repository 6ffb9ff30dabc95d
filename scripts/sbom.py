"""What the platform is made of, as CycloneDX: `python -m scripts.sbom FILE` (`make sbom`). All of it has hashes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scripts.lockfiles import Package, everything

VERSION = "0.1.0"


def bill(packages: list[Package]) -> dict[str, Any]:
    """The document."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "streamjoin", "version": VERSION}},
        "components": [_component(one) for one in packages],
    }


def _component(one: Package) -> dict[str, Any]:
    url = f"pkg:{one.kind}/{quote(one.name, safe='/')}@{quote(one.version)}"
    # A wheel a platform, so a version has many hashes; CycloneDX's own list is of one file's.
    properties = [{"name": f"streamjoin:{algorithm}", "value": digest} for algorithm, digest in one.hashes]
    found: dict[str, Any] = {"type": "library", "bom-ref": url, "purl": url, "name": one.name, "version": one.version}
    if len(one.hashes) == 1:
        return {**found, "hashes": [{"alg": algorithm, "content": digest} for algorithm, digest in one.hashes]}
    return {**found, "properties": properties}


def main() -> None:
    """Write it."""
    packages = everything()
    if bare := [f"{one.name} {one.version}" for one in packages if not one.hashes]:
        sys.exit(f"sbom: without a hash: {', '.join(bare)}")
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill(packages), indent=1) + "\n")
    print(f"sbom: {len(packages):,} packages, each with its hashes, in {target}")


if __name__ == "__main__":
    main()
