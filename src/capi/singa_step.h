/* Recorded steps in C: training and evaluation without Python. See docs/steps.md.
 *
 * Build the library with `make library`; link with target/library/release/libsinga_rs.so.
 *
 * Every function returns SINGA_OK or why it failed; singa_step_error() then tells more. A failed
 * call changes nothing, unless it is a run, which may have written states. Data is row-major and in
 * the machine's byte order, as singa_step_describe tells: for float32 an array of float, for bool
 * one byte an element. The caller owns all data that it passes; it is copied before the function
 * returns. A step belongs to one thread at a time; different steps may be used at once, and run one
 * after another. */
#ifndef SINGA_STEP_H
#define SINGA_STEP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SINGA_OK = 0,
    SINGA_INVALID = 1, /* an argument that does not fit: null, an index, a size, a value */
    SINGA_FILE = 2,    /* a file that cannot be read or written, is damaged or of another kind */
    SINGA_MEMORY = 3,  /* there is not enough memory */
    SINGA_FAILED = 4   /* anything else */
};

/* The tensors of a step: what it takes, what it returns, and what it keeps from run to run:
 * parameters, moments, averages, counters, the random generator. */
enum { SINGA_ARGUMENT = 0, SINGA_RESULT = 1, SINGA_STATE = 2 };

typedef struct singa_step singa_step;

/* A description, which the step owns until it is closed. */
typedef struct {
    const char *name;
    const char *dtype; /* NumPy's name: "float32", "int64", ... */
    size_t rank;
    const size_t *shape;
    size_t bytes; /* of its elements */
} singa_tensor;

/* Reads and plans a step, which singa_step_close releases. */
int singa_step_open(const char *path, singa_step **step);

/* Releases a step; null is allowed. */
int singa_step_close(singa_step *step);

/* How many tensors of a kind (SINGA_ARGUMENT, ...) there are. */
int singa_step_count(const singa_step *step, int kind, size_t *count);

/* Describes one of them. */
int singa_step_describe(const singa_step *step, int kind, size_t index, singa_tensor *tensor);

/* The index of the one with this name. */
int singa_step_find(const singa_step *step, int kind, const char *name, size_t *index);

/* Writes an argument; it stays for the runs that follow, until it is bound again. */
int singa_step_bind(singa_step *step, size_t argument, const void *data, size_t bytes);

/* Runs the step once on what was bound. */
int singa_step_run(singa_step *step);

/* Copies a result of the last run, or a state, to `data`. */
int singa_step_read(const singa_step *step, int kind, size_t index, void *data, size_t bytes);

/* Writes a state. */
int singa_step_write(singa_step *step, size_t state, const void *data, size_t bytes);

/* Writes the step with its present states to a file, which is replaced as a whole. */
int singa_step_save(const singa_step *step, const char *path);

/* Why this thread's last failed call failed; empty if none has. Valid until its next call. */
const char *singa_step_error(void);

#ifdef __cplusplus
}
#endif

#endif
