"""Tables of results: figures with the command beside each, as Markdown and as JSON."""

from dataclasses import dataclass

Figure = float | int | None  # a share or mean; a count; not measured


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one system, in the order of the columns, and the command that makes its run."""

    system: str
    command: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Systems compared by the same measures."""

    name: str  # one word: that of its place in a page
    about: str  # what is measured, over how many of what
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """What a benchmark found."""

    bench: str
    command: str
    version: str  # of convagent
    tables: tuple[Table, ...]


def format_figure(figure: Figure) -> str:
    """Counts as they are, shares and means with three digits and without a leading zero."""
    if figure is None:
        return "-"
    if isinstance(figure, int):
        return f"{figure:,}"
    return f"{figure:.3f}".replace("0.", ".", 1) if abs(figure) < 1 else f"{figure:.3f}"


def format_table(table: Table) -> str:
    """The table in Markdown."""
    lines = ["| " + " | ".join(["", *table.columns, "command"]).strip() + " |", "|---" * (len(table.columns) + 2) + "|"]
    for row in table.rows:
        cells = [row.system, *map(format_figure, row.figures), f"`{row.command}`"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def format_results(results: Results) -> str:
    """All tables of a benchmark, each below what it measures."""
    return "\n\n".join(f"{table.about}\n\n{format_table(table)}" for table in results.tables) + "\n"
