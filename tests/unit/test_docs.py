"""The documents keep up with the code: what exists is named in them, and what they name exists."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest

from streamjoin.cli.commands import app
from streamjoin.cli.results import Asked
from streamjoin.generate import GENERATORS
from streamjoin.operators.registry import AUTO, COMMON_KNOBS, REGISTRY
from streamjoin.plan.functions.table import PUBLIC_FUNCTIONS
from streamjoin.plan.schema import SIMPLE_TYPES
from streamjoin.query.tokens import SYNONYMS
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.sections import (
    OperatorFile,
    PunctuateFile,
    RelationFile,
    ResultsFile,
    RunFile,
    ShedFile,
    SnapshotFile,
    StreamFile,
)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
JOIN_FILE = (DOCS / "join-file.md").read_text()
DEPLOYMENT = (DOCS / "deployment.md").read_text()
QUERY = (DOCS / "query-language.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(DOCS.rglob("*.md"))]
FOR_USERS = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.glob("*.md")) if page.name != "testing.md"),  # which is for who works on it
    *sorted((DOCS / "operators").glob("*.md")),
]
FIELDS = sorted(
    {
        field.alias or name
        for model in (
            JoinFile,
            StreamFile,
            RelationFile,
            PunctuateFile,
            OperatorFile,
            ResultsFile,
            SnapshotFile,
            RunFile,
            ShedFile,
        )
        for name, field in model.model_fields.items()
    }
    - {"base"}
)


def keys_of(file: str, function: str) -> set[str]:
    """The constant keys of all dictionaries that stand in a function; it is read and not run."""
    tree = ast.parse((ROOT / "streamjoin" / file).read_text())
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    return {
        key.value
        for node in ast.walk(found)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }


REPORT_FIELDS = sorted(
    keys_of("spark/run.py", "report")
    | keys_of("spark/figures.py", "quantiles")
    | keys_of("spark/baseline.py", "run_baseline")
    | keys_of("spark/progress.py", "_add_unit")
)


def test_report_fields_were_found() -> None:
    assert {"operator", "batch_ms", "p95", "units", "label"} <= set(REPORT_FIELDS)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_the_join_file_is_documented(field: str) -> None:
    assert f"`{field}`" in JOIN_FILE


@pytest.mark.parametrize("field", REPORT_FIELDS)
def test_every_field_of_the_report_is_documented(field: str) -> None:
    assert f"`{field}`" in JOIN_FILE


@pytest.mark.parametrize("name", [*PUBLIC_FUNCTIONS, *SYNONYMS])
def test_every_function_is_in_the_table(name: str) -> None:
    assert re.search(rf"^\|.*`{name.upper()}[(`]", QUERY, re.MULTILINE)


@pytest.mark.parametrize("name", [*REGISTRY, AUTO])
def test_every_operator_is_named(name: str) -> None:
    assert f"`{name}`" in (ROOT / "README.md").read_text()
    assert f"`{name}`" in JOIN_FILE


@pytest.mark.parametrize("name", REGISTRY)
def test_every_operator_has_a_page_with_its_knobs(name: str) -> None:
    page = (DOCS / "operators" / f"{name}.md").read_text()
    for knob in REGISTRY[name].knobs if REGISTRY[name].is_sparks else (*REGISTRY[name].knobs, *COMMON_KNOBS):
        assert f"`{knob}`" in page


@pytest.mark.parametrize("kind", [*GENERATORS, *SIMPLE_TYPES])
def test_every_generator_and_every_type_is_named(kind: str) -> None:
    assert f"`{kind}`" in JOIN_FILE


@pytest.mark.parametrize("command", [name for name in app if not name.startswith("-")])
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"`streamjoin {command}[ `]", JOIN_FILE + DEPLOYMENT)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Asked)])
def test_every_option_of_a_question_is_documented(field: str) -> None:
    (row,) = re.findall(r"^\| `streamjoin query FILE.*", JOIN_FILE, re.MULTILINE)
    assert re.search(rf"--{field.strip('_').replace('_', '-')}[ \]]", row)


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_users_read_watermark_where_the_engine_says_mark(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL).replace("byte order mark", "")
    found = re.search(r"^.*\bmarks?\b.*$", prose, re.MULTILINE | re.IGNORECASE)
    assert found is None, found[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        place = (page.parent / file) if file else page
        assert place.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_exist(page: Path) -> None:
    bases = (ROOT, ROOT / "streamjoin", ROOT / "streamjoin/intake", ROOT / "streamjoin/operators")
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text()):
        assert any((base / name).exists() for base in bases), name


def test_tests_that_pages_name_exist() -> None:
    named = [found for page in PAGES for found in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text())]
    assert named
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), test
