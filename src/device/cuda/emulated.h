// CUDA C on a processor without a GPU, for tests: the threads of a block run one after the other
// between two barriers, each on a stack of its own, and the blocks one after the other.

#include <cmath>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __restrict__ __restrict

using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::ceil, std::copysign,
    std::cos, std::cosh, std::erf, std::erfc, std::exp, std::expm1, std::fabs, std::floor, std::fma,
    std::fmax, std::fmin, std::fmod, std::lgamma, std::log, std::log1p, std::pow, std::rint,
    std::round, std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::trunc;

struct Place { unsigned x, y, z; };
static thread_local Place threadIdx, blockIdx, blockDim, gridDim;

inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
inline double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }
inline void atomicMin(unsigned long long *place, unsigned long long value) {
    if (value < *place) *place = value;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }

inline float half_to_float(unsigned short bits) {
    unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, digits = bits & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | digits << 13);
    float size = exponent ? ldexpf(1024 + digits, int(exponent) - 25) : ldexpf(digits, -24);
    return sign ? -size : size;
}
inline unsigned short float_to_half(float value) {
    unsigned short sign = __float_as_uint(value) >> 16 & 0x8000;
    float size = std::fabs(value);
    if (value != value) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 6.103515625e-5f) return sign | (unsigned short)std::rint(ldexpf(size, 24));
    int exponent;
    frexpf(size, &exponent);
    // Rounding up to the next power of two carries into the exponent's bits.
    return sign | (unsigned short)((exponent + 13) * 1024 +
        (int)std::rint(ldexpf(size, 11 - exponent)));
}

inline double sinpi(double x) { return std::sin(M_PI * x); }
inline double cospi(double x) { return std::cos(M_PI * x); }
inline float sinpi(float x) { return (float)std::sin(M_PI * x); }
inline float cospi(float x) { return (float)std::cos(M_PI * x); }
inline double erfcx(double x) {
    if (x < 20) return std::exp(x * x) * std::erfc(x);
    double r = 0.5 / (x * x);
    return 0.5641895835477563 / x * (1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r))));
}
inline double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// The point at which an increasing function has a value, by bisection.
template <class F> double inverse(F f, double value, double low, double high) {
    for (int i = 0; i < 200; i++) {
        double middle = 0.5 * (low + high);
        (f(middle) < value ? low : high) = middle;
    }
    return 0.5 * (low + high);
}
inline double normcdfinv(double p) {
    if (!(p >= 0 && p <= 1)) return NAN;
    if (p == 0 || p == 1) return p ? INFINITY : -INFINITY;
    if (p == 0.5) return 0;
    if (p > 0.5) return inverse([](double x) { return -normcdf(-x); }, p - 1, 0, 40);
    return inverse([](double x) { return normcdf(x); }, p, -40, 0);
}
inline double erfinv(double y) {
    if (!(y >= -1 && y <= 1)) return NAN;
    if (std::fabs(y) == 1) return y * INFINITY;
    double x = std::fabs(y) < 0.5
        ? inverse([](double x) { return std::erf(x); }, std::fabs(y), 0, 1)
        : inverse([](double x) { return -std::erfc(x); }, std::fabs(y) - 1, 0, 7);
    return std::copysign(x, y);
}
inline float erfcx(float x) { return (float)erfcx((double)x); }
inline float normcdf(float x) { return (float)normcdf((double)x); }
inline float normcdfinv(float p) { return (float)normcdfinv((double)p); }
inline float erfinv(float y) { return (float)erfinv((double)y); }

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
    void (*body)(void *);
    void *of;
};
static thread_local Block block;

inline void barrier() {
    if (!_setjmp(block.threads[block.current].turn)) _longjmp(block.turns, 1);
    threadIdx.x = block.current;
}
inline void __syncthreads() { barrier(); }

// Every lane of a warp takes part, so that a barrier of the block serves.
template <class T> T __shfl_xor_sync(unsigned, T value, int lanes) {
    static thread_local T sent[1024];
    sent[threadIdx.x] = value;
    barrier();
    T got = sent[threadIdx.x ^ lanes];
    barrier();
    return got;
}

inline void enter() {
    block.body(block.of);
    block.threads[block.current].is_done = true;
    _longjmp(block.turns, 1);
}

// Lets one thread run to its next barrier.
inline void step(unsigned i) {
    Block::Thread &thread = block.threads[i];
    block.current = threadIdx.x = i;
    if (_setjmp(block.turns)) return;
    if (thread.is_entered) _longjmp(thread.turn, 1);
    thread.is_entered = true;
    swapcontext(&block.start, &thread.context);
}

inline void run_block(unsigned count) {
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

// Kernels without barriers need no stacks.
template <class F> void run_grid(unsigned blocks, unsigned threads, bool has_barriers, F body) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    for (unsigned b = 0; b < blocks; b++) {
        blockIdx = {b, 0, 0};
        if (has_barriers) {
            block.body = [](void *of) { (*(F *)of)(); };
            block.of = &body;
            run_block(threads);
        } else {
            for (unsigned t = 0; t < threads; t++) {
                threadIdx = {t, 0, 0};
                body();
            }
        }
    }
}
