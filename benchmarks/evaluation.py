"""What the commands share that write pages of docs/evaluation."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import provenance, quiet
from benchmarks.scale import ROOT

DOCS = ROOT / "docs" / "evaluation"
DIGITS = 5
_TOYS = ROOT / "benchmarks" / "out" / "quick" / "evaluation"


def asked(
    prog: str, doc: str | None, page_says: str, parts: Iterable[str] = ()
) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """The arguments, with the folder of the pages, which is there; toy figures never replace real ones.

    Args:
        page_says: what `--page` does not do.
        parts: what can be simulated alone.
    """
    parser = argparse.ArgumentParser(prog=prog, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--page", action="store_true", help=page_says)
    parser.add_argument("--docs", type=Path, help="where the pages go")
    if parts:
        parser.add_argument(
            "--only", nargs="+", choices=list(parts), help="simulate these parts anew, with costs that are there"
        )
    parser.set_defaults(only=[])
    arguments = parser.parse_args()
    arguments.docs = arguments.docs or (_TOYS if arguments.quick else DOCS)
    arguments.docs.mkdir(parents=True, exist_ok=True)
    if arguments.quick and not arguments.page and is_real(arguments.docs):
        parser.error("toy sizes do not go into docs/evaluation: leave out --docs, or name another folder")
    return parser, arguments


def is_real(docs: Path) -> bool:
    """Whether pages go where readers find them."""
    return docs.resolve() == DOCS


def simulated(
    prog: str,
    doc: str | None,
    name: str,
    simulate: Callable[[bool], dict[str, Any]],
    *,
    timed: bool = False,
    again: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] | None = None,
    timed_again: Collection[str] = (),
) -> tuple[dict[str, Any], Path]:
    """The figures of a page that is simulated, and the folder of the page.

    With `--page` they are those that are there. Else they are made and written, and where readers find them only of
    code that is all committed.

    Args:
        name: of their file.
        simulate: whether sizes are toys -> the figures.
        timed: some of them are times, for which the machine has to be quiet.
        again: parts that can be simulated alone, from the results that are there: the figures that replace those of the
            same names. The page says when they were made, and at which commit.
    """
    parser, arguments = asked(prog, doc, "simulate nothing", again or ())
    docs = arguments.docs
    if not arguments.page:
        if is_real(docs):
            try:
                provenance.require_clean()
                if timed and (not arguments.only or not set(timed_again).isdisjoint(arguments.only)):
                    quiet.wait_until_quiet()
            except (provenance.DirtyError, quiet.BusyError) as refused:
                parser.exit(1, f"nothing was simulated: {refused}, or do it for yourself with --docs FOLDER\n")
        begun, commit = datetime.now(UTC).isoformat(timespec="seconds"), provenance.commit()
        source = {"begun": begun, "commit": commit}
        if arguments.only:
            results = json.loads((docs / name).read_text())
            for part in arguments.only:
                results["figures"] |= rounded((again or {})[part](results))
                results.setdefault("again", {})[part] = source
        else:
            results = {**source, **rounded(simulate(arguments.quick))}
        if provenance.commit() != commit:
            parser.exit(1, "nothing was written: the code was changed meanwhile\n")
    else:
        results = json.loads((docs / name).read_text())
    for found in (results, *results.get("again", {}).values()):
        provenance.note_gone(found)
    (docs / name).write_text(json.dumps(results, indent=1) + "\n")
    return json.loads((docs / name).read_text()), docs


def rounded(value: Any) -> Any:
    """Floats with as many digits as anybody reads."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
