"""Tests of TLS: the server's certificate, the client's trust, and the view of an eavesdropper."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.parse

from certificates import Authority
from harness import BINARY, free_port
from keyed import KeyedTest, values
from proxy import Proxy
from wiretap import Wiretap

RECORDS = values(300, 100)


def port_of(url):
    return urllib.parse.urlsplit(url).port


class TlsTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.dir, "authority")
        self.cert, self.key = self.authority.sign("server")
        self.trust = ["--ca-cert", self.authority.cert]

    def tls(self, *args):
        return ["--tls-cert", self.cert, "--tls-key", self.key, *args]

    def shown(self, url, trusted=None):
        """Returns the certificate of a server, after checking it."""
        context = ssl.create_default_context(cafile=trusted or self.authority.cert)
        with socket.create_connection(("127.0.0.1", port_of(url)), timeout=10) as tcp:
            with context.wrap_socket(tcp, server_hostname="localhost") as stream:
                return stream.getpeercert()["subject"][0][0][1]

    def look_up(self, url, key, *args):
        result = self.hushdb("get", url, key, "--json", *(args or self.trust))
        return result.returncode, result.stdout, result.stderr


class Http2(TlsTest):
    def curl(self, url, *args, version="--http2"):
        """Sends a request with curl, and returns (status, HTTP version, body)."""
        out = self.dir / "body"
        command = ["curl", "-sS", version, "--cacert", self.authority.cert, "-o", out, "-w", "%{http_code} %{http_version}", *args, url]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        status, spoken = run.stdout.split()
        return int(status), spoken, out.read_bytes()

    def test_clients_that_offer_it_get_it(self):
        table = self.table(RECORDS, "colpack")
        with self.serve(table, args=self.tls()) as (url, _):
            url = f"https://localhost:{port_of(url)}"
            for version, spoken in (("--http2", "2"), ("--http1.1", "1.1")):
                self.assertEqual(self.curl(url + "/v1/tables", version=version)[:2], (200, spoken))
                # HTTP/2 sends the host name as :authority.
                other = self.curl(url + "/v1/tables", "-H", "Host: evil.example", version=version)
                self.assertEqual((other[0], json.loads(other[2])["code"]), (421, "misdirected"))
            with Proxy(url) as proxy:
                self.assertEqual(self.get(proxy.url, "k1")[1][0]["value"], RECORDS["k1"])
                [(path, body)] = [(path, body) for method, path, body in proxy.requests if method == "POST"]
            query = self.dir / "query"
            query.write_bytes(body)
            post = ["-H", "Content-Type: application/x-protobuf", "--data-binary", f"@{query}"]
            answers = [self.curl(url + path, *post, version=version) for version in ("--http2", "--http1.1")]
            self.assertEqual([answer[0] for answer in answers], [200, 200])
            # Equal queries have equal answers.
            self.assertEqual(answers[0][2], answers[1][2])
            # A single connection carries many requests at once.
            out = ["-o", "/dev/null"] * 40
            many = [url + path] * 39
            command = ["curl", "-sS", "--http2", "--parallel", "--cacert", self.authority.cert, "-w", "%{http_code} %{num_connects}\n",
                       *post, *out, *many, url + path]
            run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
            lines = [line.split() for line in run.stdout.splitlines()]
            self.assertEqual({status for status, _ in lines}, {"200"}, run.stderr)
            self.assertLess(sum(int(connects) for _, connects in lines), 10)


    def test_a_client_that_never_says_farewell_does_not_hold_up_the_end(self):
        context = ssl.create_default_context(cafile=self.authority.cert)
        context.set_alpn_protocols(["h2"])
        with self.serve(self.table(RECORDS, "frodo"), args=self.tls()) as (url, process):
            with socket.create_connection(("127.0.0.1", port_of(url)), timeout=20) as tcp:
                with context.wrap_socket(tcp, server_hostname="localhost") as stream:
                    self.assertEqual(stream.selected_alpn_protocol(), "h2")
                    stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
                    stream.recv(1)
                    process.send_signal(signal.SIGTERM)
                    # The client answers none of the server's messages.
                    self.assertEqual(process.wait(15), 0)


class Admin(TlsTest):
    def test_admin_endpoints_that_others_reach_have_tls_and_ask_for_tokens(self):
        table, tokens, port = self.table(RECORDS, "frodo"), self.dir / "tokens.json", free_port()
        made = self.hushdb("token", "create", "--tokens", tokens, "--name", "root", "--scope", "admin")
        self.assertEqual(made.returncode, 0, made.stderr)
        token = made.stdout.split()[0]
        listen = ["--listen-admin", f"0.0.0.0:{port}"]
        for lacking in (listen, self.tls(*listen), ["--tokens", tokens, *listen]):
            line = self.fails("serve", table, "--listen", "127.0.0.1:0", *lacking)
            self.assertIn("where tables are built and removed: add --tokens and --tls-cert", line)
        with self.serve(table, args=self.tls("--tokens", tokens, "--data", self.dir / "data", *listen)):
            ask = ["admin", "--url", f"https://localhost:{port}", "tables"]
            self.assertIn("asks for a token", self.hushdb(*ask, *self.trust).stderr)
            self.assertIn("certificate", self.hushdb(*ask, "--token", token).stderr)
            self.assertEqual(self.hushdb(*ask, *self.trust, "--token", token).returncode, 0)
            plain = self.hushdb("admin", "--url", f"http://localhost:{port}", "tables")
            self.assertEqual(plain.returncode, 2, plain.stdout)


class Serving(TlsTest):
    def test_look_ups_over_tls_have_one_size(self):
        for protocol in ("colpack", "simple"):
            table = self.table(RECORDS, protocol, name=protocol)
            with self.serve(table, args=self.tls()) as (url, _), Wiretap(("127.0.0.1", port_of(url))) as tap:
                self.assertTrue(url.startswith("https://"))
                tapped = f"https://localhost:{tap.port}"
                self.ask(tapped, *self.trust, "k0")
                seen = set()
                for key in ("k0", "k199", "absent", "", "x" * 4096):
                    tap.take()
                    found, stats = self.ask(tapped, *self.trust, key)
                    self.assertEqual(found, [RECORDS.get(key)])
                    up, down = tap.take()
                    # Signatures in the handshake vary in length by a few bytes.
                    seen.add((stats["bytes_up"], stats["bytes_down"], up, round(down / 16)))
                    self.assertGreater(up, stats["bytes_up"])
                self.assertLessEqual(len({one[:3] for one in seen}), 1, seen)
                downs = [one[3] for one in seen]
                self.assertLessEqual(max(downs) - min(downs), 1, seen)

    def test_whom_clients_trust(self):
        table = self.table(RECORDS, "simple")
        stranger = Authority(self.dir, "stranger")
        with self.serve(table, args=self.tls()) as (url, _):
            local = f"https://localhost:{port_of(url)}"
            self.assertEqual(self.look_up(local, "k1")[0], 0)
            self.assertEqual(self.look_up(url, "k1")[0], 0)
            self.assertEqual(self.look_up(local, "k1", "--insecure")[0], 0)
            for args in (["--no-cache"], ["--ca-cert", stranger.cert]):
                code, _, error = self.look_up(local, "k1", *args)
                self.assertEqual(code, 2)
                self.assertIn("no secure connection", error)
                self.assertIn("--ca-cert", error)
            # A client without TLS is refused, and so is --insecure to another machine.
            self.assertIn("https", self.look_up(f"http://localhost:{port_of(url)}", "k1")[2])
            self.assertIn("--insecure is for", self.look_up("https://hush.example", "k1", "--insecure")[2])
            self.assertIn("no certificate", self.look_up(local, "k1", "--ca-cert", self.key)[2])
            self.assertIn("cannot read", self.look_up(local, "k1", "--ca-cert", self.dir / "none")[2])

    def test_a_certificate_that_nobody_has_signed(self):
        """Uses a self-signed certificate, made as in docs/how-to/tls.md."""
        cert, key = self.dir / "cert.pem", self.dir / "key.pem"
        Authority.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30,
                          "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                          "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", cert)
        with self.serve(self.table(RECORDS, "simple"), args=["--tls-cert", cert, "--tls-key", key]) as (url, _):
            self.assertEqual(self.look_up(f"https://localhost:{port_of(url)}", "k1", "--ca-cert", cert)[0], 0)

    def test_a_certificate_of_an_authority_is_no_servers(self):
        """Uses a certificate as openssl makes it by default."""
        cert, key = self.dir / "cert.pem", self.dir / "key.pem"
        Authority.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30,
                          "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert)
        with self.serve(self.table(RECORDS, "simple"), args=["--tls-cert", cert, "--tls-key", key]) as (url, _):
            local = f"https://localhost:{port_of(url)}"
            for error in (self.look_up(local, "k1", "--ca-cert", cert)[2],
                          self.fails("admin", "--url", local, "--ca-cert", cert, "tables")):
                self.assertIn("the server's own certificate is that of an authority", error)
                self.assertIn("basicConstraints=critical,CA:FALSE", error)
                self.assertNotIn("CaUsedAsEndEntity", error)

    def test_clients_with_certificates(self):
        table = self.table(RECORDS, "simple")
        clients = Authority(self.dir, "clients")
        cert, key = clients.sign("client")
        health = f"127.0.0.1:{free_port()}"
        args = self.tls("--tls-client-ca", clients.cert, "--listen-health", health)
        with self.serve(table, args=args, health=f"http://{health}") as (url, _):
            local = f"https://localhost:{port_of(url)}"
            mine = ["--client-cert", cert, "--client-key", key]
            self.assertEqual(self.look_up(local, "k1", *self.trust, *mine)[0], 0)
            code, _, error = self.look_up(local, "k1", *self.trust)
            self.assertEqual(code, 2)
            self.assertIn("--client-cert", error)
            other = self.authority.sign("other")
            self.assertEqual(self.look_up(local, "k1", *self.trust, "--client-cert", other[0], "--client-key", other[1])[0], 2)

    def test_certificates_are_read_again(self):
        table = self.table(RECORDS, "simple")
        log = {**self.env, "RUST_LOG": "info"}
        with self.serve(table, args=self.tls(), env=log) as (url, process):
            self.assertEqual(self.shown(url), "server")
            context = ssl.create_default_context(cafile=self.authority.cert)
            tcp = socket.create_connection(("127.0.0.1", port_of(url)), timeout=10)
            with context.wrap_socket(tcp, server_hostname="localhost") as open_since:
                cert, key = self.authority.sign("renewed")
                # A certificate without its key is refused, and the old pair stays.
                shutil.copy(cert, self.cert)
                os.kill(process.pid, signal.SIGHUP)
                time.sleep(1.5)
                self.assertEqual(self.shown(url), "server")
                shutil.copy(key, self.key)
                self.wait_for("the files were not read again", lambda: self.shown(url) == "renewed")
                open_since.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertIn(b"200 OK", open_since.recv(1000))
            process.terminate()
            said = process.stderr.read()
            self.assertNotIn("\x1b", said)  # no colours without a terminal
            self.assertIn("TLS certificates: cannot use the new files, and keep the current ones", said)
            self.assertIn("does not go with the certificate", said)
            self.assertIn("TLS certificates: read new files, and use them from now on", said)

    def test_no_session_links_connections(self):
        with self.serve(self.table(RECORDS, "simple"), args=self.tls()) as (url, _):
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = ssl.create_default_context(cafile=self.authority.cert)
                context.minimum_version = context.maximum_version = version
                session = None
                for _ in range(2):
                    with socket.create_connection(("127.0.0.1", port_of(url)), timeout=10) as tcp:
                        with context.wrap_socket(tcp, server_hostname="localhost", session=session) as stream:
                            stream.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                            self.assertIn(b"200 OK", stream.recv(1000))
                            self.assertFalse(stream.session_reused)
                            session = stream.session

    def test_handshakes_that_stall_keep_nobody_out(self):
        with self.serve(self.table(RECORDS, "simple"), args=self.tls()) as (url, _):
            silent = [socket.create_connection(("127.0.0.1", port_of(url)), timeout=10) for _ in range(400)]
            for number, tcp in enumerate(silent):
                try:
                    tcp.sendall((b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n")[number % 3])
                except OSError:
                    pass  # The server has closed the connection to free its slot.
            local = f"https://localhost:{port_of(url)}"
            self.assertEqual(self.look_up(local, "k1")[0], 0)
            for tcp in silent:
                tcp.close()
            self.assertEqual(self.look_up(local, "k2")[0], 0)


class BadFiles(TlsTest):
    def refused(self, *args):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        result = subprocess.run([BINARY, "serve", "none", "--listen", f"127.0.0.1:{port}", *map(str, args)], capture_output=True, text=True,
                                timeout=30, env=self.env)
        self.assertEqual(result.returncode, 2, result.stderr)
        return result.stderr

    def test_errors_say_what_is_wrong(self):
        other = self.authority.sign("other")
        empty, long = self.dir / "empty", self.dir / "long"
        empty.write_text("")
        long.write_bytes(b"x" * (2 << 20))
        for args, words in (
            (["--tls-cert", self.cert], ["--tls-key"]),
            (["--tls-client-ca", self.cert], ["--tls-cert"]),
            (["--tls-cert", self.dir / "none", "--tls-key", self.key], ["no TLS: cannot read", "none"]),
            (["--tls-cert", empty, "--tls-key", self.key], ["empty", "BEGIN CERTIFICATE"]),
            (["--tls-cert", self.cert, "--tls-key", empty], ["empty", "BEGIN PRIVATE KEY"]),
            (["--tls-cert", self.cert, "--tls-key", self.cert], ["server.crt", "BEGIN PRIVATE KEY"]),
            (["--tls-cert", self.cert, "--tls-key", other[1]], ["other.key", "does not go with", "server.crt"]),
            (["--tls-cert", long, "--tls-key", self.key], ["long", "more than 1048576 bytes"]),
            (self.tls("--tls-client-ca", empty), ["empty", "BEGIN CERTIFICATE"]),
        ):
            with self.subTest(args=args):
                said = self.refused(*args)
                for word in words:
                    self.assertIn(word, said)
