"""What all our stores are for MXNet, whatever carries their tensors."""

from __future__ import annotations

from typing import Any

from mxnet.kvstore import KVStore

from mxnet_plugins import arguments
from mxnet_plugins.errors import InvalidArgumentError
from pslite_ext.config import Settings

NO_STORES = (
    "has no stores and should serve before MXNet is imported: install the MXNet wheel that was "
    "built with this mercury-ps"
)


class BaseStore(KVStore):  # type: ignore[misc]
    """A distributed store. It has no native handle: Trainer and Module only need the class."""

    _name: str
    _settings: Settings
    _updater: Any

    def __del__(self) -> None:
        """Nothing native to free."""

    @property
    def type(self) -> str:
        """The name that it was created by, such as "dist_sync"."""
        return self._name

    @property
    def handle(self) -> BaseStore:
        """What scripts pass to mx.profiler.set_kvstore_handle."""
        return self

    @property
    def num_workers(self) -> int:
        """How many workers the job began with."""
        return int(self._settings.values["DMLC_NUM_WORKER"])

    def is_capable(self, capability: str) -> bool:
        """Of "optimizer", all that MXNet asks for: yes."""
        if arguments.encodable("a capability", capability).lower() == self.OPTIMIZER:
            return True
        raise InvalidArgumentError(f"Unknown capability: {capability}")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """This worker's states, which all workers have alike (not in asynchronous training)."""
        states = self._states("save").get_states(dump_optimizer)
        with open(arguments.file_name(fname), "wb") as file:
            file.write(states)

    def load_optimizer_states(self, fname: str) -> None:
        """What save_optimizer_states has written; it is unpickled, so it must be trusted."""
        updater = self._states("load")
        with open(arguments.file_name(fname), "rb") as file:
            arguments.load_states(updater, file.read(), fname)

    def _states(self, verb: str) -> Any:
        if not hasattr(self._updater, "get_states"):
            raise InvalidArgumentError(f"no optimizer is set, so there are no states to {verb}")
        return self._updater

    def begin_sums(self, optimizer: Any) -> None:
        """A Trainer will push its gradients; its optimizer, as it is now."""

    def set_barrier_before_exit(self, do_barrier: bool = True) -> None:
        """Upstream's switch; here a worker that has finished need not wait for the others."""
