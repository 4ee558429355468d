// Copying elements by index, and adding them back. Indices are checked before.

template <class L> int64 entry_of(L index, int64 size) {
    int64 entry = (int64)load(index);
    return entry < 0 ? entry + size : entry;
}

// The sizes of a result: what is before the axis, along it, and behind it.
struct Sizes { int64 before, along, behind; };

// y[o, j, k] = x[o, indices[j], k].
template <class S, class L, class Outer, class Along, class Inner>
void gather(const S *x, const L *indices, S *y, const Outer &outer, const Along &along,
    const Inner &inner, Sizes of, int64 size, int64 step) {
    int64 count = of.before * of.along * of.behind, threads = (int64)gridDim.x * blockDim.x;
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        int64 k = i % of.behind, j = i / of.behind % of.along, o = i / of.behind / of.along;
        int64 entry = entry_of(indices[along.at(j)], size);
        y[i] = x[outer.at(o) + entry * step + inner.at(k)];
    }
}

// sums[o, indices[j], k] += dy[o, j, k]: one thread adds up all of its o and k, in order of j.
template <class T, class S, class L, class Outer, class Along, class Middle, class Inner>
void gather_grad(const S *dy, const L *indices, T *sums, const Outer &outer, const Along &along,
    const Middle &middle, const Inner &inner, Sizes of, int64 size) {
    int64 threads = (int64)gridDim.x * blockDim.x;
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64 i = first; i < of.before * of.behind; i += threads) {
        int64 k = i % of.behind, o = i / of.behind;
        const S *from = dy + outer.at(o) + inner.at(k);
        for (int64 j = 0; j < of.along; j++) {
            int64 entry = entry_of(indices[along.at(j)], size);
            sums[(o * size + entry) * of.behind + k] += load(from[middle.at(j)]);
        }
    }
}

// Joins from[..j..] with to[..entries[j]..] along lines of `length` entries, each of which so many
// columns share. Their order is given: all that one entry occurs for is left to one thread.
template <class S, class R, class Base, class Along, class Join>
void runs(const S *from, const int64 *entries, const int64 *order, R *to, const Base &base,
    const Along &along, int64 length, int64 columns, int64 lines, int64 step, Join join) {
    int64 threads = (int64)gridDim.x * blockDim.x;
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64 i = first; i < lines * length * columns; i += threads) {
        int64 rank = i / columns % length, line = i / columns / length, at[2];
        const int64 *own = entries + line * length, *places = order + line * length;
        int64 entry = own[places[rank]];
        if (rank && own[places[rank - 1]] == entry) continue;
        base.at(line * columns + i % columns, at);
        R *place = to + at[1] + entry * step;
        for (; rank < length && own[places[rank]] == entry; rank++) {
            *place = R(join(*place, from[at[0] + along.at(places[rank])]));
        }
    }
}

// y[o, j, k] = x[o, places[o, j, k], k].
template <class S, class Outer, class All, class Inner>
void gather_elements(const S *x, const int64 *places, S *y, const Outer &outer, const All &all,
    const Inner &inner, Sizes of, int64 step) {
    int64 count = of.before * of.along * of.behind, threads = (int64)gridDim.x * blockDim.x;
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        int64 k = i % of.behind, o = i / of.behind / of.along;
        y[i] = x[outer.at(o) + places[all.at(i)] * step + inner.at(k)];
    }
}

// sums[o, places[o, j, k], k] += dy[o, j, k], as above.
template <class T, class S, class All>
void gather_elements_grad(const S *dy, const int64 *places, T *sums, const All &all, Sizes of,
    int64 size) {
    int64 threads = (int64)gridDim.x * blockDim.x;
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64 i = first; i < of.before * of.behind; i += threads) {
        int64 k = i % of.behind, o = i / of.behind;
        for (int64 j = 0; j < of.along; j++) {
            int64 at[2];
            all.at((o * of.along + j) * of.behind + k, at);
            sums[(o * size + places[at[1]]) * of.behind + k] += load(dy[at[0]]);
        }
    }
}

// y[o, places[o, j, k], k] is joined with updates[o, j, k]: one thread has all of its o and k, in
// order of j.
template <class S, class All, class Join>
void scatter(const int64 *places, const S *updates, S *y, const All &all, Sizes of, int64 step,
    Join join) {
    int64 threads = (int64)gridDim.x * blockDim.x;
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64 i = first; i < of.before * of.behind; i += threads) {
        int64 k = i % of.behind, o = i / of.behind;
        for (int64 j = 0; j < of.along; j++) {
            int64 at[3];
            all.at((o * of.along + j) * of.behind + k, at);
            S *to = y + at[2] + places[at[0]] * step;
            *to = S(join(*to, updates[at[1]]));
        }
    }
}

// Slices written along an axis, from positions on that a tensor holds; each has `inner` elements.
template <class S, class Each>
void tensor_scatter(const S *update, const int64 *start, S *past, const Each &each, int64 count,
    int64 inner, int64 start_step, int64 past_step) {
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 at[2];
        each.at(i, at);
        past[at[1] + start[i / inner * start_step] * past_step] = update[at[0]];
    }
}
