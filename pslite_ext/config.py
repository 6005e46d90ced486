"""All settings: read from the environment once, here, and checked before anything uses them."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pslite_ext import prophet_profile, settings_together
from pslite_ext.setting import Setting, SettingError
from pslite_ext.setting_names import check_names
from pslite_ext.settings_table import GROUPS, ROLES, TABLE
from pslite_ext.trace_settings import check_trace_directory, check_trace_format, trace_steps
from pslite_ext.wire_words import AUTO

__all__ = [
    "NO_REPLICA",
    "NO_REPLICAS",
    "TABLE",
    "SettingError",
    "Settings",
    "check_names",
    "markdown",
    "under_fabric",
    "wanted_van",
]

VANS = ("mercury", "zmq")
# Values of DMLC_PS_VAN_TYPE that leave MXNet as upstream built it.
UPSTREAM_VANS = ("", "p3", "ibverbs")
TOKEN_SETTINGS = ("MERCURY_JOB_TOKEN", "MERCURY_JOB_TOKEN_FILE")
PACKET_BYTES_LEAST = 1024
# A host may lack the default, and does without it; what was asked for must be had.
CONGESTION_UNCHECKED = ("cubic", "system")
NO_JOB = (
    "DMLC_ROLE is not set, so this process is in no job; start the script with "
    "`mercury launch -n 2 -- python train.py`, or set the variables of docs/operations.md"
)

NO_REPLICA = (
    "DMLC_ROLE is 'replica', which only a job under MLfabric has (docs/fabric.md): set "
    "MERCURY_FABRIC=1 for all, or start the others without --replicas"
)
NO_REPLICAS = (
    "DMLC_NUM_REPLICA is not 0, and only a job under MLfabric has replicas (docs/fabric.md): set "
    "MERCURY_FABRIC=1 for all, or leave out --replicas"
)


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


def under_fabric(environ: Mapping[str, str]) -> bool:
    """Whether MXNet's asynchronous stores are MLfabric's."""
    value = environ.get("MERCURY_FABRIC", "").strip() or "0"
    if value not in ("0", "1"):
        raise SettingError(f"MERCURY_FABRIC is '{value}'; allowed: 0 to 1")
    if value == "1" and wanted_van(environ) != "mercury":
        raise SettingError(
            "MERCURY_FABRIC is 1, which needs the packets of DMLC_PS_VAN_TYPE=mercury, not "
            f"'{wanted_van(environ)}'"
        )
    return value == "1"


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
    except UnicodeError:  # an empty part, or one too long
        raise SettingError(f"{name} is '{host}', which is not a host name") from None


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


def check_words(values: Mapping[str, int | str]) -> None:
    """Against the lists of the core, which has the only ones, if it is there."""
    try:
        from pslite_ext import _core
    except ImportError:
        return
    known = {"MERCURY_POLICY": _core.policies(), "MERCURY_WIRE": [*_core.wires(), AUTO]}
    for name, allowed in known.items():
        if values[name] not in allowed:
            raise SettingError(f"{name} is '{values[name]}'; allowed: {', '.join(allowed)}")


def checked_values(environ: Mapping[str, str]) -> dict[str, int | str]:
    """Of all settings; SettingError names the first that is wrong, wherever the process runs."""
    check_names(environ)
    if not environ.get("DMLC_ROLE", "").strip():
        raise SettingError(NO_JOB)
    values = {setting.name: setting.read(environ) for setting in TABLE}
    role = values["DMLC_ROLE"]
    if role not in ROLES:
        raise SettingError(f"DMLC_ROLE is '{role}'; allowed: {', '.join(ROLES)}")
    check_words(values)
    packet = int(values["MERCURY_PACKET_BYTES"])
    if 0 < packet < PACKET_BYTES_LEAST:
        raise SettingError(
            f"MERCURY_PACKET_BYTES is '{packet}'; allowed: 0, or at least {PACKET_BYTES_LEAST}"
        )
    check_trace_format(str(values["MERCURY_TRACE_FORMAT"]))
    trace_steps(str(values["MERCURY_TRACE_STEPS"]))
    settings_together.check(values)
    return values


@dataclass(frozen=True)
class Settings:
    values: Mapping[str, int | str] = field(repr=False)  # the token is among them
    told: frozenset[str]  # the names of those that are set; the others are defaults
    root_host: str
    host: str
    token: str = field(repr=False)

    @staticmethod
    def from_environment(environ: Mapping[str, str]) -> Settings:
        """Reads and checks everything, what this host has, too."""
        values = checked_values(environ)
        check_trace_directory(str(values["MERCURY_TRACE_DIR"]))
        check_congestion(str(values["MERCURY_CONGESTION"]))
        root = resolve("DMLC_PS_ROOT_URI", str(values["DMLC_PS_ROOT_URI"]))
        told = frozenset(s.name for s in TABLE if environ.get(s.name, "").strip())
        return Settings(values, told, root, own_host(values, root), read_token(environ))

    @property
    def prophet_profile(self) -> str:
        """The file of a worker's profile; "" where there is none."""
        if self.values["DMLC_ROLE"] != "worker":
            return ""
        return str(self.values["MERCURY_PROPHET_PROFILE"])

    def options(self) -> dict[str, int | str]:
        """What `pslite_ext._core.start` takes: what this node was told, and what follows of it."""
        options = {s.name: self.values[s.name] for s in TABLE if s.core and s.name in self.told}
        options["DMLC_PS_ROOT_URI"] = self.root_host
        options["DMLC_NODE_HOST"] = self.host
        options["MERCURY_JOB_TOKEN"] = self.token
        options["prophet_profile_text"] = prophet_profile.read(self.prophet_profile)
        first, end = trace_steps(str(self.values["MERCURY_TRACE_STEPS"]))
        options.update(trace_from_step=first, trace_to_step=end)
        if options["DMLC_ROLE"] == "scheduler":
            options["DMLC_NODE_PORT"] = options["DMLC_PS_ROOT_PORT"]
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


def read_token(environ: Mapping[str, str]) -> str:
    """The job's; "" if it has none."""
    token, file = (environ.get(name, "").strip() for name in TOKEN_SETTINGS)
    if token or not file:
        if len(token.splitlines()) > 1:
            raise SettingError("MERCURY_JOB_TOKEN has several lines; allowed: one")
        return token
    what = f"MERCURY_JOB_TOKEN_FILE is '{file}'"
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingError(f"{what}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(f"{what}, which is not UTF-8 text") from None
    if not token:
        raise SettingError(f"{what}, which is empty")
    if len(token.splitlines()) > 1:
        raise SettingError(f"{what}, which has several lines; a token is one")
    return token


def markdown() -> str:
    """docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "All settings are environment variables. A process reads them once, when it joins a job.",
        "A value that is not allowed ends the process with one line, which names the variable and",
        "what is allowed. So does a variable that begins with `MERCURY_` and is not listed here:",
        "`MERCURY_POLICYY is not a setting of mercury-ps: did you mean MERCURY_POLICY?`",
        "",
        "Where *all nodes* must agree, set the variable for the scheduler, and every node uses its",
        "value. If the scheduler has none, worker 0's counts. A node that has a different value is",
        "refused, and the error says who has which. So is one that has another value of what is",
        "set on the scheduler for MLfabric. All other settings apply to one process only.",
        "",
        "`mercury settings --markdown` prints this page from `pslite_ext/settings_table.py`.",
    ]
    for title, group in GROUPS.items():
        lines += ["", f"## {title}", "", "| variable | default | allowed | must agree | meaning |"]
        lines.append("|---|---|---|---|---|")
        lines += [_row(setting) for setting in group]
    return "\n".join(lines) + "\n"


def _row(setting: Setting) -> str:
    default = "required" if setting.default is None else setting.default
    shown = f"`{default}`" if default not in ("", "required") else default or "unset"
    agree = "all nodes" if setting.shared else ""
    return f"| `{setting.name}` | {shown} | {setting.allowed} | {agree} | {setting.meaning} |"
