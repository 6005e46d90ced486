"""One word, one thing: no two types share a name, and the glossary's words are in use.

The glossary is the table "Words" of docs/architecture.md.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "pslite_ext" / "csrc"
INSTALLED = ("pslite_ext", "tracer", "mxnet_plugins")
# What types inside others may all be called: of what, the outer one says.
OF_A_CLASS = {"Kind", "State"}
# Each of MXNet's errors is one of ours, too, and has its name.
MIRRORED = {"InvalidArgumentError"}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
TYPE = re.compile(
    r"^(?P<indent> *)(?:template <[^{;]*>\s*)?(?:class|struct|union|enum(?: class)?)\s+"
    r"(?:alignas\(\w+\)\s+)?(?P<outer>(?:\w+::)*)(?P<name>\w+)(?: final)?\s*"
    r"(?::[^:;(){][^;(){]*)?\{",
    re.MULTILINE,
)


def sources(folders: Iterable[str], *suffixes: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path


def cpp_types(text: str) -> list[tuple[str, bool]]:
    """The types that a file defines, each with whether it is inside another."""
    found = TYPE.finditer(COMMENT.sub("", text))
    return [(match["name"], bool(match["indent"] or match["outer"])) for match in found]


def python_types(path: Path) -> list[str]:
    if path.suffix == ".py":
        nodes = ast.walk(ast.parse(path.read_text()))
        return [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    return re.findall(r"^cdef class (\w+)", path.read_text(), re.MULTILINE)


def shared(homes: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: where for name, where in sorted(homes.items()) if len(where) > 1}


def test_types_are_found() -> None:
    text = """
class Forward;
struct Plain {
  enum class Kind : uint8_t { kOne };
  struct Inner;  // struct Told {
  struct alignas(64) Wide { int x; };
};
struct Plain::Inner {
class Heir final : public Plain, private std::vector<int> {
template <typename T>
class Generic
    : public Base<T> {
struct Plain Made() { return {}; }
template <> struct hash<Plain> {
friend class Forward; enum Open { kA };
"""
    assert cpp_types(text) == [
        ("Plain", False),
        ("Kind", True),
        ("Wide", True),
        ("Inner", True),
        ("Heir", False),
        ("Generic", False),
    ]


def test_no_two_types_of_the_core_share_a_name() -> None:
    homes = defaultdict(list)
    for path in sources(["pslite_ext/csrc"], ".h", ".cc"):
        for name, inside in cpp_types(path.read_text()):
            assert inside or name not in OF_A_CLASS, f"{path}: of what is this {name}?"
            homes[name].append(str(path.relative_to(CSRC)))
    assert len(homes) > 300
    assert set(shared(homes)) >= OF_A_CLASS, "a name is excepted for no reason"
    assert {name: at for name, at in shared(homes).items() if name not in OF_A_CLASS} == {}


def test_no_two_classes_of_python_share_a_name() -> None:
    homes = defaultdict(list)
    for path in sources(INSTALLED, ".py", ".pyx", ".pxi"):
        for name in python_types(path):
            homes[name].append(str(path.relative_to(ROOT)))
    assert len(homes) > 100
    assert set(shared(homes)) >= MIRRORED, "a name is excepted for no reason"
    assert {name: at for name, at in shared(homes).items() if name not in MIRRORED} == {}


def glossary() -> list[str]:
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.split("\n## Words\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", table, re.MULTILINE)
    assert rows[0] == "word"
    return rows[1:]


def nouns(text: str) -> set[str]:
    """What identifiers are the names of, in small letters: of SchedulerMembership, "membership"."""
    found = set()
    for name in re.findall(r"\w+", text):
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip("_")).lower().split("_")
        found |= {" ".join(words[begin:]) for begin in range(len(words))}
    return found


def test_the_glossary_s_words_are_in_use() -> None:
    assert nouns("FairShare own_share_") == {"fair share", "share", "own share"}
    used = set()
    for path in sources(["pslite_ext/csrc"], ".h", ".cc"):
        used |= nouns(STRING.sub("", COMMENT.sub("", path.read_text())))
    for path in sources([*INSTALLED, "scripts"], ".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                used |= nouns(node.name)
            elif isinstance(node, ast.Name):
                used |= nouns(node.id)
    words = glossary()
    assert len(words) > 20
    assert len(words) == len(set(words))
    assert [word for word in words if word not in used] == []
