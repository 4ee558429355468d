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

// The same: one block adds up all that an index occurs for, in order of j, if it occurs first there.
template <class T, class S, class L, class Outer, class Along, class Middle, class Inner>
void gather_grad_entries(const S *dy, const L *indices, T *sums, const Outer &outer,
    const Along &along, const Middle &middle, const Inner &inner, Sizes of, int64 size) {
    __shared__ bool occurs[1024];
    auto add = [&](int64 entry, int64 j) {
        for (int64 i = threadIdx.x; i < of.before * of.behind; i += blockDim.x) {
            int64 k = i % of.behind, o = i / of.behind;
            T d = load(dy[outer.at(o) + middle.at(j) + inner.at(k)]);
            sums[(o * size + entry) * of.behind + k] += d;
        }
    };
    for (int64 j = blockIdx.x; j < of.along; j += gridDim.x) {
        int64 entry = entry_of(indices[along.at(j)], size);
        int earlier = 0, later = 0;
        for (int64 i = threadIdx.x; i < of.along; i += blockDim.x) {
            if (i == j || entry_of(indices[along.at(i)], size) != entry) continue;
            (i < j ? earlier : later) = 1;
        }
        if (combined(earlier, greater<int>)) continue;
        add(entry, j);
        if (!combined(later, greater<int>)) continue;
        for (int64 first = j + 1; first < of.along; first += blockDim.x) {
            int64 i = first + threadIdx.x;
            occurs[threadIdx.x] = i < of.along && entry_of(indices[along.at(i)], size) == entry;
            __syncthreads();
            for (unsigned t = 0; t < blockDim.x; t++) {
                if (occurs[t]) add(entry, first + t);
            }
            __syncthreads();
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

// y[places[j], k] = updates[j, k], or added: one thread has all of its k, in order of j.
template <bool ADDS, class S, class Each, class All>
void scatter_rows(const int64 *places, const S *updates, S *y, const Each &each, const All &all,
    int64 count, int64 length) {
    int64 k = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; k < length; k += (int64)gridDim.x * blockDim.x) {
        for (int64 j = 0; j < count; j++) {
            S *to = y + places[each.at(j)] * length + k;
            S from = updates[all.at(j * length + k)];
            if constexpr (ADDS) store(*to, plus(load(*to), load(from)));
            else *to = from;
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
