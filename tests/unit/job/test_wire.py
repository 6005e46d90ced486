"""As what each gradient travels, and what is refused."""

from __future__ import annotations

import pytest

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.job.wire import Wire, codec_for
from pslite_ext.wire_words import INT8_BYTES_LEAST, WORDS, coded_bytes

LARGE = (INT8_BYTES_LEAST // 4 // 8, 8)


@pytest.mark.parametrize("word", ["float32", "bf16", "fp16", "int8"])
def test_what_is_not_float32_is_left_alone(word: str) -> None:
    for dtype in ("float64", "float16", "bfloat16", "int32", "uint8", "complex64"):
        assert codec_for(word, dtype, LARGE) == "none"


def test_int8_is_for_large_matrices() -> None:
    assert codec_for("int8", "float32", LARGE) == "int8"
    assert codec_for("int8", "float32", (LARGE[0] - 1, 8)) == "bf16"
    assert codec_for("int8", "float32", (1 << 20,)) == "bf16"
    assert codec_for("int8", "float32", ()) == "bf16"
    assert codec_for("fp16", "float32", (1 << 20,)) == "fp16"
    assert codec_for("float32", "float32", LARGE) == "none"


def test_the_script_s_word_comes_before_the_job_s() -> None:
    assert Wire(None, "fp16").word("a") == "fp16"
    assert Wire("bf16", "fp16").word("a") == "bf16"
    wire = Wire({"embedding.*": "int8", "*.bias": "float32"}, "bf16")
    names = ("embedding.weight", "head.bias", "embedding.bias", "head.weight")
    assert [wire.word(name) for name in names] == ["int8", "float32", "int8", "bf16"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("bf17", "'bf17' is not known; allowed: float32, bf16, fp16, int8"),
        ("2bit", "'2bit' is not known"),
        ({"*": 8}, "8 is not known"),
        (16, "one of float32, bf16, fp16, int8, auto is needed, or a dict .* not int"),
    ],
)
def test_what_is_no_word(given: object, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        Wire(given)


def test_patterns_must_have_something_to_do() -> None:
    types = [("a.weight", "float32"), ("a.bias", "float32"), ("b.weight", "float64")]
    for pattern in ("a.*", "*", "a.bias"):
        Wire({pattern: "bf16"}).check(types)
    Wire({"b.*": "float32"}).check(types)
    Wire("int8").check([("b.weight", "float64")])
    with pytest.raises(InvalidArgumentError, match=r"no parameter's name fits 'c\.\*'.*a\.weight"):
        Wire({"c.*": "bf16"}).check(types)
    with pytest.raises(InvalidArgumentError, match=r"'b.*asks for int8, but 'b.weight' .float64"):
        Wire({"b*": "int8"}).check(types)
    with pytest.raises(InvalidArgumentError, match="is not float32"):
        Wire({"*.weight": "int8"}).check(types)


def test_what_gradients_take_on_the_wire() -> None:
    assert [coded_bytes(word, 16384) for word in WORDS] == [65536, 32768, 32768, 16384 + 512]
    assert coded_bytes("int8", 16385) == 16385 + 514
    assert coded_bytes("int8", 16384, dimensions=1) == coded_bytes("int8", 16383) + 2 == 32768
    assert coded_bytes("int8", 0) == 0


def test_the_core_knows_the_words() -> None:
    assert _core.wires() == [*WORDS]
    assert set(_core.wires()[1:]) < set(_core.compressions())
    assert _core.wire() == ""  # in no job
