"""Builds, serves and looks up in a table of each kind of protocol, with the program and the emulator that the arguments are."""

import pathlib
import subprocess
import sys
import tempfile

HUSHDB = sys.argv[1:]
PROTOCOLS = ["colpack", "simple", "hybrid", "onion", "tfhe"]
ROWS = 3000


def main() -> None:
    """Compares the answers of each protocol with the records."""
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder, "people.csv")
        records.write_text("email,name\n" + "".join(f"u{i}@example.org,Name {i * 7919 % 10007}\n" for i in range(ROWS)))
        for protocol in PROTOCOLS:
            table = pathlib.Path(folder, protocol)
            subprocess.run([*HUSHDB, "build", records, "--key", "email", "--protocol", protocol, "--out", table], check=True)
            server = subprocess.Popen([*HUSHDB, "serve", table, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
            try:
                url = next(word for line in server.stderr for word in line.split() if word.startswith("http://"))
                for wanted in (0, 1234, ROWS - 1):
                    get = [*HUSHDB, "get", url, f"u{wanted}@example.org"]
                    found = subprocess.run(get, capture_output=True, text=True)
                    if found.stdout.strip() != f"Name {wanted * 7919 % 10007}":
                        sys.exit(f"{protocol}: record {wanted} is {found.stdout!r}: {found.stderr}")
                missing = subprocess.run([*HUSHDB, "get", url, "nobody@example.org"], capture_output=True)
                if missing.returncode != 1:
                    sys.exit(f"{protocol}: a key that is not in the table ends with status {missing.returncode}")
            finally:
                server.terminate()
                server.wait()
            print(f"{protocol}: built, served, looked up")


if __name__ == "__main__":
    main()
