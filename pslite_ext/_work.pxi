# Operations on plain memory; included by _core.pyx.

# Works that were dropped while their memory was in use; it is freed once it is not.
_dropped = []


def _forget_released():
    _dropped[:] = [work for work in _dropped if not work.released]


@cython.no_gc  # its cycles are not broken up: the memory would go first
cdef class Work:
    cdef mercury_work* _work
    cdef object _memory  # what keeps it where it is

    def __dealloc__(self):
        cdef Work heir
        if self._work == NULL:
            return
        if mercury_work_released(self._work):
            mercury_work_free(self._work)
        else:
            heir = Work.__new__(Work)
            heir._work, heir._memory = self._work, self._memory
            if _dropped is not None:
                _dropped.append(heir)
            else:
                Py_INCREF(heir)  # Python is ending, and nobody will look

    @property
    def released(self):
        return mercury_work_released(self._work) != 0

    def ready(self, size_t size):
        mercury_work_ready(self._work, size)

    @property
    def over(self):
        return self._over(mercury_work_wait(self._work, 0))

    def wait(self):
        cdef int code = mercury_work_wait(self._work, 0)
        while not self._over(code):
            with nogil:
                code = mercury_work_wait(self._work, SLICE_MS)
            check_signals()

    def _over(self, int code):
        if code == MERCURY_NOT_YET:
            return False
        ok(code)
        return True


cdef class Chunks:
    cdef mercury_chunks* _chunks

    def __cinit__(self):
        self._chunks = mercury_chunks_new()

    def __dealloc__(self):
        mercury_chunks_free(self._chunks)

    def pop(self):
        cdef uint64_t sum_, chunk
        cdef int code
        with nogil:
            code = mercury_chunks_pop(self._chunks, SLICE_MS, &sum_, &chunk)
        if code == MERCURY_NOT_YET:
            return None
        return sum_, None if chunk == MERCURY_CHUNKS_OVER else chunk
