// Attention and its gradient between the products of matrices: one block a row of scores, which are
// computed in T. Rows are those of some heads that lie one step apart, or some of one head's.

// The heads, each one's rows from `first` on, and the keys; all queries of a head, and the numbers of
// the first head and from one to the next, among all heads.
struct Part { int64 heads, rows, first, keys, queries, number, step; };

// The steps of a tensor from head to head, from row to row and along a row.
struct Side { int64 head, row, element; };

// What is added to a score; never where a query may not attend.
struct NoMask {
    NoMask moved(int64) const { return *this; }
    template <class T> bool adds(int64, int64, T &) const { return true; }
};
template <class M> struct Mask {
    const M *first;
    int64 head, row, element;
    Mask moved(int64 h) const { return {first + h * head, head, row, element}; }
    template <class T> bool adds(int64 i, int64 s, T &score) const {
        return allows(load(first[i * row + s * element]), score);
    }
    template <class T> static bool allows(bool value, T &) { return value; }
    template <class N, class T> static bool allows(N value, T &score) {
        score += T(value);
        return value != -N(1) / N(0);
    }
};

// Which weights are kept, and what these are multiplied by. Words are drawn for rows of whole groups
// of 64 keys.
struct Keeps {
    template <class T> T factor(int64, int64, T) const { return 1; }
};
struct Drops {
    const int64 *state;
    uint64 offset, bound;
    double kept;
    int64 keys;
    template <class T> T factor(int64 row, int64 s, T) const {
        int64 place = row * ((keys + 63) / 64 * 64) + s;
        bool keep = Bernoulli{bound}(philox(state, offset, place / 4), place % 4);
        return keep ? T(kept) : T(0);
    }
};

// The keys that query i may see: the first ones.
struct Limits {
    const int64 *lengths, *start;
    int64 lengths_step, start_step, causal;
    int64 of(int64 keys, int64 h, int64 i) const {
        int64 limit = lengths && lengths[h * lengths_step] < keys ? lengths[h * lengths_step] : keys;
        int64 next = (start ? start[h * start_step] : 0) + i + 1;
        return causal && next < limit ? next : limit;
    }
};

// One row of scores: that of query i of one of the heads.
template <class T, class M> struct Row {
    const T *scores;
    int64 i, limit, number;
    M mask;
    T scale;

    // Whether the query sees key s, with this score.
    bool sees(int64 s, T &score) const {
        if (s >= limit) return false;
        score = scale * scores[s];
        return mask.adds(i, s, score);
    }
};

template <class T, class M>
Row<T, M> row(const T *scores, int64 task, Part of, M mask, Limits limits, double scale) {
    int64 h = task / of.rows, i = of.first + task % of.rows;
    int64 number = (of.number + h * of.step) * of.queries + i;
    return {scores + task * of.keys, i, limits.of(of.keys, h, i), number, mask.moved(h), T(scale)};
}

// The weights of keys, and the logarithms of the sums of exponentials.
template <class T, class S, class L, class M, class D>
void attention_weights(const T *scores, S *weights, L *lse, Part of, Side ls, M mask, Limits limits,
    D drops, double scale) {
    for (int64 task = blockIdx.x; task < of.heads * of.rows; task += gridDim.x) {
        auto own = row(scores, task, of, mask, limits, scale);
        T most = -T(1) / T(0), sum = 0, score;
        int seen = 0;
        for (int64 s = threadIdx.x; s < own.limit; s += blockDim.x) {
            if (!own.sees(s, score)) continue;
            most = larger(score, most);
            seen = 1;
        }
        most = combined(most, greater<T>);
        seen = combined(seen, greater<int>);
        for (int64 s = threadIdx.x; s < own.limit; s += blockDim.x) {
            if (own.sees(s, score)) sum += exp(score - most);
        }
        sum = combined(sum, added<T>);
        if (threadIdx.x == 0) {
            int64 place = task / of.rows * ls.head + own.i * ls.row;
            lse[place] = seen ? L(most + log(sum)) : L(1) / L(0);
        }
        for (int64 s = threadIdx.x; s < of.keys; s += blockDim.x) {
            T weight = own.sees(s, score)
                ? exp(score - most) / sum * drops.factor(own.number, s, T()) : T(0);
            store(weights[task * of.keys + s], weight);
        }
    }
}

// The state that weights were drawn from.
inline void keep_state(const int64 *state, int64 *drawn, int64 offset) {
    if (blockIdx.x || threadIdx.x) return;
    drawn[0] = state[0];
    drawn[1] = (int64)((uint64)state[1] + (uint64)offset);
}

// The weights of keys as they were multiplied, and the slopes of scores: also as they are, row-major
// over all heads, where `slopes` is given. `ups` are the slopes of weights.
template <class T, class S, class L, class M, class D>
void attention_slopes(const T *scores, const T *ups, const S *dy, const S *y, const L *lse, S *weights,
    S *steep, L *slopes, Part of, Side dys, Side ys, Side ls, int64 values, int64 all_keys, M mask,
    Limits limits, D drops, double scale) {
    for (int64 task = blockIdx.x; task < of.heads * of.rows; task += gridDim.x) {
        auto own = row(scores, task, of, mask, limits, scale);
        int64 h = task / of.rows;
        const S *dy_row = dy + h * dys.head + own.i * dys.row, *y_row = y + h * ys.head + own.i * ys.row;
        T product = 0, score;
        for (int64 f = threadIdx.x; f < values; f += blockDim.x) {
            product += T(load(dy_row[f * dys.element])) * T(load(y_row[f * ys.element]));
        }
        product = combined(product, added<T>);
        T sum = lse[h * ls.head + own.i * ls.row];
        for (int64 s = threadIdx.x; s < of.keys; s += blockDim.x) {
            T weight = 0, slope = 0, up = ups[task * of.keys + s];
            if (own.sees(s, score)) {
                // A share is at most 1, whatever the rounding of large scores.
                T excess = score - sum, factor = drops.factor(own.number, s, T());
                T share = exp(excess > T(0) ? T(0) : excess);
                weight = share * factor;
                slope = share * (up * factor - product);
            }
            store(weights[task * of.keys + s], weight);
            store(steep[task * of.keys + s], slope * T(scale));
            if (slopes) slopes[own.number * all_keys + s] = L(slope);
        }
        // Keys that no row of this part sees are left out of it.
        for (int64 s = of.keys + threadIdx.x; slopes && s < all_keys; s += blockDim.x) {
            slopes[own.number * all_keys + s] = 0;
        }
    }
}
