"""How numbers are written in a report, and the templates that write them."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

SMALLEST_P = 0.001
MINUS = "−"


def make_environment() -> "Environment":
    """The templates of a report. They escape all that they are given."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": format_number, "change": format_change, "p": format_p}
    environment.filters |= {"tick": format_tick, "join_names": join_names}
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment


def format_number(value: float | None) -> str:
    """A measure: ".594", "1.00"; numbers that are no shares, such as words, with one digit after the point."""
    if value is None:
        return "–"
    if abs(value) > 1:
        return f"{value:,.1f}".replace("-", MINUS)
    written = f"{abs(value):.3f}"
    return (MINUS if value < 0 and float(written) else "") + (written[1:] if written[0] == "0" else written[:4])


def format_change(value: float) -> str:
    """A difference with its sign: "+.109"."""
    written = format_number(value)
    return written if written.startswith(MINUS) else f"+{written}"


def format_tick(value: float, signed: bool = False) -> str:
    """A round value beside a scale: ".2", "1", "+.05"."""
    written = f"{abs(value):g}".removeprefix("0") or "0"
    return written if not value else (MINUS if value < 0 else "+" if signed else "") + written


def format_p(value: float) -> str:
    """A p-value as it is printed: "= .012", "< .001"."""
    return f"< {format_number(SMALLEST_P)}" if value < SMALLEST_P else f"= {format_number(value)}"


def join_names(names: list[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
