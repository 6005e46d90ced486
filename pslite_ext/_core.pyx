# cython: language_level=3, boundscheck=False
"""The native core: see _core.pyi for what each function means."""

from array import array

cimport cython
from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport Py_INCREF
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from pslite_ext.errors import (
    ROLES, SUBJECTS, Failure, PsliteError, from_status, raise_status, refuse)

# How long a wait goes on before it looks for a signal (Ctrl-C).
cdef enum:
    SLICE_MS = 100

ctypedef int (*wait_function)(int) noexcept nogil


cdef last_failure():
    """As (what it is, its text)."""
    cdef mercury_failure its
    mercury_last_failure(&its)
    culprit = None if its.role < 0 else (ROLES[its.role], its.rank)
    about = None if its.about == 0 else (SUBJECTS[its.about], its.key)
    failure = Failure(its.code, its.number, culprit, about)
    return failure, its.text.decode("utf-8", "replace")


cdef int ok(int code) except -1:
    if code != 0:
        raise_status(*last_failure())
    return 0


def word_failures_as(text):
    global _words  # the core keeps a pointer into it
    _words = text.encode()
    mercury_word_failures_as(_words)


cdef int wait(wait_function function, look=None) except -1:
    cdef int code
    while True:
        with nogil:
            code = function(SLICE_MS)
        if code != 0 and look is not None:
            look()  # before an error is raised: it may know better why
        if code != MERCURY_NOT_YET:
            return ok(code)
        # Back in Python for a moment: a pending signal is delivered here.
        check_signals()


cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1


cdef int check_signals() except -1:
    return PyErr_CheckSignals()


def start(options, look=None):
    names = [name.encode() for name in options]
    values = [str(value).encode() for value in options.values()]
    cdef vector[const char*] name_texts, value_texts
    for name, value in zip(names, values):
        name_texts.push_back(name)
        value_texts.push_back(value)
    cdef int code
    with nogil:
        code = mercury_start(name_texts.data(), value_texts.data(), name_texts.size())
    ok(code)
    try:
        wait(mercury_wait_ready, look)
    except BaseException:
        if not awaits_late():  # else whoever called leaves when those who come are told
            finish("it gave up while the job was starting")
        raise


def serve():
    wait(mercury_wait_end)


def finish(reason="", error=None):
    cdef bytes text = reason.encode(errors="replace")
    cdef const char* pointer = text
    cdef int code = error.code if isinstance(error, PsliteError) else 0
    failure = error.failure if code else None
    subject, subject_key = failure and failure.about or ("", 0)
    cdef int about = SUBJECTS.index(subject)
    cdef uint64_t key = subject_key
    with nogil:
        mercury_finish(pointer, code, about, key)


def other_ended(is_worker, rank_hint, how, failed):
    return mercury_other_ended(1 if is_worker else 0, rank_hint, how.encode(), 1 if failed else 0) != 0


def awaits_late():
    return mercury_awaits_late() != 0


def finish_at_exit(code=0, over_chosen=False):
    mercury_finish_at_exit(code, 1 if over_chosen else 0)


def say_at_exit(line):
    mercury_say_at_exit(line.encode())


def park_ended_threads():
    mercury_park_ended_threads()


def rank():
    return mercury_rank()


def local_rank():
    cdef int size
    rank = mercury_local_rank(&size)
    return rank, size


def workers():
    return mercury_workers()


def elastic():
    return mercury_elastic() != 0


def check():
    ok(mercury_check())


def failed():
    return mercury_failed() != 0


def failed_elsewhere():
    return mercury_failed_elsewhere() != 0


def barrier():
    if outside() is not None:
        return  # the others have passed it
    ok(mercury_enter_barrier())
    wait(mercury_wait_barrier)


def num_dead_nodes(int group):
    return mercury_num_lost(group)


def figures():
    return mercury_figures().decode()


def waiting():
    cdef const char* lines
    with nogil:
        lines = mercury_waiting()
    return lines.decode("utf-8", "replace")


def dump_to(fd):
    mercury_dump_to(fd)


def dumped():
    mercury_dumped()


def prophet_profile():
    return mercury_prophet_profile().decode("utf-8", "replace")


def prophet_plan(produced, wire, double startup):
    if len(produced) != len(wire):
        refuse(
            f"{len(produced)} production times, but {len(wire)} transfers: give one of each "
            "for each gradient")
    if not len(produced):
        return []
    cdef double[:] made = array("d", produced)
    cdef double[:] moved = array("d", wire)
    cdef double[:] start = array("d", produced)
    ok(mercury_prophet_plan(len(made), &made[0], &moved[0], startup, &start[0]))
    return list(start)


def fabric_plan(bytes batch, search=False, in_words=False):
    cdef const char* text = batch
    cdef const char* plan = NULL
    cdef size_t size = len(batch)
    cdef int searching = bool(search), explained = bool(in_words), code
    with nogil:
        code = mercury_fabric_plan(text, size, searching, explained, &plan)
    ok(code)
    return plan.decode("utf-8", "replace")


def fabric_tree(bytes batch):
    cdef const char* text = batch
    cdef const char* tree = NULL
    cdef size_t size = len(batch)
    cdef int code
    with nogil:
        code = mercury_fabric_tree(text, size, &tree)
    ok(code)
    return tree.decode("utf-8", "replace")


def policies():
    return mercury_policies().decode().split(", ")


def compressions():
    return mercury_compressions().decode().split(", ")


def element_bytes(str dtype):
    return mercury_element_bytes(dtype.encode())


def wires():
    return mercury_wires().decode().split(", ")


def wire():
    return mercury_wire().decode()


def sum_instruction_set():
    return mercury_sum_instruction_set().decode()


def attach_engine(libmxnet):
    cdef void* library = <void*><size_t>libmxnet
    cdef int code
    with nogil:  # the engine may be running Python functions
        code = mercury_attach_engine(library)
    ok(code)


def same_variable(size_t a, size_t b):
    return mercury_same_variable(<void*>a, <void*>b) != 0


def engine_failure(size_t index):
    return from_status(*last_failure()) if mercury_engine_failure(index) != 0 else None


def engine_failures():
    found = []
    while mercury_engine_failure(len(found)) != 0:
        found.append(last_failure())
    return found


def announce(tensors):
    for key, name, priority in tensors:
        ok(mercury_announce(key, name.encode(), priority))


cdef int wait_ticket(mercury_ticket* ticket) except -1:
    cdef int code
    while True:
        with nogil:
            code = mercury_ticket_wait(ticket, SLICE_MS)
        if code != MERCURY_NOT_YET:
            return ok(code)
        check_signals()


cdef int wait_and_free(mercury_ticket* ticket) except -1:
    try:
        return wait_ticket(ticket)
    finally:
        mercury_ticket_free(ticket)


def command(int head, bytes body):
    cdef mercury_ticket* ticket = NULL
    ok(mercury_command(head, body, len(body), &ticket))
    wait_and_free(ticket)


def trace_switch(on):
    cdef mercury_ticket* ticket = NULL
    ok(mercury_trace_switch(1 if on else 0, &ticket))
    wait_and_free(ticket)


include "_claims.pxi"
include "_work.pxi"
include "_newcomers.pxi"


@cython.no_gc  # as of Work: what its tickets are for would go first
cdef class Tensor:
    cdef mercury_tensor* _tensor
    cdef dict _tickets
    cdef uint64_t _next_ticket
    cdef size_t _element_bytes

    def __cinit__(self, uint64_t key, str name, str dtype, shape, bint asynchronous=False,
                  parameter=None, str label=""):
        self._tickets = {}
        self._next_ticket = 1
        lengths = array("Q", shape)
        cdef const uint64_t[:] view = lengths
        ok(mercury_tensor_new(key, key if parameter is None else parameter, name.encode(),
                              label.encode(), dtype.encode(), &view[0] if len(lengths) else NULL, len(lengths),
                              asynchronous, &self._tensor))
        self._element_bytes = mercury_element_bytes(dtype.encode())

    def __dealloc__(self):
        if self._tickets is not None:
            for address, _ in self._tickets.values():
                mercury_ticket_free(<mercury_ticket*><size_t>address)
        mercury_tensor_free(self._tensor)

    def set_compression(self, str kind, float threshold):
        ok(mercury_tensor_set_compression(self._tensor, kind.encode(), threshold))

    def set_use(self, str use):
        mercury_tensor_set_use(self._tensor, use.encode())

    def check(self):
        ok(mercury_tensor_check(self._tensor))

    @property
    def agreed(self):
        return mercury_tensor_agreed(self._tensor) != 0

    def workers(self, uint64_t sum_=0):
        cdef int count = 0
        cdef int code = MERCURY_NOT_YET
        while code == MERCURY_NOT_YET:
            with nogil:
                code = mercury_tensor_workers(self._tensor, sum_, SLICE_MS, &count)
            check_signals()
        ok(code)
        return count

    def init(self, size_t src, size_t token, int priority=0):
        ok(mercury_submit(
            self._tensor, MERCURY_FIRST_VALUE, <void*>src, NULL, <void*>token, priority))

    def push(self, size_t src, size_t token, int priority=0):
        ok(mercury_submit(self._tensor, MERCURY_PUSH, <void*>src, NULL, <void*>token, priority))

    def pull(self, size_t out, size_t token, int priority=0):
        ok(mercury_submit(self._tensor, MERCURY_PULL, NULL, <void*>out, <void*>token, priority))

    def pushpull(self, size_t src, size_t out, size_t token, int priority=0):
        ok(mercury_submit(
            self._tensor, MERCURY_SUM, <void*>src, <void*>out, <void*>token, priority))

    def _on_memory(self, int kind, object memory, int priority):
        cdef size_t address
        cdef size_t size
        keeps, address, size = memory
        cdef void* data = <void*>address
        _forget_released()
        work = Work.__new__(Work)
        cdef Work made = work
        ok(mercury_submit_memory(
            self._tensor, kind, data if kind != MERCURY_PULL else NULL,
            data if kind != MERCURY_FIRST_VALUE else NULL, size, priority, &made._work))
        made._memory = keeps
        return work

    def sum_memory(self, memory, int priority=0):
        return self._on_memory(MERCURY_SUM, memory, priority)

    def sum_chunks(self, memory, Chunks chunks, size_t size, uint64_t number, int priority=0):
        cdef size_t address, all_
        keeps, address, all_ = memory
        _forget_released()
        work = Work.__new__(Work)
        cdef Work made = work
        ok(mercury_submit_chunks(self._tensor, <void*>address, all_, priority, chunks._chunks, size,
                                 number, &made._work))
        made._memory = keeps
        return work

    def first_value(self, memory):
        return self._on_memory(MERCURY_FIRST_VALUE, memory, 0)

    def pull_memory(self, memory, int priority=0):
        return self._on_memory(MERCURY_PULL, memory, priority)

    def push_rows(self, bytes rows, bytes values, uint32_t row_size):
        cdef size_t count = len(rows) // sizeof(int64_t)
        cdef uint32_t row_bytes = row_size * <uint32_t>self._element_bytes
        if row_bytes == 0 or len(rows) % sizeof(int64_t) or len(values) != count * row_bytes:
            refuse(
                f"{len(rows)} bytes of row numbers and {len(values)} bytes of values are not "
                f"rows of {row_size} elements: give 8 bytes and {row_bytes} bytes for each row")
        cdef mercury_ticket* ticket = NULL
        cdef const char* row_data = rows
        cdef const char* value_data = values
        ok(mercury_push_rows(
            self._tensor, <const int64_t*>row_data, count, value_data, row_bytes, &ticket))
        number = self._next_ticket
        self._next_ticket += 1
        self._tickets[number] = (<size_t>ticket, row_bytes)
        return number

    def wait_rows(self, ticket):
        address, row_bytes = self._tickets[ticket]
        cdef mercury_ticket* state = <mercury_ticket*><size_t>address
        wait_ticket(state)  # stays ours if this raises
        cdef size_t count = mercury_ticket_num_rows(state)
        cdef bytes rows = PyBytes_FromStringAndSize(NULL, count * sizeof(int64_t))
        cdef bytes values = PyBytes_FromStringAndSize(NULL, count * <size_t>row_bytes)
        # Nobody else has them yet.
        mercury_ticket_rows(state, <int64_t*>PyBytes_AS_STRING(rows), PyBytes_AS_STRING(values))
        del self._tickets[ticket]
        mercury_ticket_free(state)
        return rows, values


include "_fabric.pxi"
