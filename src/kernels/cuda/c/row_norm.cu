// Layer and root mean square normalisation of the rows of a matrix, one block a row; gradients of
// scale and bias from sums of chunks of rows. P is the type of statistics, in which elements are computed.

struct Matrix { int64 down, across; };

// Both statistics of rows, and the steps between them; the mean of a root mean square is 0.
template <class P> struct Rows {
    P *mean, *inverse;
    int64 mean_step, inverse_step;
    P middle(int64 row) const { return mean ? mean[row * mean_step] : P(0); }
    P scale(int64 row) const { return inverse[row * inverse_step]; }
};

template <class P, bool CENTRED, class S>
void normalize_rows(const S *in, const S *scale, const S *bias, S *out, Rows<P> rows, int64 count,
    int64 length, Matrix x, Matrix y, int64 scale_step, int64 bias_step, double eps) {
    for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
        const S *own = in + row * x.down;
        double middle = 0;
        if (CENTRED) {
            double sum = 0;
            for (int64 i = threadIdx.x; i < length; i += blockDim.x) sum += load(own[i * x.across]);
            middle = combined(sum, added<double>) / length;
        }
        double squares = 0;
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            double d = load(own[i * x.across]) - middle;
            squares += d * d;
        }
        double inverse = 1 / sqrt(combined(squares, added<double>) / length + eps);
        if (threadIdx.x == 0) {
            if (CENTRED) rows.mean[row * rows.mean_step] = P(middle);
            rows.inverse[row * rows.inverse_step] = P(inverse);
        }
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            P value = (P)((double)load(own[i * x.across]) - middle) * P(inverse) *
                P(load(scale[i * scale_step]));
            store(out[row * y.down + i * y.across], bias ? value + P(load(bias[i * bias_step])) : value);
        }
    }
}

template <class P, bool CENTRED, class S>
void normalize_rows_grad(const S *grad, const S *in, const S *scale, Rows<const P> rows, S *out,
    int64 count, int64 length, Matrix dy, Matrix x, Matrix dx, int64 scale_step) {
    for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
        P middle = rows.middle(row), inverse = rows.scale(row);
        double sum = 0, product = 0;
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            P g = P(load(grad[row * dy.down + i * dy.across])) * P(load(scale[i * scale_step]));
            P unit = (P(load(in[row * x.down + i * x.across])) - middle) * inverse;
            sum += g;
            product += (double)g * unit;
        }
        P shift = CENTRED ? P(combined(sum, added<double>) / length) : P(0);
        P tilt = P(combined(product, added<double>) / length);
        for (int64 i = threadIdx.x; i < length; i += blockDim.x) {
            P g = P(load(grad[row * dy.down + i * dy.across])) * P(load(scale[i * scale_step]));
            P unit = (P(load(in[row * x.down + i * x.across])) - middle) * inverse;
            store(out[row * dx.down + i * dx.across], inverse * (g - shift - unit * tilt));
        }
    }
}

// The sums of some rows' dy along columns, and of its products with the normalised rows: a block takes
// 32 columns, whose rows its lines of threads take in turn.
struct Sums { double dy, product; };

template <class P, class S>
void chunk_columns_grad(const S *grad, const S *in, Rows<const P> rows, Sums *to, int64 count,
    int64 length, Matrix dy, Matrix x, int64 chunk) {
    __shared__ Sums values[1024];
    int64 wide = (length + 31) / 32, chunks = (count + chunk - 1) / chunk;
    int64 lines = blockDim.x / 32, line = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int64 task = blockIdx.x; task < wide * chunks; task += gridDim.x) {
        int64 i = task % wide * 32 + lane, first = task / wide * chunk;
        int64 last = first + chunk < count ? first + chunk : count;
        Sums own = {0, 0};
        for (int64 row = first + line; i < length && row < last; row += lines) {
            P d = load(grad[row * dy.down + i * dy.across]);
            P unit = (P(load(in[row * x.down + i * x.across])) - rows.middle(row)) * rows.scale(row);
            own.dy += d;
            own.product += (double)d * unit;
        }
        values[threadIdx.x] = own;
        __syncthreads();
        for (int64 other = 1; line == 0 && other < lines; other++) {
            own.dy += values[other * 32 + lane].dy;
            own.product += values[other * 32 + lane].product;
        }
        if (line == 0 && i < length) to[task / wide * length + i] = own;
        __syncthreads();
    }
}

template <class P, class S>
void normalize_columns_grad(const Sums *sums, S *dscale, S *dbias, int64 length, int64 chunks,
    int64 scale_step, int64 bias_step) {
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < length; i += (int64)gridDim.x * blockDim.x) {
        Sums all = {0, 0};
        for (int64 c = 0; c < chunks; c++) {
            all.dy += sums[c * length + i].dy;
            all.product += sums[c * length + i].product;
        }
        store(dscale[i * scale_step], P(all.product));
        if (dbias) store(dbias[i * bias_step], P(all.dy));
    }
}
