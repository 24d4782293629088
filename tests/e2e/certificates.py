"""Certificates for tests, made by openssl."""

import subprocess


class Authority:
    """An authority that signs certificates. Its files are in `folder`."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.cert = folder / f"{name}.pem"
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-days", "2", "-keyout", folder / f"{name}.key", "-out", self.cert)

    def sign(self, name, alternatives="DNS:localhost,IP:127.0.0.1", days=2):
        """Signs a certificate for `name`. Returns the paths of the certificate and of its private key."""
        cert, key, request = (self.folder / f"{name}.{end}" for end in ("crt", "key", "csr"))
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-addext", f"subjectAltName={alternatives}", "-keyout", key, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.folder / f"{self.name}.key", "-days", days,
                     "-copy_extensions", "copy", "-out", cert)
        return cert, key

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)
