/* The C API of MLfabric's live system: a process as a node of such a job, beside c_api.h and by its
 * rules: functions return a Code or MERCURY_NOT_YET, mercury_last_failure() tells which.
 *
 * Thread-safety: all functions, but the free of what others use. In a child that a node's process
 * has forked, everything that can fail is kClosed, and nothing else does anything. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mercury_fabric mercury_fabric;

/* What a script does where the model is (fabric/net/server_calls.h). 0: done; 1: it failed, and
 * `error`, of `error_bytes`, says how. */
typedef int (*mercury_fabric_update_call)(void* script, float* model, const float* change,
                                          size_t elements, int64_t updates, char* error,
                                          size_t error_bytes);
typedef int (*mercury_fabric_request_call)(void* script, const float* model, float* shown,
                                           size_t elements, char* error, size_t error_bytes);

typedef struct {
  int node; /* as fabric/live/node_numbers.h numbers them */
  int workers;
  int servers;
  int replicas;
  const char* scheduler_host;
  int scheduler_port;
  const char* host; /* to listen on */
  int port;
  double link_bit_per_s; /* of the network card; 0: it is not known */
  const char* token;
  const char* congestion;
  int receive_buffer_bytes;
  int checksum;
  int timeout_ms; /* silence after which a node is lost */
  int start_timeout_s;
  const char* settings; /* NAME=value lines: what the scheduler uses, what another node was told */
  /* What the server does with updates, as the scheduler uses it or as a worker's optimizer asks. */
  double momentum; /* below 0: this node does not say */
  int nesterov;
  /* The scheduler's: */
  int64_t delay_bound;
  int64_t staleness; /* 0: synchronous, -1: asynchronous */
  double divergence_bound;
  double batch_s; /* 0: as soon as the network is idle */
  double lag_s;
  int aggregators;       /* that groups of a plan may have, at most */
  int as_they_come;      /* 1: updates are not ordered */
  int by_packets;        /* 1: sums go on packet by packet; 0: whole */
  int record;            /* 1: what happens, for mercury_fabric_records */
  const double* weights; /* of the workers' updates, by rank */
  size_t num_weights;    /* 0: all are 1 */
  const char* wire;      /* as what updates travel: "float32", or a codec's name */
  /* Of the server and its replicas; null: the job's rule. */
  mercury_fabric_update_call update;
  mercury_fabric_request_call request;
  void* script;
} mercury_fabric_options;

enum { MERCURY_FABRIC_BEGUN = 0, MERCURY_FABRIC_ENDED = 1, MERCURY_FABRIC_SETTLED = 2 };

/* `model`: the first values. Of a server or replica: null, without elements, if worker 0 is to
 * give them. Of a worker: null if it has none to give. */
int mercury_fabric_join(const mercury_fabric_options* options, const float* model, size_t elements,
                        mercury_fabric** fabric);
/* For the job's beginning or end, or until it is known what became of all that was pushed. */
int mercury_fabric_wait(mercury_fabric* fabric, int what, int slice_ms);
/* `update` is copied. */
int mercury_fabric_push(mercury_fabric* fabric, const float* update, double norm, int64_t* number);
/* A part of the sum over all workers, which mercury_fabric_take then brings. */
int mercury_fabric_reduce(mercury_fabric* fabric, const float* part);
/* "committed", or why not; "": not known yet, or forgotten. */
const char* mercury_fabric_fate(mercury_fabric* fabric, int64_t number);
int mercury_fabric_ask(mercury_fabric* fabric);
/* `out` null: what has come is nobody's. */
int mercury_fabric_take(mercury_fabric* fabric, int slice_ms, float* out, int64_t* version);
/* Of a server or replica. */
int mercury_fabric_model(mercury_fabric* fabric, float* out, size_t elements, int64_t* version);
/* A line of a feed of rates (docs/fabric.md), to the scheduler. */
int mercury_fabric_feed(mercury_fabric* fabric, const char* line, size_t bytes);
/* Lines of JSON that nobody has taken yet, valid until the calling thread's next call. */
const char* mercury_fabric_records(mercury_fabric* fabric);
/* JSON, valid until the calling thread's next call. */
const char* mercury_fabric_stats(mercury_fabric* fabric);
/* 1: the job has failed for what another node did or suffered. */
int mercury_fabric_failed_elsewhere(mercury_fabric* fabric);
void mercury_fabric_leave(mercury_fabric* fabric, int failed);
void mercury_fabric_free(mercury_fabric* fabric);

#ifdef __cplusplus
}
#endif
