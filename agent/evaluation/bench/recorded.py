"""The figures that were measured last, in one JSON file, and the tables of pages that are made from it.

A table of a page stands between `<!-- bench ikat search -->` and `<!-- end bench -->`; after the table's name may stand
the names of the systems whose rows it shows: `<!-- bench ikat search: default; no model -->`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from agent.evaluation.bench.answering import BenchRequest
from agent.evaluation.bench.tables import Results, Table, format_table
from indexes.storage.files import check_writable, read_utf8, write_atomically
from schemas.errors import InvalidInputError, UsageError
from schemas.wire import decode

PLACE = re.compile(
    r"<!-- bench (?P<bench>\w+) (?P<table>\w+)(?:: (?P<systems>[^>]+?))? -->\n(?P<shown>.*?)<!-- end bench -->",
    re.DOTALL,
)


def read_recorded(path: Path) -> dict[str, Results]:
    """What was recorded, by benchmark; nothing where there is no such file yet."""
    if not path.exists():
        return {}
    try:
        return decode(read_utf8(path), dict[str, Results])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"holds no results of benchmarks ({error})", where=str(path)) from error


def record_results(path: Path, results: Results) -> None:
    """Keep the results beside those of other benchmarks, in place of those of an earlier run of the same one."""
    found = read_recorded(path) | {results.bench: results}
    data = msgspec.json.format(msgspec.json.encode(dict(sorted(found.items()))), indent=1)
    write_atomically(path, [data, b"\n"])


def check_recordable(path: Path | None, request: BenchRequest) -> None:
    """Raise, before any work, where a part would be recorded in the place of the whole, or where it could not be."""
    if path is None:
        return
    if request.limit is not None or request.only:
        raise UsageError("--record keeps a whole benchmark", remedy="Leave --limit and --only out.")
    read_recorded(path)
    check_writable(path, overwrite=True)


def fill_tables(page: str, recorded: Mapping[str, Results]) -> str:
    """The page with each of its tables as it was recorded. Raises `InvalidInputError` for one that was not."""
    return PLACE.sub(lambda place: _fill(place, recorded), page)


def _fill(place: re.Match[str], recorded: Mapping[str, Results]) -> str:
    opening = place[0].partition("\n")[0]
    tables = recorded[place["bench"]].tables if place["bench"] in recorded else ()
    table = next((table for table in tables if table.name == place["table"]), None)
    if table is None:
        raise InvalidInputError("was not recorded", where=opening, remedy="convagent bench ... --record FILE.json")
    shown = _select_rows(table, place["systems"], opening) if place["systems"] else table
    return f"{opening}\n{format_table(shown)}\n<!-- end bench -->"


def _select_rows(table: Table, systems: str, where: str) -> Table:
    names = [name.strip() for name in systems.split(";")]
    rows = {row.system: row for row in table.rows}
    if unknown := [name for name in names if name not in rows]:
        raise InvalidInputError(f"no row of {table.name}: {'; '.join(unknown)}", where=where)
    return replace(table, rows=tuple(rows[name] for name in names))


def write_tables(page: Path, recorded: Path) -> None:
    """Write the tables of a page anew."""
    filled = fill_tables(page.read_text(encoding="utf-8"), read_recorded(recorded))
    write_atomically(page, [filled.encode()])
