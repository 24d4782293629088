"""The tables of the five papers that two cores and 24 GiB of memory can hold: what each prints, and the commands that measure ours.

Sizes are those of the papers in bytes: ChalametPIR's kB are KiB (1.125 x 2^16 words of 4 bytes print as 287), and OnionPIRv2's GB are GiB
(2^18 entries of 3,840 bytes print as 0.9), as are its MB/s and the sizes of keys. VIPIR has GiB. PPIR has entries of 256 bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from measured import Run

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Column:
    """A column of a table: its head with the unit, and the function that takes the figure from a run."""

    head: str
    measure: Callable[[Run], float | None]


@dataclass(frozen=True)
class Row:
    """A row: its label, the command that measures it, and the printed figures, None where the paper has none."""

    label: str
    command: str
    printed: tuple[float | None, ...]


@dataclass(frozen=True)
class Table:
    """A table of a paper. `note` is what differs beside the machine."""

    name: str
    title: str
    machine: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""


def cells(table: Table, row: Row, run: Run) -> list[str]:
    """Returns our figures of a row, each with the printed one in parentheses if the row has any."""
    shown = []
    for column, figure in zip(table.columns, row.printed):
        theirs = f" ({number(figure)})" if any(row.printed) else ""
        shown.append(number(column.measure(run)) + theirs)
    return shown


def number(figure: float | None) -> str:
    """Returns a figure with three digits, or a dash."""
    if figure is None:
        return "-"
    if not figure:
        return "0"
    digits = 0 if abs(figure) >= 100 else 1 if abs(figure) >= 10 else 2 if abs(figure) >= 1 else 4
    return f"{figure:,.{digits}f}"


def ms(name: str, batch: int = 1) -> Callable[[Run], float | None]:
    """Returns a function that takes the milliseconds of a row from a run."""

    def measure(run: Run) -> float | None:
        seconds = run.seconds(name, batch)
        return seconds and 1e3 * seconds

    return measure


def sent(unit: int, *names: str) -> Callable[[Run], float | None]:
    """Returns a function that takes a sum of sizes from a run, in `unit` bytes."""

    def measure(run: Run) -> float | None:
        size = run.fact(*names)
        return size and size / unit

    return measure


def throughput(run: Run) -> float | None:
    """Returns the bytes of values over the time of one answer, in MiB a second, as the authors of OnionPIRv2 count."""
    seconds = run.seconds("answer")
    return seconds and run.value_bytes() / seconds / MIB


def answer(options: str, threads: int = 1) -> str:
    """Returns the command that measures whole answers."""
    return f"hush-bench answer {options} --threads {threads} --json"


# ChalametPIR: ePrint 2024/092.

CHALAMET_SHAPES = {
    "2^16 x 1 KiB": (1 << 16, KIB), "2^17 x 1 KiB": (1 << 17, KIB), "2^18 x 1 KiB": (1 << 18, KIB), "2^19 x 1 KiB": (1 << 19, KIB),
    "2^20 x 1 KiB": (1 << 20, KIB), "2^20 x 256 B": (1 << 20, 256), "2^17 x 30 KiB": (1 << 17, 30 * KIB),
    "2^14 x 100 KiB": (1 << 14, 100 * KIB),
}
M1, C5 = "one core of an Apple M1 Max", "one core of a c5.9xlarge (Xeon of 3.0 GHz)"


def chalamet(protocol: str, shape: str, filters: str = "") -> str:
    records, value_bytes = CHALAMET_SHAPES[shape]
    preset = " --preset FRODOPIR_N1774_TERNARY" if protocol == "frodo" else ""
    by_key = f" --filter {filters}" if filters else ""
    return answer(f"--protocol {protocol}{preset}{by_key} --records {records} --value-bytes {value_bytes} --batch 1")


def chalamet_rows(protocol: str, filters: str, printed: dict[str, tuple]) -> tuple[Row, ...]:
    return tuple(Row(shape, chalamet(protocol, shape, filters), figures) for shape, figures in printed.items())


CHALAMET_SIZES = (Column("query, KiB", sent(KIB, "query_bytes")), Column("answer, KiB", sent(KIB, "answer_bytes")))
CHALAMET_TIMES = (Column("query, ms", ms("query, prepared")), Column("answer, ms", ms("answer")), Column("parsing, ms", ms("decode, prepared")))
FRODO_K3 = dict(zip(CHALAMET_SHAPES, [(287, 3.2), (579, 3.2), (1157, 3.2), (2314, 3.56), (4628, 3.56), (4628, 0.89), (579, 96), (72, 291)]))
FRODO_K4 = dict(zip(CHALAMET_SHAPES, [(276, 3.2), (553, 3.2), (1106, 3.2), (2212, 3.56), (4424, 3.56), (4424, 0.89), (553, 96), (69, 291)]))
SIMPLE_K3 = dict(zip(CHALAMET_SHAPES, [(31.89,) * 2, (44.65,) * 2, (63.78,) * 2, (90.36,) * 2, (127.56,) * 2, (63.78,) * 2,
                                       (256.18, 256.18), (180.71, 176.63)]))
SIMPLE_K4 = dict(zip(CHALAMET_SHAPES, [(31.17,) * 2, (43.64,) * 2, (62.34,) * 2, (88.32,) * 2, (124.68,) * 2, (62.34,) * 2,
                                       (250.4, 250.4), (180.71, 176.63)]))
KEYED_TIMES = dict(zip(CHALAMET_SHAPES, [
    (0.010597, 6.5508, 0.22001), (0.038866, 12.473, 0.21894), (0.051996, 24.452, 0.21658), (0.14442, 54.053, 0.24204),
    (0.24049, 116.89, 0.24384), (1.3699, 133.58, 0.090116), (0.055415, 1846.6, 10.663), (0.0040465, 760.64, 35.485)]))
INDEXED_TIMES = dict(zip(CHALAMET_SHAPES, [
    (0.0076956, 5.2735, 0.18083), (0.017356, 10.545, 0.18544), (0.055522, 21.101, 0.18061), (0.1023, 47.675, 0.20108),
    (0.21222, 100.63, 0.20483), (1.2324, 118.46, 0.065281), (0.036396, None, 8.1519), (0.0033412, 637.81, 26.599)]))
OFFLINE = dict(zip(CHALAMET_SHAPES, [(25866, 0.226, 5.54), (50772, 0.452, 5.54), (101010, 0.904, 5.54), (225710, 1.808, 6.16),
                                     (490110, 3.616, 6.16)]))
MACHINES = f"{M1} for 1 KiB; {C5} for the others"
CHALAMETPIR = (
    Table("chalametpir-1-frodo-k3", "ChalametPIR Table 1: bytes, FrodoPIR, k = 3", "any", CHALAMET_SIZES,
          chalamet_rows("frodo", "fuse3", FRODO_K3)),
    Table("chalametpir-1-frodo-k4", "ChalametPIR Table 1: bytes, FrodoPIR, k = 4", "any", CHALAMET_SIZES,
          chalamet_rows("frodo", "fuse4", FRODO_K4)),
    Table("chalametpir-1-simple-k3", "ChalametPIR Table 1: bytes, SimplePIR, k = 3", "any", CHALAMET_SIZES,
          chalamet_rows("simple", "fuse3", SIMPLE_K3), "Ours has its own set and shape: the hint is the dearest part, so queries are longer than answers."),
    Table("chalametpir-1-simple-k4", "ChalametPIR Table 1: bytes, SimplePIR, k = 4", "any", CHALAMET_SIZES,
          chalamet_rows("simple", "fuse4", SIMPLE_K4)),
    Table("chalametpir-2", "ChalametPIR Table 2: online times by key, FrodoPIR, k = 3", MACHINES, CHALAMET_TIMES,
          chalamet_rows("frodo", "fuse3", KEYED_TIMES), "Queries are prepared in both."),
    Table("chalametpir-4", "ChalametPIR Table 4: online times by index, FrodoPIR", MACHINES, CHALAMET_TIMES,
          chalamet_rows("frodo", "", INDEXED_TIMES), "Queries are prepared in both. The paper's 36.396 ms for 2^17 x 30 KiB repeat its query time."),
    Table("chalametpir-5", "ChalametPIR Table 5: offline, FrodoPIR, k = 3", M1,
          (Column("set-up, s", lambda run: run.seconds("build")), Column("encoded, GiB", sent(GIB, "encoded_bytes")),
           Column("hint, MiB", sent(MIB, "hint_bytes"))),
          chalamet_rows("frodo", "fuse3", OFFLINE), "Ours is built by all cores. The paper says seconds; as seven hours for 64 MiB are not likely, its figures fit milliseconds."),
)

# OnionPIRv2: ePrint 2025/1142.

ONION_COLUMNS = (Column("MiB/s", throughput), Column("request, KiB", sent(KIB, "query_bytes")), Column("response, KiB", sent(KIB, "answer_bytes")),
                 Column("keys, MiB", sent(MIB, "key_bytes")), Column("queries/s, B = 8", lambda run: run.rate(8)))


def onion(preset: str, size: str, value_bytes: int) -> str:
    return answer(f"--protocol onion --preset {preset} --size {size} --value-bytes {value_bytes} --batch 1,8")


ONIONPIRV2 = (
    Table("onionpirv2-2", "OnionPIRv2 Table 2", "one core of a c5n.9xlarge (Xeon Platinum 8124M, AVX-512)", ONION_COLUMNS, (
        Row("n = 2048, 0.94 GiB", onion("ONIONPIRV2_N2048_2X30_SEC113", "960M", 3328), (1109, 16, 13.5, 0.63, None)),
        Row("n = 4096, 1.4 GiB", onion("ONIONPIRV2_N4096_4X27_SEC126", "1440M", 16384), (1098, 64, 57, 2.9, None)),
        Row("n = 4096, 1 GiB (printed: 1.4)", onion("ONIONPIRV2_N4096_4X27_SEC126", "1G", 16384), (1098, 64, 57, 2.9, None)),
        Row("n = 4096, 2 GiB (printed: 1.4)", onion("ONIONPIRV2_N4096_4X27_SEC126", "2G", 16384), (1098, 64, 57, 2.9, None)),
        Row("ours: ONION_S, 0.94 GiB", onion("ONION_S", "960M", 4096), (1109, 16, 13.5, 0.63, None)),
        Row("ours: ONION_M31, 1 GiB", onion("ONION_M31", "1G", 22528), (1098, 64, 57, 2.9, None)),
    ), "Neither printed set decodes here; the nearest ones do (docs/explanation/notes/ring-parameters.md). The printed 120-bit set is beside "
       "the nearest of GPIR's."),
)

# VIPIR: arXiv 2606.11536v1.

H100 = "one H100 NVL of 94 GB"
VIPIR_COLUMNS = (Column("answer, ms", ms("answer")), Column("a query, KiB", sent(KIB, "query_bytes", "answer_bytes")),
                 Column("keys, MiB", sent(MIB, "key_bytes")))
PAPERS_SET = "VIPIR_N4096_3X29"


def vipir(protocol: str, size: str, value_bytes: int, columns: int, preset: str = PAPERS_SET, batches: str = "1") -> str:
    chosen = f" --preset {preset}" if preset else ""
    return answer(f"--protocol {protocol}{chosen} --size {size} --value-bytes {value_bytes} --columns {columns} --batch {batches}", threads=2)


def vipir_rows(label: str, protocol: str, shapes: dict[str, tuple[int, int]], printed: dict[str, tuple]) -> tuple[Row, ...]:
    rows = []
    for preset, whose in ((PAPERS_SET, "the paper's set"), ("", "our set")):
        for size, (value_bytes, columns) in shapes.items():
            rows.append(Row(f"{label}, {size}iB, {whose}", vipir(protocol, size, value_bytes, columns, preset), printed[size]))
    return tuple(rows)


VIPIR = (
    Table("vipir-1", "VIPIR Table 1: one query", H100, VIPIR_COLUMNS, (
        *vipir_rows("ExpPack(S)", "exppack-s", {"1G": (32 * KIB, 1 << 15), "4G": (64 * KIB, 1 << 16)},
                    {"1G": (3.1, 480, 5.16), "4G": (4.4, 864, 5.16)}),
        *vipir_rows("ExpPack(D)", "exppack-d", {"1G": (32, 1 << 15), "4G": (32, 1 << 16)}, {"1G": (10.7, 395, 5.16), "4G": (19.3, 651, 5.16)}),
        *vipir_rows("double-packing", "double-pack", {"1G": (4 * KIB, 1 << 13), "4G": (4 * KIB, 1 << 15)},
                    {"1G": (9.8, 357, 5.16), "4G": (10.8, 369, 5.16)}),
        *vipir_rows("hybrid", "hybrid", {"1G": (4 * KIB, 1 << 13), "4G": (4 * KIB, 1 << 15)}, {"1G": (9.6, 132, 6.09), "4G": (10.6, 144, 6.09)}),
    ), "ExpPack(D) has records of 32 bytes here and of 1 byte there. Double-packing and hybrid have D/D0 = 2^17 here and 2^20 there, whose "
       "lifted hint takes 15 GiB."),
    Table("vipir-2", "VIPIR Table 2: queries a second", f"the authors' CPU (B = 1), and {H100} (B = 32)",
          (Column("B = 1", lambda run: run.rate(1)), Column("B = 32", lambda run: run.rate(32))), (
              Row("SimplePIR, 1 GiB", answer("--protocol simple --size 1G --value-bytes 32768 --columns 32768 --batch 1,32"), (11.36, 8244)),
              Row("SimplePIR, 4 GiB", answer("--protocol simple --size 4G --value-bytes 65536 --columns 65536 --batch 1,32"), (2.54, 2201)),
              Row("DoublePIR, 1 GiB", answer("--protocol double --size 1G --value-bytes 32 --columns 32768 --batch 1,32"), (9.80, 1838)),
              Row("DoublePIR, 4 GiB", answer("--protocol double --size 4G --value-bytes 32 --columns 65536 --batch 1,32"), (2.27, 779)),
          ), "DoublePIR has records of 32 bytes here and of 1 byte there."),
    Table("vipir-8", "VIPIR Figure 8: hybrid by the number of columns, 1 GiB", H100, VIPIR_COLUMNS, tuple(
        Row(f"D0 = {columns}", vipir("hybrid", "1G", 4 * KIB, columns), (9.6 if columns == 1024 else None, 132 if columns == 1024 else None, 6.09))
        for columns in (4096, 2048, 1024)
    ), "The figure has no numbers; those of 1024 columns are Table 1's."),
)

# PPIR: TFHE, distributed table look-up.

XEON, A6000 = "one thread of a Xeon Gold 6226R", "one RTX A6000"
CLUSTER = "five GPUs (RTX A6000 twice, RTX 3090, GTX 1660 twice) in four servers"
ENTRY = 256


def ppir(exponent: int, more: str = "") -> str:
    return answer(f"--protocol tfhe --form symbols --records {1 << exponent} --value-bytes {ENTRY} --batch 1{more}")


def privks(exponent: int, preset: str = "TFHE_PRIVKS") -> str:
    return answer(f"--protocol tfhe-privks --preset {preset} --records {1 << exponent} --value-bytes {ENTRY} --batch 1 --steps")


TABLE_LOOKUP = {10: 156.46, 11: 315.67, 12: 635.12, 13: 1076.22, 14: 2175.75, 15: 4310.16, 16: 8569.18}
STLU = {10: 5.67, 12: 10.93, 14: 27.26, 16: 90.91, 18: 318.65, 19: 724.48}
PARTS = {20: (524, 524, 508, 489, 511, 526), 22: (2080, 2112, 2052, 2010, 2064, 2114), 24: (8492, 8592, 8225, 8208, 8287, 8594),
         25: (16476, 16670, 16321, 16227, 16612, 16688)}
OVERALL = {16: 0.09, 18: 0.32, 20: 0.53, 22: 2.11, 24: 8.59, 25: 16.69}
WEIGHTS = (2, 2, 1, 2, 1)


def cmux_ms(run: Run) -> float | None:
    """Returns the milliseconds of one external product: the time of all folds over the number of pairs of entries."""
    seconds, facts = run.seconds("rgsw_fold"), run.facts()
    return seconds and 1e3 * seconds / (facts["slots"] // facts["lanes"] - 1)


PPIR = (
    Table("ppir-5", "PPIR Table 5: algorithms of TFHE", XEON,
          (Column("external product, ms", cmux_ms), Column("TLWE encryption of a query, ms", ms("query")), Column("private key switch, ms", ms("private_key_switch"))),
          (Row("tfhe-privks, TFHE_PRIVKS, 2^12 entries", privks(12), (0.08, 0.01 * 24, None)),),
          "The paper's 0.01 ms is one TLWE word; a query for 2^12 entries has 24. Clients here encrypt no TRLWE and no TRGSW (1.6 and 4.16 ms "
          "there)."),
    Table("ppir-6-cpu", "PPIR Table 6: TableLookup on a CPU", XEON, (Column("tfhe-privks, ms", ms("answer")),),
          tuple(Row(f"2^{exponent} entries", privks(exponent), (figure,)) for exponent, figure in TABLE_LOOKUP.items())),
    Table("ppir-6-gpu", "PPIR Table 6: STLU on a GPU, beside tfhe on a CPU", A6000, (Column("tfhe, ms", ms("answer")),),
          tuple(Row(f"2^{exponent} entries", ppir(exponent), (figure,)) for exponent, figure in STLU.items())),
    Table("ppir-8", "PPIR Table 8: five parts of 2:2:1:2:1, one after the other on one machine, ms", CLUSTER,
          (*(Column(f"part {part}", ms(f"part {part}, weight {weight}")) for part, weight in enumerate(WEIGHTS)),
           Column("overall", ms("answer, parts at once"))),
          tuple(Row(f"2^{exponent} entries", ppir(exponent, " --parts 2,2,1,2,1"), figures) for exponent, figures in PARTS.items()),
          "Overall is the slowest part and the head. Every part expands the query, where the paper's map server sends it expanded."),
    Table("ppir-10", "PPIR Table 10: one query, s", CLUSTER, (Column("tfhe, one core", lambda run: run.seconds("answer")),),
          tuple(Row(f"2^{exponent} entries", ppir(exponent, " --parts 2,2,1,2,1" if exponent in PARTS else ""), (figure,))
                for exponent, figure in OVERALL.items())),
)

# Ours alone: a table of 1 GiB under each protocol.


def own(options: str, batches: str = "1,8,32") -> str:
    return f"hush-bench answer {options} --batch {batches} --json"


OWN_COLUMNS = (
    Column("one answer, one core, ms", ms("answer")),
    Column("two cores, ms", lambda run: (seconds := run.seconds("answer", threads=2)) and 1e3 * seconds),
    Column("queries/s, two cores, largest batch", lambda run: run.rate(max(run.batches()), 2)),
    Column("query, KiB", sent(KIB, "query_bytes")), Column("answer, KiB", sent(KIB, "answer_bytes")),
    Column("keys and hint, MiB", sent(MIB, "key_bytes", "hint_bytes")), Column("build, s", lambda run: run.seconds("build")),
)
OWN = Table("own", "1 GiB under each protocol", "", OWN_COLUMNS, tuple(Row(label, command, (None,) * len(OWN_COLUMNS)) for label, command in (
    ("`colpack`, 4 KiB", own("--protocol colpack --size 1G --value-bytes 4096")),
    ("`colpack`, by key, 1 KiB", own("--protocol colpack --filter band256 --size 1G --value-bytes 1024")),
    ("`colpack`, 64 KiB", own("--protocol colpack --size 1G --value-bytes 65536")),
    ("`colpack-s`, 64 KiB", own("--protocol colpack-s --size 1G --value-bytes 65536")),
    ("`simple`, by key, 1 KiB", own("--protocol simple --filter band256 --size 1G --value-bytes 1024")),
    ("`frodo`, by key, 1 KiB", own("--protocol frodo --filter band256 --size 1G --value-bytes 1024")),
    ("`double`, 32 B", own("--protocol double --size 1G --value-bytes 32")),
    ("`hybrid`, 4 KiB", own("--protocol hybrid --size 1G --value-bytes 4096")),
    ("`exppack-s`, 4 KiB", own("--protocol exppack-s --size 1G --value-bytes 4096")),
    ("`double-pack`, 4 KiB", own("--protocol double-pack --size 1G --value-bytes 4096")),
    ("`onion`, `ONION_M31`, 22 KiB", own("--protocol onion --preset ONION_M31 --size 1G --value-bytes 22528")),
    ("`onion`, `ONION_S`, 4 KiB", own("--protocol onion --preset ONION_S --size 1G --value-bytes 4096")),
    ("`tfhe`, 256 B", own("--protocol tfhe --form symbols --size 1G --value-bytes 256", "1,8")),
)))

PAPERS = (*VIPIR, *CHALAMETPIR, *ONIONPIRV2, *PPIR)
TABLES = (OWN, *PAPERS)
