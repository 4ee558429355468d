// Dimensions that several tensors are walked along together, outermost first. Where elements are
// counted in 32 bits, so are steps.
template <class Index, int RANK, int TENSORS> struct Walk {
    int64 extents[RANK];
    int64 strides[TENSORS][RANK];

    // The place of element i in each tensor.
    void at(Index i, int64 (&places)[TENSORS]) const {
        for (int t = 0; t < TENSORS; t++) places[t] = 0;
        for (int d = RANK - 1; d >= 0; d--) {
            Index extent = (Index)extents[d], step = d ? i % extent : i;
            if (d) i /= extent;
            for (int t = 0; t < TENSORS; t++) {
                if constexpr (sizeof(Index) == 4) places[t] += (int64)(int32)step * (int32)strides[t][d];
                else places[t] += (int64)step * strides[t][d];
            }
        }
    }

    int64 at(Index i) const {
        int64 places[TENSORS];
        at(i, places);
        return places[0];
    }
};

// Some neighbours in memory, which are moved by one access where their address allows it.
#define WIDE 4
template <class T> struct alignas(WIDE * sizeof(T) < 16 ? WIDE * sizeof(T) : 16) Neighbours { T of[WIDE]; };

template <class T> bool is_aligned(const T *at) {
    return (uint64)at % alignof(Neighbours<T>) == 0;
}

// Elements from `i` on; the last one stands for those that are not there.
template <class T> void fetch(T (&to)[WIDE], const T *from, int64 i, int64 count) {
    if (i + WIDE <= count && is_aligned(from + i)) {
        Neighbours<T> all = *(const Neighbours<T> *)(from + i);
        for (int u = 0; u < WIDE; u++) to[u] = all.of[u];
    } else {
        for (int u = 0; u < WIDE; u++) to[u] = from[i + u < count ? i + u : count - 1];
    }
}

template <class T> void keep(const T (&from)[WIDE], T *to, int64 i, int64 count) {
    if (i + WIDE <= count && is_aligned(to + i)) {
        Neighbours<T> all;
        for (int u = 0; u < WIDE; u++) all.of[u] = from[u];
        *(Neighbours<T> *)(to + i) = all;
    } else {
        for (int u = 0; u < WIDE && i + u < count; u++) to[i + u] = from[u];
    }
}

// What values are combined by; the greatest is NaN if one is.
template <class T> T added(T a, T b) { return a + b; }
template <class T> T greater(T a, T b) { return larger(a, b); }

// A value of each thread of a block, combined in an order that depends on the number of threads
// alone: every thread gets the result.
template <class T, class F> T combined(T value, F combine) {
    __shared__ T values[1024];
    values[threadIdx.x] = value;
    for (unsigned count = blockDim.x; count > 1;) {
        unsigned half = (count + 1) / 2;
        __syncthreads();
        if (threadIdx.x + half < count) {
            values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
        }
        count = half;
    }
    __syncthreads();
    T result = values[0];
    __syncthreads();
    return result;
}
