"""How a job's tensors are cut: layers into pieces, pieces into packets, packets onto servers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracer.model import Job
from tracer.simulate.scheme import Scheme


@dataclass(frozen=True)
class Layout:
    """Packets and pieces are numbered over the whole job, in the order of layers."""

    packet_size: list[float]
    packet_layer: list[int]
    packet_piece: list[int]
    packet_server: list[int]
    pieces: list[range]  # of each layer: its pieces
    packets: list[range]  # of each piece: its packets
    layer_packets: list[int]  # of each layer: how many packets

    @classmethod
    def of(cls, job: Job, scheme: Scheme, packet_bytes: float, servers: int, whole: bool) -> Layout:
        made = cls([], [], [], [], [], [], [])
        for layer, size in enumerate(float(value) for value in job.bytes):
            first = len(made.packets)
            before = len(made.packet_size)
            for piece_size in cut(size, scheme.piece_bytes or math.inf):
                start = len(made.packet_size)
                for packet_size in cut(piece_size, packet_bytes):
                    turn = layer if whole else len(made.packet_size)
                    made.packet_server.append(turn % servers if servers else 0)
                    made.packet_size.append(packet_size)
                    made.packet_layer.append(layer)
                    made.packet_piece.append(len(made.packets))
                made.packets.append(range(start, len(made.packet_size)))
            made.pieces.append(range(first, len(made.packets)))
            made.layer_packets.append(len(made.packet_size) - before)
        return made


def cut(size: float, piece: float) -> list[float]:
    """`size` bytes in pieces of at most `piece`; nothing for no bytes."""
    if size <= 0:
        return []
    count = math.ceil(size / piece) if math.isfinite(piece) else 1
    return [piece] * (count - 1) + [max(0.0, size - piece * (count - 1)) if count > 1 else size]
