// Attention and its gradient: one block a query, or one a key. Scores are computed in T, anew for
// each pass, and never stored.

// The steps of a tensor from head to head, from row to row and along a row.
struct Side { int64 head, row, element; };

struct Extents { int64 heads, shared, queries, keys, width, values; };

// What is added to a score; never where a query may not attend.
struct NoMask {
    template <class T> bool adds(int64, int64, T &) const { return true; }
};
template <class M> struct Mask {
    const M *first;
    int64 row, element;
    Mask moved(int64 offset) const { return {first + offset, row, element}; }
    template <class T> bool adds(int64 i, int64 s, T &score) const {
        return allows(load(first[i * row + s * element]), score);
    }
    template <class T> static bool allows(bool value, T &) { return value; }
    template <class N, class T> static bool allows(N value, T &score) {
        score += T(value);
        return value != -N(1) / N(0);
    }
};
inline NoMask moved(NoMask mask, int64) { return mask; }
template <class M> Mask<M> moved(Mask<M> mask, int64 offset) { return mask.moved(offset); }

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
    int64 causal;
    int64 of(int64 keys, int64 lengths_at, int64 start_at, int64 i) const {
        int64 limit = lengths ? lengths[lengths_at] : keys;
        int64 next = (start ? start[start_at] : 0) + i + 1;
        return causal && next < limit ? next : limit;
    }
};

template <class T, class S>
T product(const S *a, int64 a_step, const S *b, int64 b_step, int64 count) {
    T sum = 0;
    for (int64 e = 0; e < count; e++) sum += T(load(a[e * a_step])) * T(load(b[e * b_step]));
    return sum;
}

// Queries, keys and values of one head, and what is between them.
template <class T, class S, class M> struct Head {
    const S *q, *k, *v;
    Side qs, ks, vs;
    Extents of;
    M mask;
    T scale;

    // Whether query i sees key s, with this score.
    bool sees(int64 i, int64 s, int64 limit, T &score) const {
        if (s >= limit) return false;
        score = scale * product<T>(q + i * qs.row, qs.element, k + s * ks.row, ks.element, of.width);
        return mask.adds(i, s, score);
    }
};

// Places of tensors in a batch: q, k, v, y or dy, lse, mask, lengths, start, and more of a gradient.
template <class T, class S, class L, class Batch, class M, class D>
void attention(const S *q, const S *k, const S *v, S *y, L *lse, const Batch &batch, int64 batches,
    Extents of, Side qs, Side ks, Side vs, Side ys, Side ls, Side ms, M mask, Limits limits, D drops,
    double scale) {
    __shared__ T weights[1024];
    int64 per = of.heads * of.queries, threads = blockDim.x;
    for (int64 task = blockIdx.x; task < batches * per; task += gridDim.x) {
        int64 b = task / per, h = task / of.queries % of.heads, i = task % of.queries, at[8];
        batch.at(b, at);
        int64 g = h / (of.heads / of.shared);
        Head<T, S, M> head = {q + at[0] + h * qs.head, k + at[1] + g * ks.head, v + at[2] + g * vs.head,
            qs, ks, vs, of, moved(mask, at[5] + h * ms.head), T(scale)};
        int64 limit = limits.of(of.keys, at[6], at[7], i);
        T most = -T(1) / T(0), sum = 0, score;
        int seen = 0;
        for (int64 s = threadIdx.x; s < limit; s += threads) {
            if (!head.sees(i, s, limit, score)) continue;
            most = larger(score, most);
            seen = 1;
        }
        most = combined(most, greater<T>);
        seen = combined(seen, greater<int>);
        for (int64 s = threadIdx.x; s < limit; s += threads) {
            if (head.sees(i, s, limit, score)) sum += exp(score - most);
        }
        sum = combined(sum, added<T>);
        if (threadIdx.x == 0) {
            lse[at[4] + h * ls.head + i * ls.row] = seen ? L(most + log(sum)) : L(1) / L(0);
        }
        for (int64 first = 0; first < of.values; first += threads) {
            int64 f = first + threadIdx.x;
            T value = 0;
            for (int64 start = 0; start < limit; start += threads) {
                int64 s = start + threadIdx.x, end = limit - start < threads ? limit - start : threads;
                bool is_seen = head.sees(i, s, limit, score);
                weights[threadIdx.x] =
                    is_seen ? exp(score - most) / sum * drops.factor(task, s, T()) : T(0);
                __syncthreads();
                for (int64 j = 0; f < of.values && j < end; j++) {
                    if (weights[j] != 0) {
                        value += weights[j] * T(load(head.v[(start + j) * vs.row + f * vs.element]));
                    }
                }
                __syncthreads();
            }
            if (f < of.values) {
                store(y[at[3] + h * ys.head + i * ys.row + f * ys.element], seen ? value : T(0));
            }
        }
    }
}

// The state that weights were drawn from.
inline void keep_state(const int64 *state, int64 *drawn, int64 offset) {
    if (blockIdx.x || threadIdx.x) return;
    drawn[0] = state[0];
    drawn[1] = (int64)((uint64)state[1] + (uint64)offset);
}

// One head's gradients on the way to its queries, keys and values.
template <class T, class S, class L, class M, class D> struct Slopes {
    Head<T, S, M> head;
    const S *dy, *y;
    const L *lse;
    Side dys, ys, ls;
    D drops;
    int64 first_row;

    // The products of dy and y of a query.
    T own(int64 i) const {
        return product<T>(dy + i * dys.row, dys.element, y + i * ys.row, ys.element, head.of.values);
    }
    // The weight of key s for query i as it was multiplied, and the slope of its score.
    void at(int64 i, int64 s, int64 limit, T own, T &weight, T &slope) const {
        T score;
        weight = slope = 0;
        if (!head.sees(i, s, limit, score)) return;
        T share = exp(score - T(lse[i * ls.row])), factor = drops.factor(first_row + i, s, T());
        const S *value = head.v + s * head.vs.row;
        T up = product<T>(dy + i * dys.row, dys.element, value, head.vs.element, head.of.values);
        weight = share * factor;
        slope = share * (up * factor - own);
    }
};

struct Sides { Side dy, q, k, v, y, lse, mask, dq, dk, dv; };

template <class T, class S, class L, class M, class D>
Slopes<T, S, L, M, D> slopes(const S *dy, const S *q, const S *k, const S *v, const S *y, const L *lse,
    const int64 *at, const Sides &sides, Extents of, int64 b, int64 h, M mask, D drops, double scale) {
    int64 g = h / (of.heads / of.shared);
    Head<T, S, M> head = {q + at[0] + h * sides.q.head, k + at[1] + g * sides.k.head,
        v + at[2] + g * sides.v.head, sides.q, sides.k, sides.v, of,
        moved(mask, at[5] + h * sides.mask.head), T(scale)};
    return {head, dy + at[3] + h * sides.dy.head, y + at[8] + h * sides.y.head,
        lse + at[4] + h * sides.lse.head, sides.dy, sides.y, sides.lse, drops,
        (b * of.heads + h) * of.queries};
}

// The gradient of queries, and of scores where it is wanted (row-major), one block a query.
template <class T, class S, class L, class Batch, class M, class D>
void attention_grad_queries(const S *dy, const S *q, const S *k, const S *v, const S *y, const L *lse,
    S *dq, L *dscores, const Batch &batch, int64 batches, Extents of, Sides sides, M mask, Limits limits,
    D drops, double scale) {
    __shared__ T steep[1024];
    int64 per = of.heads * of.queries, threads = blockDim.x;
    for (int64 task = blockIdx.x; task < batches * per; task += gridDim.x) {
        int64 b = task / per, h = task / of.queries % of.heads, i = task % of.queries, at[12];
        batch.at(b, at);
        auto one = slopes<T>(dy, q, k, v, y, lse, at, sides, of, b, h, mask, drops, scale);
        int64 limit = limits.of(of.keys, at[6], at[7], i);
        T own = one.own(i), weight;
        for (int64 s = threadIdx.x; dscores && s < of.keys; s += threads) {
            T slope;
            one.at(i, s, limit, own, weight, slope);
            dscores[task * of.keys + s] = L(slope);
        }
        for (int64 first = 0; first < of.width; first += threads) {
            int64 e = first + threadIdx.x;
            T sum = 0;
            for (int64 start = 0; start < limit; start += threads) {
                int64 end = limit - start < threads ? limit - start : threads;
                one.at(i, start + threadIdx.x, limit, own, weight, steep[threadIdx.x]);
                __syncthreads();
                for (int64 j = 0; e < of.width && j < end; j++) {
                    if (steep[j] == 0) continue;
                    const S *key = one.head.k + (start + j) * sides.k.row;
                    sum += steep[j] * T(load(key[e * sides.k.element]));
                }
                __syncthreads();
            }
            int64 place = at[9] + h * sides.dq.head + i * sides.dq.row + e * sides.dq.element;
            if (e < of.width) store(dq[place], sum * T(scale));
        }
    }
}

// The gradients of keys and values, one block a key.
template <class T, class S, class L, class Batch, class M, class D>
void attention_grad_keys(const S *dy, const S *q, const S *k, const S *v, const S *y, const L *lse, S *dk,
    S *dv, const Batch &batch, int64 batches, Extents of, Sides sides, M mask, Limits limits, D drops,
    double scale) {
    __shared__ T steep[1024], heavy[1024];
    int64 per = of.shared * of.keys, threads = blockDim.x;
    int64 served = of.heads / of.shared, most = of.width > of.values ? of.width : of.values;
    for (int64 task = blockIdx.x; task < batches * per; task += gridDim.x) {
        int64 b = task / per, g = task / of.keys % of.shared, s = task % of.keys, at[12];
        batch.at(b, at);
        for (int64 first = 0; first < most; first += threads) {
            int64 column = first + threadIdx.x;
            T key = 0, value = 0;
            for (int64 h = g * served; h < (g + 1) * served; h++) {
                auto one = slopes<T>(dy, q, k, v, y, lse, at, sides, of, b, h, mask, drops, scale);
                for (int64 start = 0; start < of.queries; start += threads) {
                    int64 i = start + threadIdx.x, rest = of.queries - start;
                    steep[threadIdx.x] = heavy[threadIdx.x] = 0;
                    if (i < of.queries) {
                        int64 limit = limits.of(of.keys, at[6], at[7], i);
                        if (s < limit) {
                            one.at(i, s, limit, one.own(i), heavy[threadIdx.x], steep[threadIdx.x]);
                        }
                    }
                    __syncthreads();
                    for (int64 j = 0; j < rest && j < threads; j++) {
                        const S *query = one.head.q + (start + j) * sides.q.row;
                        const S *up = one.dy + (start + j) * sides.dy.row;
                        if (column < of.width && steep[j] != 0) {
                            key += steep[j] * T(load(query[column * sides.q.element]));
                        }
                        if (column < of.values && heavy[j] != 0) {
                            value += heavy[j] * T(load(up[column * sides.dy.element]));
                        }
                    }
                    __syncthreads();
                }
            }
            int64 row = at[10] + g * sides.dk.head + s * sides.dk.row;
            if (column < of.width) store(dk[row + column * sides.dk.element], key * T(scale));
            row = at[11] + g * sides.dv.head + s * sides.dv.row;
            if (column < of.values) store(dv[row + column * sides.dv.element], value);
        }
    }
}
