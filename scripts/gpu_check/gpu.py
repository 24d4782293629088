"""Reads the name of the GPU, and its clocks, power and memory over time, from nvidia-smi."""

import os
import subprocess
import threading
import time

FIGURES = {"sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem", "watts": "power.draw", "celsius": "temperature.gpu",
           "memory_mib": "memory.used"}
PERIOD = 1  # seconds between two readings


def machine():
    """Returns the name, memory and driver of the GPU as text, or "unknown"."""
    try:
        return subprocess.run([*asked("name", "memory.total", "driver_version"), "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=10, check=False).stdout.strip() or "unknown"
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def asked(*fields):
    """Returns the command that queries `fields` of the used GPU, which is the first one that programs see."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    return ["nvidia-smi", f"--id={first}", f"--query-gpu={','.join(fields)}"]


class Watch:
    """A thread that reads clocks, power, temperature and memory. Without nvidia-smi, it has no readings."""

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
        """Returns the least, the mean and the most of each figure since `start`."""
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
    """Returns the number in a word, or None for an unknown value, such as [N/A]."""
    try:
        return float(word)
    except ValueError:
        return None
