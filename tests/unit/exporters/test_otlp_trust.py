"""TLS certificates and advice on failure."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc
import pytest

from pandaeval_collector.exporters._otlp.transport import SignalTarget, Trust, cure, target
from support.certificates import make_certificates

AUTHORITY = "set exporters.otlp.certificate to the file of the sink's authority"
NO_TLS = "the sink does not speak TLS: write http:// before exporters.otlp.endpoint, or insecure: true"
MUTUAL = "the sink may demand a certificate: set exporters.otlp.client_certificate and client_key to one it trusts"
TLS = "if the sink speaks TLS, write https:// before exporters.otlp.endpoint, or insecure: false"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


def handshake(client: ssl.SSLContext, files: Path, demands: bool) -> str:
    """Return the client's name after an in-memory handshake."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files / "server.pem", files / "server.key")
    if demands:
        server.load_verify_locations(files / "ca.pem")
        server.verify_mode = ssl.CERT_REQUIRED
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(back, there, server_hostname="localhost"),
        server.wrap_bio(there, back, server_side=True),
    ]
    for end in (*ends, *ends):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = ends[1].getpeercert()
    subject = dict(pair for pairs in (shown or {}).get("subject", ()) for pair in pairs)  # type: ignore[union-attr, misc]
    return subject.get("commonName", "")


class TestTrust:
    def test_the_configured_authority_is_trusted_and_the_system_authorities_reject_the_sink(self, files: Path) -> None:
        assert handshake(Trust(str(files / "ca.pem")).for_http(), files, demands=False) == ""
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(Trust().for_http(), files, demands=False)

    def test_the_client_certificate_is_presented_if_the_sink_requires_it(self, files: Path) -> None:
        ours = Trust(*(str(files / name) for name in ("ca.pem", "client.pem", "client.key")))
        assert handshake(ours.for_http(), files, demands=True) == "client"
        with pytest.raises(ssl.SSLError):
            handshake(Trust(str(files / "ca.pem")).for_http(), files, demands=True)

    def test_a_key_of_another_certificate_is_an_error_that_names_all_files(self, files: Path) -> None:
        named = [str(files / name) for name in ("ca.pem", "client.pem", "server.key")]
        with pytest.raises(ValueError, match="KEY_VALUES_MISMATCH") as refused:
            Trust(*named).verify()
        assert str(refused.value).startswith(f"cannot use {', '.join(named)}: ")

    def test_a_missing_file_is_an_error_that_names_only_the_configured_file(self, tmp_path: Path) -> None:
        missing = str(tmp_path / "none.pem")
        with pytest.raises(ValueError, match="No such file") as refused:
            Trust(missing).verify()
        assert str(refused.value).startswith(f"cannot use {missing}: ")

    def test_valid_files_pass_verification(self, files: Path) -> None:
        Trust().verify()
        Trust(*(str(files / name) for name in ("ca.pem", "client.pem", "client.key"))).verify()

    def test_an_encrypted_key_is_rejected_without_a_password_prompt(
        self, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from cryptography.hazmat.primitives import serialization as form

        key = form.load_pem_private_key((files / "client.key").read_bytes(), None)
        locked = tmp_path / "locked.key"
        encryption = form.BestAvailableEncryption(b"secret")
        locked.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption))
        with pytest.raises(ValueError, match="cannot use"):
            Trust(str(files / "ca.pem"), str(files / "client.pem"), str(locked)).verify()
        given = []
        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda _, *files, password: given.append(password))
        Trust(None, "a certificate", "its key").for_http()
        assert given == [""], "without a password, OpenSSL would prompt on the terminal"

    def test_grpc_credentials_contain_the_whole_files(self, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        given = []
        monkeypatch.setattr(grpc, "ssl_channel_credentials", lambda *read: given.append(read))
        Trust(str(files / "ca.pem")).for_grpc()
        Trust(str(files / "ca.pem"), str(files / "client.pem"), str(files / "client.key")).for_grpc()
        Trust("").for_grpc()
        authority, own, key = ((files / name).read_bytes() for name in ("ca.pem", "client.pem", "client.key"))
        assert given == [(authority, None, None), (authority, key, own), (None, None, None)]

    @pytest.mark.parametrize("missing", range(3))
    def test_any_missing_file_is_an_error_for_grpc(self, files: Path, tmp_path: Path, missing: int) -> None:
        named = [str(files / name) for name in ("ca.pem", "client.pem", "client.key")]
        Trust(*named).for_grpc()
        named[missing] = str(tmp_path / "none.pem")
        with pytest.raises(FileNotFoundError):
            Trust(*named).for_grpc()


@pytest.mark.parametrize(
    ("details", "secure", "advice"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", True, AUTHORITY),
        ("certificate verify failed: self signed", True, AUTHORITY),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", True, NO_TLS),
        ("record layer failure", True, NO_TLS),
        ("tlsv13 alert certificate required", True, MUTUAL),
        ("unknown ca", True, MUTUAL),
        ("sslv3 alert handshake failure", True, MUTUAL),
        ("Socket closed", True, MUTUAL),
        ("connection reset by peer", True, MUTUAL),
        ("Server disconnected without sending a response", True, MUTUAL),
        ("ReadError: ", True, MUTUAL),
        ("endpoint closing", True, ""),
        ("connection refused", True, ""),
        ("Socket closed", False, TLS),
        ("connection reset by peer", False, TLS),
        ("Endpoint closing", False, TLS),
        ("Server disconnected without sending a response", False, TLS),
        ("ReadError: ", False, TLS),
        ("[SSL: CERTIFICATE_VERIFY_FAILED]", False, ""),
        ("", False, ""),
    ],
)
def test_a_tls_error_has_advice_for_its_cause(details: str, secure: bool, advice: str) -> None:
    assert cure(details, secure) == (f" - {advice}" if advice else "")


@pytest.mark.parametrize(
    ("endpoint", "protocol", "expected"),
    [
        ("http://sink", "grpc", SignalTarget("sink", 80, False, "http://sink:80/v1/logs")),
        ("https://sink/", "grpc", SignalTarget("sink", 443, True, "https://sink:443/v1/logs")),
        ("https://sink:9/a/b/", "http/protobuf", SignalTarget("sink", 9, True, "https://sink:9/a/b/v1/logs")),
        ("http://[::1]/a", "http/protobuf", SignalTarget("::1", 80, False, "http://[::1]:80/a/v1/logs")),
        ("sink", "grpc", SignalTarget("sink", 4317, False, "http://sink:4317/v1/logs")),
        ("sink", "http/protobuf", SignalTarget("sink", 4318, False, "http://sink:4318/v1/logs")),
        ("sink/base", "http/protobuf", SignalTarget("sink", 4318, False, "http://sink:4318/base/v1/logs")),
    ],
)
def test_common_forms_of_an_endpoint_are_parsed(endpoint: str, protocol: str, expected: SignalTarget) -> None:
    assert target(endpoint, "logs", protocol, True) == expected


@pytest.mark.parametrize(
    ("endpoint", "header"),
    [
        ("http://sink", ()),
        ("http://me@sink", (("authorization", "Basic bWU6"),)),
        ("http://m%40e:p%2Fw@sink", (("authorization", "Basic bUBlOnAvdw=="),)),
        ("http://:pw@sink", (("authorization", "Basic OnB3"),)),
    ],
)
def test_a_user_in_the_endpoint_becomes_an_authorization_header(
    endpoint: str, header: tuple[tuple[str, str], ...]
) -> None:
    assert target(endpoint, "logs", "grpc", True).headers == header


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", ()),
        ("a", ()),
        ("a=", (("a", ""),)),
        ("A=b,,c", (("a", "b"),)),
        (" X%2DKey = v%20w , b=1=2", (("x-key", "v w"), ("b", "1=2"))),
        ("c=d,a=b", (("c", "d"), ("a", "b"))),
    ],
)
def test_headers_are_parsed_from_comma_separated_pairs(text: str, headers: tuple[tuple[str, str], ...]) -> None:
    assert target("sink", "logs", "grpc", True, headers=text).headers == headers
