"""The one list of settings: what each is called, may hold, and means.

The check in config.py, `mercury settings` and docs/settings.md are made from TABLE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pslite_ext.errors import InvalidArgumentError

ROLES = ("worker", "server", "scheduler")
POLICIES = ("mercury", "fifo", "wfbp", "p3", "bytescheduler", "prophet")
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
        unit="mercury (tensors as packets), zmq (the classic path)",
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
        "Memory for values on a server, and as much again for sums of packets, above which "
        "pushes fail; 0: no cap.",
        0,
        1 << 50,
        "bytes",
        "server_bytes_max",
    ),
    Setting(
        "MERCURY_CONNECTIONS_MAX",
        4096,
        "ZeroMQ sockets of a process; the scheduler needs three for every node.",
        64,
        65536,
        option="connections_max",
    ),
    Setting(
        "MERCURY_POLICY",
        "mercury",
        "In which order tensors go over the wire (docs/policies.md). Must be equal on all nodes. "
        "On the classic path only `prophet` counts.",
        unit=", ".join(POLICIES),
        option="policy",
    ),
    Setting(
        "MERCURY_PACKET_BYTES",
        0,
        "Largest packet. 0: 65536 (32768 with more than two workers), and smaller ones where a "
        "link needs more than 0.8 ms for that. Small ones cost processor time, large ones delay "
        "what is urgent. Must be equal on all nodes.",
        0,
        4 * MIB,
        "bytes",
        "packet_bytes",
    ),
    Setting(
        "MERCURY_CREDIT_BYTES",
        0,
        "What may be under way to a server and back. 0: a round trip and 3.3 ms at the measured "
        "rate. Less leaves the link idle, more delays what is urgent.",
        0,
        1024 * MIB,
        "bytes",
        "credit_bytes",
    ),
    Setting(
        "MERCURY_PARTITION_BYTES",
        0,
        "Slice of the policy p3 (0: 200000) or partition of bytescheduler (0: 4 MiB), on each "
        "server. Must be equal on all nodes.",
        0,
        1024 * MIB,
        "bytes",
        "partition_bytes",
    ),
    Setting(
        "MERCURY_PROPHET_PROFILE",
        "",
        "File of a worker's Prophet profile: read when it joins, if it is there, and written when "
        "worker 0 leaves. `mercury sim` takes it, too.",
        unit="a file that may be written",
    ),
    Setting(
        "MERCURY_PROPHET_PROFILE_STEPS",
        50,
        "Iterations from which the policy prophet learns when gradients appear, at most; it needs "
        "fewer if they are alike.",
        1,
        10000,
        option="prophet_profile_steps",
    ),
    Setting(
        "MERCURY_LANES",
        1,
        "I/O threads of a process, each with links of its own. More than one pays where one core "
        "cannot fill the link. Must be equal on all nodes.",
        1,
        64,
        option="lanes",
    ),
    Setting(
        "MERCURY_CHECKSUM",
        0,
        "1: every packet carries a CRC-32C (about 0.2 s of processor time per GB). Must be equal "
        "on all nodes.",
        0,
        1,
        option="checksum",
    ),
    Setting(
        "MERCURY_DETERMINISTIC",
        0,
        "1: servers add in the order of ranks, so that runs are equal bit for bit with three and "
        "more workers, too. Costs a server a copy of what is under way for each worker, and sums "
        "are made late.",
        0,
        1,
        option="deterministic",
    ),
    Setting(
        "MERCURY_PRIORITIES_MAX",
        4096,
        "Queues of a link. With more priorities than that, neighbours share one.",
        1,
        4096,
        option="priorities_max",
    ),
    Setting(
        "MERCURY_TENSORS_MAX",
        65536,
        "Tensors that a worker may have.",
        1,
        1 << 24,
        option="tensors_max",
    ),
    Setting(
        "MERCURY_STALL_WARN_S",
        30,
        "How long a tensor may wait before the log says for whom.",
        1,
        86400,
        "s",
        "stall_warn_ms",
    ),
    Setting(
        "MERCURY_SEND_UNSENT_BYTES",
        65536,
        "Bytes in the kernel that a data link has not sent yet; they cannot be overtaken. 0: the "
        "system's choice.",
        0,
        1024 * MIB,
        "bytes",
        "send_unsent_bytes",
    ),
    Setting(
        "MERCURY_SEND_BUFFER_BYTES",
        0,
        "Send buffer of a data link; 0: the system's choice.",
        0,
        1024 * MIB,
        "bytes",
        "send_buffer_bytes",
    ),
    Setting(
        "MERCURY_RECEIVE_BUFFER_BYTES",
        262144,
        "Receive buffer of a data link: at least rate times round trip. 0: the system's choice.",
        0,
        1024 * MIB,
        "bytes",
        "receive_buffer_bytes",
    ),
    Setting(
        "MERCURY_CONGESTION",
        "cubic",
        "TCP's congestion control on data links (bbr collapses on short queues).",
        unit="one of net.ipv4.tcp_available_congestion_control; `system`: the system's choice",
        option="congestion",
    ),
    Setting(
        "MERCURY_TRACE_DIR",
        "",
        "Directory for this run's traces (docs/traces.md); one without traces of other runs. "
        "While it holds a file named `off`, nothing is recorded.",
        unit="a directory, which is made; default: no traces",
        option="trace_directory",
    ),
    Setting(
        "MERCURY_TRACE_STEPS",
        "",
        "Iterations to record, counted from 0; `10:50`: 10 to 49, `10:`: from 10 on.",
        unit="FIRST:END; default: all",
    ),
    Setting(
        "MERCURY_TRACE_FORMAT",
        "text",
        "Form of the traces: `binary` takes a third of the space (docs/trace-format.md).",
        unit="text, binary",
    ),
    Setting(
        "MERCURY_TRACE_EVENTS_MAX",
        65536,
        "Events between the threads that see them and the one that writes them; what exceeds that "
        "is lost, and counted in the trace.",
        16,
        1 << 24,
        option="trace_ring_events",
    ),
    Setting(
        "MERCURY_METRICS_PORT",
        0,
        "Port on 127.0.0.1 on which this process shows its live figures to Prometheus; 0: none.",
        0,
        65535,
    ),
)
