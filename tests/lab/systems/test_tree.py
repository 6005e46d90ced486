"""The tree's edges join hosts, and what comes down is the sum of all that went up."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from scripts.lab.systems.tree import PIECE, Tree, parents


def test_one_worker_of_each_host_is_in_the_tree() -> None:
    pairs = [f"10.0.0.{host}" for host in range(5) for _ in range(2)]
    assert parents(pairs) == [None, 0, 0, 2, 0, 4, 2, 6, 2, 8]
    assert parents(["a", "b", "c", "d"]) == [None, 0, 0, 1]


def test_everybody_gets_the_sum() -> None:
    addresses = ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.3"]
    given = [np.arange(2 * PIECE + 5, dtype=np.float32) * (rank + 1) for rank in range(5)]
    wanted = 2 * sum(given)
    failed: list[BaseException] = []

    def work(rank: int) -> None:
        try:
            tree = Tree(rank, addresses, port=9700)
            tree.all_reduce(given[rank])
            given[rank] *= 2 / 5  # a second time, of other values
            tree.all_reduce(given[rank])
        except BaseException as error:
            failed.append(error)

    threads: list[Any] = [threading.Thread(target=work, args=(rank,)) for rank in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for vector in given:
        np.testing.assert_allclose(vector, wanted, rtol=1e-6)
