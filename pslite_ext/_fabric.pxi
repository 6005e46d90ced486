# A process as a node of an MLfabric job: see _core.pyi. Included by _core.pyx.

cdef extern from "process/fabric_api.h" nogil:
    ctypedef struct mercury_fabric:
        pass
    ctypedef struct mercury_fabric_options:
        int node, workers, servers, replicas
        const char* scheduler_host
        int scheduler_port
        const char* host
        int port
        double link_bit_per_s
        const char* token
        const char* congestion
        int receive_buffer_bytes, checksum, timeout_ms, start_timeout_s
        const char* settings
        double momentum
        int nesterov
        int64_t delay_bound, staleness
        double divergence_bound, batch_s, lag_s
        int aggregators, as_they_come, by_packets, record
        const double* weights
        size_t num_weights
        const char* wire
        int (*update)(void*, float*, const float*, size_t, int64_t, char*, size_t) noexcept
        int (*request)(void*, const float*, float*, size_t, char*, size_t) noexcept
        void* script
    int mercury_fabric_join(const mercury_fabric_options*, const float*, size_t, mercury_fabric**)
    int mercury_fabric_wait(mercury_fabric*, int, int)
    int mercury_fabric_push(mercury_fabric*, const float*, double, int64_t*)
    int mercury_fabric_reduce(mercury_fabric*, const float*)
    const char* mercury_fabric_fate(mercury_fabric*, int64_t)
    int mercury_fabric_ask(mercury_fabric*)
    int mercury_fabric_take(mercury_fabric*, int, float*, int64_t*)
    int mercury_fabric_model(mercury_fabric*, float*, size_t, int64_t*)
    int mercury_fabric_feed(mercury_fabric*, const char*, size_t)
    const char* mercury_fabric_records(mercury_fabric*)
    const char* mercury_fabric_stats(mercury_fabric*)
    int mercury_fabric_failed_elsewhere(mercury_fabric*)
    void mercury_fabric_leave(mercury_fabric*, int)
    void mercury_fabric_free(mercury_fabric*)

cdef extern from "fabric/live/courier.h" namespace "mercury::fabric" nogil:
    const double kPaceHeadroom
    const int64_t kPaceQuantum_bytes
cdef extern from "fabric/chains.h" namespace "mercury::fabric" nogil:
    int64_t PassedOnPacket_bytes(int64_t)
cdef extern from "fabric/live/model_tree.h" namespace "mercury::fabric" nogil:
    const double kWayFull
    const size_t kTreeLeast, kDistributorsMost


def fabric_limits(int64_t update_bytes):
    return {
        "pace_headroom": kPaceHeadroom,
        "passed_on_packet_bytes": PassedOnPacket_bytes(update_bytes),
        "pace_quantum_bytes": kPaceQuantum_bytes,
        "way_full": kWayFull,
        "tree_least": kTreeLeast,
        "distributors_most": kDistributorsMost,
    }


cdef lent(const float* memory, size_t elements, bint writable):
    return PyMemoryView_FromMemory(
        <char*>memory, elements * sizeof(float), PyBUF_WRITE if writable else PyBUF_READ)


cdef int say_failed(failed, char* error, size_t error_bytes) noexcept:
    cdef bytes text = b"an error that has no text"
    try:
        text = f"{type(failed).__name__}: {failed}".encode("utf-8", "backslashreplace")
    except BaseException:  # of its own; that it failed must be said
        pass
    text = text[:error_bytes - 1]
    memcpy(error, <char*>text, len(text) + 1)
    return 1


# On the lane's thread. `script`: Calls of pslite_ext/fabric/calls.py.
cdef int script_updates(
    void* script, float* model, const float* change, size_t elements, int64_t updates,
    char* error, size_t error_bytes
) noexcept with gil:
    try:
        (<object>script).apply(
            lent(model, elements, True), lent(change, elements, False), updates)
    except BaseException as failed:
        return say_failed(failed, error, error_bytes)
    return 0


cdef int script_shows(
    void* script, const float* model, float* shown, size_t elements, char* error,
    size_t error_bytes
) noexcept with gil:
    try:
        (<object>script).show(lent(model, elements, False), lent(shown, elements, True))
    except BaseException as failed:
        return say_failed(failed, error, error_bytes)
    return 0


@cython.no_gc  # the lane calls what it holds
cdef class Fabric:
    cdef mercury_fabric* _fabric
    cdef size_t _elements
    cdef object _calls
    cdef bint _asked  # and its answer has not been taken

    def __cinit__(self, options, model, size_t elements):
        cdef mercury_fabric_options its
        cdef const float[::1] values
        cdef const float* first = NULL
        cdef vector[double] weights = options["weights"]
        names = ("scheduler_host", "host", "token", "congestion", "settings", "wire")
        texts = {name: options[name].encode() for name in names}
        its.node, its.workers = options["node"], options["workers"]
        its.servers = options["servers"]
        its.replicas, its.checksum = options["replicas"], options["checksum"]
        its.scheduler_host, its.scheduler_port = <bytes>texts["scheduler_host"], options["scheduler_port"]
        its.host, its.port = <bytes>texts["host"], options["port"]
        its.link_bit_per_s = options["link_bit_per_s"]
        its.token, its.congestion = <bytes>texts["token"], <bytes>texts["congestion"]
        its.settings, its.wire = <bytes>texts["settings"], <bytes>texts["wire"]
        its.receive_buffer_bytes = options["receive_buffer_bytes"]
        its.timeout_ms, its.start_timeout_s = options["timeout_ms"], options["start_timeout_s"]
        its.delay_bound, its.divergence_bound = options["delay_bound"], options["divergence_bound"]
        its.staleness = options["staleness"]
        its.momentum, its.nesterov = options["momentum"], options["nesterov"]
        its.batch_s, its.lag_s = options["batch_s"], options["lag_s"]
        its.aggregators, its.as_they_come = options["aggregators"], options["as_they_come"]
        its.by_packets, its.record = options["by_packets"], options["record"]
        its.weights, its.num_weights = weights.data(), weights.size()
        self._calls = options["calls"]
        its.script = <void*>self._calls
        its.update = NULL
        its.request = NULL
        if self._calls.update is not None:
            its.update = script_updates
        if self._calls.request is not None:
            its.request = script_shows
        if model is not None:
            values = model
            first = &values[0]
        self._elements = elements
        cdef int code
        with nogil:
            code = mercury_fabric_join(&its, first, elements, &self._fabric)
        ok(code)

    def __dealloc__(self):
        cdef mercury_fabric* its = self._fabric
        if its != NULL:
            with nogil:
                mercury_fabric_free(its)

    def wait(self, int what):
        cdef int code
        with nogil:
            code = mercury_fabric_wait(self._fabric, what, SLICE_MS)
        if code == MERCURY_NOT_YET:
            check_signals()
            return False
        ok(code)
        return True

    def push(self, const float[::1] update, double norm):
        cdef int64_t number = 0
        cdef int code
        self._check(update)
        with nogil:
            code = mercury_fabric_push(self._fabric, &update[0], norm, &number)
        ok(code)
        return number

    def fate(self, int64_t number):
        cdef const char* text
        with nogil:
            text = mercury_fabric_fate(self._fabric, number)
        return text.decode()

    def reduce(self, const float[::1] part, float[::1] out):
        cdef int code
        self._check(part)
        self._check(out)
        self._end()
        with nogil:
            code = mercury_fabric_reduce(self._fabric, &part[0])
        ok(code)
        self._take(&out[0])

    def get(self, float[::1] out):
        self._check(out)
        self._end()
        ok(mercury_fabric_ask(self._fabric))
        return self._take(&out[0])

    def _end(self):
        """The answer to a call that was interrupted is nobody's."""
        if self._asked:
            self._take(NULL)

    cdef _take(self, float* out):
        cdef int64_t version = 0
        cdef int code = MERCURY_NOT_YET
        self._asked = True
        while code == MERCURY_NOT_YET:
            with nogil:
                code = mercury_fabric_take(self._fabric, SLICE_MS, out, &version)
            if code == MERCURY_NOT_YET:
                check_signals()
        self._asked = False
        ok(code)
        return version

    def model(self, float[::1] out):
        cdef int64_t version = 0
        cdef size_t elements = out.shape[0]
        cdef int code
        with nogil:
            code = mercury_fabric_model(self._fabric, &out[0], elements, &version)
        ok(code)
        return version

    def feed(self, bytes line):
        cdef const char* text = line
        cdef size_t size = len(line)
        cdef int code
        with nogil:
            code = mercury_fabric_feed(self._fabric, text, size)
        ok(code)

    def records(self):
        cdef const char* text
        with nogil:
            text = mercury_fabric_records(self._fabric)
        return text.decode()

    def stats(self):
        cdef const char* text
        with nogil:
            text = mercury_fabric_stats(self._fabric)
        return text.decode()

    def failed_elsewhere(self):
        return mercury_fabric_failed_elsewhere(self._fabric) != 0

    def leave(self, failed):
        cdef int how = 1 if failed else 0
        with nogil:
            mercury_fabric_leave(self._fabric, how)

    def _check(self, const float[::1] values):
        if <size_t>values.shape[0] != self._elements:
            refuse(
                f"{values.shape[0]} elements, where the model has {self._elements}")
