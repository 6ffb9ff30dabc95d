"""What the commands share that write pages of docs/evaluation."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.scale import ROOT

DOCS = ROOT / "docs" / "evaluation"
_TOYS = ROOT / "benchmarks" / "out" / "quick" / "evaluation"


def asked(prog: str, doc: str | None, page_says: str) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """The arguments, with the folder of the pages, which is there; toy figures never replace real ones.

    Args:
        page_says: what `--page` does not do.
    """
    parser = argparse.ArgumentParser(prog=prog, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--page", action="store_true", help=page_says)
    parser.add_argument("--docs", type=Path, help="where the pages go")
    arguments = parser.parse_args()
    arguments.docs = arguments.docs or (_TOYS if arguments.quick else DOCS)
    arguments.docs.mkdir(parents=True, exist_ok=True)
    if arguments.quick and not arguments.page and is_real(arguments.docs):
        parser.error("toy sizes do not go into docs/evaluation: leave out --docs, or name another folder")
    return parser, arguments


def is_real(docs: Path) -> bool:
    """Whether pages go where readers find them."""
    return docs.resolve() == DOCS
