"""The command line of `mercury launch`."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from pslite_ext.command_line import Parser
from pslite_ext.config import (
    TABLE,
    TOKEN_SETTINGS,
    SettingError,
    Settings,
    address_towards,
    check_names,
    checked_values,
    resolve,
    wanted_van,
)
from pslite_ext.launch import join
from pslite_ext.launch.tasks import Host, LaunchError, Task, normal_command, plan, read_hosts
from pslite_ext.launch.watch import JobWatch
from pslite_ext.settings_table import REPLICAS_MOST
from pslite_ext.trace_settings import of_restart

GRACE_S = 20.0
WRONG_USE = 2  # the exit code of a process for which it is no use to try again
FIRST_PORT, PORTS_TRIED = 10000, 20  # of those that the system does not hand out by itself
USUAL_FIRST_GIVEN_PORT = 32768
SSH_PORT = 22
OWN = ("DMLC_ROLE", "DMLC_TASK_ID", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_NUM_REPLICA")


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="mercury launch",
        description="Start a scheduler, servers and workers, all running COMMAND, and watch them.",
        epilog="The exit code is that of the first process that failed (128 + n for signal n).",
    )
    add = result.add_argument
    add("-n", "--num-workers", type=int, required=True, metavar="N")
    add(
        *("-s", "--num-servers"),
        type=server_count,
        metavar="N",
        help="or `beside`, the default: one on each host with workers; one for each worker here",
    )
    add(
        "--replicas",
        type=int,
        default=0,
        metavar="N",
        help=f"of the servers (MLfabric), 0 to {REPLICAS_MOST}: one for each loss to survive",
    )
    add(
        "--min-workers",
        type=int,
        metavar="N",
        help="go on with N workers if others are lost; default: a loss ends the job",
    )
    add(
        "--max-workers",
        type=int,
        metavar="N",
        help="with --min-workers: how many there may be if others join; default: as many as -n",
    )
    add(
        "--replace",
        type=int,
        default=0,
        metavar="N",
        help="with --min-workers: start workers and servers again that are lost, N times at most",
    )
    add("-H", "--hostfile", type=Path, help="hosts for servers and workers, one a line")
    add("--launcher", choices=["local", "ssh"], help="default: ssh with a hostfile, else local")
    add("--van", default="mercury", help="DMLC_PS_VAN_TYPE of the job (default: mercury)")
    add("--env", action="append", default=[], metavar="K[=V]", help="set or pass on a variable")
    add("--host", help="address of the scheduler, which runs here")
    add("--port", type=port, default=0, help="port of the scheduler; default: a free one")
    add("--log-dir", type=Path, default=Path("mercury-logs"), metavar="DIR")
    add("--trace-dir", type=Path, metavar="DIR", help="write this run's traces there")
    add("--trace-steps", metavar="FIRST:END", help="of these steps only, such as 10:50")
    add("--start-timeout", type=int, metavar="S", help="give up if not all have registered by then")
    add(
        "--restarts",
        type=int,
        default=0,
        metavar="N",
        help="start the job again if it fails, N times at most: for scripts that write checkpoints",
    )
    add("--grace", type=float, default=GRACE_S, metavar="S", help=argparse.SUPPRESS)
    add("command", nargs=argparse.REMAINDER, metavar="[--] COMMAND")
    return result


def server_count(text: str) -> int | None:
    """None: beside the workers."""
    try:
        return None if text == "beside" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number nor 'beside'") from None


def port(text: str) -> int:
    """Of the scheduler; 0: a free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; allowed: 1 to 65535")
    return int(text)


def free_port(host: str) -> int:
    """A port that is free now, and that no socket is given which asks for any: other nodes' are.

    Somebody may take it before the scheduler does; it will say so.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ours = range(FIRST_PORT, max(FIRST_PORT + PORTS_TRIED, _first_given_port()))
    for port in (*random.SystemRandom().sample(ours, PORTS_TRIED), 0):
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((host, port))
            except OSError as error:
                if port and error.errno == errno.EADDRINUSE:
                    continue
                raise LaunchError(f"--host {host}: {error.strerror}") from None
            return int(sock.getsockname()[1])
    raise AssertionError("the system gives a port, or an error")


def _first_given_port() -> int:
    """Of those that the system hands out by itself."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return USUAL_FIRST_GIVEN_PORT


def by_ssh(host: Host) -> Host:
    """With the name behind its own, if that is an alias of ssh's configuration."""
    try:
        resolve("hostfile", host.address)
    except SettingError as error:
        unknown = str(error)
    else:
        return host
    found = replace(host, alias_of=_name_of_alias(host.name))
    try:
        resolve("hostfile", found.address)
    except SettingError:
        raise LaunchError(
            f"{unknown}; if ssh alone can reach it, say --host: our address as it sees it"
        ) from None
    return found


def _name_of_alias(alias: str) -> str:
    """Empty: ssh is not here, or its configuration cannot be read."""
    try:
        asked = subprocess.run(
            ["ssh", "-G", alias], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except OSError:
        return ""
    said = dict(line.split(" ", 1) for line in asked.stdout.splitlines() if " " in line)
    return said.get("hostname", "")


def address_for(hosts: Sequence[Host]) -> str:
    """Our address as the hosts see it: a loopback one only if all of them are this machine."""
    for host in hosts:
        address = address_towards(resolve("hostfile", host.address), host.port or SSH_PORT)
        if not ipaddress.ip_address(address).is_loopback:
            break
    return address


def job_environment(arguments: argparse.Namespace, host: str) -> dict[str, str]:
    job = {
        "DMLC_PS_VAN_TYPE": arguments.van,
        "DMLC_NUM_WORKER": str(arguments.num_workers),
        "DMLC_NUM_SERVER": str(
            arguments.num_workers if arguments.num_servers is None else arguments.num_servers
        ),
        "DMLC_NUM_REPLICA": str(arguments.replicas),
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": str(arguments.port or free_port(host)),
    }
    if arguments.min_workers is not None:
        job["MERCURY_MIN_WORKERS"] = str(arguments.min_workers)
    if arguments.max_workers is not None:
        job["MERCURY_MAX_WORKERS"] = str(arguments.max_workers)
    if arguments.start_timeout is not None:
        job["MERCURY_START_TIMEOUT_S"] = str(arguments.start_timeout)
    if arguments.trace_dir is not None:
        # Nodes may start in another directory than this one.
        job["MERCURY_TRACE_DIR"] = str(Path(arguments.trace_dir).absolute())
    if arguments.trace_steps is not None:
        job["MERCURY_TRACE_STEPS"] = arguments.trace_steps
    for item in arguments.env:
        name, given, value = item.partition("=")
        if name in OWN:
            raise LaunchError(f"--env {name}: launch sets it itself: use -n, -s or --replicas")
        if not given and name not in os.environ:
            raise LaunchError(f"--env {name}: the variable is not set here; use {name}=VALUE")
        job[name] = value if given else os.environ[name]
    if not any({**os.environ, **job}.get(name, "").strip() for name in TOKEN_SETTINGS):
        job["MERCURY_JOB_TOKEN"] = secrets.token_hex(32)
    return job


def check_settings(given: Mapping[str, str]) -> None:
    """Each by itself, such as how many nodes there are."""
    check_names(given)
    for setting in TABLE:
        if setting.name in given:
            setting.read(given)


def check_job(given: Mapping[str, str], here: bool) -> None:
    """One line here instead of one from every node; `here`: the nodes have this host's files."""
    if not wanted_van(given):
        return
    node = {**given, "DMLC_ROLE": "worker"}
    if here:
        Settings.from_environment(node)
    else:
        checked_values(node)


def run(arguments: argparse.Namespace) -> int:
    command = normal_command(arguments.command)
    if not command:
        raise LaunchError("there is no command to run: end the line with `-- python train.py`")
    servers = arguments.num_servers
    if arguments.num_workers < 1 or (servers is not None and servers < 1):
        raise LaunchError("there must be at least one worker and one server")
    if not 0 <= arguments.replicas <= REPLICAS_MOST or (arguments.replicas and not servers):
        raise LaunchError(f"--replicas is 0 to {REPLICAS_MOST}, and a replica needs a server: -s 1")
    if arguments.replace < 0:
        raise LaunchError(f"--replace is {arguments.replace}; allowed: 0 or more")
    wanted_van({"DMLC_PS_VAN_TYPE": arguments.van})
    launcher = arguments.launcher or ("ssh" if arguments.hostfile else "local")
    if arguments.restarts < 0:
        raise LaunchError(f"--restarts is {arguments.restarts}; allowed: 0 or more")
    if launcher == "ssh" and arguments.hostfile is None:
        raise LaunchError("--launcher ssh needs a --hostfile")
    if launcher == "local" and arguments.hostfile is not None:
        raise LaunchError("--launcher local starts all on this machine: leave out the --hostfile")
    hosts = read_hosts(arguments.hostfile) if launcher == "ssh" else []
    if arguments.host:
        host = resolve("--host", arguments.host)
    elif hosts:
        hosts = [by_ssh(host) for host in hosts]
        host = address_for(hosts)
    else:
        host = "127.0.0.1"
    log_dir = arguments.log_dir
    told = threading.Event()
    for again in range(arguments.restarts + 1):
        if again:
            print(
                f"mercury launch: starts the job again ({again} of {arguments.restarts})",
                file=sys.stderr,
            )
            log_dir = Path(of_restart(arguments.log_dir, again))
        job = job_environment(arguments, host)
        traces = {**os.environ, **job}.get("MERCURY_TRACE_DIR", "").strip()
        if traces and arguments.replace:
            raise LaunchError("--replace: nobody joins a job that writes a trace")
        if again and traces:  # what the job before has written stays
            job["MERCURY_TRACE_DIR"] = of_restart(traces, again)
        check_settings({**os.environ, **job})
        workers, replicas = arguments.num_workers, arguments.replicas
        torch_port = str(free_port(host))
        tasks = plan(
            command, workers, servers, job, os.environ, hosts, os.getcwd(), torch_port, replicas
        )
        check_job(tasks[0].env, here=launcher == "local")
        least = int({**os.environ, **job}.get("MERCURY_MIN_WORKERS", "").strip() or 0)
        if arguments.replace and not least:
            raise LaunchError(
                "--replace needs --min-workers: without it, a lost worker ends the job"
            )
        journal = None
        joined = {**os.environ, **tasks[0].env}
        if least:
            _say_how_to_join(joined, log_dir)
            # Of this job alone, whatever others write there.
            journal = log_dir / f"scheduler-{tasks[0].env['DMLC_PS_ROOT_PORT']}.journal"
            _remove(journal)
            tasks[0] = replace(
                tasks[0], env={**tasks[0].env, "MERCURY_JOURNAL": str(journal.absolute())}
            )
        watch = JobWatch(log_dir, arguments.grace, least, arguments.replace, journal)
        if told.is_set():
            break
        try:
            code = _run_once(tasks, watch, told)
        finally:
            if least:
                join.remove(log_dir / join.FILE, joined)
        if journal is not None:
            _remove(journal)
        if told.is_set() or code in (0, WRONG_USE):
            break
    return code


def _remove(journal: Path) -> None:
    """What a job that was killed as a whole has left is none of the next one's."""
    try:
        journal.unlink(missing_ok=True)
    except OSError as error:
        raise LaunchError(f"--log-dir {journal.parent}: {error.strerror}") from None


def _say_how_to_join(job: Mapping[str, str], log_dir: Path) -> None:
    try:
        path = join.write(log_dir, job)
    except OSError as error:
        raise LaunchError(f"--log-dir {log_dir}: {error.strerror}") from None
    print(
        f"mercury launch: workers can join: mercury join {path} -- python SCRIPT", file=sys.stderr
    )


def _run_once(tasks: Sequence[Task], watch: JobWatch, told: threading.Event) -> int:
    """The job, to its end; the exit code that the launcher would have. `told`: once that is known,
    to end."""
    stopped = ""

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        for each in numbers:  # another that has come with this one must not end what ends the job
            signal.signal(each, note)
        stopped = "interrupted" if number == signal.SIGINT else f"stopped by signal {number}"
        watch.hush()
        raise SystemExit(128 + number)

    def note(_number: int, _frame: FrameType | None) -> None:
        told.set()  # we are ending already

    numbers: list[signal.Signals] = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, stop)
    try:
        watch.start(tasks)
        code = watch.wait()
    finally:
        for number in numbers:
            signal.signal(number, note)
        watch.end_all()
        if stopped:
            watch.say_ended(stopped)
        watch.close()
    return code


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        return run(arguments)
    except (LaunchError, SettingError) as error:
        print(f"mercury launch: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, LaunchError) else 2
