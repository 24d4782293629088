"""A line with a delay and a rate between two network namespaces of Linux, for real TCP: packets go through two TUN devices.

Needs root and /dev/net/tun. There is no queue discipline of the kernel in it, so kernels without netem have it too.
"""

import contextlib
import fcntl
import heapq
import os
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
CLIENT, SERVER = "10.77.0.1", "10.77.0.2"
PACKET = 1 << 16


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class End:
    """An end of the line: a namespace, and the device in it."""

    def __init__(self, name: str, address: str, peer: str):
        self.name = name
        self.file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
        self.free = 0.0  # when the line has sent all that this end gave it
        subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)  # of a run that was killed
        ip("netns", "add", name)
        ip("link", "set", name, "netns", name)
        self.run("ip", "address", "add", address, "peer", peer, "dev", name)
        self.run("ip", "link", "set", name, "up")
        self.run("ip", "link", "set", "lo", "up")
        # Machines have other settings. Reno begins as the default of Linux does, cubic, which namespaces may not choose everywhere.
        settings = ("tcp_congestion_control=reno", "tcp_slow_start_after_idle=1", "tcp_no_metrics_save=1")
        self.run("sysctl", "-qw", *("net.ipv4." + setting for setting in settings))

    def command(self, *words: str) -> list[str]:
        """Returns the command that runs `words` at this end."""
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, *words: str) -> None:
        subprocess.run(self.command(*words), check=True)

    def close(self) -> None:
        ip("netns", "delete", self.name)
        os.close(self.file)


class Line:
    """A line of `rtt` seconds and, each way, `megabits` Mbit/s. Both can be changed while nothing is sent."""

    def __init__(self, client: End, server: End):
        self.client, self.server = client, server
        self.rtt, self.megabits = 0.0, 1e3
        self.is_closed = False

    def carry(self) -> None:
        """Carries packets until the line is closed."""
        other = {self.client.file: self.server, self.server.file: self.client}
        ends = {end.file: end for end in (self.client, self.server)}
        under_way: list[tuple[float, int, int, bytes]] = []
        count = 0
        while not self.is_closed:
            wait = max(0.0, under_way[0][0] - time.perf_counter()) if under_way else 0.05
            for file in select.select(list(ends), [], [], min(wait, 0.05))[0]:
                packet = os.read(file, PACKET)
                end = ends[file]
                end.free = max(end.free, time.perf_counter()) + len(packet) * 8 / (self.megabits * 1e6)
                count += 1
                heapq.heappush(under_way, (end.free + self.rtt / 2, count, other[file].file, packet))
            while under_way and under_way[0][0] <= time.perf_counter():
                _, _, file, packet = heapq.heappop(under_way)
                with contextlib.suppress(BlockingIOError):
                    os.write(file, packet)


@contextlib.contextmanager
def line():
    """Yields a line between two namespaces, and removes them afterwards."""
    with contextlib.ExitStack() as stack:
        ends = []
        for name, address, peer in (("hush-client", CLIENT, SERVER), ("hush-server", SERVER, CLIENT)):
            ends.append(End(name, address, peer))
            stack.callback(ends[-1].close)
        own = Line(*ends)
        carrier = threading.Thread(target=own.carry)
        carrier.start()
        stack.callback(carrier.join)
        stack.callback(setattr, own, "is_closed", True)
        yield own
