// Along one axis: running sums and products, one thread a line, or a part of one; and sorting, by
// merging runs that are twice as long each time.

struct Sum {
    template <class A> A operator()(A a, A b) const { return plus(a, b); }
};
struct Product {
    template <class A> A operator()(A a, A b) const { return times(a, b); }
};
struct Greatest {
    template <class A> A operator()(A a, A b) const { return b > a || b != b ? b : a; }
};

// Goes through parts of lines of so many elements, in the order of the scan; A is double or int64.
// Each begins with a value of its own, or with `unit`, and may leave its last one in `ends`.
template <class A, class F, bool EXCLUSIVE, bool REVERSE, class S, class R, class Lines>
void scan(const S *in, const A *starts, R *out, A *ends, const Lines &lines, int64 count, int64 length,
    int64 part, int64 from, int64 to, A unit, F combine) {
    int64 parts = (length + part - 1) / part, i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count * parts; i += (int64)gridDim.x * blockDim.x) {
        int64 first = i % parts * part, last = first + part < length ? first + part : length, at[2];
        lines.at(i / parts, at);
        A all = starts ? starts[i] : unit;
        for (int64 n = first; n < last; n++) {
            int64 place = REVERSE ? length - 1 - n : n;
            A next = combine(all, A(load(in[at[0] + place * from])));
            if (out) convert(out[at[1] + place * to], EXCLUSIVE ? all : next);
            all = next;
        }
        if (ends) ends[i] = all;
    }
}

// NaN is greater than all numbers.
template <bool DESCENDING, class T> bool comes_before(T a, T b) {
    bool is_number = a == a;
    if (DESCENDING) return a > b || (!is_number && b == b);
    return a < b || (is_number && b != b);
}

// Merges two sorted runs of `width` places of elements each; `before` is null for runs of one.
template <bool DESCENDING, class S, class Lines>
void merge(const S *in, const int64 *before, int64 *after, const Lines &lines, int64 count, int64 length,
    int64 step, int64 width) {
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count * length; i += (int64)gridDim.x * blockDim.x) {
        int64 line = i / length, place = i % length, start = place / (2 * width) * (2 * width);
        const S *x = in + lines.at(line);
        const int64 *run = before ? before + line * length : nullptr;
        int64 middle = start + width < length ? start + width : length;
        int64 end = start + 2 * width < length ? start + 2 * width : length;
        bool is_left = place < middle;
        int64 own = run ? run[place] : place;
        auto value = load(x[own * step]);
        // How many of the other run come before it: those to the left also where they are equal.
        int64 first = is_left ? middle : start, low = first, high = is_left ? end : middle;
        while (low < high) {
            int64 half = low + (high - low) / 2, other = run ? run[half] : half;
            auto found = load(x[other * step]);
            bool goes_first = is_left ? comes_before<DESCENDING>(found, value)
                                      : !comes_before<DESCENDING>(value, found);
            if (goes_first) low = half + 1;
            else high = half;
        }
        int64 rank = place - (is_left ? start : middle) + (low - first);
        after[line * length + start + rank] = own;
    }
}

// The first elements in order, and their places.
template <class S, class Lines>
void sorted(const S *in, const int64 *places, S *out, int64 *index, const Lines &lines, int64 count,
    int64 length, int64 kept, int64 from, int64 to) {
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count * kept; i += (int64)gridDim.x * blockDim.x) {
        int64 line = i / kept, rank = i % kept, at[3];
        lines.at(line, at);
        int64 place = places ? places[line * length + rank] : rank;
        out[at[1] + rank * to] = in[at[0] + place * from];
        index[at[2] + rank * to] = place;
    }
}
