"""How a job's tensors are cut: layers into pieces, pieces into packets, packets onto servers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Optional

from pslite_ext.forecast.model import Job, ModelError
from pslite_ext.forecast.simulate.scheme import Scheme

Parts = Sequence[tuple[Optional[int], float]]  # (server, bytes); None: on all servers in turn
Shares = Sequence[Sequence[tuple[int, float]]]  # of each layer: (server, bytes)


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
    def of(
        cls,
        job: Job,
        scheme: Scheme,
        packet_bytes: float,
        servers: int,
        whole: bool = False,
        shares: Shares | None = None,
    ) -> Layout:
        made = cls([], [], [], [], [], [], [])
        for layer, size in enumerate(float(value) for value in job.bytes):
            first = len(made.packets)
            before = len(made.packet_size)
            if shares is not None and any(not 0 <= server < servers for server, _ in shares[layer]):
                raise ModelError(f"a share of layer {layer} is on a server that is not there")
            only = layer % max(servers, 1) if whole else None
            parts: Parts = [(only, size)] if shares is None else shares[layer]
            most = scheme.piece_bytes
            for piece in [parts] if most is None else [[part] for part in _in_turn(parts, most)]:
                made._add(layer, piece, packet_bytes, servers)
            made.pieces.append(range(first, len(made.packets)))
            made.layer_packets.append(len(made.packet_size) - before)
        return made

    def _add(
        self,
        layer: int,
        parts: Parts,
        packet_bytes: float,
        servers: int = 1,
    ) -> None:
        """One piece, a packet to each server in turn."""
        start = len(self.packet_size)
        for server, packet_size in _in_turn(parts, packet_bytes):
            if server is None:
                server = len(self.packet_size) % max(servers, 1)
            self.packet_server.append(server)
            self.packet_size.append(packet_size)
            self.packet_layer.append(layer)
            self.packet_piece.append(len(self.packets))
        if len(self.packet_size) > start:
            self.packets.append(range(start, len(self.packet_size)))


def _in_turn(parts: Parts, most: float) -> list[tuple[int | None, float]]:
    """Parts cut to at most so many bytes, one of each part after the other."""
    cuts = [[(server, piece) for piece in cut(size, most)] for server, size in parts]
    return [piece for turn in zip_longest(*cuts) for piece in turn if piece]


def cut(size: float, piece: float) -> list[float]:
    """`size` bytes in pieces of at most `piece`; nothing for no bytes."""
    if size <= 0:
        return []
    count = math.ceil(size / piece) if math.isfinite(piece) else 1
    return [piece] * (count - 1) + [max(0.0, size - piece * (count - 1)) if count > 1 else size]
