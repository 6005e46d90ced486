"""The rules of the house, as far as a program can hold them: docs/architecture.md says why."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "pslite_ext" / "csrc"
LINES_MAX = 450
# One above the other: a room includes itself and those before it.
CORE_ROOMS = (
    "base",
    "fabric",
    "sums",
    "fabric/live",
    "trace",
    "control",
    "links",
    "policy/prophet",
    "policy",
    "transport",
    "letters",
    "fabric/net",
    "packets",
    "messages",
    "worker",
    "process",
)
# Units that need sockets, threads or MXNet: tested as running jobs, in these files.
SHELL = {
    "base/status_text": "cpp/base/status_test.cc",
    "base/log": "faults/test_faults.py",
    "base/node_name": "cpp/control/membership_test.cc",
    "base/buffer": "cpp/messages/server_store_test.cc",
    "trace/trace_file": "integration/test_capture.py",
    "trace/trace_log": "integration/test_capture.py",
    "control/membership_losses": "cpp/control/membership_test.cc",
    "control/zmq_van_control": "cpp/control/zmq_van_test.cc",
    "control/zmq_van_heartbeats": "cpp/control/zmq_van_silence_test.cc",
    "control/zmq_van_losses": "cpp/control/zmq_van_test.cc",
    "control/zmq_van_returns": "faults/test_goes_on.py",
    "control/zmq_van_newcomers": "integration/test_torch_newcomers.py",
    "control/membership_newcomers": "cpp/control/newcomers_test.cc",
    "control/zmq_van_gathering": "cpp/control/zmq_van_test.cc",
    "control/member_node": "cpp/control/zmq_van_test.cc",
    "control/control_trace": "integration/test_capture.py",
    "packets/aggregator_adds": "cpp/packets/shared_lanes_test.cc",
    "packets/aggregator_answers": "cpp/packets/aggregator_test.cc",
    "packets/aggregator_host": "cpp/packets/host_sums_test.cc",
    "packets/aggregator_levels": "cpp/packets/levels_test.cc",
    "packets/aggregator_newcomers": "cpp/sim/whole_job_test.cc",
    "packets/aggregator_resumes": "cpp/packets/losses_flow_test.cc",
    "packets/aggregator_rows": "cpp/packets/packet_kinds_test.cc",
    "packets/plane_door": "cpp/packets/door_test.cc",
    "packets/worker_streams_host": "cpp/packets/host_sums_test.cc",
    "packets/worker_streams_in": "cpp/packets/worker_streams_test.cc",
    "packets/worker_streams_lanes": "cpp/packets/shared_lanes_test.cc",
    "packets/worker_streams_levels": "cpp/packets/levels_test.cc",
    "packets/worker_streams_moves": "cpp/packets/losses_flow_test.cc",
    "packets/worker_streams_newcomers": "cpp/sim/whole_job_test.cc",
    "packets/mercury_server_moves": "cpp/packets/moved_plane_test.cc",
    "packets/mercury_server_newcomers": "integration/test_torch_newcomers.py",
    "worker/worker_newcomers": "cpp/worker/worker_test.cc",
    "process/node_newcomers": "integration/test_torch_newcomers.py",
    "process/newcomers_api": "integration/test_torch_newcomers.py",
    "packets/worker_streams_watch": "cpp/packets/worker_streams_test.cc",
    "packets/coded_operation": "cpp/packets/packet_kinds_test.cc",
    "letters/clerk": "cpp/letters/errands_test.cc",
    "letters/letter_endpoint": "cpp/packets/mercury_plane_test.cc",
    "transport/figures": "cpp/packets/mercury_plane_test.cc",
    "links/channel": "cpp/links/local_channel_test.cc",
    "links/dialer": "cpp/packets/door_test.cc",
    "links/interface_bytes": "cpp/links/interface_bytes_test.cc",
    "links/tcp": "cpp/links/tcp_test.cc",
    "links/event_loop": "cpp/packets/mercury_plane_test.cc",
    "packets/mercury_worker": "cpp/packets/mercury_plane_test.cc",
    "packets/mercury_server": "cpp/packets/mercury_plane_test.cc",
    "messages/classic_path": "integration/test_kvstore.py",
    "messages/classic_server": "integration/test_kvstore.py",
    "messages/classic_schedule": "integration/test_prophet.py",
    "messages/message_trace": "integration/test_capture.py",
    "worker/ticket": "cpp/worker/worker_test.cc",
    "process/mxnet_engine": "integration/test_kvstore.py",
    "process/node": "faults/test_faults.py",
    "process/c_api": "integration/test_kvstore.py",
    "process/names_api": "unit/job/test_wire.py",
    "process/plans_api": "unit/test_prophet_model.py",
    "fabric/live/collector_losses": "cpp/fabric/live/collector_test.cc",
    "fabric/net/fabric_node_asks": "cpp/fabric/net/fabric_node_test.cc",
    "process/fabric_api": "integration/test_fabric_job.py",
}
# What has a test of its own and still threads, locks or clocks.
THREADED = {
    "base/clock",
    "control/zmq_door",
    "control/zmq_socket",
    "control/zmq_van",
    "transport/gate",
    "transport/tensor",
    "fabric/net/answers",
    "fabric/net/fabric_node",
    "fabric/net/fabric_node_asks",
    "fabric/net/spare_vectors",
    "links/acceptor",
    "links/lane",
    "links/link",
    "links/local_channel",
    "links/payload_checks",
    "packets/lane_turn",
    "packets/mercury_van",
    "packets/aggregator",
    "packets/aggregator_answers",
    "packets/packet_pool",
    "packets/worker_streams",
    "packets/worker_streams_in",
    "packets/worker_stream",
    "messages/classic_worker",
    "worker/arrivals",
    "worker/worker",
    "worker/tensors",
}
# Who may read the environment: settings, what starts children, scripts that users run, tests.
MAY_READ_ENVIRONMENT = {
    "pslite_ext/config.py",
    "pslite_ext/launch/command.py",
    "pslite_ext/launch/join.py",
    "pslite_ext/command/doctor.py",
    "pslite_ext/fabric/nodes.py",
    "pslite_ext/job/serving.py",
    "pslite_ext/torch/this_worker.py",
    "mxnet_plugins/compat.py",
    "mxnet_plugins/fabric/job.py",
    "mxnet_plugins/this_worker.py",
    "scripts/build_wheel.py",
    "scripts/soak/job.py",
}
# Rooms of Python, one above the other: each imports only what comes before it. All else that is
# installed comes before the first of them.
ROOMS = ("pslite_ext.forecast", "tracer", "pslite_ext.command")
INSTALLED = ("pslite_ext.", "mxnet_plugins.", "tracer.")
LAB = "scripts.lab"
LAB_ROOMS = ("bed", "workloads", "systems", "device", "benches", "report")
# Doors: `python -m tracer` is the command; `mercury lab` leads to the lab, in the tree.
DOORS = {"tracer/__main__.py", "pslite_ext/command/lab.py"}
# Each framework's front, which no other code knows of; both frameworks' have one for MLfabric's.
FRONTS = ("mxnet_plugins", "pslite_ext.torch", "pslite_ext.fabric")
VAGUE = re.compile(r"(manager|utils?|helpers?|common|misc)(\.|_|$)")


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return listing.stdout.splitlines()


def sources(*suffixes: str) -> list[Path]:
    return [ROOT / name for name in tracked() if name.endswith(suffixes) and (ROOT / name).exists()]


def test_files_have_one_concept() -> None:
    files = sources(".py", ".pyx", ".pxd", ".cc", ".h")
    long = {str(p): n for p in files if (n := _lines(p)) > LINES_MAX}
    assert long == {}


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_names_say_what_is_inside() -> None:
    bad = []
    for name in tracked():
        path = Path(name)
        if path.suffix in {".py", ".cc", ".h", ".pyx", ".pxd"}:
            stem = path.stem
            if not re.fullmatch(r"[a-z0-9_]+", stem) or VAGUE.search(stem):
                bad.append(name)
    assert bad == []


def unit(path: Path) -> str:
    """`room/name` of a C++ file of the core."""
    return str(path.relative_to(CSRC).with_suffix(""))


def core(*suffixes: str) -> list[Path]:
    return [path for path in sorted(CSRC.rglob("*")) if path.suffix in suffixes]


def upward_includes(room: str, text: str) -> list[str]:
    """What a file in `room` includes of rooms above its own."""
    above = CORE_ROOMS[CORE_ROOMS.index(room) + 1 :]
    included = re.findall(r'#include "([a-z0-9_/]+)\.h"', text)
    return [name for name in included if str(Path(name).parent) in above]


def test_rooms_include_only_rooms_below_them() -> None:
    assert upward_includes("links", '#include "policy/credit.h"') == ["policy/credit"]
    for path in core(".h", ".cc"):
        room = str(Path(unit(path)).parent)
        assert room in CORE_ROOMS, f"{path} is in no room"
        assert upward_includes(room, path.read_text()) == [], path


def test_nothing_but_its_tests_knows_the_classic_path() -> None:
    """CMakeLists.txt links it into nothing else, and a build may leave it out."""
    knows = [
        str(path.relative_to(ROOT))
        for path in sources(".h", ".cc", ".pyx", ".pxd", ".pxi")
        if re.search(r'"messages/', path.read_text())
    ]
    of_it = ("pslite_ext/csrc/messages/", "tests/cpp/messages/", "tests/fuzz/server_store_fuzz.cc")
    assert knows
    assert [name for name in knows if not name.startswith(of_it)] == []


def test_every_fuzz_target_has_its_inputs() -> None:
    targets = {path.stem.removesuffix("_fuzz") for path in (ROOT / "tests/fuzz").glob("*_fuzz.cc")}
    assert targets == {path.name for path in (ROOT / "tests/fuzz/corpus").iterdir()}


def test_every_header_says_what_it_is_for() -> None:
    for path in core(".h"):
        opening = path.read_text().split("#pragma once")[0]
        assert opening.startswith(("//", "/*")), path
        assert len(opening) > 80, f"{path} opens without saying what it is for"
        if path.name not in {"status.h", "c_api.h"}:
            assert "hread-safety" in opening, f"{path} does not speak of threads"


def test_every_unit_has_its_test() -> None:
    units = {unit(path) for path in core(".cc")}
    assert set(SHELL) <= units
    for name in units:
        assert (ROOT / "tests" / SHELL.get(name, f"cpp/{name}_test.cc")).exists(), name


def test_a_room_is_one_unit() -> None:
    """Sanitizer builds and clang-tidy compile it as one: where two of its files had a function of
    one name for themselves, a call could become another's."""
    named = r"^(?:[A-Za-z_][^\n;={}()]*?[ *&]|struct |(?:enum )?class )(\w+)(?:\(| = | ?\{|\[)"
    owners: dict[tuple[Path, str], Path] = {}
    for path in core(".cc"):
        for own in re.findall(
            r"^namespace \{\n(.*?)^\}  // namespace\n", path.read_text(), re.M | re.S
        ):
            for name in re.findall(named, own, re.M):
                other = owners.setdefault((path.parent, name), path)
                assert other == path, f"{name} is in {other} and in {path}"
    assert len(owners) > 300


def test_the_core_reads_no_environment_and_no_clock() -> None:
    for path in core(".h", ".cc"):
        text = path.read_text()
        assert "getenv" not in text, path
        if unit(path) not in {*SHELL, *THREADED}:
            for word in ("std::chrono", "std::thread", "<sys/socket.h>", "std::mutex"):
                assert word not in text, f"{path} uses {word}"


def test_the_environment_is_read_in_few_places() -> None:
    for path in sources(".py"):
        name = str(path.relative_to(ROOT))
        if name.startswith(("tests/", "scripts/lab/", "examples/")) or name in MAY_READ_ENVIRONMENT:
            continue
        assert not re.search(r"os\.(environ|getenv)", path.read_text()), name


def test_nobody_edits_the_path() -> None:
    edit = r"sys\.path(\.\w+\(|(\[.*\])? *\+?=[^=])|from sys import.*\bpath\b"
    edit += r"|addsite[d]ir|syspath[_]prepend"
    assert [str(p) for p in sources(".py") if re.search(edit, p.read_text())] == []


def _imports(text: str) -> Iterator[str]:
    """Every module that a file names, in import statements or as text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import by a relative name"
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"\w+(\.\w+)+", str(node.value)):
            yield str(node.value)


def test_no_imports_go_in_a_circle() -> None:
    """Of what is imported at any time, but for types alone."""
    paths = {}
    for path in sources(".py"):
        name = str(path.relative_to(ROOT))[: -len(".py")].replace("/", ".")
        paths[name.removesuffix(".__init__")] = path

    def home(name: str) -> str:
        while name and name not in paths:
            name = name.rpartition(".")[0]
        return name

    graph = {}
    for module, path in paths.items():
        text = re.sub(r"^if TYPE_CHECKING:\n( .*\n)+", "", path.read_text(), flags=re.MULTILINE)
        graph[module] = {home(name) for name in _imports(text)} - {module}
    graphlib.TopologicalSorter(graph).prepare()


def _place(module: str, rooms: tuple[str, ...]) -> int:
    """How far up a module is; -1: before all rooms."""
    inside = [i for i, room in enumerate(rooms) if f"{module}.".startswith(f"{room}.")]
    return inside[0] if inside else -1


def test_rooms_import_only_what_comes_before_them() -> None:
    lab = tuple(f"{LAB}.{room}" for room in LAB_ROOMS)
    upward = []
    for path in sources(".py"):
        name = str(path.relative_to(ROOT))
        module = name[: -len(".py")].replace("/", ".")
        if name in DOORS or name.startswith("tests/"):
            continue
        for other in _imports(path.read_text()):
            if module.startswith(INSTALLED):
                wrong = _place(other, ROOMS) > _place(module, ROOMS)
                wrong |= other.startswith(("scripts.", "tests."))
            elif (own := _place(module, lab)) >= 0:
                in_a_room = other in (LAB, *lab) or _place(other, lab) >= 0
                wrong = _place(other, lab) > own or (other.startswith(LAB) and not in_a_room)
            else:
                continue
            if wrong:
                upward.append(f"{name} imports {other}")
    assert upward == []


def _front(module: str) -> str:
    return next((front for front in FRONTS if f"{module}.".startswith(f"{front}.")), "")


def knows_a_front(module: str, other: str) -> bool:
    """Whether `other` is of a front, and `module` is not."""
    under_fabric = module.startswith(("mxnet_plugins.fabric.", "pslite_ext.torch.mlfabric."))
    if under_fabric and _front(other) == "pslite_ext.fabric":
        return False
    return _front(other) not in ("", _front(module))


def test_no_front_is_known_outside_of_it() -> None:
    assert knows_a_front("pslite_ext.job.figures", "mxnet_plugins.steps")
    assert knows_a_front("pslite_ext.torch.flat", "pslite_ext.fabric")
    assert knows_a_front("mxnet_plugins.entry", "pslite_ext.fabric.Rule")
    assert not knows_a_front("mxnet_plugins.fabric.store", "pslite_ext.fabric.Rule")
    assert not knows_a_front("pslite_ext.torch.mlfabric.steps", "pslite_ext.fabric.Rule")
    found = []
    for path in sources(".py"):
        name = str(path.relative_to(ROOT))
        module = name[: -len(".py")].replace("/", ".")
        if module.startswith(INSTALLED):
            found += [
                f"{name}: {o}" for o in _imports(path.read_text()) if knows_a_front(module, o)
            ]
    assert found == []


def test_no_unfinished_marks() -> None:
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    bad = [
        str(p)
        for p in sources(".py", ".pyx", ".pxd", ".cc", ".h", ".md")
        if marks.search(p.read_text())
    ]
    assert bad == []


def test_nothing_of_others_is_committed() -> None:
    for name in tracked():
        assert not name.endswith((".tar.gz", ".whl", ".so", ".a", ".o", ".zip")), name
        assert not name.startswith(("build/", "dist/")), name


def test_paths_in_the_docs_exist() -> None:
    tops = {name.split("/")[0] for name in tracked() if "/" in name}
    path = re.compile(rf"\b(?:{'|'.join(tops)})/[\w/.-]+\.(?:py|cc|h|md|pyx|pxd)\b")
    for page in sources(".md"):
        if page.parent.name == "benchmarks" and page.name != "method.md":  # commands of their day
            continue
        for name in path.findall(page.read_text()):
            assert (ROOT / name).exists(), f"{page} names {name}"


def test_the_readme_s_map_is_the_tree() -> None:
    text = (ROOT / "README.md").read_text()
    top = {name.split("/")[0] for name in tracked() if "/" in name} - {".ci"}
    for folder in top:
        assert f"`{folder}/`" in text, f"README.md does not mention {folder}/"
    for path in re.findall(r"\]\((docs/[a-z-]+\.md)\)", text):
        assert (ROOT / path).exists(), path


def test_nobody_reads_messages() -> None:
    """Whoever must know what failed looks at the code, at who is to blame and at what it is about:
    messages are for people, and may be worded anew (tests/faults/test_words.py)."""
    said = r"(str\((error|e|why|failure)\)|error\.args\[0\])"
    python = re.compile(
        rf"\bin {said}(?!\.split)|{said}\.(starts|ends|find|partition)|re\.\w+\([^)]*{said}"
    )
    core = re.compile(r"\b(text|detail)\(\)\s*(\.(find|rfind|compare)\(|[!=]=)")
    found = []
    ours = [*(ROOT / "pslite_ext").rglob("*.py*"), *(ROOT / "mxnet_plugins").rglob("*.py")]
    for rule, files in (
        (python, [f for f in ours if f.suffix in (".py", ".pyx")]),
        (core, [*CSRC.rglob("*.cc"), *CSRC.rglob("*.h")]),
    ):
        for file in files:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if rule.search(line):
                    found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)
