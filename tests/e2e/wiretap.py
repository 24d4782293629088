"""A TCP proxy that counts bytes, like an eavesdropper on TLS."""

import socket
import threading


class Wiretap:
    """A proxy to an address. `source` replaces the client's address for the server. `bytes` counts the forwarded bytes, up and down."""

    def __init__(self, address, source=None):
        self.address, self.source = address, source
        self.bytes = [0, 0]
        self.connections = []

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(threading.Thread(target=self.serve, args=(client,), daemon=True))
            self.connections[-1].start()

    def serve(self, client):
        with client, socket.create_connection(self.address, source_address=self.source) as server:
            up = threading.Thread(target=self.forward, args=(0, client, server), daemon=True)
            up.start()
            self.forward(1, server, client)
            up.join()

    def forward(self, number, source, sink):
        """Forwards until the source ends, and counts on if the sink is closed: unread bytes were sent all the same."""
        try:
            while data := source.recv(1 << 16):
                self.bytes[number] += len(data)
                self.pass_on(sink, data)
        except OSError:
            pass
        self.pass_on(sink, None)

    @staticmethod
    def pass_on(sink, data):
        try:
            sink.sendall(data) if data else sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def take(self):
        """Waits until all connections have ended, and returns the bytes since the last call."""
        while self.connections:
            self.connections.pop().join(30)
        passed, self.bytes = tuple(self.bytes), [0, 0]
        return passed
