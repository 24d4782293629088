"""A PostgreSQL server for tests, on loopback and on a socket, in a temporary folder."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from certificates import Authority
from harness import free_port


class Postgres:
    """A server that lets everyone in as any user over the socket, and requires a password over loopback, with SCRAM."""

    PASSWORD = "pass/word@1"

    def __init__(self):
        self.bin = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="hushdb-postgres-"))
        self.dir.chmod(0o711)
        self.port = free_port()
        self.data = self.dir / "data"
        self.data.mkdir()
        # PostgreSQL refuses to run as root.
        self.who = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            self.who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(self.data, entry.pw_uid, entry.pw_gid)
        self.authority = Authority(self.dir, "authority")
        self.cert, self.key = self.authority.sign("server", alternatives="DNS:localhost")
        if self.who:
            os.chown(self.key, self.who["user"], self.who["group"])

    def __enter__(self):
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        (self.data / "pg_hba.conf").write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.data, "fsync": "off", "wal_level": "logical",
                    "ssl": "on", "ssl_cert_file": self.cert, "ssl_key_file": self.key,
                    # The settings differ from those that a build sets.
                    "datestyle": "SQL, DMY", "timezone": "Asia/Kathmandu", "bytea_output": "escape", "password_encryption": "scram-sha-256"}
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self.run("pg_ctl", "-D", self.data, "-l", self.data / "log", "-w", "start")
        return self

    def restart(self):
        """Ends the server as a crash would, and starts it again."""
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        self.run("pg_ctl", "-D", self.data, "-l", self.data / "log", "-w", "start")

    def __exit__(self, *_):
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, program, *args):
        done = subprocess.run([self.bin / program, *map(str, args)], cwd=self.data, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **self.who)
        assert done.returncode == 0, done.stderr

    def sql(self, text, database="postgres"):
        """Runs statements, and returns the result of the last one as text."""
        command = [self.bin / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.data, "-p", str(self.port),
                   "-U", "postgres", "-d", database]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def socket(self, database="postgres", user="postgres"):
        """Returns a URL for the socket."""
        folder = str(self.data).replace("/", "%2F")
        return f"postgres://{user}@{folder}:{self.port}/{database}"

    def url(self, user="reader", host="127.0.0.1", database="postgres", **options):
        """Returns a URL for loopback, without a password."""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgres://{user}@{host}:{self.port}/{database}" + (f"?{query}" if query else "")
