"""Run the benchmarks and write what they found.

    python -m benchmarks                    everything that is not done yet, then docs/benchmarks.md
    python -m benchmarks --only band,index  these parts anew; the others' results stay, on the page as well
    python -m benchmarks --quick            toy sizes, in minutes; shows that it works, measures nothing
    python -m benchmarks --own --against COMMIT   is this commit as fast as that one? our rows alone, in turn; no page
    python -m benchmarks --page             the page and its plots anew, from docs/benchmarks.json; measures nothing

Nothing is measured for docs/ from a tree that differs from its commit, or while others use more than a tenth of the
processors' time for half a minute. A part after which the machine is found busy does not go there either. With
--docs FOLDER it all does, and the page says so.

Each part leaves a file in benchmarks/out/, so a run that was interrupted goes on where it stopped. A part that fails
leaves its error there, the others go on, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import against, machine, provenance, quiet
from benchmarks.baselines.termination import exit_on_terminate
from benchmarks.checkouts import NoCommitError
from benchmarks.parts import PARTS
from benchmarks.provenance import DirtyError
from benchmarks.quiet import BusyError
from benchmarks.scale import ROOT, OutOfTimeError, Scale
from benchmarks.summary import note_commits, publishable, write_page, write_summary
from benchmarks.systems import without_paths

OUT = ROOT / "benchmarks" / "out"
DATA = ROOT / "benchmarks" / "data"
DOCS = ROOT / "docs"
BUDGET_MIN = 240.0


def main() -> int:
    arguments = parse_arguments()
    exit_on_terminate()
    out = arguments.out or (OUT / "quick" if arguments.quick else OUT)
    # Toy numbers must not replace real ones.
    docs = arguments.docs or (out / "docs" if arguments.quick else DOCS)
    if arguments.page:
        note_commits(docs)
        write_page(docs)
        return 0
    if arguments.own:
        return run_own(arguments, out)
    published = docs.resolve() == DOCS
    scale = Scale(
        quick=arguments.quick,
        ends_s=time.monotonic() + (arguments.budget_min or BUDGET_MIN) * 60,
        data=arguments.data / "quick" if arguments.quick else arguments.data,
        work=out / "work",
        cgroup=arguments.cgroup,
    )
    failed = []
    for name in PARTS:
        path = out / f"{name}.json"
        if not wanted(name, path, arguments, published):
            continue
        try:
            result = run_part(name, scale, published)
        except (DirtyError, BusyError) as refused:
            scale.show(f"{name} was not measured: {refused}, or measure for yourself with --docs FOLDER")
            return 1
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        write_summary(out, docs, published)  # After each part: an interrupted run has its page, too.
        if result.get("error") or (published and not publishable(result)):
            failed.append(name)
    write_summary(out, docs, published)
    if not arguments.keep:
        shutil.rmtree(scale.work, ignore_errors=True)
    scale.show(f"the page is {_short(docs / 'benchmarks.md')}")
    if failed:
        scale.show(f"not everything went well: {', '.join(failed)}; see {_short(out)}")
    return 1 if failed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--only", type=_names, help=f"parts to run anew, of {','.join(PARTS)}")
    parser.add_argument("--again", action="store_true", help="run finished parts anew, too")
    parser.add_argument(
        "--budget-min",
        type=float,
        help=f"minutes for all parts together: {BUDGET_MIN:g}, with --own as many as it takes",
    )
    parser.add_argument("--own", action="store_true", help="our rows alone, without Spark's own join and Flink")
    parser.add_argument("--against", metavar="COMMIT", help="with --own: the commit to compare this one with")
    parser.add_argument(
        "--pairs", type=_positive, default=against.PAIRS, help="with --own: turns of each commit (%(default)s)"
    )
    parser.add_argument("--cgroup", type=Path, help="memory cgroup in which `memory` may make another; see limited.py")
    parser.add_argument("--data", type=Path, default=DATA, help="where inputs are kept, about 9 GB")
    parser.add_argument("--out", type=Path, help="where each part's results are kept")
    parser.add_argument("--docs", type=Path, help="where the page goes")
    parser.add_argument("--keep", action="store_true", help="keep logs and join files of the runs")
    arguments = parser.parse_args()
    if arguments.quick and arguments.docs and arguments.docs.resolve() == DOCS:
        parser.error("toy sizes do not go into docs/: leave out --docs, or name another folder")
    if arguments.own != (arguments.against is not None):
        parser.error("--own and --against COMMIT go together")
    if arguments.own and (unknown := [name for name in arguments.only or () if name not in against.OWN]):
        parser.error(f"--own has no part {', '.join(unknown)}; it has {', '.join(against.OWN)}")
    return arguments


def run_own(arguments: argparse.Namespace, out: Path) -> int:
    """Compare HEAD with the commit named by --against; the exit status."""
    limit_s = math.inf if arguments.budget_min is None else arguments.budget_min * 60
    work = out / "own"
    data = arguments.data / "quick" if arguments.quick else arguments.data
    scale = Scale(
        quick=arguments.quick, ends_s=time.monotonic() + limit_s, data=data.absolute(), work=work.absolute()
    )  # fmt: skip
    try:
        provenance.require_clean()  # What is measured is HEAD, and a reader would think it is what the files say.
        return against.run_against(arguments.against, arguments.only or list(against.OWN), arguments.pairs, scale)
    except (DirtyError, BusyError, NoCommitError, against.WrongCodeError) as refused:
        scale.show(f"nothing can be compared: {refused}")
        return 1
    except KeyboardInterrupt:
        scale.show("stopped; the worktrees are removed")
        return 130
    finally:
        if not arguments.keep:
            shutil.rmtree(work, ignore_errors=True)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("there must be at least one")
    return number


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"there is no part {', '.join(unknown)}; parts are {', '.join(PARTS)}")
    return names


def wanted(name: str, path: Path, arguments: argparse.Namespace, published: bool) -> bool:
    """Whether a part is to run."""
    if arguments.only is not None:
        return name in arguments.only
    if arguments.again or not path.exists():
        return True
    try:
        found = json.loads(path.read_text())
        return bool(found.get("error")) or (published and not publishable(found))
    except ValueError:  # The run before was interrupted while it wrote.
        return True


def run_part(name: str, scale: Scale, published: bool) -> dict[str, Any]:
    """What the part found, with the machine, what else ran before it, and the error if there was one.

    Raises:
        DirtyError, BusyError: it is for docs/, and would not say what a commit does by itself.
    """
    if published:
        provenance.require_clean()
    others = quiet.wait_until_quiet() if published else quiet.look()
    busy = others.share
    expected = f"about {PARTS[name].EXPECTED_S // 60 or 1} minutes" if not scale.quick else "toy sizes"
    scale.show(f"{name}: {expected}, {busy:.0%} of the cores are busy with other work")
    if not others.quiet:
        scale.show(f"  warning: {others}; numbers will be too low")
    begun_s = time.monotonic()
    described: dict[str, Any] = {
        "part": name,
        "quick": scale.quick,
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "busy_before": busy,
        "quiet": others.quiet,
        "machine": machine.describe(),
    }
    try:
        found = PARTS[name].run(scale)
    except OutOfTimeError as spent:
        found = {"error": str(spent)}
        scale.show(f"  {spent}")
    except Exception as failure:
        found = {"error": without_paths(f"{type(failure).__name__}: {failure}")[:2000]}
        traceback.print_exc(file=sys.stderr)
    if provenance.commit() != described["machine"]["commit"]:
        found["error"] = "the code was changed while it was measured"
        described["machine"]["commit"] = ""
    described["seconds"] = time.monotonic() - begun_s
    after = quiet.settled() if published else quiet.look()
    if others.quiet and not after.quiet:
        scale.show(f"  warning: after it {after}; its numbers may be too low")
    return {**described, "busy_after": after.share, "quiet": others.quiet and after.quiet, **found}


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    raise SystemExit(main())
