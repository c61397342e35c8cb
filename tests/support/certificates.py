"""Test certificates: an authority, a server and a client."""

from __future__ import annotations

from pathlib import Path

import trustme


def make_certificates(folder: Path) -> None:
    """Write ``ca.pem``, ``ca.key``, ``server.pem`` and ``client.pem`` for ``localhost``, with keys."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.private_key_pem.write_to_path(folder / "ca.key")
    for name in ("server", "client"):
        issued = authority.issue_cert("localhost", "127.0.0.1", common_name=name)
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        (folder / f"{name}.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
