// Recurrent layers, one block a row: it takes the row's steps in turn. Tensors are row-major.

enum { TANH, RELU, LSTM, GRU, LINEAR_GRU };

struct Extents { int64 steps, rows, units, state; };

template <int CELL> constexpr int64 GATES = CELL == LSTM ? 4 : CELL >= GRU ? 3 : 1;

template <class T> T sigmoid_of(T x) {
    // Of a number that is not positive, so that it cannot overflow.
    T e = exp(x < 0 ? x : -x);
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

// Sums over a matrix (count, columns): down one column, or along one row.
template <class T> T down(const T *x, const T *matrix, int64 count, int64 columns) {
    T sum = 0;
    for (int64 k = 0; k < count; k++) sum += x[k] * matrix[k * columns];
    return sum;
}
template <class T> T along(const T *x, const T *row, int64 count) { return down(x, row, count, 1); }

// What a row's steps are: `place` is that of a step in tensors of all steps.
struct Steps {
    int64 length, rows, row;
    bool reverse;
    int64 place(int64 step) const { return (reverse ? length - 1 - step : step) * rows + row; }
};

template <class T> void clear(T *tensor, const Steps &steps, int64 all, int64 columns) {
    if (!tensor) return;
    for (int64 t = steps.length; t < all; t++) {
        T *to = tensor + (t * steps.rows + steps.row) * columns;
        for (int64 j = threadIdx.x; j < columns; j += blockDim.x) to[j] = 0;
    }
}

template <class T> struct Forward {
    const T *given, *weight, *state, *cell, *bias, *peepholes, *projection;
    const int64 *lengths;
    T *states, *last_state, *last_cell, *gates, *cells, *room;
};

template <class T, int CELL> void forward_step(const Forward<T> &f, const Extents &of, const T *h,
    const T *cell, int64 row, int64 at) {
    const int64 columns = GATES<CELL> * of.units;
    const T *given = f.given + at * columns;
    T *gates = f.gates + at * columns, *room = f.room + row * of.units, *h_next = f.states + at * of.state;
    for (int64 j = threadIdx.x; j < of.units; j += blockDim.x) {
        T z[GATES<CELL>];
        for (int n = 0; n < GATES<CELL>; n++) {
            bool is_later = CELL == GRU && n == 2;
            z[n] = is_later ? T(0) : down(h, f.weight + n * of.units + j, of.state, columns);
            if (!(CELL == LINEAR_GRU && n == 2) && !is_later) z[n] += given[n * of.units + j];
        }
        if (CELL == TANH) h_next[j] = tanh(z[0]);
        if (CELL == RELU) h_next[j] = z[0] < 0 ? T(0) : z[0];
        if (CELL == LSTM) {
            const T *peep = f.peepholes;
            T c = cell[j];
            T in = sigmoid_of(peep ? z[0] + peep[j] * c : z[0]);
            T forget = sigmoid_of(peep ? z[2 % GATES<CELL>] + peep[2 * of.units + j] * c : z[2 % GATES<CELL>]);
            T candidate = tanh(z[3 % GATES<CELL>]);
            c = forget * c + in * candidate;
            T out = z[1 % GATES<CELL>];
            out = sigmoid_of(peep ? out + peep[of.units + j] * c : out);
            gates[j] = in, gates[of.units + j] = out;
            gates[2 * of.units + j] = forget, gates[3 * of.units + j] = candidate;
            f.cells[at * of.units + j] = c;
            (f.projection ? room : h_next)[j] = out * tanh(c);
        }
        if (CELL == GRU) {
            T update = sigmoid_of(z[0]), reset = sigmoid_of(z[1 % GATES<CELL>]);
            gates[j] = update, gates[of.units + j] = reset;
            room[j] = reset * h[j];
        }
        if (CELL == LINEAR_GRU) {
            T update = sigmoid_of(z[0]), reset = sigmoid_of(z[1 % GATES<CELL>]);
            T made = z[2 % GATES<CELL>] + f.bias[j];
            T candidate = tanh(reset * made + given[2 * of.units + j]);
            f.cells[at * of.units + j] = made;
            gates[j] = update, gates[of.units + j] = reset, gates[2 * of.units + j] = candidate;
            h_next[j] = update * (h[j] - candidate) + candidate;
        }
    }
    __syncthreads();
    if (CELL == GRU) {
        for (int64 j = threadIdx.x; j < of.units; j += blockDim.x) {
            T sum = down(room, f.weight + 2 * of.units + j, of.units, columns);
            T candidate = tanh(sum + given[2 * of.units + j]);
            gates[2 * of.units + j] = candidate;
            h_next[j] = gates[j] * (h[j] - candidate) + candidate;
        }
    }
    if (f.projection) {
        for (int64 s = threadIdx.x; s < of.state; s += blockDim.x) {
            h_next[s] = down(room, f.projection + s, of.units, of.state);
        }
    }
    __syncthreads();
}

template <class T, int CELL, bool REVERSE> void recurrent(const Forward<T> &f, const Extents &of) {
    for (int64 row = blockIdx.x; row < of.rows; row += gridDim.x) {
        Steps steps = {f.lengths ? f.lengths[row] : of.steps, of.rows, row, REVERSE};
        const T *h = f.state + row * of.state, *cell = f.cell ? f.cell + row * of.units : nullptr;
        for (int64 step = 0; step < steps.length; step++) {
            int64 at = steps.place(step);
            forward_step<T, CELL>(f, of, h, cell, row, at);
            h = f.states + at * of.state;
            if (CELL == LSTM) cell = f.cells + at * of.units;
        }
        for (int64 s = threadIdx.x; s < of.state; s += blockDim.x) {
            f.last_state[row * of.state + s] = h[s];
        }
        for (int64 j = threadIdx.x; f.last_cell && j < of.units; j += blockDim.x) {
            f.last_cell[row * of.units + j] = cell[j];
        }
        clear(f.states, steps, of.steps, of.state);
        clear(f.gates, steps, of.steps, GATES<CELL> * of.units);
        clear(f.cells, steps, of.steps, of.units);
    }
}

template <class T> struct Backward {
    const T *dstates, *last_dstate, *last_dcell, *gates, *states, *state, *cells, *cell, *weight,
        *peepholes, *projection;
    const int64 *lengths;
    T *dgiven, *dstate, *dcell, *made, *projected, *up, *tail;
};

template <class T> T slope_of(T gate) { return gate * (1 - gate); }

// The gradients of what the gates are computed from: `up` is that of the units, and becomes what
// passes by the gates.
template <class T, int CELL> void backward_gates(const Backward<T> &b, const Extents &of, int64 row,
    int64 at, const T *before, int64 j) {
    const int64 units = of.units, columns = GATES<CELL> * units;
    const T *gates = b.gates + at * columns;
    T *dz = b.dgiven + at * columns, *up = b.up + row * units;
    T d = up[j];
    if (CELL == TANH || CELL == RELU) {
        T y = b.states[at * of.state + j];
        dz[j] = d * (CELL == RELU ? (y > 0 ? T(1) : T(0)) : 1 - y * y);
        up[j] = 0;
    }
    if (CELL == LSTM) {
        const T *peep = b.peepholes;
        T in = gates[j], out = gates[units + j], forget = gates[2 * units + j];
        T candidate = gates[3 * units + j], c = b.cells[at * units + j], squashed = tanh(c);
        T *dcell = b.dcell + row * units;
        T dout = d * squashed * slope_of(out), dc = dcell[j] + d * out * (1 - squashed * squashed);
        if (peep) dc += peep[units + j] * dout;
        T din = dc * candidate * slope_of(in), dforget = dc * before[j] * slope_of(forget);
        T carried = dc * forget;
        if (peep) carried += peep[j] * din + peep[2 * units + j] * dforget;
        dcell[j] = carried;
        dz[j] = din, dz[units + j] = dout, dz[2 * units + j] = dforget;
        dz[3 * units + j] = dc * in * (1 - candidate * candidate);
        up[j] = 0;
        if (b.made) b.made[at * units + j] = out * squashed;
    }
    if (CELL == GRU || CELL == LINEAR_GRU) {
        T update = gates[j], reset = gates[units + j], candidate = gates[2 * units + j];
        T dcandidate = d * (1 - update) * (1 - candidate * candidate);
        up[j] = d * update;
        if (CELL == LINEAR_GRU) {
            dz[units + j] = dcandidate * b.cells[at * units + j] * slope_of(reset);
            b.made[at * units + j] = dcandidate * reset;
        }
        // The reset gate of a GRU is read once more, behind a product.
        if (CELL == GRU) b.tail[row * units + j] = reset;
        dz[j] = d * (before[j] - candidate) * slope_of(update);
        dz[2 * units + j] = dcandidate;
    }
}

template <class T, int CELL> void backward_step(const Backward<T> &b, const Extents &of, int64 row,
    int64 at, const T *before) {
    const int64 units = of.units, columns = GATES<CELL> * units;
    T *dh = b.dstate + row * of.state, *up = b.up + row * units, *dz = b.dgiven + at * columns;
    for (int64 s = threadIdx.x; s < of.state; s += blockDim.x) {
        dh[s] += b.dstates[at * of.state + s];
        if (b.projected) b.projected[at * of.state + s] = dh[s];
    }
    __syncthreads();
    for (int64 j = threadIdx.x; j < units; j += blockDim.x) {
        up[j] = b.projection ? along(dh, b.projection + j * of.state, of.state) : dh[j];
        backward_gates<T, CELL>(b, of, row, at, before, j);
    }
    __syncthreads();
    if (CELL == GRU) {
        for (int64 j = threadIdx.x; j < units; j += blockDim.x) {
            T d = along(dz + 2 * units, b.weight + j * columns + 2 * units, units);
            T reset = b.tail[row * units + j];
            dz[units + j] = d * before[j] * slope_of(reset);
            up[j] += d * reset;
        }
        __syncthreads();
    }
    for (int64 s = threadIdx.x; s < of.state; s += blockDim.x) {
        const T *weights = b.weight + s * columns;
        T sum = b.projection ? T(0) : up[s];
        sum += along(dz, weights, CELL == GRU || CELL == LINEAR_GRU ? 2 * units : columns);
        if (CELL == LINEAR_GRU) sum += along(b.made + at * units, weights + 2 * units, units);
        dh[s] = sum;
    }
    __syncthreads();
}

template <class T, int CELL, bool REVERSE> void recurrent_grad(const Backward<T> &b, const Extents &of) {
    for (int64 row = blockIdx.x; row < of.rows; row += gridDim.x) {
        Steps steps = {b.lengths ? b.lengths[row] : of.steps, of.rows, row, REVERSE};
        for (int64 s = threadIdx.x; s < of.state; s += blockDim.x) {
            b.dstate[row * of.state + s] = b.last_dstate[row * of.state + s];
        }
        for (int64 j = threadIdx.x; b.dcell && j < of.units; j += blockDim.x) {
            b.dcell[row * of.units + j] = b.last_dcell[row * of.units + j];
        }
        __syncthreads();
        for (int64 step = steps.length; step-- > 0;) {
            int64 earlier = step ? steps.place(step - 1) : 0;
            const T *before = CELL == LSTM
                ? (step ? b.cells + earlier * of.units : b.cell + row * of.units)
                : (step ? b.states + earlier * of.state : b.state + row * of.state);
            backward_step<T, CELL>(b, of, row, steps.place(step), before);
        }
        clear(b.dgiven, steps, of.steps, GATES<CELL> * of.units);
        clear(b.made, steps, of.steps, of.units);
        clear(b.projected, steps, of.steps, of.state);
    }
}
