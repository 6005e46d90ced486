"""One setting over a range of values: packets, credits, partitions.

The systems are named `SYSTEM [WORDS] N KiB`, from which the report draws a line for each SYSTEM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches import flood, speed
from scripts.lab.benches.case import Case
from scripts.lab.systems.system import System

PACKETS = (8, 16, 32, 64, 128, 256, 1024)  # KiB
CREDITS = (64, 128, 256, 512, 1024, 4096)
PARTITIONS = (256, 1024, 4096, 16384)
IN_CREDIT = (1, 4)  # partitions
PUSHES = 20
ROUNDS = 4


def _named(cases: Sequence[Case], what: str) -> list[Case]:
    return [
        replace(
            case,
            bench="sweep",
            what=f"{what}: {case.what}",
            config=replace(case.config, sample_s=0.0),
        )
        for case in cases
    ]


def packets(mercury: System, sizes: Sequence[int] = PACKETS) -> list[Case]:
    systems = [mercury.variant(f"{kib} KiB", MERCURY_PACKET_BYTES=str(kib << 10)) for kib in sizes]
    return _named(flood.urgent(systems, PUSHES), "size of packets")


def credits(mercury: System, sizes: Sequence[int] = CREDITS) -> list[Case]:
    systems = [mercury.variant(f"{kib} KiB", MERCURY_CREDIT_BYTES=str(kib << 10)) for kib in sizes]
    return _named(flood.urgent(systems, PUSHES), "credit of a link")


def partitions(bytescheduler: System, sizes: Sequence[int] = PARTITIONS) -> list[Case]:
    systems = [
        bytescheduler.variant(
            f"credit of {count}, {kib} KiB",
            MERCURY_PARTITION_BYTES=str(kib << 10),
            MERCURY_CREDIT_BYTES=str(count * kib << 10),
        )
        for count in IN_CREDIT
        for kib in sizes
    ]
    cases = speed.iteration(systems, ["vgg16"], ["network-bound"], ROUNDS)
    return _named(cases, "size of partitions")
