#!/usr/bin/env python3
"""Draws docs/explanation/drawings/*.svg: the shapes of the data of a look-up with a packed answer, one figure for each protocol.

Without arguments, writes the figures. With --check, fails if a committed figure differs from its drawing.
"""

import pathlib
import sys
from dataclasses import dataclass, field

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "explanation" / "drawings"
WIDTH = 1040
TEXT, LINE, CHARACTER = 13, 17, 7.0  # font size, line height, width of a wide character: all in pixels

STYLE = """
.page { fill: #ffffff; }
text { font: 13px Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1f2328; }
.step { font-weight: bold; }
.size { fill: #59636e; }
.box { stroke: #59636e; stroke-width: 1.2; }
.held { fill: #e6eaef; }
.sent { fill: #fff0cc; stroke: #9a6700; }
.made { fill: #ffffff; }
.answer { fill: #d6ecff; stroke: #0969da; }
.arrow { fill: none; stroke: #1f2328; stroke-width: 1.3; }
.offline { stroke-dasharray: 5 4; }
.head { fill: #1f2328; }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; }
text { fill: #e6edf3; }
.size { fill: #9da7b3; }
.box { stroke: #9da7b3; }
.held { fill: #343b44; }
.sent { fill: #44340d; stroke: #d4a72c; }
.made { fill: #161b22; }
.answer { fill: #0f3057; stroke: #58a6ff; }
.arrow { stroke: #e6edf3; }
.head { fill: #e6edf3; }
}
""".strip()


@dataclass
class Box:
    """A matrix, a vector or a pile of ciphertexts. `kind` is a key of the legend. A narrow box has its text above."""

    kind: str
    x: int
    y: int
    w: int
    h: int
    title: str
    sizes: list = field(default_factory=list)
    above: bool = False

    def lines(self):
        """Returns the lines of text as (class, centre, baseline, text)."""
        texts = [("step", self.title)] * bool(self.title) + [("size", size) for size in self.sizes]
        middle = self.x + self.w / 2
        if self.above:
            first = self.y - 7 - LINE * (len(texts) - 1)
        else:
            first = self.y + self.h / 2 - LINE * (len(texts) - 1) / 2 + 5
        return [(style, middle, first + LINE * i, text) for i, (style, text) in enumerate(texts)]


@dataclass
class Arrow:
    """A step: a path of horizontal and vertical lines, and lines of text whose start, middle or end is at `at`."""

    path: list
    text: list = field(default_factory=list)
    at: tuple = (0, 0)
    anchor: str = "middle"
    offline: bool = False

    def lines(self):
        return [(self.anchor, self.at[0], self.at[1] + LINE * i, text) for i, text in enumerate(self.text)]


def vector(kind, x, y, title, size):
    return Box(kind, x, y, 44, 100, title, [size], above=True)


def times(x, y):
    """Returns the sign of a product, as an arrow without a path."""
    return Arrow([], ["\u00d7"], (x, y + 5))


def first_fold():
    """Returns step (1) over the database, which is at the top of every figure."""
    return [
        Box("held", 60, 60, 200, 100, "database", ["bytes", "rows x D0"]),
        vector("sent", 330, 60, "query", "D0 words"),
        vector("made", 560, 60, "folded", "rows words"),
        times(295, 110),
        Arrow([(374, 110), (560, 110)], ["(1) lwe_fold"], (467, 102)),
    ]


def expansion(y, bits):
    """Returns the packed query and its expansion, from height `y` on. `bits` adds the RGSW bits of the hybrid."""
    boxes = [
        Box("sent", 60, y, 150, 60, "packed query", ["seed, leaves"]),
        Box("made", 400, y, 150, 60, "selectors C", ["n ciphertexts"]),
        Arrow([(210, y + 30), (400, y + 30)], ["expand", "by the client's keys"], (305, y + 5)),
    ]
    if bits:
        boxes += [
            Box("made", 400, y + 90, 150, 60, "bits of the entry", ["f RGSW ciphertexts"]),
            Arrow([(350, y + 30), (350, y + 120), (400, y + 120)]),
        ]
    return boxes


def packing(y, hint, hint_size, packed_size, selectors_from):
    """Returns step (3): a lifted hint at height `y`, the selectors below it and the folded words above it make ciphertexts."""
    return [
        Box("held", 60, y, 200, 100, hint, ["polynomials modulo Q_1", hint_size]),
        Box("made", 700, y, 130, 100, "packed", ["ciphertexts", packed_size]),
        Arrow([(582, y - 80), (582, y + 25), (700, y + 25)], ["(3) pack"], (644, y + 17)),
        Arrow([(260, y + 50), (700, y + 50)]),
        Arrow([(475, selectors_from), (475, y + 75), (700, y + 75)]),
    ]


def answer(x, y, content="packed pairs", steps=("pack_pairs", "mod_switch")):
    """Returns the rounding step, to the right of ciphertexts that end at `x`, at height `y`."""
    return [
        Box("answer", 930, y - 35, 100, 70, "answer", [content]),
        Arrow([(x, y), (930, y)], steps, ((x + 930) / 2, y + 9 - LINE * len(steps))),
    ]


def offline_hint(text):
    return Arrow([(160, 160), (160, 240)], text, (172, 196), "start", offline=True)


def exppack_s():
    return [
        *first_fold(),
        offline_hint(["lwe_hint (A)", "lift_hint"]),
        *packing(240, "lifted hint H", "n x E P", "E P", 400),
        *answer(830, 290),
        *expansion(400, bits=False),
    ]


def hybrid():
    return [
        *first_fold(),
        offline_hint(["lwe_hint (A)", "lift_hint"]),
        *packing(240, "lifted hint H", "n x E P", "E P", 400),
        *expansion(400, bits=True),
        Box("made", 700, 480, 130, 80, "chosen", ["ciphertexts", "P"]),
        Arrow([(765, 340), (765, 480)], ["(7) rgsw_fold", "f rounds"], (777, 406), "start"),
        Arrow([(550, 520), (700, 520)]),
        *answer(830, 520),
    ]


def colpack():
    return [
        *first_fold(),
        Arrow([(160, 160), (160, 250)], ["lwe_hint (A)", "chain_hint (w, v)"], (172, 188), "start", offline=True),
        Arrow([(60, 110), (30, 110), (30, 450), (60, 450)], offline=True),
        Box("held", 60, 250, 200, 100, "pack columns", ["bytes", "rows x 4 N"]),
        vector("sent", 330, 250, "rotation key", "as 4 N words"),
        times(295, 300),
        Arrow([(374, 300), (700, 300)], ["(3c) pack_columns"], (467, 292)),
        Arrow([(582, 160), (582, 275), (700, 275)]),
        Box("made", 700, 250, 130, 100, "packed", ["ciphertexts", "E P"]),
        Box("held", 60, 410, 200, 80, "chain", ["digits and masks", "E P polynomials each"]),
        Box("sent", 330, 420, 150, 60, "conjugation key", ["a polynomial"]),
        times(295, 450),
        Arrow([(480, 450), (640, 450), (640, 325), (700, 325)], ["rounded"], (560, 442)),
        Box("sent", 330, 530, 150, 60, "power of X", ["RGSW ciphertext"]),
        Box("made", 700, 520, 130, 80, "chosen", ["ciphertexts", "P"]),
        Arrow([(765, 350), (765, 520)], ["(7h) rgsw_power_fold", "T - 1 external products"], (777, 426), "start"),
        Arrow([(480, 560), (700, 560)]),
        *answer(830, 560, "rounded", ["mod_switch"]),
    ]


def double_pack():
    return [
        *first_fold(),
        offline_hint(["lwe_hint (A1)", "lift_hint"]),
        *packing(240, "lifted hint H", "n x E P", "E P", 400),
        *expansion(400, bits=False),
        Arrow([(765, 340), (765, 505), (160, 505), (160, 570)], ["(4) reinterpret_rlwe"], (660, 497)),
        Box("made", 60, 570, 200, 100, "M", ["bytes", "4 N P x E"]),
        vector("sent", 330, 570, "second query", "E words"),
        vector("made", 560, 570, "folded", "4 N P words"),
        times(295, 620),
        Arrow([(374, 620), (560, 620)], ["(1) lwe_fold"], (467, 612)),
        Arrow([(160, 670), (160, 750)], ["lwe_hint (A2)", "lift_hint"], (172, 706), "start"),
        Box("made", 60, 750, 200, 100, "lifted hint of M", ["polynomials modulo Q_1", "n x 4 P"]),
        Box("made", 400, 825, 150, 44, "selectors C, again", []),
        Box("made", 700, 750, 130, 100, "packed", ["ciphertexts", "4 P"]),
        Arrow([(582, 670), (582, 775), (700, 775)], ["(3) pack"], (644, 767)),
        Arrow([(260, 800), (700, 800)]),
        Arrow([(550, 847), (625, 847), (625, 825), (700, 825)]),
        *answer(830, 800),
    ]


def exppack_d():
    return [
        *first_fold(),
        Arrow([(160, 160), (160, 250)], ["lwe_hint (A1)", "(2) reinterpret_lwe"], (172, 196), "start", offline=True),
        Box("held", 60, 250, 200, 100, "M1", ["bytes", "2 n slot x blocks"]),
        vector("sent", 400, 250, "second query", "blocks words"),
        vector("made", 560, 250, "", "2 n slot words"),
        times(330, 300),
        Arrow([(444, 300), (560, 300)], ["(1) lwe_fold"], (502, 292)),
        Arrow([(604, 110), (760, 110)], ["(2) reinterpret_lwe"], (682, 102)),
        Box("made", 760, 60, 220, 100, "M2", ["bytes", "2 slot x blocks"]),
        Box("made", 690, 270, 110, 60, "", ["2 slot", "words"]),
        Box("made", 850, 270, 170, 60, "lifted hint of M2", ["n polynomials"]),
        Arrow([(785, 160), (785, 270)], ["(1) lwe_fold,", "same second", "query"], (775, 196), "end"),
        Arrow([(935, 160), (935, 270)], ["lwe_hint (A2)", "lift_hint"], (925, 206), "end"),
        Arrow([(160, 350), (160, 430)], ["lwe_hint (A2)", "lift_hint"], (172, 386), "start", offline=True),
        *packing(430, "lifted hint of M1", "n x K", "K", 590),
        Arrow([(745, 330), (745, 430)]),
        Arrow([(935, 330), (935, 380), (790, 380), (790, 430)]),
        *answer(830, 480),
        *expansion(590, bits=False),
    ]


def tfhe():
    return [
        Box("held", 60, 60, 200, 100, "database", ["plaintexts", "32 rows x entries"]),
        Box("sent", 60, 240, 150, 60, "packed query", ["seed, words of leaves"]),
        Box("made", 400, 240, 150, 60, "selectors", ["a ciphertext a row"]),
        Box("made", 400, 350, 150, 60, "bits of the index", ["RGSW ciphertexts"]),
        Arrow([(210, 270), (400, 270)], ["expand", "by the client's keys"], (305, 245)),
        Arrow([(350, 270), (350, 380), (400, 380)]),
        Box("made", 480, 75, 130, 70, "entries", ["a ciphertext each"]),
        Arrow([(260, 110), (480, 110)], ["(6) rlwe_fold,", "or symbol_fold"], (370, 80)),
        Arrow([(440, 240), (440, 128), (480, 128)]),
        Box("made", 740, 75, 110, 70, "entry", ["a ciphertext"]),
        Arrow([(610, 95), (740, 95)], ["(7) rgsw_fold"], (675, 87)),
        Arrow([(550, 370), (675, 370), (675, 128), (740, 128)]),
        Box("made", 740, 255, 110, 70, "lane", ["first of L"]),
        Arrow([(795, 145), (795, 255)], ["rotate"], (803, 205), "start"),
        Arrow([(550, 395), (715, 395), (715, 290), (740, 290)]),
        Box("answer", 920, 255, 110, 70, "answer", ["small ring"]),
        Arrow([(850, 290), (920, 290)], ["ring", "switch"], (885, 264)),
    ]


LEGEND = [
    ("held", "the server holds"),
    ("sent", "the client sends"),
    ("made", "made for a query"),
    ("answer", "sent back"),
]
FIGURES = {
    "colpack": colpack,
    "exppack-s": exppack_s,
    "exppack-d": exppack_d,
    "double-pack": double_pack,
    "hybrid": hybrid,
    "tfhe": tfhe,
}


def bottom(parts):
    return max(part.y + part.h for part in parts if isinstance(part, Box))


def legend(y):
    """Returns the boxes and the texts of the legend, from height `y` on."""
    boxes = [Box(kind, 60 + 190 * i, y, 22, 16, "") for i, (kind, _) in enumerate(LEGEND)]
    texts = [("start", 60 + 190 * i + 30, y + 13, text) for i, (_, text) in enumerate(LEGEND)]
    return boxes, [*texts, ("start", 872, y + 13, "dashed: offline")]


def text(style, anchor, x, y, content):
    escaped = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text class="{style}" text-anchor="{anchor}" x="{x:g}" y="{y:g}">{escaped}</text>'


def rectangle(box):
    return f'<rect class="box {box.kind}" x="{box.x}" y="{box.y}" width="{box.w}" height="{box.h}" rx="3"/>'


def arrow(part):
    if not part.path:
        return ""
    points = " ".join(f"{x},{y}" for x, y in part.path)
    style = "arrow offline" if part.offline else "arrow"
    (x0, y0), (x, y) = part.path[-2:]
    along = ((x > x0) - (x < x0), (y > y0) - (y < y0))
    back = (x - 9 * along[0], y - 9 * along[1])
    across = (4 * along[1], 4 * along[0])
    corners = [(x, y), (back[0] + across[0], back[1] + across[1]), (back[0] - across[0], back[1] - across[1])]
    head = " ".join(f"{x},{y}" for x, y in corners)
    return f'<polyline class="{style}" points="{points}"/>\n<polygon class="head" points="{head}"/>'


def extent(anchor, x, y, content):
    """Returns the approximate area of a text: left, top, right, bottom."""
    width = CHARACTER * len(content)
    left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
    return (left, y - TEXT + 2, left + width, y + 3)


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def check_layout(name, parts, notes):
    """Asserts that no text overlaps another text, another box or an arrow, that no boxes overlap, and that nothing is cut off."""
    boxes = [part for part in parts if isinstance(part, Box)]
    areas = [(box, (box.x, box.y, box.x + box.w, box.y + box.h)) for box in boxes]
    texts = [(box, extent("middle", *line[1:])) for box in boxes for line in box.lines()]
    texts += [(None, extent(*line)) for part in parts if isinstance(part, Arrow) for line in part.lines()]
    texts += [(None, extent(*note)) for note in notes]
    segments = [
        (min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]) + 1, max(a[1], b[1]) + 1)
        for part in parts
        if isinstance(part, Arrow)
        for a, b in zip(part.path, part.path[1:])
    ]
    for index, (owner, area) in enumerate(texts):
        assert area[0] >= 0 and area[2] <= WIDTH and area[1] >= 0, f"{name}: a text is cut off at {area}"
        assert not any(overlap(area, other) for _, other in texts[:index]), f"{name}: texts overlap at {area}"
        assert not any(overlap(area, other) for box, other in areas if box is not owner), f"{name}: on a box, {area}"
        assert not any(overlap(area, segment) for segment in segments), f"{name}: on an arrow, {area}"
        inside = owner is None or owner.above or (area[0] >= owner.x and area[2] <= owner.x + owner.w)
        assert inside, f"{name}: wider than its box, {area}"
    for index, (_, area) in enumerate(areas):
        assert not any(overlap(area, other) for _, other in areas[:index]), f"{name}: boxes overlap at {area}"
        inner = (area[0] + 1, area[1] + 1, area[2] - 1, area[3] - 1)
        assert not any(overlap(inner, segment) for segment in segments), f"{name}: an arrow crosses {area}"


def draw(name):
    """Returns the figure called `name` as SVG."""
    parts = FIGURES[name]()
    keys, notes = legend(bottom(parts) + 30)
    parts += keys
    check_layout(name, parts, notes)
    height = bottom(parts) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>The shapes of the data of a look-up with {name}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
    ]
    for part in parts:
        out.append(rectangle(part) if isinstance(part, Box) else arrow(part))
    for part in parts:
        if isinstance(part, Box):
            out += [text(style, "middle", x, y, content) for style, x, y, content in part.lines()]
        else:
            out += [text("step", *line) for line in part.lines()]
    out += [text("size", *note) for note in notes]
    return "\n".join([*filter(None, out), "</svg>", ""])


def main():
    stale = []
    for name in FIGURES:
        path, drawn = FOLDER / f"{name}.svg", draw(name)
        if "--check" not in sys.argv[1:]:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(drawn)
        elif not path.is_file() or path.read_text() != drawn:
            stale.append(path.name)
    if stale:
        sys.exit(f"docs/explanation/drawings: {', '.join(stale)} not as scripts/draw_figures.py draws: run it")


if __name__ == "__main__":
    main()
