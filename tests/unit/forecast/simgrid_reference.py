"""The same iterations in SimGrid: run by a Python that has it, cases in and times out as JSON.

One actor computes for each worker. A layer's bytes flow to all servers at once; a worker's layers
follow each other; what all workers have pushed flows back to each of them after the confirmation
and the request, one layer after another. Flows share links fairly (model CM02): no packets, no
priorities. Latency is added by the actors, so that a sender need not wait for it between layers.
"""

from __future__ import annotations

import json
import sys

from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, this_actor


def main() -> None:
    case = json.load(sys.stdin)
    options = ("network/model:CM02", "network/crosstraffic:0")  # confirmations take no bandwidth
    engine = Engine(["reference", *(f"--cfg={option}" for option in options)])
    workers, servers = len(case["worker_rates"]), len(case["server_rates"])
    names = [f"w{i}" for i in range(workers)] + [f"s{i}" for i in range(servers)]
    rates = [*case["worker_rates"], *case["server_rates"]]
    zone = NetZone.create_star_zone("star")
    hosts = {}
    for name, rate in zip(names, rates):
        host = zone.create_host(name, 1e9)
        up = zone.create_link(f"{name}up", rate)
        down = zone.create_link(f"{name}down", rate)
        zone.add_route(host.netpoint, None, None, None, [LinkInRoute(up)], False)
        zone.add_route(None, host.netpoint, None, None, [LinkInRoute(down)], False)
        hosts[name] = host
    zone.seal()
    layers = case["bytes"]
    pushed = [0] * len(layers)  # workers whose bytes of a layer are all there
    pulled = [[0.0] * len(layers) for _ in range(workers)]
    ended = [0.0] * workers
    latest: list[Actor | None] = [None] * workers

    def pusher(worker: int) -> None:
        for layer in reversed(range(len(layers))):
            this_actor.sleep_until(case["ready_s"][worker][layer])
            shards = [
                Comm.sendto_async(hosts[f"w{worker}"], hosts[f"s{s}"], layers[layer] // servers)
                for s in range(servers)
            ]
            for shard in shards:
                shard.wait()
            pushed[layer] += 1
            if pushed[layer] == workers:
                for other in range(workers):
                    pull = ("pull", hosts[f"w{other}"], puller, other, layer, latest[other])
                    latest[other] = Actor.create(*pull)

    def puller(worker: int, layer: int, before: Actor | None) -> None:
        this_actor.sleep_for(3 * case["latency_s"])  # the push, the confirmation, the request
        if before is not None:  # a connection keeps its order
            before.join()
        shards = [
            Comm.sendto_async(hosts[f"s{s}"], hosts[f"w{worker}"], layers[layer] // servers)
            for s in range(servers)
        ]
        for shard in shards:
            shard.wait()
        pulled[worker][layer] = Engine.clock + case["latency_s"]
        if all(pulled[worker]):
            now = 0.0
            for layer_in, forward_s in zip(pulled[worker], case["forward_s"][worker]):
                now = max(now, layer_in) + forward_s
            ended[worker] = now

    for worker in range(workers):
        Actor.create("push", hosts[f"w{worker}"], pusher, worker)
    engine.run()
    json.dump(ended, sys.stdout)


if __name__ == "__main__":
    main()
