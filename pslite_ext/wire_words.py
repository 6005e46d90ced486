"""As what gradients may travel, in words: what each takes, and where int8 gives way to bf16.

An error of int8's kind would weigh most, and its bytes weigh least, in what has one dimension
(biases, the weights of norms) and in what is small. pslite_ext/csrc/sums/ has the codecs.
"""

from __future__ import annotations

PLAIN = "float32"
WORDS = (PLAIN, "bf16", "fp16", "int8")
AUTO = "auto"  # under PyTorch: the first, second or last of them, as the job goes
ELEMENT_BYTES = 4  # of what is coded
INT8_BYTES_LEAST = 64 << 10
BLOCK_ELEMENTS, SCALE_BYTES = 64, 2  # of int8


def coded_as(word: str, elements: int, dimensions: int = 2) -> str:
    """What the word means for a float32 gradient."""
    small = dimensions < 2 or ELEMENT_BYTES * elements < INT8_BYTES_LEAST
    return "bf16" if word == "int8" and small else word


def coded_bytes(word: str, elements: int, dimensions: int = 2) -> int:
    """What it takes on the wire, in one piece."""
    word = coded_as(word, elements, dimensions)
    if word == PLAIN:
        return ELEMENT_BYTES * elements
    if word == "int8":
        return elements + -(-elements // BLOCK_ELEMENTS) * SCALE_BYTES
    return 2 * elements
