"""Who answers at an address: for `mercury doctor --connect`.

It does what a node does that joins (csrc/control/door_handshake.h), and hangs up once both sides
have proved that they know the job token. Who is asked does not count that as a refusal.
"""

from __future__ import annotations

import hmac
import os
import socket
from dataclasses import dataclass

CONTROL_VERSION = 6  # as in csrc/control/envelope.h
PATIENCE_S = 5.0
_CONTROL, _DATA = b"MRCC", b"MRCY"
_CHALLENGE_BYTES, _WELCOME_BYTES = 56, 40
_PREFIX_BYTES, _SAID_BYTES, _NONCE_BYTES = 8, 24, 32
# How ZeroMQ's own protocol begins, which stock MXNet speaks at once.
_ZEROMQ_BYTES = 10


@dataclass(frozen=True)
class Greeting:
    good: bool
    text: str
    job: bytes = b""  # the identity of its job, once it has proved that it knows the token


def ask(host: str, port: int, token: str) -> Greeting:
    """Who listens there; `token` is ours, "" if there is none."""
    try:
        with socket.create_connection((host, port), timeout=PATIENCE_S) as sock:
            return _greet(sock, token)
    except ConnectionRefusedError:
        return Greeting(False, "nothing listens there: is it running, and is this its port?")
    except UnicodeError:  # an empty part, or one too long
        return Greeting(False, "it is not a host name")
    except socket.gaierror as error:
        return Greeting(False, f"the name cannot be resolved: {error.strerror}")
    except socket.timeout:
        advice = "is a firewall in between?"
        return Greeting(False, f"no answer within {PATIENCE_S:g} s: {advice}")
    except OSError as error:
        return Greeting(False, f"it cannot be reached: {error.strerror or error}")


def _greet(sock: socket.socket, token: str) -> Greeting:
    begins = _receive(sock, 4)
    if begins == _CONTROL:
        return _prove(sock, begins + _receive(sock, _CHALLENGE_BYTES - len(begins)), token)
    if begins == _DATA:
        return Greeting(True, "a server of mercury-ps, at its port for packets")
    if not begins:
        return Greeting(False, "it hung up at once, as a node does before it has joined its job")
    begins += _receive(sock, _ZEROMQ_BYTES - len(begins)) if begins[:1] == b"\xff" else b""
    if begins[:1] == b"\xff" and begins[9:10] == b"\x7f":
        return Greeting(
            False,
            "it speaks plain ZeroMQ, as stock MXNet does: install the patched wheel there, and set "
            "DMLC_PS_VAN_TYPE on all nodes alike",
        )
    return Greeting(False, "it does not speak our protocol: another program has this port")


def _prove(sock: socket.socket, challenge: bytes, token: str) -> Greeting:
    if len(challenge) < _CHALLENGE_BYTES:
        return Greeting(False, "it hung up in the middle of its greeting")
    version = int.from_bytes(challenge[4:6], "little")
    if version != CONTROL_VERSION:
        return Greeting(
            False,
            f"it speaks version {version} of the control protocol, this node version "
            f"{CONTROL_VERSION}: install the same version of mercury-ps on all nodes",
        )
    who = "a scheduler" if challenge[6:_PREFIX_BYTES] == b"\x01\0" else "a server or worker"
    said, host_nonce = challenge[:_SAID_BYTES], challenge[_SAID_BYTES:]
    head, nonce = challenge[:6] + b"\0\0", os.urandom(_NONCE_BYTES)
    key = hmac.digest((token or "no job token").encode(), b"mercury door\n", "sha256")

    def proof(purpose: bytes) -> bytes:
        return hmac.digest(key, purpose + host_nonce + nonce + said + head, "sha256")

    sock.sendall(head + nonce + proof(b"door hello"))
    welcome = _receive(sock, _WELCOME_BYTES)
    if not hmac.compare_digest(welcome[_PREFIX_BYTES:], proof(b"door welcome")):
        has = "a different job token" if token else "a job token, but this shell has none"
        return Greeting(False, f"{who} of mercury-ps, which has {has}")
    job = challenge[_PREFIX_BYTES:_SAID_BYTES]
    knows = "which knows the job token" if token else "which has no job token, like this shell"
    return Greeting(True, f"{who} of job {job[:4].hex()}, {knows}", job)


def _receive(sock: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the other end hangs up."""
    data = b""
    try:
        while len(data) < size and (more := sock.recv(size - len(data))):
            data += more
    except ConnectionError:
        pass
    return data
