"""All settings: read from the environment once, here, and checked before anything uses them.

TABLE is the one list of them; the check, `mercury settings` and docs/settings.md are made from it.
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pslite_ext.errors import InvalidArgumentError

ROLES = ("worker", "server", "scheduler")
VANS = ("zmq", "mercury")
# Values of DMLC_PS_VAN_TYPE that leave MXNet as upstream built it.
UPSTREAM_VANS = ("", "p3", "ibverbs")
MIB = 1 << 20


class SettingError(InvalidArgumentError):
    """A setting holds what it must not; one line says which, what, and what may be."""


@dataclass(frozen=True)
class Setting:
    name: str
    default: int | str | None  # None: must be set
    meaning: str
    least: int = 0
    most: int = 0
    unit: str = ""
    option: str = ""  # its name in Settings.options()
    secret: bool = False

    @property
    def is_number(self) -> bool:
        return self.most != 0

    @property
    def allowed(self) -> str:
        if self.is_number:
            return f"{self.least} to {self.most}" + (f" {self.unit}" if self.unit else "")
        return self.unit or "text"

    def read(self, environ: Mapping[str, str]) -> int | str:
        text = environ.get(self.name, "").strip()
        if not text:
            if self.default is None:
                raise SettingError(f"{self.name} is not set; allowed: {self.allowed}")
            return self.default
        if not self.is_number:
            return text
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if not self.least <= number <= self.most:
            raise SettingError(f"{self.name} is '{text}'; allowed: {self.allowed}")
        return number


TABLE = (
    Setting(
        "DMLC_PS_VAN_TYPE",
        "",
        "Asks for our stores. Unset, `p3` or `ibverbs`: MXNet's own, as upstream built them.",
        unit="zmq",
    ),
    Setting("DMLC_ROLE", None, "What this process is.", unit=", ".join(ROLES), option="role"),
    Setting(
        "DMLC_PS_ROOT_URI",
        None,
        "Address of the scheduler.",
        unit="an IP address or host name",
        option="root_host",
    ),
    Setting("DMLC_PS_ROOT_PORT", None, "Port of the scheduler.", 1, 65535, option="root_port"),
    Setting(
        "DMLC_NUM_WORKER", None, "Number of workers of the job.", 1, 2000, option="num_workers"
    ),
    Setting(
        "DMLC_NUM_SERVER", None, "Number of servers of the job.", 1, 2000, option="num_servers"
    ),
    Setting(
        "DMLC_NODE_HOST",
        "",
        "Address on which this node listens and that others are told.",
        unit="an IP address or host name; default: the address that leads to the scheduler",
    ),
    Setting(
        "DMLC_INTERFACE",
        "",
        "Network interface whose address is used, if DMLC_NODE_HOST is not set.",
        unit="the name of an interface",
    ),
    Setting(
        "DMLC_NODE_PORT", 0, "Port on which this node listens; 0: any.", 0, 65535, option="port"
    ),
    Setting(
        "DMLC_USE_KUBERNETES",
        0,
        "1: the scheduler listens on all addresses (its service address is not its own).",
        0,
        1,
    ),
    Setting(
        "DMLC_TASK_ID",
        -1,
        "Nodes are ranked by this number, then by address. Launchers set it.",
        -1,
        1 << 30,
        option="rank_hint",
    ),
    Setting("PS_VERBOSE", 0, "Above 0: log what the core does.", 0, 9, option="verbose"),
    Setting(
        "MERCURY_JOB_TOKEN",
        "",
        "Secret that all nodes of a job share; launchers make one. Without it, whoever reaches the "
        "ports can join.",
        option="token",
        secret=True,
    ),
    Setting(
        "MERCURY_JOB_TOKEN_FILE", "", "File that holds the token instead.", unit="a readable file"
    ),
    Setting(
        "MERCURY_HEARTBEAT_INTERVAL_MS",
        1000,
        "How often a node says that it lives.",
        10,
        60000,
        "ms",
        "heartbeat_interval_ms",
    ),
    Setting(
        "MERCURY_HEARTBEAT_TIMEOUT_MS",
        10000,
        "Silence after which a node is lost (three intervals once its connection has broken).",
        50,
        3600000,
        "ms",
        "heartbeat_timeout_ms",
    ),
    Setting(
        "MERCURY_START_WARN_S",
        10,
        "How long to wait before saying who has not registered, and how often then.",
        1,
        86400,
        "s",
        "start_warn_ms",
    ),
    Setting(
        "MERCURY_START_TIMEOUT_S",
        600,
        "How long to wait for all nodes before giving up.",
        1,
        604800,
        "s",
        "start_timeout_ms",
    ),
    Setting(
        "MERCURY_MESSAGE_BYTES_MAX",
        64 * MIB,
        "Largest piece of a tensor in one message. Must be equal on all nodes.",
        MIB,
        1024 * MIB,
        "bytes",
        "message_bytes_max",
    ),
    Setting(
        "MERCURY_SPLIT_BYTES",
        4000000,
        "Tensors of this size and above are split over all servers. Must be equal on all workers.",
        1,
        1 << 40,
        "bytes",
        "split_bytes",
    ),
    Setting(
        "MERCURY_SERVER_BYTES_MAX",
        0,
        "Memory for values and sums on a server, above which pushes fail; 0: no cap.",
        0,
        1 << 50,
        "bytes",
        "server_bytes_max",
    ),
    Setting(
        "MERCURY_CONNECTIONS_MAX",
        4096,
        "ZeroMQ sockets of a process; at least two for every node it talks to.",
        64,
        65536,
        option="connections_max",
    ),
)


def wanted_van(environ: Mapping[str, str]) -> str:
    """The van that the environment asks for; '' leaves MXNet alone."""
    van = environ.get("DMLC_PS_VAN_TYPE", "").strip()
    if van in UPSTREAM_VANS:
        return ""
    if van == "mercury":
        raise SettingError(
            "DMLC_PS_VAN_TYPE is 'mercury', which is not available yet; use 'zmq' for now"
        )
    if van not in VANS:
        raise SettingError(
            f"DMLC_PS_VAN_TYPE is '{van}'; allowed: zmq, or for MXNet's own: unset, p3, ibverbs"
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
        interval, timeout = (
            int(values[f"MERCURY_HEARTBEAT_{name}_MS"]) for name in ("INTERVAL", "TIMEOUT")
        )
        if timeout < 3 * interval:
            raise SettingError(
                f"MERCURY_HEARTBEAT_TIMEOUT_MS is '{timeout}'; allowed: at least three times "
                f"MERCURY_HEARTBEAT_INTERVAL_MS, which is {interval}"
            )
        root = resolve("DMLC_PS_ROOT_URI", str(values["DMLC_PS_ROOT_URI"]))
        return Settings(values, root, own_host(values, root), read_token(values))

    def options(self) -> dict[str, int | str]:
        """What `pslite_ext._core.start` takes."""
        options = {s.option: self.values[s.name] for s in TABLE if s.option}
        for name in ("start_warn_ms", "start_timeout_ms"):
            options[name] = int(options[name]) * 1000
        options.update(root_host=self.root_host, host=self.host, token=self.token)
        if options["role"] == "scheduler":
            options["port"] = options["root_port"]
        return options


def own_host(values: Mapping[str, int | str], root: str) -> str:
    """The address to listen on, which is also what others are told."""
    if values["DMLC_ROLE"] == "scheduler":
        return "0.0.0.0" if values["DMLC_USE_KUBERNETES"] else root
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
