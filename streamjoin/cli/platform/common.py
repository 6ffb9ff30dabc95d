"""What the commands have in common: how they reach the platform, read files and show what they got."""

from __future__ import annotations

import codecs
import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cyclopts

from streamjoin.errors import InputError

if TYPE_CHECKING:
    from streamjoin.client import Client

FILE_BYTES_MAX = 1 << 20
ROWS_BYTES_MAX = 64 << 20
DEPTH_MAX = 64
STDIN = "-"
"""Stands for a file."""
CELL_MAX = 60
LAST_CELL_MAX = 300
REACH_S = 3.0
"""People look on: a platform that is not there is said to be so soon."""
Format = Literal["table", "json", "yaml", "csv"]
Output = Annotated[Format, cyclopts.Parameter(name=["-o", "--output"], help="Format of what is shown.")]
Wait = Annotated[
    bool,
    cyclopts.Parameter(
        negative=(), help="Return once it has happened; a start, once a batch is committed. Status 1 if it fails."
    ),
]
WaitS = Annotated[float, cyclopts.Parameter(name="--timeout", help="Seconds to wait at most, with --wait.")]
Version = Annotated[
    int | None, cyclopts.Parameter(help="Which version is changed; refused if it is not the newest. Any unless given.")
]


def _file(help: str) -> cyclopts.Parameter:
    # A lone - would pass for an option otherwise.
    return cyclopts.Parameter(
        name=["-f", "--file"], help=f"{help}, or - for standard input.", allow_leading_hyphen=True
    )


File = Annotated[str, _file("A YAML or JSON file")]
RowsFile = Annotated[str, _file("A file of JSON lines, one object a row")]
Body = Annotated[str | None, _file("What is sent: a YAML or JSON file")]


@cyclopts.Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where the platform is. Its key comes from STREAMJOIN_API_KEY only: other users see arguments.

    Args:
        host: The platform's address; STREAMJOIN_HOST unless given, or port STREAMJOIN_PORT of this machine.
    """

    host: str | None = None

    def client(self) -> Client:
        """A client for one command.

        Raises:
            InputError: the client's packages are not installed, or the address is none.
        """
        try:
            from streamjoin.client import Client
        except ImportError as missing:
            raise InputError(
                f"this command talks to a platform and needs {missing.name}; install streamjoin[client]"
            ) from None
        return Client(self.host, reach_s=REACH_S)


HERE = Where()


def show(rows: Any, output: Format, columns: Sequence[str] = (), titles: Sequence[str] | None = None) -> None:
    """Print things to standard output.

    Args:
        rows: one mapping, or many.
        columns: which fields a table or CSV shows, with dots for fields of fields; JSON and YAML show all.
        titles: of the columns; what they are called unless given.
    """
    if output == "json":
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    if output == "yaml":
        import yaml

        print(yaml.safe_dump(rows, sort_keys=False, allow_unicode=True), end="")
        return
    many = [rows] if isinstance(rows, Mapping) else list(rows)
    cells = [[_cell(_field(row, name)) for name in columns] for row in many]
    head = list(titles or columns)
    print(_csv(head, cells) if output == "csv" else _table(head, cells), end="")


def note(text: str) -> None:
    """Say something to a person who looks on; never part of what a program reads."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    """Say something that is to be known, on standard error whoever looks on."""
    print(f"streamjoin: {text}", file=sys.stderr)


def read_document(file: str) -> dict[str, Any]:
    """A YAML or JSON mapping from a file, or from standard input for `-`.

    Raises:
        InputError: it is none.
    """
    import yaml

    name, data = _read(file, FILE_BYTES_MAX)
    try:
        text = data.decode("utf-8-sig")
        _check_shape(text, name)
        found = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as wrong:
        place = getattr(wrong, "problem_mark", None)
        where = f", line {place.line + 1}, column {place.column + 1}" if place else ""
        raise InputError(f"{name}{where}: this is neither YAML nor JSON") from None
    if not isinstance(found, dict):
        raise InputError(f"{name} must hold fields with values, such as `name: ...`")
    return found


def read_rows(file: str) -> list[bytes]:
    """JSON lines, an object each, from a file, or from standard input for `-`: as they are, since numbers that are read
    and written again lose digits.

    Raises:
        InputError: a line is none; it is named.
    """
    name, data = _read(file, ROWS_BYTES_MAX)
    rows = []
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line.decode())
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise InputError(f"{name}, line {number}: this is no JSON object")
            rows.append(line)
    return rows


def read_bytes(file: str, bytes_max: int) -> bytes:
    """A file as it is, or what comes on standard input for `-`.

    Raises:
        InputError: it cannot be read, or is larger than that.
    """
    return _read(file, bytes_max)[1]


def _read(file: str, bytes_max: int) -> tuple[str, bytes]:
    """What to call a file, and its content."""
    name = "standard input" if file == STDIN else file
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(bytes_max + 1)
    except OSError as failure:
        raise InputError(f"{name}: {failure.strerror or failure}") from None
    if len(data) > bytes_max:
        raise InputError(f"{name} is larger than {bytes_max:,} bytes, which is the limit")
    return name, data


def platform_part(name: str) -> Any:
    """A module of the platform, or one that only the platform needs.

    The library does not depend on them; where they are installed, commands find them by name.

    Raises:
        InputError: the platform is not installed.
    """
    try:
        return import_module(name)
    except ImportError as missing:
        raise InputError(f"this command needs the platform ({missing.name}); install streamjoin[platform]") from None


def names_of(text: str | None) -> list[str] | None:
    """Names, from a list with commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _check_shape(text: str, name: str) -> None:
    """Refuse short texts that take long to read: an alias may stand for a document that is exponentially larger, and
    the time for nested brackets grows with the square of their depth."""
    import yaml

    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InputError(f"{name} has a YAML alias; write it out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            raise InputError(f"{name} is nested more than {DEPTH_MAX} deep")


def _field(row: Mapping[str, Any], name: str) -> Any:
    found: Any = row
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _csv(names: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(cells)
    return out.getvalue()


def _table(names: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    # Nothing is aligned behind the last column, so what it says is shown.
    longest = [*[CELL_MAX] * (len(names) - 1), LAST_CELL_MAX]
    shown = [list(names), *([_short(cell, most) for cell, most in zip(row, longest, strict=True)] for row in cells)]
    widths = [max(len(row[place]) for row in shown) for place in range(len(names))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown)
    return "".join(f"{line}\n" for line in lines)


def _short(text: str, most: int) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
