"""What `convagent doctor` prints: the facts of `agent.terminal.doctor`, a section a subject."""

from collections.abc import Sequence

from agent.terminal.doctor import Cache, Facts, Machine, Model
from agent.terminal.output import open_stdout, print_json, to_plain_text
from schemas.errors import MissingError

LISTED_FILES = 10  # files of the cache that are named
Row = tuple[str, str, str]  # name, value, and what is said about it


def show_doctor(facts: Facts, *, as_json: bool) -> None:
    """Print all facts. Raises `MissingError` where something stands in the way, so that the exit code says so."""
    if as_json:
        import msgspec

        print_json({"usable": facts.usable} | msgspec.to_builtins(facts))
    else:
        _show_facts(facts)
    if not facts.usable:
        raise MissingError("it cannot be used yet", remedy="See the problems named above.")


def _show_facts(facts: Facts) -> None:
    _show_section("Machine", _machine_rows(facts.machine))
    _show_section("Language model", _model_rows(facts.language))
    _show_section("Embedding model", _model_rows(facts.embedding))
    _show_section("Cache", _cache_rows(facts.cache))
    _show_section("Libraries", [(name, version or "not installed", "") for name, version in facts.libraries.items()])
    settings = [(setting.name, setting.value, setting.origin) for setting in facts.settings]
    _show_section("Settings", settings or [("", "none: all defaults", "")])
    problems = [("stops" if trouble.stops else "note", trouble.what, trouble.remedy) for trouble in facts.troubles]
    _show_section("Problems", problems or [("", "none", "")])


def _show_section(title: str, rows: Sequence[Row]) -> None:
    """Print names and values, and dim behind them what is said about them."""
    from rich.table import Table

    table = Table(title, "", box=None, pad_edge=False, header_style="bold")
    table.columns[0].min_width = 18
    table.columns[1].overflow = "fold"  # paths are there to be copied
    for name, value, about in rows:
        table.add_row(to_plain_text(f"  {name}"), to_plain_text(value).append_text(to_plain_text(f"  {about}", "dim")))
    console = open_stdout()
    console.print(table)
    console.print()


def _machine_rows(machine: Machine) -> list[Row]:
    memory = f"{machine.memory_free / 1e9:.1f} GB free of {machine.memory_total / 1e9:.1f} GB"
    return [
        ("python", machine.python, ""),
        ("system", machine.system, ""),
        ("cores", f"{machine.physical_cores} physical, {machine.logical_cores} logical that may be used", ""),
        ("memory", memory, ""),
        ("compiled for", ", ".join(machine.features) or "?", ""),
    ]


def _model_rows(model: Model) -> list[Row]:
    rows = [("name", model.name, "")]
    if model.source:
        rows.append(("source", f"{model.quantisation}  {_format_megabytes(model.bytes)}".strip(), model.source))
    if model.remedy:
        rows.append(("file", "not there", model.remedy))
    if copy := model.copy:
        size = f"  {_format_megabytes(copy.bytes)}" if copy.bytes else ""
        rows.append((copy.quantisation, f"{copy.state}{size}", copy.path))
    for choice in model.choices:
        value = {True: "on", False: "off"}[choice.value] if isinstance(choice.value, bool) else str(choice.value)
        rows.append((choice.name, value, choice.why))
    return rows


def _cache_rows(cache: Cache) -> list[Row]:
    """The directory, its largest files by name, and how many more there are."""
    rows = [("directory", cache.directory, "can be written" if cache.writable else "cannot be written")]
    largest = sorted(cache.files, key=lambda file: -file.bytes)
    rows += [("", file.name, _format_megabytes(file.bytes)) for file in largest[:LISTED_FILES]]
    if more := largest[LISTED_FILES:]:
        rows.append(("", f"{len(more)} more", _format_megabytes(sum(file.bytes for file in more))))
    return rows


def _format_megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
