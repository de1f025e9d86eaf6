"""Signatures on statements, by the keys and the program of SSH: it is everywhere, kept up, and needs no network.

Sources: ssh-keygen(1), sections -Y sign and ALLOWED SIGNERS; OpenSSH PROTOCOL.sshsig. Keys in a token or an agent work
as they do for logging in.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.names import harmless

NAMESPACE = "gfscore-audit"
"""What is signed: a signature made for anything else, of mail or of git, is refused."""

LARGEST = 1 << 16
"""Bytes of a signature that is read."""


def sign(statement: Path, key: Path | str) -> None:
    """Write the signature of a statement beside it, with the ending .sig; ssh-keygen asks for a passphrase itself.

    `key` is a private key, or a public one whose private key an agent holds. Raises InputError where it cannot sign.
    """
    done = _ssh_keygen("sign", "-q", "-f", str(key), str(statement))
    if done.returncode:
        raise InputError(f"{key}: ssh-keygen did not sign with it ({_said(done)}); name a private key of SSH")


def require_signed(statement: Path, signature: Path, *, allowed_signers: Path | str, identity: str) -> None:
    """Raise InputError unless a statement is signed by somebody whose key a file of allowed signers names."""
    if not Path(allowed_signers).is_file():
        raise InputError(f"{allowed_signers}: no such file; give one in the form of ALLOWED SIGNERS of ssh-keygen(1)")
    done = _ssh_keygen("verify", "-f", str(allowed_signers), "-I", identity, "-s", _read(signature), of=statement)
    if done.returncode:
        raise InputError(f"{signature.name}: no signature of {identity} on {statement.name} ({_said(done)})")


def signing_key(statement: Path, signature: Path) -> str:
    """Words of ssh-keygen on the key that signed a statement, trusted or not; InputError without a signature."""
    done = _ssh_keygen("check-novalidate", "-s", _read(signature), of=statement)
    if done.returncode:
        raise InputError(f"{signature.name}: no signature on {statement.name} ({_said(done)})")
    return harmless(done.stdout.decode(errors="replace").strip())


def _read(signature):
    if signature.stat().st_size > LARGEST:
        raise InputError(f"{signature.name}: larger than {LARGEST:,} bytes; no signature is")
    return str(signature)


def _ssh_keygen(what, *arguments, of=None):
    command = ["ssh-keygen", "-Y", what, "-n", NAMESPACE, *arguments]
    try:
        # A passphrase is asked for on the terminal itself.
        return subprocess.run(command, input=of and of.read_bytes(), capture_output=True, check=False)
    except FileNotFoundError as error:
        raise InputError("ssh-keygen: no such program; install OpenSSH 8.2 or newer, which has it") from error


def _said(done):
    lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
    return harmless(lines[-1])
