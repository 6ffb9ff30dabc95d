"""What is fetched has its hash, the bill of materials names all of it, and an audit that skips something is red."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from scripts import audit
from scripts.lockfiles import ROOT, everything, of_python


def test_uv_is_installed_by_the_hashes_of_the_lock_file() -> None:
    (uv,) = of_python(ROOT / "scripts" / "uv.lock")
    assert uv in of_python(ROOT / "requirements.lock") and uv.hashes
    for file in ("scripts/setup.sh", "docker/Dockerfile"):
        text = (ROOT / file).read_text()
        for line in text.replace("\\\n", " ").splitlines():
            if re.search(r"pip install|pip sync", line) and not line.lstrip().startswith("#"):
                pinned = ("--require-hashes", "--constraint requirements.lock", "--no-build-isolation",
                          "--build-constraint requirements.lock")  # fmt: skip
                assert any(how in line for how in pinned), line


def test_what_builds_the_package_is_in_the_lock_file() -> None:
    names = {one.name for one in of_python(ROOT / "requirements.lock")}
    assert {"hatchling", "editables", "uv", "pip-audit"} <= names


def test_everything_that_is_pinned_has_a_hash() -> None:
    packages = everything()
    assert len(packages) > 300 and {one.kind for one in packages} == {"npm", "pypi"}
    assert [one.name for one in packages if not one.hashes] == []


def test_the_bill_of_materials_has_all_of_it(tmp_path: Path) -> None:
    target = tmp_path / "sbom.json"
    subprocess.run([sys.executable, "-m", "scripts.sbom", str(target)], cwd=ROOT, check=True, capture_output=True)
    found = json.loads(target.read_text())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    refs = [one["bom-ref"] for one in found["components"]]
    assert len(refs) == len(set(refs)) == len(everything())
    assert any(ref.startswith("pkg:pypi/pyspark@") for ref in refs) and any("pkg:npm/react@" in ref for ref in refs)
    assert all(one.get("hashes") or one.get("properties") for one in found["components"])


def test_an_audit_is_red_for_what_is_known_and_for_what_was_skipped() -> None:
    clean = {"name": "A", "version": "1", "vulns": []}
    assert audit.of_pip({"dependencies": [clean]}, ["a"]) == []
    bad = {**clean, "vulns": [{"id": "PYSEC-1"}]}
    assert audit.of_pip({"dependencies": [bad]}, ["a"]) == ["a 1: PYSEC-1"]
    skipped = {"name": "b", "skip_reason": "not found on PyPI"}
    assert audit.of_pip({"dependencies": [clean, skipped]}, ["a", "b"]) == ["b was skipped: not found on PyPI"]
    assert audit.of_pip({"dependencies": [clean]}, ["a", "c"]) == ["c was skipped: nothing is said of it"]
    assert audit.of_npm({"vulnerabilities": {"x": {"severity": "high"}}}) == ["x (npm): high"]
