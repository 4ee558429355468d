// Runs the threads of a kernel on a processor: those of a block one after the other between two
// barriers, each on a stack of its own, and the blocks one after the other. Compiled once, and linked
// to every kernel.

#include <csetjmp>
#include <cstddef>
#include <memory>
#include <ucontext.h>
#include <vector>

struct Place { unsigned x, y, z; };
__thread Place threadIdx, blockIdx, blockDim, gridDim;

// One block: a stack for each thread, and whose turn it is. Stacks are entered by contexts, once for
// all blocks, and switched by jumps, which make no system call.
struct Block {
    struct Thread {
        ucontext_t context;
        jmp_buf turn;
        std::unique_ptr<char[]> stack{new char[STACK]};
        bool is_entered = false, is_done;
    };
    static constexpr size_t STACK = 256 << 10;
    std::vector<Thread> threads;
    ucontext_t start;
    jmp_buf turns;
    unsigned current;
    void (*body)(const void *);
    const void *of;
};
static thread_local Block block;

// Returns when the current thread has its turn again.
static void end_turn(Block &here) {
    if (!_setjmp(here.threads[here.current].turn)) _longjmp(here.turns, 1);
    threadIdx.x = here.current;
}

void barrier() { end_turn(block); }

// What a thread does: its part of one block after the other.
static void enter() {
    for (Block &here = block;; end_turn(here)) {
        here.body(here.of);
        here.threads[here.current].is_done = true;
    }
}

// Lets one thread run to its next barrier.
static void step(Block &here, unsigned i) {
    Block::Thread &thread = here.threads[i];
    here.current = threadIdx.x = i;
    if (_setjmp(here.turns)) return;
    if (thread.is_entered) _longjmp(thread.turn, 1);
    thread.is_entered = true;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = Block::STACK;
    makecontext(&thread.context, enter, 0);
    swapcontext(&here.start, &thread.context);
}

static void run_block(Block &here, unsigned count) {
    if (here.threads.size() < count) here.threads.resize(count);
    for (unsigned i = 0; i < count; i++) here.threads[i].is_done = false;
    for (unsigned left = count; left > 0;) {
        for (unsigned i = 0; i < count; i++) {
            if (here.threads[i].is_done) continue;
            step(here, i);
            left -= here.threads[i].is_done;
        }
    }
}

void run_grid(
    unsigned blocks, unsigned threads, bool has_barriers, void (*body)(const void *), const void *of
) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    for (unsigned b = 0; b < blocks; b++) {
        blockIdx = {b, 0, 0};
        if (has_barriers) {
            block.body = body;
            block.of = of;
            run_block(block, threads);
        } else {
            for (unsigned t = 0; t < threads; t++) {
                threadIdx = {t, 0, 0};
                body(of);
            }
        }
    }
}
