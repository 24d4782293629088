"""A TCP proxy that counts what passes, whatever it is: what someone on the way sees of TLS."""

import socket
import threading


class Wiretap:
    """Forwards connections to an address, from `source` if the server is to see another one than the client's; `bytes` is what has
    passed, up and down."""

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
        """To the end of the source, also when the sink has gone: a farewell that nobody reads was sent all the same."""
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
        """Returns the bytes that have passed since the last call, when all connections have ended."""
        while self.connections:
            self.connections.pop().join(30)
        passed, self.bytes = tuple(self.bytes), [0, 0]
        return passed
