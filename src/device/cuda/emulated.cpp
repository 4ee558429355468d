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

// One block: a stack for each thread, and whose turn it is. Stacks are entered by contexts, and
// switched by jumps, which make no system call.
struct Block {
    struct Thread {
        ucontext_t context;
        jmp_buf turn;
        std::unique_ptr<char[]> stack{new char[STACK]};
        bool is_entered, is_done;
    };
    static constexpr size_t STACK = 64 << 10;
    std::vector<Thread> threads;
    ucontext_t start;
    jmp_buf turns;
    unsigned current;
    void (*body)(const void *);
    const void *of;
};
static thread_local Block block;

void barrier() {
    if (!_setjmp(block.threads[block.current].turn)) _longjmp(block.turns, 1);
    threadIdx.x = block.current;
}

static void enter() {
    block.body(block.of);
    block.threads[block.current].is_done = true;
    _longjmp(block.turns, 1);
}

// Lets one thread run to its next barrier.
static void step(unsigned i) {
    Block::Thread &thread = block.threads[i];
    block.current = threadIdx.x = i;
    if (_setjmp(block.turns)) return;
    if (thread.is_entered) _longjmp(thread.turn, 1);
    thread.is_entered = true;
    swapcontext(&block.start, &thread.context);
}

static void run_block(unsigned count) {
    if (block.threads.size() < count) block.threads.resize(count);
    for (unsigned i = 0; i < count; i++) {
        Block::Thread &thread = block.threads[i];
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.get();
        thread.context.uc_stack.ss_size = Block::STACK;
        thread.is_entered = thread.is_done = false;
        makecontext(&thread.context, enter, 0);
    }
    for (unsigned left = count; left > 0;) {
        for (unsigned i = 0; i < count; i++) {
            if (block.threads[i].is_done) continue;
            step(i);
            left -= block.threads[i].is_done;
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
            run_block(threads);
        } else {
            for (unsigned t = 0; t < threads; t++) {
                threadIdx = {t, 0, 0};
                body(of);
            }
        }
    }
}
