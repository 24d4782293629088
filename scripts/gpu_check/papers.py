"""What the papers have for the same protocol, size and batch.

VIPIR: arXiv 2606.11536v1, one H100 NVL of 94 GB; milliseconds of one query by table 1, queries a second in batches of 32 by table 3.
GPIR: table 1, one RTX 5090; queries a second of one client and of many in a batch (S and B), tables in GB."""

VIPIR_MS = {
    "onion": {1: 4.1, 4: 10.5, 16: 35.9},
    "exppack-s": {1: 3.1, 4: 4.4, 16: 9.3, 64: 28.3},
    "exppack-d": {1: 10.7, 4: 19.3, 16: 38.6, 64: 90.8},
    "double-pack": {1: 9.8, 4: 10.8, 16: 15.3, 64: 33.0},
    "hybrid": {1: 9.6, 4: 10.6, 16: 15.1, 64: 33.5},
}
VIPIR_RATES = {
    "onion": {1: 516.6, 4: 177.8, 16: 48.6},
    "exppack-s": {1: 480.6, 4: 465.4, 16: 397.2, 64: 232.8},
    "exppack-d": {1: 461.5, 4: 405.0, 16: 303.3, 64: 168.3},
    "double-pack": {1: 190.4, 4: 186.4, 16: 172.3, 64: 163.1},
    "hybrid": {1: 244.9, 4: 236.1, 16: 219.6, 64: 207.4},
}
GPIR_RATES = {1: {1: 185.8, 2: 118.4, 4: 69.4}, 32: {1: 709.8, 2: 473.6, 4: 264.2}}


def beside(protocol, gib, batch):
    """Their figures, or nothing."""
    figures = []
    if batch == 1:
        figures.append(("VIPIR", VIPIR_MS.get(protocol, {}).get(gib), "ms"))
    if batch == 32:
        figures.append(("VIPIR", VIPIR_RATES.get(protocol, {}).get(gib), "/s"))
    if protocol == "onion":
        figures.append(("GPIR", GPIR_RATES.get(batch, {}).get(gib), "/s"))
    return ", ".join(f"{paper} {figure:g} {unit}" for paper, figure, unit in figures if figure)
