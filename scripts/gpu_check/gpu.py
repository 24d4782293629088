"""Reads nvidia-smi: which GPU there is, and its clocks, power and memory while something runs."""

import os
import subprocess
import threading
import time

FIGURES = {"sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem", "watts": "power.draw", "celsius": "temperature.gpu",
           "memory_mib": "memory.used"}
PERIOD = 1  # seconds from one look to the next


def machine():
    """Name, memory and driver."""
    try:
        return subprocess.run([*asked("name", "memory.total", "driver_version"), "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=10, check=False).stdout.strip() or "unknown"
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def asked(*fields):
    """Returns the command for the GPU that is used: the first of those that programs see."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    return ["nvidia-smi", f"--id={first}", f"--query-gpu={','.join(fields)}"]


class Watch:
    """Looks at clocks, power, heat and memory all the time; without nvidia-smi it has seen nothing."""

    def __init__(self):
        self.seen = []
        command = [*asked(*FIGURES.values()), "--format=csv,noheader,nounits", f"--loop={PERIOD}"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
            return
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        for line in self.process.stdout:
            figures = [number(word) for word in line.split(",")]
            if len(figures) == len(FIGURES):
                self.seen.append((time.monotonic(), dict(zip(FIGURES, figures))))

    def since(self, start):
        """Returns the least, the mean and the most of each figure from then on."""
        looks = [figures for at, figures in list(self.seen) if at >= start]
        summary = {}
        for name in FIGURES:
            values = [figures[name] for figures in looks if figures[name] is not None]
            if values:
                summary[name] = {"least": min(values), "mean": round(sum(values) / len(values), 1), "most": max(values)}
        return summary

    def end(self):
        if self.process:
            self.process.kill()


def number(word):
    """Returns a number; None for an unknown value, such as [N/A]."""
    try:
        return float(word)
    except ValueError:
        return None
