// CUDA C on a processor without a GPU, for tests. Every kernel is compiled behind this text, which
// includes no other: reading the standard library's takes longer than compiling a kernel.

#define __global__
#define __device__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __restrict__ __restrict

#define M_PI 3.14159265358979323846
#define M_SQRT1_2 0.70710678118654752440
#define frexpf __builtin_frexpf
#define ldexpf __builtin_ldexpf
#define memcpy __builtin_memcpy

#define OF_ONE(name) \
    inline double name(double x) { return __builtin_##name(x); } \
    inline float name(float x) { return __builtin_##name##f(x); }
#define OF_TWO(name) \
    inline double name(double x, double y) { return __builtin_##name(x, y); } \
    inline float name(float x, float y) { return __builtin_##name##f(x, y); }
OF_ONE(acos) OF_ONE(acosh) OF_ONE(asin) OF_ONE(asinh) OF_ONE(atan) OF_ONE(atanh) OF_ONE(ceil)
OF_ONE(cos) OF_ONE(cosh) OF_ONE(erf) OF_ONE(erfc) OF_ONE(exp) OF_ONE(exp2) OF_ONE(expm1)
OF_ONE(fabs) OF_ONE(floor) OF_ONE(lgamma) OF_ONE(log) OF_ONE(log1p) OF_ONE(log2) OF_ONE(log10)
OF_ONE(rint) OF_ONE(round) OF_ONE(sin)
OF_ONE(sinh) OF_ONE(sqrt) OF_ONE(tan) OF_ONE(tanh) OF_ONE(trunc)
OF_TWO(copysign) OF_TWO(fmax) OF_TWO(fmin) OF_TWO(fmod) OF_TWO(pow)
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }

struct Place { unsigned x, y, z; };
extern __thread Place threadIdx, blockIdx, blockDim, gridDim;

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
    float size = fabs(value);
    if (value != value) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 6.103515625e-5f) return sign | (unsigned short)rint(ldexpf(size, 24));
    int exponent;
    frexpf(size, &exponent);
    // Rounding up to the next power of two carries into the exponent's bits.
    return sign | (unsigned short)((exponent + 13) * 1024 +
        (int)rint(ldexpf(size, 11 - exponent)));
}

inline double sinpi(double x) { return sin(M_PI * x); }
inline double cospi(double x) { return cos(M_PI * x); }
inline float sinpi(float x) { return (float)sin(M_PI * x); }
inline float cospi(float x) { return (float)cos(M_PI * x); }
inline double erfcx(double x) {
    if (x < 20) return exp(x * x) * erfc(x);
    double r = 0.5 / (x * x);
    return 0.5641895835477563 / x * (1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r))));
}
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }

// The point at which an increasing function has a value, by bisection.
template <class F> double inverse(F f, double value, double low, double high) {
    for (int i = 0; i < 200; i++) {
        double middle = 0.5 * (low + high);
        (f(middle) < value ? low : high) = middle;
    }
    return 0.5 * (low + high);
}
inline double normcdfinv(double p) {
    if (!(p >= 0 && p <= 1)) return __builtin_nanf("");
    if (p == 0 || p == 1) return p ? __builtin_inff() : -__builtin_inff();
    if (p == 0.5) return 0;
    if (p > 0.5) return inverse([](double x) { return -normcdf(-x); }, p - 1, 0, 40);
    return inverse([](double x) { return normcdf(x); }, p, -40, 0);
}
inline double erfinv(double y) {
    if (!(y >= -1 && y <= 1)) return __builtin_nanf("");
    if (fabs(y) == 1) return y * __builtin_inff();
    double x = fabs(y) < 0.5
        ? inverse([](double x) { return erf(x); }, fabs(y), 0, 1)
        : inverse([](double x) { return -erfc(x); }, fabs(y) - 1, 0, 7);
    return copysign(x, y);
}
inline float erfcx(float x) { return (float)erfcx((double)x); }
inline float normcdf(float x) { return (float)normcdf((double)x); }
inline float normcdfinv(float p) { return (float)normcdfinv((double)p); }
inline float erfinv(float y) { return (float)erfinv((double)y); }

// Waits until all threads of the block are here.
void barrier();
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

// Runs a kernel's threads, block by block. Without barriers they need no stacks.
void run_grid(
    unsigned blocks, unsigned threads, bool has_barriers, void (*body)(const void *), const void *of
);
