/* Trains a network that Python recorded, without Python: prints the loss of each step in
 * hexadecimal, which shows all its bits, and saves the trained step. See digits_step.py. */
#include <stdio.h>
#include <stdlib.h>

#include "singa_step.h"

static void check(int status) {
    if (status != SINGA_OK) {
        fprintf(stderr, "train: %s\n", singa_step_error());
        exit(1);
    }
}

/* Binds the next tensor in a file to an argument; returns 0 at the end of the file. */
static int bind_next(singa_step *step, size_t argument, FILE *file) {
    singa_tensor tensor;
    check(singa_step_describe(step, SINGA_ARGUMENT, argument, &tensor));
    void *data = malloc(tensor.bytes);
    int is_there = data && fread(data, 1, tensor.bytes, file) == tensor.bytes;
    if (is_there) check(singa_step_bind(step, argument, data, tensor.bytes));
    free(data);
    return is_there;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: train STEP BATCHES TRAINED\n");
        return 2;
    }
    FILE *batches = fopen(argv[2], "rb");
    if (!batches) {
        perror(argv[2]);
        return 1;
    }
    singa_step *step;
    check(singa_step_open(argv[1], &step));
    while (bind_next(step, 0, batches) && bind_next(step, 1, batches)) {
        float loss;
        check(singa_step_run(step));
        check(singa_step_read(step, SINGA_RESULT, 1, &loss, sizeof loss));
        printf("%a\n", loss);
    }
    fclose(batches);
    check(singa_step_save(step, argv[3]));
    check(singa_step_close(step));
    return 0;
}
