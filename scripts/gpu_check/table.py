"""Prints the results for people: rates, rows and stages."""

import re

import papers

UNITS = {"M": 20, "G": 30}  # bits


def lines(rows, stages):
    for row in rows:
        if "rate" in row:
            yield f"{row['name']:<46} {row['rate']:12.4e} {row['unit']}"
    for row in rows:
        if "mma_from" in row:
            yield f"mma from {row['mma_from']} queries, wgmma from {row['hopper_from']}"
    yield (f"{'what':<32} {'protocol':>11} {'GiB':>7} {'B':>4} {'GiB moved':>9} {'ms':>10} {'floor':>10} {'bound':>6} {'share':>6} "
           f"{'streams':>7} {'queries/s':>10}  papers")
    for row in rows:
        if "seconds" in row or "skipped" in row:
            yield line(row)
    for stage in stages:
        yield f"{stage['stage']:<32} {'passed' if stage['passed'] else 'FAILED'} {stage['seconds']:8.1f} s  {gpu(stage)}{stage['why']}"


def line(row):
    """Returns a measurement as a line of text, or the reason why there is none."""
    size = f"{row['table_bytes'] / 2**30:.2f}" if row.get("table_bytes") else "-"
    what = f"{row['name']:<32} {row.get('protocol') or '-':>11} {size:>7}"
    if "skipped" in row:
        return f"{what} {row.get('batch') or '-':>4} skipped: {row['skipped']}"
    streams = f"{row['streams']:.2f}x" if row.get("streams") else "-"
    rate = f"{row['queries_per_second']:.0f}" if row.get("queries_per_second") else "-"
    moved = f"{row['bytes'] / 2**30:.3f}" if row.get("bytes") else "-"
    return (f"{what} {row['batch']:>4} {moved:>9} {1e3 * row['seconds']:10.3f} {1e3 * row['floor_seconds']:10.3f} {row['bound']:>6} "
            f"{100 * row['share']:5.0f}% {streams:>7} {rate:>10}  {theirs(row)}").rstrip()


def theirs(row):
    """Returns the papers' figures for the measurement of a whole answer. The name of its stage has the size of the table."""
    size = re.fullmatch(r"answers-(\d+)([MG]).*", row["stage"])
    return papers.beside(row["protocol"], int(size[1]) << UNITS[size[2]], row["batch"]) if size else ""


def gpu(stage):
    """Returns the GPU's figures during a stage as text."""
    seen = stage["gpu"]
    if not seen:
        return ""
    parts = []
    if "sm_mhz" in seen:
        parts.append(f"{seen['sm_mhz']['least']:.0f}..{seen['sm_mhz']['most']:.0f} MHz")
    if "watts" in seen:
        parts.append(f"{seen['watts']['most']:.0f} W")
    if "memory_mib" in seen:
        parts.append(f"{seen['memory_mib']['most'] / 1024:.1f} GiB")
    return ", ".join(parts) + "  "
