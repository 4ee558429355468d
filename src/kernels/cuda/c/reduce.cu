// Reductions: an accumulator takes values one by one, and two of them are joined.

template <class T> struct Total { T value; };
template <class T> struct Extreme { T value; int64 place; bool is_any; };

// What a sum of T becomes: floats are added up as doubles.
template <class T, class Sum> auto total_of(Sum sum) {
    if constexpr (is_float<T>) return T(sum);
    else return sum;
}

// T: the type that is computed in; `Acc` the accumulator, made of bits alone.
template <class T, class Sum> struct Adding {
    typedef Total<Sum> Acc;
    static Acc none() { return {Sum(0)}; }
    static Acc take(Acc a, T x, int64) { return {plus(a.value, Sum(x))}; }
    static Acc join(Acc a, Acc b) { return {plus(a.value, b.value)}; }
    static auto result(Acc a, int64) { return total_of<T>(a.value); }
};
template <class T, class Sum> struct Averaging : Adding<T, Sum> {
    static auto result(Total<Sum> a, int64 count) { return total_of<T>(a.value / Sum(count)); }
};
template <class T, class Sum> struct Multiplying {
    typedef Total<Sum> Acc;
    static Acc none() { return {Sum(1)}; }
    static Acc take(Acc a, T x, int64) { return {times(a.value, Sum(x))}; }
    static Acc join(Acc a, Acc b) { return {times(a.value, b.value)}; }
    static auto result(Acc a, int64) { return total_of<T>(a.value); }
};
template <class T, bool ALL> struct Holding {
    typedef Total<bool> Acc;
    static Acc none() { return {ALL}; }
    static Acc take(Acc a, T x, int64) { return join(a, {truth(x)}); }
    static Acc join(Acc a, Acc b) { return {ALL ? a.value && b.value : a.value || b.value}; }
    static bool result(Acc a, int64) { return a.value; }
};
// The first of several greatest or least values, or of several NaNs.
template <class T, bool GREATEST> struct Finding {
    typedef Extreme<T> Acc;
    static Acc none() { return {T(0), 0, false}; }
    static Acc take(Acc a, T x, int64 place) { return join(a, {x, place, true}); }
    static Acc join(Acc a, Acc b) {
        if (!a.is_any || !b.is_any) return a.is_any ? a : b;
        bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
        bool is_tie = a_is_nan ? b_is_nan : a.value == b.value;
        if (is_tie) return a.place <= b.place ? a : b;
        bool is_better = GREATEST ? b.value > a.value : b.value < a.value;
        return !a_is_nan && (b_is_nan || is_better) ? b : a;
    }
    static T result(Acc a, int64) { return a.value; }
};
template <class T, bool GREATEST> struct Placing : Finding<T, GREATEST> {
    static int64 result(Extreme<T> a, int64) { return a.place; }
};

// Elements `first` to `last` of those that are reduced to output `o`.
template <class F, class In, class Kept, class Reduced>
typename F::Acc folded(const In *in, const Kept &kept, const Reduced &reduced, int64 o,
    int64 first, int64 last, int64 step) {
    typename F::Acc acc = F::none();
    const In *start = in + kept.at(o);
    for (int64 k = first; k < last; k += step) acc = F::take(acc, load(start[reduced.at(k)]), k);
    return acc;
}

// What is left of an output: the result where it has one chunk, or else the chunk's accumulator.
template <class F, bool WHOLE, class Out>
void leave(Out *out, int64 i, typename F::Acc acc, int64 count) {
    if constexpr (WHOLE) store(out[i], F::result(acc, count));
    else out[i] = acc;
}

// One thread an output and chunk.
template <class F, bool WHOLE, class In, class Out, class Kept, class Reduced>
void fold_columns(const In *in, Out *out, const Kept &kept, const Reduced &reduced,
    int64 outputs, int64 count, int64 chunk, int64 chunks) {
    int64 threads = (int64)gridDim.x * blockDim.x;
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < outputs * chunks; i += threads) {
        int64 o = i % outputs, first = i / outputs * chunk;
        int64 last = first + chunk < count ? first + chunk : count;
        typename F::Acc acc = folded<F>(in, kept, reduced, o, first, last, 1);
        leave<F, WHOLE>(out, o * chunks + i / outputs, acc, count);
    }
}

// One block an output and chunk.
template <class F, bool WHOLE, class In, class Out, class Kept, class Reduced>
void fold_rows(const In *in, Out *out, const Kept &kept, const Reduced &reduced,
    int64 outputs, int64 count, int64 chunk, int64 chunks) {
    for (int64 i = blockIdx.x; i < outputs * chunks; i += gridDim.x) {
        int64 first = i % chunks * chunk;
        int64 last = first + chunk < count ? first + chunk : count;
        typename F::Acc own =
            folded<F>(in, kept, reduced, i / chunks, first + threadIdx.x, last, blockDim.x);
        typename F::Acc all = combined(own, F::join);
        if (threadIdx.x == 0) leave<F, WHOLE>(out, i, all, count);
    }
}

// Joins the chunks of each output: one block an output, each thread some of them in order.
template <class F, class Out>
void join_chunks(const typename F::Acc *in, Out *out, int64 outputs, int64 count, int64 chunks) {
    for (int64 o = blockIdx.x; o < outputs; o += gridDim.x) {
        typename F::Acc own = F::none();
        for (int64 c = threadIdx.x; c < chunks; c += blockDim.x) {
            own = F::join(own, in[o * chunks + c]);
        }
        typename F::Acc all = combined(own, F::join);
        if (threadIdx.x == 0) store(out[o], F::result(all, count));
    }
}
