"""The chart of a report: a bar for each turn, from the greatest win to the greatest loss, as inline SVG."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

MINUS = "−"
SMALLEST_P = 0.001
WIDTH, HEIGHT, LEFT, MARGIN = 1000, 170, 34, 4
STUB = 1.5  # height of a bar without a difference, so that it can be pointed at
STEP = 0.05  # the scale ends at such steps
SAME = 1e-9


def draw_bars(values: Mapping[str, float], anchors: Mapping[str, str], label: str, places: tuple[int, int]) -> "Markup":
    """Values by turn id, which lead to their turns; `places` are those of the runs that win above and below zero."""
    from markupsafe import Markup

    reach = max(STEP, math.ceil(max(map(abs, values.values()), default=0.0) / STEP - SAME) * STEP)
    low = -reach if any(value < 0 for value in values.values()) else 0.0

    def height_of(value: float) -> float:
        return round(HEIGHT - MARGIN - (value - low) / (reach - low) * (HEIGHT - 2 * MARGIN), 1)

    signed, room = places[0] != places[1], (WIDTH - LEFT) / max(1, len(values))
    parts = [
        Markup(
            '<line class="grid" x1="{}" x2="{}" y1="{y}" y2="{y}"/><text x="28" y="{}" text-anchor="end">{}</text>'
        ).format(LEFT, WIDTH, height_of(tick) + 4, format_tick(tick, signed), y=height_of(tick))
        for tick in sorted({low, low / 2, 0.0, reach / 2, reach})
    ]
    bar = Markup(
        '<a href="#{}" tabindex="{}" aria-label="{} {}"><rect class="{}" x="{}" y="{}" width="{}" height="{}"/></a>'
    )
    for place, (id, value) in enumerate(sorted(values.items(), key=lambda pair: -pair[1])):
        top, bottom = sorted((height_of(value), height_of(0.0)))
        run = "tie" if abs(value) <= SAME else f"run-{places[0] if value > 0 else places[1]}"
        said = format_change(value) if signed else format_number(value)
        size = round(LEFT + place * room, 2), top, round(room * 0.85, 2), round(max(STUB, bottom - top), 1)
        parts.append(bar.format(anchors[id], -1 if place else 0, id, said, run, *size))
    chart = Markup('<svg class="bars" viewBox="0 0 {} {}" role="group" aria-label="{}">{}</svg>')
    return chart.format(WIDTH, HEIGHT, label, Markup("").join(parts))


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
