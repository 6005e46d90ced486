"""`mercury doctor`: is this machine fit to run a job, and what to do if not."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import resource
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from pslite_ext import __version__
from pslite_ext.command import reach
from pslite_ext.command_line import Parser
from pslite_ext.config import (
    SettingError,
    Settings,
    check_names,
    interfaces,
    read_token,
    wanted_van,
)
from pslite_ext.torch_version import TORCH_LEAST, is_too_old

PYTHON_LEAST = (3, 9)
MXNET_PYTHON_MOST = (3, 12)  # for later ones there is no NumPy that MXNet 1.9.1 works with
OPEN_FILES_MIN = 1024
PACKAGES = ("pslite_ext", "mxnet_plugins", "tracer")  # ours; others may use these names, too


@dataclass(frozen=True)
class Diagnosis:
    state: str  # OK, WARN or FAIL
    subject: str
    text: str


def verdict(good: bool, subject: str, text: str, advice: str, if_not: str = "FAIL") -> Diagnosis:
    return Diagnosis("OK" if good else if_not, subject, text if good else f"{text}: {advice}")


def check_python() -> Diagnosis:
    version = ".".join(map(str, sys.version_info[:3]))
    return verdict(sys.version_info >= PYTHON_LEAST, "python", version, "use Python 3.9 or later")


def home() -> Path:
    """The folder of our packages: where mercury-ps is installed, else where this file lies."""
    try:
        installed = Path(str(importlib.metadata.distribution("mercury-ps").locate_file("")))
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        if (installed / "pslite_ext" / "__init__.py").exists():  # not in an editable installation
            return installed.resolve()
    return Path(__file__).resolve().parents[2]


def _place(spec: ModuleSpec | None) -> Path | None:
    """A module's file or a package's folder."""
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else str(spec.origin)).resolve()


def check_imports() -> Iterator[Diagnosis]:
    """Whether ours are found under their names, here and by a script in this folder."""
    ours, here = home(), Path.cwd()
    bad = False
    for name in PACKAGES:
        found = _place(importlib.util.find_spec(name))
        beside = _place(PathFinder.find_spec(name, [str(here)]))
        if found is None:
            bad = True
            yield Diagnosis("FAIL", "imports", f"{name} is not in {ours}: reinstall mercury-ps")
        elif found != ours / name:
            bad = True
            text = f"{name} is found as {found}, before ours in {ours}"
            advice = f"rename it, or take {found.parent} off PYTHONPATH or out of this environment"
            yield Diagnosis("FAIL", "imports", f"{text}: {advice}")
        elif beside not in (None, found):
            bad = True
            text = f"a script in {here} finds {name} as {beside}, before ours in {ours}"
            yield Diagnosis("WARN", "imports", f"{text}: rename it, or keep scripts elsewhere")
    if not bad:
        yield Diagnosis("OK", "imports", f"{', '.join(PACKAGES)} are those of {ours}")


def check_core() -> Diagnosis:
    try:
        from pslite_ext import _core
    except ImportError as error:
        text = f"the native core does not load ({error}): reinstall it"
        return Diagnosis("FAIL", "mercury-ps", text)
    text = f"{__version__}, sums with {_core.sum_instruction_set()}"
    return Diagnosis("OK", "mercury-ps", text)


def check_frameworks(
    installed: Mapping[str, str], python: tuple[int, ...] = sys.version_info[:2]
) -> Iterator[Diagnosis]:
    """What trains: MXNet, PyTorch, or a program of one's own over NumPy; versions by name."""
    mxnets = sorted(name for name in installed if name.startswith("mxnet"))
    numpy, torch = installed.get("numpy"), installed.get("torch")
    if mxnets and python > MXNET_PYTHON_MOST:
        most = ".".join(map(str, MXNET_PYTHON_MOST))
        yield Diagnosis("FAIL", "mxnet", f"MXNet 1.9.1 needs Python {most} or older: use that")
    for name in mxnets:
        text = f"{name} {installed[name]}"
        if "+mercury" in text:
            yield Diagnosis("OK", "mxnet", f"{text}, patched")
        else:
            how = f"pip uninstall {name}, then install the patched wheel (make wheel)"
            yield Diagnosis("FAIL", "mxnet", f"{text} is not patched: {how}")
    if mxnets[1:]:
        text = f"{' and '.join(mxnets)} write the same files: uninstall all, then install one"
        yield Diagnosis("FAIL", "mxnet", text)
    if torch is not None:
        least = ".".join(map(str, TORCH_LEAST))
        good = not is_too_old(torch)
        yield verdict(good, "torch", torch, f"pslite_ext.torch needs {least} or newer: upgrade it")
    if not mxnets and torch is None:
        advice = "install the patched MXNet (make wheel) or torch"
        if_not = "WARN" if numpy else "FAIL"
        yield verdict(False, "frameworks", "neither MXNet nor PyTorch is installed", advice, if_not)
    if mxnets and numpy is None:
        yield Diagnosis("FAIL", "numpy", "not installed: pip install 'numpy<2.1'")
    elif mxnets and numpy is not None:
        good = (1, 21) <= tuple(int(n) for n in numpy.split(".")[:2]) < (2, 1)
        yield verdict(
            good, "numpy", numpy, "MXNet needs another version: pip install 'numpy>=1.21,<2.1'"
        )


def _installed() -> dict[str, str]:
    distributions = importlib.metadata.distributions()
    named = ((d.metadata["Name"], d.version) for d in distributions)
    return {name.lower(): version for name, version in named if name}


def check_system() -> Iterator[Diagnosis]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    good = hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_MIN
    advice = f"raise the hard limit (ulimit -Hn) to {OPEN_FILES_MIN} or more"
    yield verdict(good, "open files", f"{soft} of at most {hard}", advice, "WARN")
    there = interfaces()
    outside = {n: a for n, a in there.items() if not a.startswith("127.")}
    text = ", ".join(f"{name} {address}" for name, address in there.items())
    advice = (
        "set DMLC_INTERFACE to choose one" if outside else "only jobs on this machine are possible"
    )
    yield verdict(len(outside) == 1, "interfaces", text, advice, "WARN")


def check_job(environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    given = sorted(k for k in environ if k.startswith(("DMLC_", "MERCURY_")))
    try:
        check_names(environ)
        if not wanted_van(environ):
            text = "DMLC_PS_VAN_TYPE does not ask for our stores; `mercury launch` sets it"
            yield Diagnosis("OK", "settings", text)
            return
        settings = Settings.from_environment(environ)
    except SettingError as error:
        yield Diagnosis("FAIL", "settings", str(error))
        return
    yield Diagnosis("OK", "settings", f"valid: {', '.join(given)}")
    yield Diagnosis("OK", "address", f"others reach this node at {settings.host}")
    if not settings.token:
        text = "no MERCURY_JOB_TOKEN: whoever reaches the ports can join the job"
        yield Diagnosis("WARN", "token", text)
    port = int(settings.options().get("DMLC_NODE_PORT", 0))
    if port:
        yield check_port(settings.host, port)


def check_port(host: str, port: int) -> Diagnosis:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            advice = "choose another port, or end the process that has it"
            text = f"{host}:{port}: {error.strerror}: {advice}"
            return Diagnosis("FAIL", "port", text)
    return Diagnosis("OK", "port", f"{host}:{port} is free")


def check_reach(environ: Mapping[str, str], others: Sequence[str]) -> Iterator[Diagnosis]:
    """Who answers where the scheduler should be, and at other nodes' addresses."""
    scheduler = [environ.get(f"DMLC_PS_ROOT_{part}", "").strip() for part in ("URI", "PORT")]
    if not all(scheduler):
        text = "set DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT to the scheduler's address"
        yield Diagnosis("FAIL", "connect", text)
    token = read_token(environ)
    job = b""
    for address in [":".join(scheduler)] * all(scheduler) + list(others):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            yield Diagnosis("FAIL", "connect", f"{address}: is not HOST:PORT")
            continue
        answer = reach.ask(host.strip("[]"), int(port), token)
        good, text = answer.good, answer.text
        if job and answer.job not in (b"", job):
            good, text = False, f"{text}: that is another job than the scheduler's"
        job = job or answer.job
        yield Diagnosis("OK" if good else "FAIL", "connect", f"{address}: {text}")


def examine(environ: Mapping[str, str]) -> list[Diagnosis]:
    findings = [check_python()]
    findings += [*check_imports(), check_core(), *check_frameworks(_installed())]
    findings += [*check_system(), *check_job(environ)]
    return findings


def parser() -> argparse.ArgumentParser:
    result = Parser(prog="mercury doctor", description=__doc__)
    result.add_argument("--json", action="store_true", help="print the findings as JSON")
    result.add_argument(
        "--connect",
        nargs="*",
        metavar="HOST:PORT",
        help="also check who answers at the scheduler's address, and at these",
    )
    return result


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    findings = examine(os.environ)
    if arguments.connect is not None:
        try:
            findings += check_reach(os.environ, arguments.connect)
        except SettingError as error:
            findings.append(Diagnosis("FAIL", "connect", str(error)))
    if arguments.json:
        print(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.state:4}  {finding.subject:11} {finding.text}")
    return 1 if any(f.state == "FAIL" for f in findings) else 0
