// Rows along one axis, one block a row: softmax, its logarithm, cross entropy and their gradients.

// The greatest value (NaN if there is one), and the sum of the exponentials relative to it.
template <class T, class S> void exponents(const S *x, int64 length, int64 step, T &most, T &sum) {
    T own = -T(1) / T(0), rest = 0;
    for (int64 i = threadIdx.x; i < length; i += blockDim.x) own = larger(load(x[i * step]), own);
    most = combined(own, greater<T>);
    for (int64 i = threadIdx.x; i < length; i += blockDim.x) rest += exp(load(x[i * step]) - most);
    sum = combined(rest, added<T>);
}

template <class T, bool LOG, class S, class Rows>
void softmax(const S *in, S *out, const Rows &rows, int64 count, int64 length, int64 from, int64 to) {
    for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
        int64 at[2];
        rows.at(row, at);
        const S *x = in + at[0];
        S *y = out + at[1];
        T most, sum;
        exponents(x, length, from, most, sum);
        T rest = log(sum);
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            T above = load(x[i * from]) - most;
            store(y[i * to], LOG ? above - rest : exp(above) / sum);
        }
    }
}

template <class T, bool LOG, class S, class Rows>
void softmax_grad(const S *grad, const S *in, S *out, const Rows &rows, int64 count, int64 length,
    int64 step_dy, int64 step_y, int64 step_dx) {
    for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
        int64 at[3];
        rows.at(row, at);
        const S *dy = grad + at[0], *y = in + at[1];
        T own = 0;
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            own += load(dy[i * step_dy]) * (LOG ? T(1) : load(y[i * step_y]));
        }
        T sum = combined(own, added<T>);
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            T d = load(dy[i * step_dy]), value = load(y[i * step_y]);
            store(out[at[2] + i * step_dx], LOG ? d - exp(value) * sum : value * (d - sum));
        }
    }
}

// Targets of a row: one class, or weights of all of them.
template <class L> struct Labels {
    const L *labels;
    int64 step;
    // Whether rows of a label do not count, and which.
    bool ignores;
    int64 ignored;
    int64 label(int64 row) const { return (int64)load(labels[row * step]); }
    bool counts(int64 row) const { return !ignores || label(row) != ignored; }
};
template <class S> struct Weights {
    const S *weights;
    int64 down, across;
    bool counts(int64) const { return true; }
};

// The number of rows that count.
template <class Targets> double counted(Targets targets, int64 rows) {
    double own = 0;
    for (int64 row = threadIdx.x; row < rows; row += blockDim.x) own += targets.counts(row);
    return combined(own, added<double>);
}
template <class Targets> void count_rows(double *to, int64 rows, Targets targets) {
    double count = counted(targets, rows);
    if (threadIdx.x == 0) *to = count;
}

template <class T, class S, class L>
T row_loss(const S *x, int64 across, int64 row, int64, T most, T rest, Labels<L> labels) {
    if (!labels.counts(row)) return 0;
    return rest + (most - T(load(x[labels.label(row) * across])));
}
// Classes of weight 0 are ignored altogether.
template <class T, class S>
T row_loss(const S *x, int64 across, int64 row, int64 length, T most, T rest, Weights<S> weights) {
    T own = 0, all = 0;
    for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
        T w = load(weights.weights[row * weights.down + i * weights.across]);
        if (w != 0) own += w * (rest + (most - T(load(x[i * across]))));
        all += w;
    }
    return combined(own, added<T>) / combined(all, added<T>);
}

// The loss of each row, and in float64 its greatest value and the logarithm of the rest.
template <class T, class S, class Targets>
void losses(const S *in, double *loss, double *lse, int64 count, int64 length, int64 down, int64 across,
    Targets targets) {
    for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
        const S *x = in + row * down;
        T most, sum;
        exponents(x, length, across, most, sum);
        double rest = log((double)sum), top = sum != sum ? (double)sum : (double)most;
        double value = row_loss(x, across, row, length, top, rest, targets);
        if (threadIdx.x) continue;
        loss[row] = value;
        lse[2 * row] = top;
        lse[2 * row + 1] = rest;
    }
}

template <class S, class Targets>
void mean_loss(const double *losses, S *to, int64 count, Targets targets) {
    double own = 0;
    for (int64 i = threadIdx.x; i < count; i += blockDim.x) own += losses[i];
    double mean = combined(own, added<double>) / counted(targets, count);
    if (threadIdx.x == 0) convert(*to, mean);
}

template <class T, class S, class L>
T target(Labels<L> labels, int64 row, int64 i, T) { return labels.label(row) == i ? 1 : 0; }
template <class T, class S>
T target(Weights<S> weights, int64 row, int64 i, T share) {
    return share * load(weights.weights[row * weights.down + i * weights.across]);
}
template <class T, class L> T share_of(Labels<L>, int64, int64) { return 1; }
template <class T, class S> T share_of(Weights<S> weights, int64 row, int64 length) {
    double own = 0;
    for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
        own += load(weights.weights[row * weights.down + i * weights.across]);
    }
    return T(1 / combined(own, added<double>));
}

// Steps: those of x, of lse and of dx, from row to row and along a row. The number of rows that count
// is `count` without `counted`.
template <class T, class S, class Targets>
void losses_grad(const S *dloss, const S *in, const double *lse, S *out, int64 count, int64 length,
    Matrix x, Matrix l, Matrix dx, Targets targets, const double *counted) {
    T scale = T((double)load(*dloss) / (counted ? *counted : (double)count));
    for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
        double most = lse[row * l.down], rest = lse[row * l.down + l.across];
        T share = share_of<T>(targets, row, length);
        bool counts = targets.counts(row);
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            T value = exp(T((double)load(in[row * x.down + i * x.across]) - most - rest));
            T wanted = target<T, S>(targets, row, i, share);
            store(out[row * dx.down + i * dx.across], counts ? (value - wanted) * scale : T(0));
        }
    }
}
