"""What mercury launch would start, and where: hosts, places, variables, ports."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

import pytest

from pslite_ext.launch import command
from pslite_ext.launch.tasks import Host, LaunchError, normal_command, places, plan, read_hosts


def test_hostfile(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# two\nalpha slots=4\n\nbeta:2222\n")
    assert read_hosts(file) == [Host("alpha", slots=4), Host("beta", 2222)]
    file.write_text("me@alpha:7\nfd00::5\nme@[fe80::1%eth0]:2222\n[::1]\n")
    hosts = [Host("me@alpha", 7), Host("fd00::5"), Host("me@fe80::1%eth0", 2222), Host("::1")]
    assert read_hosts(file) == hosts
    assert [host.address for host in hosts] == ["alpha", "fd00::5", "fe80::1%eth0", "::1"]
    file.write_text("alpha slots=4 link=10Gbps\nbeta:2222 link=2.5Gbit/s # old\n")
    assert read_hosts(file) == [Host("alpha", None, 1.25e9, 4), Host("beta", 2222, 312.5e6)]
    file.write_bytes(b"\xef\xbb\xbfalpha\r\n")  # as Windows writes it
    assert read_hosts(file) == [Host("alpha")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("alpha:port", "hosts:1: 'alpha:port' is not HOST or HOST:PORT"),
        ("-oProxyCommand=x", "hosts:1: '-oProxyCommand=x' is not HOST or HOST:PORT"),
        ("-oProxyCommand=x@alpha", "is not HOST or HOST:PORT"),
        ("me@-alpha", "is not HOST or HOST:PORT"),
        ("[-x]:22", "is not HOST or HOST:PORT"),
        ("@alpha", "is not HOST or HOST:PORT"),
        ("alpha:0", "is not HOST or HOST:PORT"),
        ("alpha:65536", "is not HOST or HOST:PORT"),
        ("[fd00::5", "is not HOST or HOST:PORT"),
        ("\udcff", "hosts: it is not UTF-8 text"),
        ("alpha\n\nbeta link=fast", "hosts:3: 'fast' is not a bandwidth such as 10Gbps"),
        ("alpha link=1e308Gbps", "hosts:1: '1e308Gbps' is too large"),
        ("alpha link=0Gbps", "hosts:1: a bandwidth must be > 0"),
        ("alpha link=1Gbps\nbeta", "hosts: beta has no link=SPEED, others have"),
        ("alpha slots=0", "hosts:1: slots=0: it is not a number of workers"),
        ("alpha\nbeta slots=many", "hosts:2: slots=many: it is not a number of workers"),
        ("# none", "names no host"),
    ],
)
def test_mistakes_in_a_hostfile(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(os.fsencode(text + "\n"))
    with pytest.raises(LaunchError) as raised:
        read_hosts(file)
    assert says in str(raised.value)


def test_servers_on_slow_links_sum_less() -> None:
    hosts = [Host(name, speed=speed) for name, speed in (("a", 1e9), ("b", 1e9), ("c", 0.5e9))]

    def shares(environ: dict[str, str], hosts: list[Host]) -> set[str | None]:
        tasks = plan(["cmd"], 3, None, {}, environ, hosts)
        scripts = [(t.stdin or b"").decode() for t in tasks if t.role != "scheduler"]
        found = [re.search(r"MERCURY_SERVER_SHARES=(\S+)", script) for script in scripts]
        told = {f[1] if f else None for f in found}
        return told | {tasks[0].env.get("MERCURY_SERVER_SHARES")}

    assert shares({}, hosts) == {"1,1,0"}
    assert shares({"MERCURY_SERVER_SHARES": "3,2,1"}, hosts) == {"3,2,1"}
    assert shares({}, [Host(h.name, speed=1e9) for h in hosts]) == {None}
    assert shares({}, [Host(h.name) for h in hosts]) == {None}


@pytest.mark.parametrize(
    ("environ", "shares"),
    [
        ({}, None),
        ({"MERCURY_MIN_WORKERS": "0"}, None),
        ({"MERCURY_MIN_WORKERS": "2"}, "3,1"),
        ({"MERCURY_POLICY": "fifo"}, None),
        ({"MERCURY_POLICY": "p3"}, "3,1"),
        ({"DMLC_PS_VAN_TYPE": "zmq"}, "3,1"),
    ],
)
def test_where_workers_send_for_themselves_a_host_with_more_of_them_sums_more(
    environ: dict[str, str], shares: str | None
) -> None:
    hosts = [Host("a", speed=1e9, slots=3), Host("b", speed=0.5e9, slots=1)]
    scheduler = plan(["cmd"], 4, None, {}, environ, hosts)[0]
    assert scheduler.env.get("MERCURY_SERVER_SHARES") == shares


def test_the_scheduler_s_address_is_one_that_all_hosts_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {"127.0.0.1": "127.0.0.1", "192.0.2.9": "192.0.2.1"}
    monkeypatch.setattr(command, "address_towards", lambda host, port: ours[host])
    here, there = Host("127.0.0.1"), Host("192.0.2.9", 2222)
    assert command.address_for([here, there]) == "192.0.2.1"
    assert command.address_for([there, here]) == "192.0.2.1"
    assert command.address_for([here, here]) == "127.0.0.1"
    assert command.address_for([Host("me@127.0.0.1")]) == "127.0.0.1"


def test_a_name_that_ssh_alone_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\n"
        "echo user me\n"
        'case $2 in *gpu1) echo hostname 127.0.0.1 ;; *) echo "hostname $2" ;; esac\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = command.by_ssh(Host("me@gpu1.invalid.gpu1"))
    assert (found.name, found.address) == ("me@gpu1.invalid.gpu1", "127.0.0.1")
    assert command.by_ssh(Host("localhost")) == Host("localhost")
    for path in (str(tmp_path), ""):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(LaunchError, match="'no.invalid', which cannot be .*; .* say --host"):
            command.by_ssh(Host("no.invalid"))


def test_ssh_s_own_configuration_says_the_port_unless_the_file_does() -> None:
    for host, port in ((Host("h"), []), (Host("h", 2222), ["-p", "2222"])):
        tasks = plan(["cmd"], 1, 1, {}, {}, [host])
        for task in tasks[1:]:
            assert [*task.command[5:-2]] == port


def test_remote_secrets_go_to_standard_input() -> None:
    job = {"MERCURY_JOB_TOKEN": "it's secret", "DMLC_NUM_WORKER": "1"}
    tasks = plan(["cmd", "a b"], 1, 1, job, {"HOME": "/root"}, [Host("h", 2222)], "/data dir")
    remote = [t for t in tasks if t.role != "scheduler"]
    assert len(remote) == 2
    for task in remote:
        assert "secret" not in " ".join(task.command)
        assert task.stdin is not None
        script = task.stdin.decode()
        assert """export MERCURY_JOB_TOKEN='it'"'"'s secret'""" in script
        assert "cd '/data dir'" in script
        assert "export PYTHONUNBUFFERED=1\n" in script  # or a killed one's last lines are lost
        assert "cmd 'a b'" in script
        assert "HOME" not in script


def test_servers_stand_beside_workers_unless_they_are_counted() -> None:
    beside = places(4, None, 3)
    assert [p for p in beside if p[0] == "server"] == [("server", i, i) for i in range(3)]
    assert [p for p in beside if p[0] == "worker"] == [("worker", i, i % 3) for i in range(4)]
    assert [p[1:] for p in places(4, None, 1) if p[0] == "server"] == [(i, 0) for i in range(4)]
    counted = [("server", 0, 0), ("server", 1, 1), ("worker", 0, 2), ("worker", 1, 0)]
    assert places(2, 2, 3) == counted
    assert places(1, 1, 3, 1) == [("server", 0, 0), ("replica", 0, 1), ("worker", 0, 2)]
    replicas = [p for p in places(1, 1, 3, 3) if p[0] == "replica"]
    assert replicas == [("replica", 0, 1), ("replica", 1, 2), ("replica", 2, 0)]
    default = command.parser().parse_args(["-n", "2", "x"])
    asked = command.parser().parse_args(["-n", "2", "-s", "beside", "x"])
    assert default.num_servers is asked.num_servers is None


def test_workers_fill_the_slots_of_their_hosts() -> None:
    where = places(5, None, 3, slots=(2, 1, 4))
    assert [p for p in where if p[0] == "worker"] == [
        ("worker", rank, host) for rank, host in enumerate((0, 0, 1, 2, 2))
    ]
    assert [p for p in where if p[0] == "server"] == [("server", i, i) for i in range(3)]
    hosts = [Host("a", slots=2), Host("b"), Host("c", slots=4)]
    tasks = plan(["cmd"], 5, None, {}, {}, hosts, torch_port="1")
    told = {t.name: (t.stdin or b"").decode() for t in tasks}
    assert "LOCAL_RANK=1" in told["worker 4"]
    assert "DMLC_NUM_SERVER=3" in told["worker 0"]
    with pytest.raises(LaunchError, match="slots for 7 workers, -n is 8"):
        plan(["cmd"], 8, None, {}, {}, hosts)


def test_a_host_whose_workers_are_summed_sends_as_one() -> None:
    hosts = [Host("a", speed=0.5e9, slots=4)]
    hosts += [Host(name, speed=1e9) for name in ("b", "c", "d")]

    def shares(**environ: str) -> str | None:
        return plan(["cmd"], 7, None, {}, environ, hosts)[0].env.get("MERCURY_SERVER_SHARES")

    assert shares() == "0,1,1,1"
    # What each of the four sends for itself need not leave the host if its server sums it.
    assert shares(DMLC_PS_VAN_TYPE="zmq") is shares(MERCURY_POLICY="p3") is None


def test_a_server_beside_each_worker_is_on_its_host() -> None:
    tasks = plan(["cmd"], 3, None, {}, {}, [Host("a"), Host("b"), Host("c")])
    hosts = {t.name: t.command[-2] for t in tasks if t.role != "scheduler"}
    assert hosts == {f"{role} {i}": "abc"[i] for role in ("server", "worker") for i in range(3)}


def test_workers_are_told_what_torchrun_would_tell_them() -> None:
    tasks = plan(["cmd"], 3, None, {}, {}, [Host("me@a"), Host("b")], torch_port="4321")
    scripts = {t.name: (t.stdin or b"").decode() for t in tasks}
    assert "RANK" not in scripts["server 1"]
    for rank, local, beside in ((0, 0, 2), (1, 0, 1), (2, 1, 2)):
        told = dict(re.findall(r"export (\w+)=(\S+)", scripts[f"worker {rank}"]))
        assert (told["RANK"], told["WORLD_SIZE"]) == (str(rank), "3")
        assert (told["LOCAL_RANK"], told["LOCAL_WORLD_SIZE"]) == (str(local), str(beside))
        assert (told["MASTER_ADDR"], told["MASTER_PORT"]) == ("a", "4321")
    twice = plan(["cmd"], 2, None, {}, {}, [Host("a"), Host("a")], torch_port="4321")
    scripts = {t.name: (t.stdin or b"").decode() for t in twice}
    for rank in range(2):  # by one line each, and not of one device
        told = dict(re.findall(r"export (\w+)=(\S+)", scripts[f"worker {rank}"]))
        assert (told["LOCAL_RANK"], told["LOCAL_WORLD_SIZE"]) == (str(rank), "2")


def test_a_script_is_run_with_this_python() -> None:
    assert normal_command(["--", "train.py", "--x"]) == [sys.executable, "train.py", "--x"]
    assert normal_command(["bash", "-c", "x"]) == ["bash", "-c", "x"]


def test_a_free_port_is_none_that_other_nodes_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(10000 <= command.free_port("127.0.0.1") < given for _ in range(50))
    with socket.create_server(("127.0.0.1", 0)) as taken:  # nothing else is to be had
        port = taken.getsockname()[1]
        monkeypatch.setattr(command, "FIRST_PORT", port)
        monkeypatch.setattr(command, "PORTS_TRIED", 1)
        monkeypatch.setattr(command, "_first_given_port", lambda: port + 1)
        assert command.free_port("127.0.0.1") not in (0, port)
    with pytest.raises(LaunchError, match="--host 192.0.2.1: "):
        command.free_port("192.0.2.1")
