"""All settings: read from the environment once, here, and checked before anything uses them."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pslite_ext import prophet_profile
from pslite_ext.settings_table import POLICIES, ROLES, TABLE, SettingError
from pslite_ext.trace_settings import check_trace_directory, check_trace_format, trace_steps

__all__ = ["TABLE", "SettingError", "Settings", "markdown", "wanted_van"]

VANS = ("mercury", "zmq")
# Values of DMLC_PS_VAN_TYPE that leave MXNet as upstream built it.
UPSTREAM_VANS = ("", "p3", "ibverbs")
PACKET_BYTES_LEAST = 1024
# A host may lack the default, and does without it; what was asked for must be had.
CONGESTION_UNCHECKED = ("cubic", "system")


def wanted_van(environ: Mapping[str, str]) -> str:
    """The van that the environment asks for; '' leaves MXNet alone."""
    van = environ.get("DMLC_PS_VAN_TYPE", "").strip()
    if van in UPSTREAM_VANS:
        return ""
    if van not in VANS:
        raise SettingError(
            f"DMLC_PS_VAN_TYPE is '{van}'; allowed: {', '.join(VANS)}, or for MXNet's own: unset, "
            "p3, ibverbs"
        )
    return van


def interfaces() -> dict[str, str]:
    """The IPv4 address of every interface that has one."""
    found: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(sock.fileno(), 0x8915, request)  # SIOCGIFADDR
            except OSError:
                continue
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def resolve(name: str, host: str) -> str:
    """An address for a host name or address."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise SettingError(f"{name} is '{host}', which cannot be resolved: {error}") from None


def address_towards(host: str, port: int) -> str:
    """Our own address on the way to `host`: the one that others can reach us at."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((host, port))  # sends nothing
        except OSError as error:
            raise SettingError(
                f"DMLC_PS_ROOT_URI is '{host}', to which there is no route: {error}"
            ) from None
        return str(sock.getsockname()[0])


def check_congestion(name: str) -> None:
    """Tries it: the kernel may have to load it, and may keep it from this user."""
    if name in CONGESTION_UNCHECKED:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
            known = ", ".join(there.read_text().split())
            raise SettingError(
                f"MERCURY_CONGESTION is '{name}', which this host does not let us use "
                f"({error.strerror}); allowed: {known}, system"
            ) from None


@dataclass(frozen=True)
class Settings:
    values: Mapping[str, int | str]
    root_host: str
    host: str
    token: str

    @staticmethod
    def from_environment(environ: Mapping[str, str]) -> Settings:
        """Reads and checks everything; SettingError names the first variable that is wrong."""
        values = {setting.name: setting.read(environ) for setting in TABLE}
        role = values["DMLC_ROLE"]
        if role not in ROLES:
            raise SettingError(f"DMLC_ROLE is '{role}'; allowed: {', '.join(ROLES)}")
        policy = values["MERCURY_POLICY"]
        if policy not in POLICIES:
            raise SettingError(f"MERCURY_POLICY is '{policy}'; allowed: {', '.join(POLICIES)}")
        packet = int(values["MERCURY_PACKET_BYTES"])
        if 0 < packet < PACKET_BYTES_LEAST:
            raise SettingError(
                f"MERCURY_PACKET_BYTES is '{packet}'; allowed: 0, or at least {PACKET_BYTES_LEAST}"
            )
        interval, timeout = (
            int(values[f"MERCURY_HEARTBEAT_{name}_MS"]) for name in ("INTERVAL", "TIMEOUT")
        )
        if timeout < 3 * interval:
            raise SettingError(
                f"MERCURY_HEARTBEAT_TIMEOUT_MS is '{timeout}'; allowed: at least three times "
                f"MERCURY_HEARTBEAT_INTERVAL_MS, which is {interval}"
            )
        check_trace_format(str(values["MERCURY_TRACE_FORMAT"]))
        trace_steps(str(values["MERCURY_TRACE_STEPS"]))
        check_trace_directory(str(values["MERCURY_TRACE_DIR"]))
        check_congestion(str(values["MERCURY_CONGESTION"]))
        root = resolve("DMLC_PS_ROOT_URI", str(values["DMLC_PS_ROOT_URI"]))
        return Settings(values, root, own_host(values, root), read_token(values))

    @property
    def prophet_profile(self) -> str:
        """The file of a worker's profile; "" where there is none."""
        wanted = self.values["DMLC_ROLE"] == "worker" and self.values["MERCURY_POLICY"] == "prophet"
        return str(self.values["MERCURY_PROPHET_PROFILE"]) if wanted else ""

    def options(self) -> dict[str, int | str]:
        """What `pslite_ext._core.start` takes."""
        options = {s.option: self.values[s.name] for s in TABLE if s.option}
        for name in ("start_warn_ms", "start_timeout_ms"):
            options[name] = int(options[name]) * 1000
        options["stall_warn_ms"] = int(options["stall_warn_ms"]) * 1000
        options["asynchronous"] = 0
        options["trace_from_step"], options["trace_to_step"] = trace_steps(
            str(self.values["MERCURY_TRACE_STEPS"])
        )
        options["trace_binary"] = int(self.values["MERCURY_TRACE_FORMAT"] == "binary")
        options["prophet_profile"] = prophet_profile.read(self.prophet_profile)
        options["packets"] = int(self.values["DMLC_PS_VAN_TYPE"] == "mercury")
        options.update(root_host=self.root_host, host=self.host, token=self.token)
        if options["role"] == "scheduler":
            options["port"] = options["root_port"]
        return options


def own_host(values: Mapping[str, int | str], root: str) -> str:
    """The address to listen on, which is also what others are told."""
    if values["DMLC_ROLE"] == "scheduler":
        every = "::" if ":" in root else "0.0.0.0"
        return every if values["DMLC_USE_KUBERNETES"] else root
    if values["DMLC_NODE_HOST"]:
        return resolve("DMLC_NODE_HOST", str(values["DMLC_NODE_HOST"]))
    interface = str(values["DMLC_INTERFACE"])
    if interface:
        known = interfaces()
        if interface not in known:
            there = ", ".join(f"{name} ({address})" for name, address in known.items())
            raise SettingError(f"DMLC_INTERFACE is '{interface}'; allowed: {there}")
        return known[interface]
    return address_towards(root, int(values["DMLC_PS_ROOT_PORT"]))


def read_token(values: Mapping[str, int | str]) -> str:
    if values["MERCURY_JOB_TOKEN"] or not values["MERCURY_JOB_TOKEN_FILE"]:
        return str(values["MERCURY_JOB_TOKEN"])
    path = Path(str(values["MERCURY_JOB_TOKEN_FILE"]))
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise SettingError(f"MERCURY_JOB_TOKEN_FILE is '{path}': {error.strerror}") from None
    if not token:
        raise SettingError(f"MERCURY_JOB_TOKEN_FILE is '{path}', which is empty")
    return token


def markdown() -> str:
    """docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "All are environment variables, read once when a process joins a job. A value that is not",
        "allowed ends the process with one line that names the variable and what it may hold.",
        "`mercury settings --markdown` prints this from `pslite_ext/config.py`; a test holds the",
        "two equal.",
        "",
        "| variable | default | allowed | meaning |",
        "|---|---|---|---|",
    ]
    for setting in TABLE:
        default = "required" if setting.default is None else setting.default
        shown = f"`{default}`" if default not in ("", "required") else default or "unset"
        lines.append(f"| `{setting.name}` | {shown} | {setting.allowed} | {setting.meaning} |")
    return "\n".join(lines) + "\n"
