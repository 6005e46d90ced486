"""The file that the paper shows (Fig. 8), made from its description: 68 records of worker 0.

LeNet-5, 2 workers, 1 server: set-up, initialisation and one iteration. What the description gives
is here number for number: some records, the ends of the phases; the rest lies in between.
"""

from __future__ import annotations

from tests.trace.synthetic_runs import LENET_BYTES

SECOND = 1516622729
INITIALISED_US = 742606
# Phases 1, 2, 3 and the wait from the first to the last Pull_Recv, in microseconds.
PHASES, WAIT_US = (67434, 6656, 24087), 12748

HEADER = """\
================
Num_Worker = 2
Num_Server = 1
Host name: node-1
my role: worker
================
id src dst length num_pp operation op_id dep_type d_time time_sec time_usec id_dep
"""
# Two threads wrote at once: ids 1 and 2 are there twice.
SETUP = """\
0 0 2 25 0 OP:= SendCom_TO_Servers
1 2 0 19 0 OP:= SendCom_TO_Servers
1 0 2 25 0 OP:= SendCom_TO_Servers
2 2 0 19 0 OP:= SendCom_TO_Servers
"""
NAMES = ("Push_Send_Worker", "Push_Recv_Worker", "Pull_Send_Worker", "Pull_Recv_Worker")
# By key: when its gradient left, was confirmed, its parameters were asked for and were there.
TRAINING = {
    0: (810040, 817900, 818100, 821379),
    1: (811400, 818400, 818600, 826000),
    6: (812819, 817035, 817341, 824158),
    2: (813500, 818900, 819100, 827000),
    3: (814200, 819400, 819600, 828000),
    4: (815000, 823000, 824300, 834127),
    5: (816000, 824500, 824700, 831000),
    7: (816696, 824900, 825100, 829000),
}


def _initial() -> dict[int, tuple[int, int, int, int]]:
    times = {0: (481409, 495229, 700000, 735000)}
    for key in range(1, 8):
        push, pull = 481409 + 20000 * key, 700000 + 300 * key
        times[key] = (push, push + 9000, pull, 735606 + 1000 * key)
    return times


def figure_8(training_from: int = 4) -> str:
    """The text. `training_from`: the operation_num of the first training push."""
    lines = [HEADER + SETUP]
    ident = 2
    for first, by_key in ((0, _initial()), (training_from, TRAINING)):
        seen = [(time, key, stage) for key, of_key in by_key.items() for stage, time in
                enumerate(of_key)]  # fmt: skip
        for time, key, stage in sorted(seen):
            lines.append(f"{ident} {_record(first, by_key[key], key, stage, time)}\n")
            ident += 1
    return "".join(lines)


def _record(first: int, times: tuple[int, ...], key: int, stage: int, time: int) -> str:
    payload, initial = LENET_BYTES[key], first == 0
    length = (payload + (42 if initial else 33), 28 if initial else 19, 28, payload + 36)[stage]
    # Initial pulls are 1 to 8; then a push and its pull are consecutive.
    number = (-15 if stage < 2 else 1 + key) if initial else 9 + 2 * key + stage // 2
    ends = "0 2" if stage in (0, 2) else "2 0"
    depends, d_time = f"{key}-{first + stage - 1}-s0", time - times[stage - 1]
    if stage == 0:
        depends, d_time = ("-1", 0) if initial else ("(3-s0.)", time - INITIALISED_US)
    dep_type = (0 if initial else 4, 1, 2, 3)[stage]
    return (
        f"{ends} {length} {number} OP:= {NAMES[stage]} {key}-{first + stage}-s0 "
        f"{dep_type} {d_time} {SECOND} {time} {depends}"
    )
