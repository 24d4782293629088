"""The papers' figures for a protocol, a size and a batch.

VIPIR: arXiv 2606.11536v1, one H100 NVL of 94 GB. Table 1: milliseconds of one query. Table 3: queries a second in batches of 32.
GPIR: one RTX 5090, tables in GB of 2^30 bytes. Table 1: queries a second of one client and of many clients in a batch (S and B).
PPIR: up to five GPUs (RTX A6000, RTX 3090, GTX 1660) in four servers. Table 10: seconds of one query, by log2 of the number of entries
of 256 bytes."""

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
PPIR_SECONDS = {16: 0.09, 18: 0.32, 20: 0.53, 22: 2.11, 24: 8.59, 25: 16.69}
PPIR_ENTRY = 256


def beside(protocol, size, batch):
    """Returns the papers' figures for a table of `size` bytes and a batch of queries as text, or an empty text."""
    gib = size / 2**30
    figures = []
    if batch == 1:
        figures.append(("VIPIR", VIPIR_MS.get(protocol, {}).get(gib), "ms"))
        if protocol == "tfhe":
            seconds = {PPIR_ENTRY << exponent: seconds for exponent, seconds in PPIR_SECONDS.items()}.get(size)
            figures.append(("PPIR", seconds and round(1e3 * seconds), "ms"))
    if batch == 32:
        figures.append(("VIPIR", VIPIR_RATES.get(protocol, {}).get(gib), "/s"))
    if protocol == "onion":
        figures.append(("GPIR", GPIR_RATES.get(batch, {}).get(gib), "/s"))
    return ", ".join(f"{paper} {figure:g} {unit}" for paper, figure, unit in figures if figure)
