"""A private AWS on loopback for the deploy tests: MiniStack, with TLS and with IAM enforced.

TLS, because the bucket's policy refuses everything else; IAM (`AUTH=true`), because a permission
that nothing enforces is not tested. Functions run on MiniStack's own interpreter, whatever the
template's Runtime, so artifacts are built for that one (`MiniStack.python`).
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-ministack"
HOST = "127.0.0.1"
REGION = "us-east-1"
START_SECONDS = 60


class MiniStack:
    """Runs for the length of a `with` block; `environment` points any AWS client at it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        self.certificate = folder / "certificate.pem"
        self.python = subprocess.run(
            [VENV / "bin" / "python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        self.environment = {
            **_inherited(),
            "AWS_ENDPOINT_URL": f"https://{HOST}:{self.port}",
            "AWS_CA_BUNDLE": str(self.certificate),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,  # the person's own profile has no say here
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "SAM_CLI_TELEMETRY": "0",
            "SAM_CLI_POLL_DELAY": "0.3",
            "PYTHON_VERSION": self.python,
        }

    def __enter__(self) -> MiniStack:
        key = self.folder / "key.pem"
        _write_certificate(self.certificate, key)
        self._log = (self.folder / "ministack.log").open("w")
        temporary = self.folder / "tmp"
        temporary.mkdir()
        self._process = subprocess.Popen(
            [VENV / "bin" / "ministack"],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its function processes end with it
            env={
                **_inherited(),
                "AUTH": "true",
                "BIND_HOST": HOST,
                "MINISTACK_HOST": HOST,
                "GATEWAY_PORT": str(self.port),
                "USE_SSL": "1",
                "MINISTACK_SSL_CERT": str(self.certificate),
                "MINISTACK_SSL_KEY": str(key),
                "AWS_CA_BUNDLE": str(self.certificate),  # handed on to the functions
                "IOT_MTLS_ENABLED": "0",
                "SFTP_ENABLED": "0",
                "S3_PERSIST": "1",
                "S3_DATA_DIR": str(self.folder / "s3"),
                "TMPDIR": str(temporary),
            },
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for force in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(self._process.pid, force)
                self._process.wait(timeout=10)
        self._log.close()

    def log(self) -> str:
        """What the service has printed, the functions' errors included."""
        return (self.folder / "ministack.log").read_text()

    def _wait_until_ready(self) -> None:
        trust = ssl.create_default_context(cafile=str(self.certificate))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                address = f"https://{HOST}:{self.port}/_ministack/health"
                with urllib.request.urlopen(address, timeout=5, context=trust):
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"MiniStack did not start in {START_SECONDS} s:\n{self.log()[-3000:]}")


def _inherited() -> dict[str, str]:
    """The variables that concern any program: none of AWS, none of the product."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _write_certificate(certificate: Path, key: Path) -> None:
    """A self-signed certificate for 127.0.0.1, good for a day."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "polarlambda deploy test")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address(HOST)), x509.DNSName("localhost")]
    )
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.touch(mode=0o600)
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
