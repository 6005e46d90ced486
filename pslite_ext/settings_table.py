"""The one list of settings: what each is called, may hold, and means.

Everything else is made from it: the checks in config.py, docs/settings.md, and the struct that the
core reads (settings_header.py writes it when the core is built).
"""

from __future__ import annotations

from collections.abc import Mapping

from pslite_ext.setting import Setting

ROLES = ("worker", "server", "scheduler", "replica")
MIB = 1 << 20
REPLICAS_MOST = 8


# By theme; what most people need comes first.
GROUPS: Mapping[str, tuple[Setting, ...]] = {
    "What most people need": (
        Setting(
            "DMLC_PS_VAN_TYPE",
            "",
            "Turns on our stores. Unset, `p3` or `ibverbs`: MXNet uses its own, as upstream built "
            "them.",
            unit="mercury (tensors as packets), zmq (the classic path)",
            shared=True,
        ),
        Setting("DMLC_ROLE", None, "What this process is.", unit=", ".join(ROLES)),
        Setting(
            "DMLC_PS_ROOT_URI",
            None,
            "Address of the scheduler.",
            unit="an IP address or host name",
        ),
        Setting("DMLC_PS_ROOT_PORT", None, "Port of the scheduler.", 1, 65535),
        Setting("DMLC_NUM_WORKER", None, "Number of workers in the job.", 1, 2000, shared=True),
        Setting("DMLC_NUM_SERVER", None, "Number of servers in the job.", 1, 2000, shared=True),
        Setting(
            "DMLC_INTERFACE",
            "",
            "Network interface whose address the other nodes use, unless DMLC_NODE_HOST is set.",
            unit="the name of an interface; default: the one that leads to the scheduler",
            core=False,
        ),
        Setting(
            "MERCURY_JOB_TOKEN",
            "",
            "Secret that all nodes of a job share; launchers create one. Without it, anyone who "
            "can reach the ports can join the job.",
            secret=True,
        ),
        Setting(
            "MERCURY_START_TIMEOUT_S",
            600,
            "How long to wait for all nodes before giving up.",
            1,
            604800,
            "s",
        ),
        Setting(
            "MERCURY_POLICY",
            "priority",
            "The order in which tensors are sent. On the classic path, only `prophet` makes a "
            "difference.",
            unit="the name of a policy (docs/policies.md)",
            shared=True,
        ),
        Setting(
            "MERCURY_TRACE_DIR",
            "",
            "Directory for this run's traces (docs/traces.md). It must not hold traces of another "
            "run. While it holds a file named `off`, nothing is recorded.",
            unit="a directory, which is created; default: no traces",
        ),
        Setting(
            "MERCURY_METRICS_PORT",
            0,
            "Port on which this process serves its live figures to Prometheus. If it is taken, the "
            "next free one is used; the log says which. 0: no figures.",
            0,
            65535,
            core=False,
        ),
    ),
    "Addresses and access": (
        Setting(
            "DMLC_NODE_HOST",
            "",
            "Address on which this node listens. The other nodes use it to reach this one.",
            unit="an IP address or host name; default: the address that leads to the scheduler",
        ),
        Setting(
            "DMLC_NODE_PORT", 0, "Port on which this node listens. 0: any free port.", 0, 65535
        ),
        Setting(
            "MERCURY_METRICS_HOST",
            "127.0.0.1",
            "Address on which live figures are served. Anyone who can reach it can read them, so "
            "use `0.0.0.0` only on a private network.",
            unit="an IP address or host name",
            core=False,
        ),
        Setting(
            "DMLC_USE_KUBERNETES",
            0,
            "1: the scheduler listens on all addresses, because its service address is not its "
            "own.",
            0,
            1,
            core=False,
        ),
        Setting(
            "DMLC_TASK_ID",
            -1,
            "Nodes are ranked by this number, then by address. Launchers set it. -2: a worker or "
            "server that joins the job once it runs (docs/elastic.md).",
            -2,
            1 << 30,
        ),
        Setting(
            "MERCURY_LAUNCHED",
            0,
            "1: whatever started this scheduler or server tells it through standard input how "
            "other processes ended, and closes that input at the end. `mercury launch` sets it, "
            "and so do workers under torchrun.",
            0,
            1,
            core=False,
        ),
        Setting(
            "MERCURY_JOB_TOKEN_FILE",
            "",
            "File that holds the job token; used if MERCURY_JOB_TOKEN is not set.",
            unit="a readable file",
            core=False,
        ),
    ),
    "Faults and limits": (
        Setting(
            "MERCURY_HEARTBEAT_TIMEOUT_MS",
            10000,
            "A node that has been silent for this long is lost. Nodes send a heartbeat ten times "
            "as often, and at least once per second. If a node's connection has broken, three "
            "missed heartbeats are enough.",
            100,
            3600000,
            "ms",
        ),
        Setting(
            "MERCURY_STALL_WARN_S",
            30,
            "If a tensor has waited for this long, the log says which node it waits for.",
            1,
            86400,
            "s",
        ),
        Setting(
            "MERCURY_STALL_TIMEOUT_S",
            600,
            "If a tensor has waited for another worker for this long, and nothing of it arrives, "
            "the job ends and every process dumps what it is doing (docs/operations.md). 0: "
            "never. Raise it if one worker works alone for longer than that.",
            0,
            604800,
            "s",
            shared=True,
        ),
        Setting(
            "MERCURY_MIN_WORKERS",
            0,
            "With how many workers the job goes on if it loses others, or if some finish before "
            "others do (docs/elastic.md). 0: it needs all of them, and a loss ends it.",
            0,
            2000,
            shared=True,
        ),
        Setting(
            "MERCURY_MAX_WORKERS",
            0,
            "How many workers the job may have if others join it while it runs (docs/elastic.md). "
            "0: as many as at first, so that others take the places of those that are lost.",
            0,
            2000,
            shared=True,
        ),
        Setting(
            "MERCURY_JOURNAL",
            "",
            "With MERCURY_MIN_WORKERS, on the scheduler: the file in which it writes down who is "
            "in the job. If it is lost, a scheduler that is started with the same file goes on in "
            "its place (docs/elastic.md).",
            unit="a file; default: none",
        ),
        Setting(
            "MERCURY_SERVER_BYTES_MAX",
            0,
            "Limit on a server's memory for values, and again for sums of packets. Pushes that "
            "need more fail. 0: no limit.",
            0,
            1 << 50,
            "bytes",
        ),
        Setting(
            "MERCURY_CHECKSUM",
            1,
            "0: payloads are not checked. By default each one carries a CRC-32C, and the job ends "
            "if bytes were changed on the way.",
            0,
            1,
            shared=True,
        ),
        Setting(
            "MERCURY_DETERMINISTIC",
            0,
            "1: sums are made in the order of ranks (within a host whose workers are summed first, "
            "then between hosts), so that runs are bit-for-bit equal even with three or more "
            "workers. A copy of each worker's data that is under way is held then, and sums are "
            "ready later. Whole, compressed and `row_sparse` sums alike; "
            "`dist_async` and MLfabric, which add as data comes, are refused.",
            0,
            1,
            shared=True,
        ),
    ),
    "What is sent, and how far ahead": (
        Setting(
            "MERCURY_WIRE",
            "float32",
            "How float32 gradients are sent, and their sums: `bf16` and `fp16` halve the bytes, "
            "`int8` quarters them, `auto` tries (docs/bytes.md). A script may say otherwise.",
            unit="float32, bf16, fp16, int8 or auto",
            shared=True,
        ),
        Setting(
            "MERCURY_PACKET_BYTES",
            0,
            "Size of the largest packet, at least 1024. 0: 65536 (32768 with more than two workers,"
            " 16384 with more than four workers or servers), and less where a link needs more than "
            "0.6 ms for that. Small packets cost processor time; large ones delay what is urgent.",
            0,
            4 * MIB,
            "bytes",
            shared=True,
        ),
        Setting(
            "MERCURY_CREDIT_BYTES",
            0,
            "How much may be under way to a server and back. 0: what the link carries in a round "
            "trip plus 2 ms. With less, the link is idle at times; more delays what is urgent.",
            0,
            1024 * MIB,
            "bytes",
        ),
        Setting(
            "MERCURY_PARTITION_BYTES",
            0,
            "Size, on each server, of a slice of the policy p3 (0: 200000) or of a partition of "
            "bytescheduler (0: 4 MiB).",
            0,
            1024 * MIB,
            "bytes",
            shared=True,
        ),
        Setting(
            "MERCURY_SPLIT_BYTES",
            4000000,
            "On the classic path, tensors of at least this size are split over all servers.",
            1,
            1 << 40,
            "bytes",
            shared=True,
        ),
        Setting(
            "MERCURY_PROPHET_PROFILE",
            "",
            "File for a worker's Prophet profile. A worker reads it when it joins, if it exists; "
            "worker 0 writes it when it leaves. `mercury sim` can read it, too.",
            unit="a writable file",
            core=False,
        ),
        Setting(
            "MERCURY_PROPHET_PROFILE_STEPS",
            50,
            "The policy prophet learns from at most so many iterations when gradients appear; "
            "fewer are enough if they are alike.",
            1,
            10000,
        ),
    ),
    "Links": (
        Setting(
            "MERCURY_SERVER_SHARES",
            "",
            "Which part of all bytes each server sums, in the order of ranks: `2,2,1` gives less "
            "to a host with a slower link (docs/operations.md). `mercury launch` computes it from "
            "the link speeds in its host file.",
            unit="numbers separated by commas, one for each server; default: equal parts",
            shared=True,
        ),
        Setting(
            "MERCURY_LANES",
            1,
            "Number of I/O threads of a process, each with its own links. Use more than one if one "
            "core cannot fill the link.",
            1,
            64,
            shared=True,
        ),
        Setting(
            "MERCURY_RECEIVE_BUFFER_BYTES",
            262144,
            "Receive buffer of a data link: at least the link's rate times the round trip. 0: the "
            "system's choice.",
            0,
            1024 * MIB,
            "bytes",
        ),
        Setting(
            "MERCURY_CONGESTION",
            "cubic",
            "TCP congestion control on data links (bbr collapses with short queues).",
            unit="one of net.ipv4.tcp_available_congestion_control; `system`: the system's choice",
        ),
    ),
    "MLfabric ([fabric](fabric.md)); all but the first two are set on the scheduler": (
        Setting(
            "DMLC_NUM_REPLICA",
            0,
            "1: there is a replica of the whole model, which takes over if a server dies. Further "
            "ones follow in its place once it is lost or has taken over. Set it on all nodes.",
            0,
            REPLICAS_MOST,
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC",
            0,
            "1: what MXNet's scripts push to `dist_sync` or `dist_async` goes through MLfabric; "
            "PyTorch's may call `mercury.fabric`.",
            0,
            1,
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_DELAY_BOUND",
            30,
            "How many versions old an update may be when it is applied. Older ones are dropped.",
            1,
            1 << 30,
            "versions",
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_DIVERGENCE_BOUND",
            "0",
            "How far apart, as a norm, the models of the server and the replica may be when a "
            "batch ends. More saves traffic, but more is lost if the server dies.",
            unit="a number, 0 or more",
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_MODE",
            "async",
            "Who waits for whom: nobody; all, after each update (`sync`); or, as with `stale:2`, "
            "who is more than two updates ahead of the slowest worker. With the last two, no "
            "update is dropped. MXNet's `dist_sync` says it itself, as may `mercury.fabric`.",
            unit="async, sync, stale:NUMBER",
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_UPDATE",
            "sum",
            "What the server does with an update: adds it; adds it with momentum, as in "
            "`momentum:0.9`, or Nesterov's, as in `nesterov:0.9`; or adds it times a weight, as in "
            "`weighted:0.5`, or one for each worker, as in `weighted:1,0.5`. Optimizers of MXNet "
            "and PyTorch say it themselves.",
            unit="sum, momentum:NUMBER, nesterov:NUMBER, weighted:NUMBERS",
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_BATCH_MS",
            0,
            "Least time between two plans. 0: the next plan is made as soon as the last one is "
            "carried out.",
            0,
            60000,
            "ms",
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_FORWARDING",
            "packets",
            "How sums on their way, and models that workers pass on, go on: `packets`, each packet "
            "when it is complete, along chains of workers; or `whole`, when all of it is there, by "
            "way of aggregators, as in MLfabric's paper.",
            unit="packets, whole",
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_LAG_MS",
            200,
            "Time over which the rates of links are measured.",
            1,
            60000,
            "ms",
            core=False,
        ),
        Setting(
            "MERCURY_FABRIC_FEED",
            "",
            "Where an operator's telemetry says how fast links are, one line per host.",
            unit="a file that grows, a named pipe, or a Unix socket",
            core=False,
        ),
    ),
    "Traces": (
        Setting(
            "MERCURY_TRACE_STEPS",
            "",
            "Iterations to record, counted from 0. `10:50` records 10 to 49, `10:` all from 10 on.",
            unit="FIRST:END; default: all",
            core=False,
        ),
        Setting(
            "MERCURY_TRACE_FORMAT",
            "text",
            "Format of the traces: `binary` takes a third of the space (docs/trace-format.md).",
            unit="text, binary",
        ),
    ),
}
TABLE = tuple(setting for group in GROUPS.values() for setting in group)

# What the core takes besides: not set by anybody, but made of settings or of what the script asks.
DERIVED = (
    Setting("asynchronous", 0, "1: so is the store that this worker joins for.", 0, 1),
    Setting("prophet_profile_text", "", "What the file of the profile holds."),
    Setting("trace_from_step", 0, "First iteration to record.", 0, (1 << 63) - 1),
    Setting("trace_to_step", 0, "The first that is recorded no more; 0: no end.", 0, (1 << 63) - 1),
)
