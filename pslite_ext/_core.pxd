# cython: language_level=3
"""The C API as _core.pyx calls it: see process/c_api.h."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "process/c_api.h" nogil:
    enum:
        MERCURY_NOT_YET
        MERCURY_SUM
        MERCURY_PUSH
        MERCURY_PULL
        MERCURY_FIRST_VALUE
    ctypedef struct mercury_tensor:
        pass
    ctypedef struct mercury_ticket:
        pass
    ctypedef struct mercury_work:
        pass
    ctypedef struct mercury_failure:
        int code
        uint64_t number
        int role
        int rank
        int about
        uint64_t key
        const char* text
    void mercury_last_failure(mercury_failure*)
    void mercury_word_failures_as(const char*)
    int mercury_start(const char* const*, const char* const*, size_t)
    const char* mercury_policies()
    const char* mercury_compressions()
    const char* mercury_wires()
    const char* mercury_wire()
    int mercury_wait_ready(int)
    int mercury_wait_end(int)
    int mercury_enter_barrier()
    int mercury_wait_barrier(int)
    int mercury_check()
    int mercury_failed()
    int mercury_failed_elsewhere()
    void mercury_finish(const char*, int, int, uint64_t)
    int mercury_other_ended(int, int, const char*, int)
    int mercury_awaits_late()
    void mercury_finish_at_exit(int, int)
    void mercury_say_at_exit(const char*)
    void mercury_park_ended_threads()
    int mercury_rank()
    int mercury_local_rank(int*)
    int mercury_workers()
    int mercury_elastic()
    int mercury_num_lost(int)
    int mercury_places()
    int mercury_outside(int*)
    int mercury_came_late()
    int mercury_next_to_let_in(int*)
    void mercury_say_admission(int, int, int)
    int mercury_wait_admission(int, int, int, int) nogil
    void mercury_do_without(int, const char*)
    const char* mercury_standing()
    int mercury_enter(const char*)
    int mercury_let_in_head()
    int mercury_release_head()
    const char* mercury_sum_instruction_set()
    const char* mercury_figures()
    const char* mercury_waiting()
    void mercury_dump_to(int)
    void mercury_dumped()
    const char* mercury_prophet_profile()
    int mercury_prophet_plan(size_t, const double*, const double*, double, double*)
    int mercury_fabric_plan(const char*, size_t, int, int, const char**)
    int mercury_fabric_tree(const char*, size_t, const char**)
    int mercury_announce(uint64_t, const char*, int)
    int mercury_attach_engine(void*)
    int mercury_claim_model(uint64_t, const char*, mercury_ticket**)
    int mercury_claim_steps(uint64_t, const char*, mercury_ticket**)
    int mercury_tensor_check(const mercury_tensor*)
    int mercury_tensor_agreed(const mercury_tensor*)
    int mercury_tensor_workers(const mercury_tensor*, uint64_t, int, int*) nogil
    int mercury_same_variable(void*, void*)
    int mercury_engine_failure(size_t)
    int mercury_trace_switch(int, mercury_ticket**)
    int mercury_tensor_new(
        uint64_t, uint64_t, const char*, const char*, const char*, const uint64_t*, size_t, int, mercury_tensor**)
    size_t mercury_element_bytes(const char*)
    void mercury_tensor_free(mercury_tensor*)
    int mercury_tensor_set_compression(mercury_tensor*, const char*, float)
    void mercury_tensor_set_use(mercury_tensor*, const char*)
    int mercury_submit(mercury_tensor*, int, void*, void*, void*, int)
    int mercury_submit_memory(mercury_tensor*, int, void*, void*, size_t, int, mercury_work**)
    ctypedef struct mercury_chunks:
        pass
    uint64_t MERCURY_CHUNKS_OVER
    mercury_chunks* mercury_chunks_new()
    int mercury_chunks_pop(mercury_chunks*, int, uint64_t*, uint64_t*) nogil
    void mercury_chunks_free(mercury_chunks*)
    int mercury_submit_chunks(
        mercury_tensor*, void*, size_t, int, mercury_chunks*, size_t, uint64_t, mercury_work**)
    void mercury_work_ready(mercury_work*, size_t)
    int mercury_work_wait(const mercury_work*, int)
    int mercury_work_released(const mercury_work*)
    void mercury_work_free(mercury_work*)
    int mercury_command(int, const char*, size_t, mercury_ticket**)
    int mercury_push_rows(
        mercury_tensor*, const int64_t*, size_t, const char*, uint32_t, mercury_ticket**)
    int mercury_ticket_wait(mercury_ticket*, int)
    size_t mercury_ticket_num_rows(const mercury_ticket*)
    void mercury_ticket_rows(const mercury_ticket*, int64_t*, char*)
    void mercury_ticket_free(mercury_ticket*)
