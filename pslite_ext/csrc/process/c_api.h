/* The C API of the core: what _core.pyx binds, and nothing else of ours is visible to others.
 *
 * Functions return a Code (status.h), or MERCURY_NOT_YET where they wait for at most `slice_ms`;
 * mercury_last_failure() tells of the calling thread's last failure. Thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MERCURY_NOT_YET = -1 };

typedef struct mercury_tensor mercury_tensor;
typedef struct mercury_ticket mercury_ticket;

/* A failure as base/status.h has it: role and rank are the culprit's, role -1: nobody's; `about` is
 * Subject::Kind. Texts are valid until the calling thread's next call. */
typedef struct {
  int code;
  uint64_t number;
  int role, rank;
  int about;
  uint64_t key;
  const char* text;
} mercury_failure;
void mercury_last_failure(mercury_failure* failure);
/* For tests: all failures are told in these words, which stay where they are. */
void mercury_word_failures_as(const char* text);

/* Settings by name, as in pslite_ext/settings_table.py; the others are their defaults. */
int mercury_start(const char* const* names, const char* const* values, size_t count);
/* "priority, fifo, ...": what MERCURY_POLICY may be. */
const char* mercury_policies(void);
/* "1bit, 2bit, ...": how gradients may be compressed. */
const char* mercury_compressions(void);
/* "float32, bf16, ...": what MERCURY_WIRE may be. */
const char* mercury_wires(void);
/* What it is in this process's job, once it is ready. */
const char* mercury_wire(void);
int mercury_wait_ready(int slice_ms);
int mercury_wait_end(int slice_ms);
int mercury_enter_barrier(void);
int mercury_wait_barrier(int slice_ms);
int mercury_check(void);
/* Whether a job that had been joined has failed, and that has been logged. */
int mercury_failed(void);
/* Whether it has, for what another node did. */
int mercury_failed_elsewhere(void);
/* `reason`: why the job fails; "": this process has done its work. Of a failure, its code, and what
   it is about; else 0. */
void mercury_finish(const char* reason, int code, int about, uint64_t key);
/* The scheduler is told that the worker (else the server) of that number has ended, `how` says as
   what; `failed`: it fails the job. 0: it does not listen yet. */
int mercury_other_ended(int is_worker, int rank_hint, const char* how, int failed);
/* Of a scheduler: the start has failed, and some may still come who do not know. */
int mercury_awaits_late(void);
/* Finishes once the process ends: any exit code but 0 fails the job. `code` above 0 becomes the
   exit code, if that says nothing in particular (0 or 1) or `over_chosen`. */
void mercury_finish_at_exit(int code, int over_chosen);
/* Once the process ends, if its exit code is 0: a line on standard error. */
void mercury_say_at_exit(const char* line);
/* As Python ends: a thread that it ends inside C++ stands still, and nothing is aborted. */
void mercury_park_ended_threads(void);
int mercury_rank(void);
/* This worker's number among those of its host, and how many there are. */
int mercury_local_rank(int* size);
/* How many workers the job has now; 0: it has not begun. */
int mercury_workers(void);
/* Whether it goes on without those that it loses. */
int mercury_elastic(void);
int mercury_num_lost(int group);
/* For how many workers the job has places. */
int mercury_places(void);
/* Workers that come while the job runs (newcomers_api.cc): by rank, and by how many have had its
   place before. Whether this process has come so, and is still to be let in. */
int mercury_outside(int* entry);
/* Whether it has come so at all. */
int mercury_came_late(void);
/* Whom this worker is to let in; -1: nobody, now. */
int mercury_next_to_let_in(int* entry);
/* `admission` as control/membership.h has it. */
void mercury_say_admission(int rank, int entry, int admission);
int mercury_wait_admission(int rank, int entry, int admission, int slice_ms);
/* The job goes on without the newcomer, for `why`. */
void mercury_do_without(int rank, const char* why);
/* Where this worker stands, for one that is let in, while nothing is under way; of that one. */
const char* mercury_standing(void);
int mercury_enter(const char* standing);
/* Heads of commands. */
int mercury_let_in_head(void);
int mercury_release_head(void);
const char* mercury_sum_instruction_set(void);
/* The data plane's live figures: a JSON object, valid until the calling thread's next call. */
const char* mercury_figures(void);
/* For a dump: what a worker waits for, and who is in the job. Valid as the figures are. */
const char* mercury_waiting(void);
/* When a stall ends the job, a byte is written to `fd`, and mercury_dumped is waited for a moment.
 */
void mercury_dump_to(int fd);
void mercury_dumped(void);
/* This worker's Prophet profile, as text; "" if there is none. Valid as the figures are. */
const char* mercury_prophet_profile(void);
/* Algorithm 1: when each of `count` gradients, the most urgent first, starts. All in one unit. */
int mercury_prophet_plan(size_t count, const double* produced, const double* wire, double startup,
                         double* start);
/* MLfabric's plan of a batch (docs/fabric-plan.md), as JSON or, `in_words`, explained; `search`: by
 * the local search, too. `plan` is valid until the calling thread's next call. */
int mercury_fabric_plan(const char* batch, size_t bytes, int search, int in_words,
                        const char** plan);

/* How one version of the model gets to the workers of a batch with one server, in words; `tree` is
 * valid until the calling thread's next call. */
int mercury_fabric_tree(const char* batch, size_t bytes, const char** tree);

int mercury_announce(uint64_t key, const char* name, int priority);
int mercury_attach_engine(void* libmxnet);
/* Whether two NDArrays are views of one, so that no operation may read one and write the other. */
int mercury_same_variable(void* a, void* b);
/* What operations have failed of, each failure once; 0 past the last. */
int mercury_engine_failure(size_t index);

/* `label`: what errors about what workers disagree on begin with. `parameter`: the key by which it
 * was announced; one parameter may have several tensors. */
int mercury_tensor_new(uint64_t key, uint64_t parameter, const char* name, const char* label,
                       const char* dtype, const uint64_t* shape, size_t dimensions,
                       int asynchronous, mercury_tensor** tensor);
/* Bytes of an element of a type by name; 0 for a type that is not ours. */
size_t mercury_element_bytes(const char* dtype);
void mercury_tensor_free(mercury_tensor* tensor);
int mercury_tensor_set_compression(mercury_tensor* tensor, const char* kind, float threshold);
/* What later sums are for, such as "SGD", in a line: all workers must say the same. */
void mercury_tensor_set_use(mercury_tensor* tensor, const char* use);

/* What workers disagree on about it, once that is known. */
int mercury_tensor_check(const mercury_tensor* tensor);
/* Whether all workers are known to have this tensor, and have it alike. */
int mercury_tensor_agreed(const mercury_tensor* tensor);
/* Of how many workers its sum number `sum` was, from 1; 0: the last one that is in. */
int mercury_tensor_workers(const mercury_tensor* tensor, uint64_t sum, int slice_ms, int* workers);

/* What may be submitted with arrays: Operation::Kind (transport/operation.h). */
enum { MERCURY_SUM = 0, MERCURY_PUSH = 1, MERCURY_PULL = 2, MERCURY_FIRST_VALUE = 4 };
/* Queues an operation in MXNet's engine; src, out and token are NDArrayHandles. A kind that does
 * not read (write) takes no src (out); src may be out. */
int mercury_submit(mercury_tensor* tensor, int kind, void* src, void* out, void* token,
                   int priority);

typedef struct mercury_work mercury_work;
/* The same kinds, on memory of `bytes` that no engine orders: submitted at once, over when the work
 * is. The memory stays as it is until the work has released it, and a tensor has one work at a
 * time. */
int mercury_submit_memory(mercury_tensor* tensor, int kind, void* src, void* out, size_t bytes,
                          int priority, mercury_work** work);
/* Sums in place that go and come in chunks of `chunk_bytes`. Of the memory, nothing is read before
 * mercury_work_ready says that so many bytes, from the first on, are there. Whose sums are in, by
 * what the caller calls them and the number of the chunk, comes out of a queue;
 * MERCURY_CHUNKS_OVER: that is all of it, well or not. */
typedef struct mercury_chunks mercury_chunks;
#define MERCURY_CHUNKS_OVER (~(uint64_t)0)
mercury_chunks* mercury_chunks_new(void);
int mercury_chunks_pop(mercury_chunks* chunks, int slice_ms, uint64_t* sum, uint64_t* chunk);
void mercury_chunks_free(mercury_chunks* chunks);
int mercury_submit_chunks(mercury_tensor* tensor, void* memory, size_t bytes, int priority,
                          mercury_chunks* chunks, size_t chunk_bytes, uint64_t sum,
                          mercury_work** work);
void mercury_work_ready(mercury_work* work, size_t bytes);
int mercury_work_wait(const mercury_work* work, int slice_ms);
/* Whether nobody reads or writes its memory any more. */
int mercury_work_released(const mercury_work* work);
void mercury_work_free(mercury_work* work);

/* What Python waits for: a command, or the sum of a row-sparse round. */
int mercury_command(int head, const char* body, size_t bytes, mercury_ticket** ticket);
int mercury_push_rows(mercury_tensor* tensor, const int64_t* rows, size_t num_rows,
                      const char* values, uint32_t row_bytes, mercury_ticket** ticket);
/* `keys`: a line for each: key, tab, name. Waited for until all workers have said the same. */
int mercury_claim_model(uint64_t subject, const char* keys, mercury_ticket** ticket);
/* `told`: what the optimizer has been told so far. `subject`: another one each time. */
int mercury_claim_steps(uint64_t subject, const char* told, mercury_ticket** ticket);
/* Records from the next iteration on, or no more, here and on the servers. */
int mercury_trace_switch(int on, mercury_ticket** ticket);
int mercury_ticket_wait(mercury_ticket* ticket, int slice_ms);
size_t mercury_ticket_num_rows(const mercury_ticket* ticket);
void mercury_ticket_rows(const mercury_ticket* ticket, int64_t* rows, char* values);
void mercury_ticket_free(mercury_ticket* ticket);

#ifdef __cplusplus
}
#endif
