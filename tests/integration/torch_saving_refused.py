"""What `mercury.checkpoint` refuses, a line each: FOLDER."""

from __future__ import annotations

import collections
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pslite_ext import torch as mercury
from pslite_ext.errors import InvalidArgumentError

FOLDER = Path(sys.argv[1])


def wrapped(inputs: int) -> dict[str, Any]:
    model = torch.nn.Linear(inputs, 2)
    model, optimizer = mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))
    return {"model": model, "optimizer": optimizer}


def refused(what: str, folder: Path, every: Any = 1, keep: Any = 2, **objects: Any) -> None:
    try:
        mercury.checkpoint(folder, every, keep, **objects)
    except InvalidArgumentError as error:
        print(f"{what}: {error}", flush=True)
    else:
        print(f"{what}: nothing", flush=True)


class Own:
    """Something of a script's own."""

    its: Any = None

    def state_dict(self) -> dict[str, Any]:
        return {"it": self.its}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def not_saved(what: str, its: Any) -> None:
    """From the second checkpoint on it is there."""
    own = Own()
    saved = mercury.checkpoint(FOLDER / what, every=1, own=own)
    saved.step()
    own.its = its
    try:
        saved.step()
    except InvalidArgumentError as error:
        print(f"{what}: {error}", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    narrow, wide = wrapped(3), wrapped(4)
    refused("every", FOLDER, 0, **narrow)
    refused("keep", FOLDER, 5, 1, **narrow)
    refused("nothing", FOLDER)
    refused("no state", FOLDER, table=[1, 2])
    sharded = type("FullyShardedDataParallel", (torch.nn.Linear,), {})(3, 2)
    refused("sharded", FOLDER, net=torch.nn.Sequential(sharded))
    (FOLDER / "file").write_text("")
    refused("no folder", FOLDER / "file" / "below", **narrow)
    saved = mercury.checkpoint(FOLDER / "narrow", every=1, **narrow)
    refused("twice", FOLDER / "narrow", net=narrow["model"])
    saved.step()
    saved.wait()
    (FOLDER / "narrow").rename(FOLDER / "another")
    refused("another model", FOLDER / "another", **wide)
    (FOLDER / "another").rename(FOLDER / "names")
    refused("other names", FOLDER / "names", net=narrow["model"])
    not_saved("odd", Own())
    not_saved("path", FOLDER)
    not_saved("fields", np.array([(1.5, 2)], [("a", "f4"), ("b", "f8")]))
    not_saved("default", collections.defaultdict(int, {"a": 1}))
    not_saved("function", collections.defaultdict(lambda: 1))
    not_saved("nowhere", torch.empty(3, device="meta"))
    local = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(local.parameters(), lr=0.1)
    mercury.local_steps(local, optimizer, every=2)
    refused("half", FOLDER / "half", optimizer=optimizer)
    refused("other half", FOLDER / "half", inner=torch.nn.Sequential(local))
    refused("trained otherwise", FOLDER / "names", model=local, optimizer=optimizer)
    saved = mercury.checkpoint(FOLDER / "local", every=1, model=local, optimizer=optimizer)
    saved.step()
    saved.wait()
    (FOLDER / "local").rename(FOLDER / "rarely")
    again = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(again.parameters(), lr=0.1)
    mercury.local_steps(again, optimizer, every=4)
    refused("other steps", FOLDER / "rarely", model=again, optimizer=optimizer)
    refused("synchronous", FOLDER / "rarely", **narrow)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mercury.checkpoint(FOLDER / "early", every=1, model=model)
    try:
        mercury.wrap(model, optimizer)
    except InvalidArgumentError as error:
        print(f"early: {error}", flush=True)


if __name__ == "__main__":
    main()
