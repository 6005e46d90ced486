"""What a node of an MLfabric job is told, from its settings."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pslite_ext.config import Settings, interfaces
from pslite_ext.fabric_words import (
    DIVERGENCE,
    FORWARDING,
    MODE,
    by_packets,
    divergence_bound,
    number,
    staleness,
)
from pslite_ext.setting import SettingError
from pslite_ext.wire_words import PLAIN

# As the core counts nodes; workers are their ranks, the second of several servers is -4, the second
# of several replicas -19.
SERVER, REPLICA, SCHEDULER = -1, -2, -3
SERVERS_MOST = 16
_LEAST_SERVER = SCHEDULER - (SERVERS_MOST - 1)
_UPDATE = "MERCURY_FABRIC_UPDATE"
_MIN_WORKERS = "MERCURY_MIN_WORKERS"
_DELAY = "MERCURY_FABRIC_DELAY_BOUND"
_BATCH = "MERCURY_FABRIC_BATCH_MS"
_LAG = "MERCURY_FABRIC_LAG_MS"
_WIRE = "MERCURY_WIRE"
WIRES = (PLAIN, "bf16")  # of fp16, what is too large would be infinite for good
_SHOWN = 100  # characters of a value that is compared


class Rule(NamedTuple):
    """What the server does with updates."""

    momentum: float = 0.0
    nesterov: bool = False
    weights: tuple[float, ...] = ()  # of the workers' updates; none: all are 1


class Planning(NamedTuple):
    """What a scheduler's planner may use. Nobody wants less than all: it is there to measure what
    each part brings.
    """

    aggregators: int = 4  # for the server, and as many for the replica
    ordered: bool = True


ALL_OF_IT = Planning()


def update_rule(text: str, workers: int) -> Rule:
    kind, _, rest = text.partition(":")
    if text == "sum":
        return Rule()
    numbers = [number(part) for part in rest.split(",")]
    given = [value for value in numbers if value is not None]
    if len(given) == len(numbers):
        if kind in ("momentum", "nesterov") and len(given) == 1 and 0 <= given[0] < 1:
            return Rule(given[0], kind == "nesterov")
        if kind == "weighted" and len(given) in (1, workers):
            return Rule(weights=tuple(given * workers if len(given) == 1 else given))
    raise SettingError(
        f"{_UPDATE} is '{text}'; allowed: sum, momentum:NUMBER or nesterov:NUMBER (0 or more, "
        f"below 1), weighted:NUMBERS (one, or one for each of the {workers} workers)"
    )


def refuse_synchrony(settings: Settings) -> None:
    """Under MXNet the store's name says it."""
    if staleness(str(settings.values[MODE])) == 0:
        raise SettingError(
            f"{MODE} is 'sync', and under MXNet a script asks for that: unset it, and let the "
            "script say mx.kv.create('dist_sync')"
        )


def mode_for(settings: Settings, asked: str | None) -> str:
    """What a script asks for, if that is what this node was told, or else what it was told."""
    told = str(settings.values[MODE])
    if asked is None:
        return told
    staleness(asked, "mode")
    if MODE in settings.told and told != asked:
        raise SettingError(
            f"{MODE} is '{told}', and the script asks for '{asked}': ask for the same, or unset it"
        )
    return asked


def with_mode(settings: Settings, mode: str) -> Settings:
    """As of a node that was told so: the scheduler, if it was not, refuses it."""
    return replace(settings, values={**settings.values, MODE: mode}, told=settings.told | {MODE})


def refuse_update_rule(settings: Settings, framework: str) -> None:
    """Under one of these the optimizer says what the server does."""
    if _UPDATE in settings.told:
        raise SettingError(
            f"{_UPDATE} is '{settings.values[_UPDATE]}', and under {framework} the script's "
            "optimizer says that: unset it"
        )


def _refuse_what_there_is_not(settings: Settings) -> None:
    name = "MERCURY_DETERMINISTIC"
    if settings.values[name]:
        raise SettingError(
            f"{name} is '1', and under MLfabric updates are added in the order in which they come: "
            "unset it"
        )
    if least := settings.values[_MIN_WORKERS]:
        raise SettingError(
            f"{_MIN_WORKERS} is '{least}', and under MLfabric a job goes on by its replica alone: "
            "unset it"
        )
    if (word := settings.values[_WIRE]) not in WIRES:
        raise SettingError(
            f"{_WIRE} is '{word}'; under MLfabric, where an update is one for the whole model, "
            f"allowed: {', '.join(WIRES)}"
        )


def feed_path(settings: Settings) -> str:
    """Where the scheduler hears how fast links are; "": nowhere."""
    path = str(settings.values["MERCURY_FABRIC_FEED"])
    if path and not os.path.exists(path):
        raise SettingError(f"MERCURY_FABRIC_FEED is '{path}', which does not exist")
    return path


def link_speed(address: str, cards: Path = Path("/sys/class/net")) -> float:
    """Bit/s of the network card that has this address; 0: it does not say."""
    for name, its in interfaces().items():
        if its == address:
            try:
                return max(0.0, int((cards / name / "speed").read_text()) * 1e6)
            except (OSError, ValueError):
                return 0.0
    return 0.0


def node_of(settings: Settings) -> int:
    """Which node of the job this process is."""
    values = settings.values
    workers, replicas = int(values["DMLC_NUM_WORKER"]), int(values["DMLC_NUM_REPLICA"])
    servers = int(values["DMLC_NUM_SERVER"])
    if not 1 <= servers <= SERVERS_MOST:
        raise SettingError(
            f"DMLC_NUM_SERVER is '{servers}'; under MLfabric a job has 1 to {SERVERS_MOST} servers "
            "(mercury launch -s 1)"
        )
    if servers > 1 and not by_packets(str(values[FORWARDING])):
        raise SettingError(
            f"{FORWARDING} is 'whole', and DMLC_NUM_SERVER is '{servers}': to several servers "
            "updates go packet by packet; unset the first, or start one server"
        )
    role, rank = str(values["DMLC_ROLE"]), int(values["DMLC_TASK_ID"])
    if role == "scheduler":
        return SCHEDULER
    if role == "server":
        index = _index_of_several(role, rank, servers)
        return SERVER if index == 0 else SCHEDULER - index
    if role == "replica":
        if replicas == 0:
            raise SettingError("DMLC_ROLE is 'replica', but DMLC_NUM_REPLICA is 0: set it to 1")
        index = _index_of_several(role, rank, replicas)
        return REPLICA if index == 0 else _LEAST_SERVER - index
    if not 0 <= rank < workers:
        raise SettingError(
            f"DMLC_TASK_ID is '{rank}'; under MLfabric it is the worker's rank: 0 to {workers - 1}"
        )
    return rank


def _index_of_several(role: str, rank: int, count: int) -> int:
    """Of the only one it is 0, whatever its rank."""
    if count == 1:
        return 0
    if not 0 <= rank < count:
        raise SettingError(
            f"DMLC_TASK_ID is '{rank}'; of several {role}s it is the {role}'s number: 0 to "
            f"{count - 1}"
        )
    return rank


def shared_settings(settings: Settings, node: int) -> str:
    """What the scheduler uses, or what another node was told, as text to compare."""
    shared = (_DELAY, MODE, _UPDATE, _BATCH, FORWARDING, _LAG, _WIRE)
    values = {name: str(settings.values[name]) for name in shared}
    values[DIVERGENCE] = repr(divergence_bound(str(settings.values[DIVERGENCE])))
    asked = sorted(name for name in values if node == SCHEDULER or name in settings.told)
    return "".join(f"{name}={_short(values[name])}\n" for name in asked)


def _short(value: str) -> str:
    if len(value) <= _SHOWN:
        return value
    return f"{value[:_SHOWN]}... ({len(value)} characters, CRC {zlib.crc32(value.encode()):08x})"


def node_options(
    settings: Settings, asked: Rule | None = None, planning: Planning = ALL_OF_IT
) -> dict[str, object]:
    """As `pslite_ext._core.Fabric` takes them. `asked`: what a worker asks of the server."""
    _refuse_what_there_is_not(settings)
    values = settings.values
    workers = int(values["DMLC_NUM_WORKER"])
    told = update_rule(str(values[_UPDATE]), workers)
    node = node_of(settings)
    rule = told if node == SCHEDULER else asked
    shared = shared_settings(settings, node)
    congestion = str(values["MERCURY_CONGESTION"])
    return {
        "node": node,
        "workers": workers,
        "servers": int(values["DMLC_NUM_SERVER"]),
        "replicas": int(values["DMLC_NUM_REPLICA"]),
        "scheduler_host": settings.root_host,
        "scheduler_port": int(values["DMLC_PS_ROOT_PORT"]),
        "host": settings.host,
        "port": int(values["DMLC_PS_ROOT_PORT" if node == SCHEDULER else "DMLC_NODE_PORT"]),
        "link_bit_per_s": link_speed(settings.host),
        "token": settings.token,
        "congestion": "" if congestion == "system" else congestion,
        "receive_buffer_bytes": int(values["MERCURY_RECEIVE_BUFFER_BYTES"]),
        "checksum": int(values["MERCURY_CHECKSUM"]),
        "timeout_ms": int(values["MERCURY_HEARTBEAT_TIMEOUT_MS"]),
        "start_timeout_s": int(values["MERCURY_START_TIMEOUT_S"]),
        "settings": shared,
        "delay_bound": int(values[_DELAY]),
        "staleness": staleness(str(values[MODE])),
        "divergence_bound": divergence_bound(str(values[DIVERGENCE])),
        "momentum": -1.0 if rule is None else rule.momentum,
        "nesterov": int(rule is not None and rule.nesterov),
        "batch_s": int(values[_BATCH]) / 1000,
        "lag_s": int(values[_LAG]) / 1000,
        "aggregators": planning.aggregators,
        "as_they_come": int(not planning.ordered),
        "by_packets": int(by_packets(str(values[FORWARDING]))),
        "record": int(node == SCHEDULER and bool(values["MERCURY_TRACE_DIR"])),
        "weights": told.weights,
        "wire": str(values[_WIRE]),
    }
