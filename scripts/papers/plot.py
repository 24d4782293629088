"""Plots as SVG: points and lines on two logarithmic axes, in light and dark."""

import math
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 460, 70, 170, 20, 50
COLOURS = ("#0969da", "#9a6700", "#1a7f37", "#8250df", "#cf222e", "#57606a")
STYLE = """.page { fill: #ffffff; } text { font: 12px Helvetica, Arial, sans-serif; fill: #1f2328; } .grid { stroke: #d1d9e0; }
@media (prefers-color-scheme: dark) { .page { fill: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #343b44; } }"""


@dataclass(frozen=True)
class Series:
    """A named list of points. Several points are joined by a line."""

    name: str
    points: tuple[tuple[float, float], ...]


def draw(title: str, across: str, up: str, series: list[Series]) -> str:
    """Returns a plot of `series` as SVG. `across` and `up` name the axes. All figures are above 0."""
    xs, ys = ([point[axis] for one in series for point in one.points] for axis in (0, 1))
    x, y = scale(xs, LEFT, WIDTH - RIGHT), scale(ys, HEIGHT - BOTTOM, TOP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', f"<title>{title}</title>",
        f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
    ]
    for tick in ticks(xs):
        out.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        out.append(text(x(tick), HEIGHT - BOTTOM + 18, "middle", f"{tick:g}"))
    for tick in ticks(ys):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        out.append(text(LEFT - 8, y(tick) + 4, "end", f"{tick:g}"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "middle", across))
    out.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{up}</text>')
    taken = [(left - 5, top - 5, left + 5, top + 5) for one in series for left, top in [(x(a), y(b)) for a, b in one.points]]
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x(across), y(up)) for across, up in one.points]
        if len(places) > 1:
            path = " ".join(f"{left:.1f},{top:.1f}" for left, top in places)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{colour}"/>' for left, top in places]
        area = label(places[-1], one.name, taken, len(places) > 1)
        taken.append(area)
        out.append(text(area[0], area[3] - 3, "start", one.name))
    return "\n".join([*out, "</svg>", ""])


def label(place: tuple[float, float], name: str, taken: list[tuple[float, ...]], ends: bool) -> tuple[float, float, float, float]:
    """Returns the area of a name: the nearest to its point that is within the plot and free; right of it if a line `ends` there."""
    left, top = place
    width = 6.6 * len(name)
    for distance in range(0, HEIGHT, 7):
        for down in (distance, -distance):
            for start in (left + 8,) if ends else (left + 8, left - 8 - width):
                area = (start, top + down - 8, start + width, top + down + 8)
                inside = area[0] > LEFT and area[2] < WIDTH - 5 and area[1] > 0 and area[3] < HEIGHT - BOTTOM + 5
                if inside and not any(area[0] < b[2] and b[0] < area[2] and area[1] < b[3] and b[1] < area[3] for b in taken):
                    return area
    return (left + 8, top - 8, left + 8 + width, top + 8)


def scale(figures: list[float], first: float, last: float):
    """Returns the function from a figure to its place between `first` and `last`, by logarithms."""
    low, high = (math.log10(bound(figures)) for bound in (min, max))
    low, high = low - 0.1, high + 0.1
    return lambda figure: first + (math.log10(figure) - low) / (high - low) * (last - first)


def ticks(figures: list[float]) -> list[float]:
    """Returns the powers of ten, and the doubles and fives of them, between the figures."""
    low, high = min(figures), max(figures)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    return [step * 10.0**power for power in powers for step in steps if low * 0.8 <= step * 10.0**power <= high * 1.25]


def text(x: float, y: float, anchor: str, content: str) -> str:
    escaped = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped}</text>'
