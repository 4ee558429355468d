// Dimensions that several tensors are walked along together, outermost first.
template <class Index, int RANK, int TENSORS> struct Walk {
    int64 extents[RANK];
    int64 strides[TENSORS][RANK];

    // The place of element i in each tensor.
    void at(Index i, int64 (&places)[TENSORS]) const {
        for (int t = 0; t < TENSORS; t++) places[t] = 0;
        for (int d = RANK - 1; d >= 0; d--) {
            Index extent = (Index)extents[d], step = d ? i % extent : i;
            if (d) i /= extent;
            for (int t = 0; t < TENSORS; t++) places[t] += (int64)step * strides[t][d];
        }
    }

    int64 at(Index i) const {
        int64 places[TENSORS];
        at(i, places);
        return places[0];
    }
};

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
