// Recurrent layers: the steps of all rows in turn, with products of matrices between them; one thread a
// row and unit. Tensors are row-major. T is the type that is computed in, N that of what is
// multiplied.

enum { TANH, RELU, LSTM, GRU, LINEAR_GRU };

struct Extents { int64 steps, rows, units, state, reverse; };

template <int CELL> constexpr int64 GATES = CELL == LSTM ? 4 : CELL >= GRU ? 3 : 1;

template <class T> T sigmoid_of(T x) {
    // Of a number that is not positive, so that it cannot overflow.
    T e = exp(x < 0 ? x : -x);
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
template <class T> T slope_of(T gate) { return gate * (1 - gate); }

inline int64 first_thread() { return (int64)blockIdx.x * blockDim.x + threadIdx.x; }
inline int64 all_threads() { return (int64)gridDim.x * blockDim.x; }

// Whether a row has such a step, and its place in tensors of all steps.
inline bool has_step(const int64 *lengths, const Extents &of, int64 row, int64 step, int64 &place) {
    int64 length = lengths ? lengths[row] : of.steps;
    if (step < 0 || step >= length) return false;
    place = (of.reverse ? length - 1 - step : step) * of.rows + row;
    return true;
}

// Clears the steps that rows do not have.
template <class T> void clear(T *tensor, const int64 *lengths, const Extents &of, int64 columns) {
    int64 count = of.steps * of.rows * columns;
    for (int64 i = first_thread(); i < count; i += all_threads()) {
        if (i / columns / of.rows >= lengths[i / columns % of.rows]) tensor[i] = 0;
    }
}

// `sums` are the products of the state of the step before, `projected` those of `room`, which are the
// units before a projection, or what a GRU's reset gate leaves of the state. `narrow` is the state as
// it is multiplied, where that is another type.
template <class T, class N> struct Forward {
    const T *given, *bias, *peepholes, *sums, *projected;
    const int64 *lengths;
    T *states, *state, *cell, *gates, *cells;
    N *narrow, *room;

    void keep(const Extents &of, int64 row, int64 at, int64 s, T h) const {
        states[at * of.state + s] = h;
        state[row * of.state + s] = h;
        if (narrow) store(narrow[row * of.state + s], h);
    }
};

template <int CELL, bool PROJECTED, class T, class N>
void forward_step(const Forward<T, N> &f, const Extents &of, int64 step) {
    const int64 columns = GATES<CELL> * of.units;
    for (int64 i = first_thread(); i < of.rows * of.units; i += all_threads()) {
        int64 row = i / of.units, j = i % of.units, at;
        if (!has_step(f.lengths, of, row, step, at)) continue;
        const T *given = f.given + at * columns, *sums = f.sums + row * columns;
        T *gates = f.gates + at * columns, z[GATES<CELL>];
        for (int n = 0; n < (CELL >= GRU ? 2 : GATES<CELL>); n++) {
            z[n] = sums[n * of.units + j] + given[n * of.units + j];
        }
        if (CELL == TANH) f.keep(of, row, at, j, tanh(z[0]));
        if (CELL == RELU) f.keep(of, row, at, j, z[0] < 0 ? T(0) : z[0]);
        if (CELL == LSTM) {
            const T *peep = f.peepholes;
            T c = f.cell[i];
            T in = sigmoid_of(peep ? z[0] + peep[j] * c : z[0]);
            T forget = z[2 % GATES<CELL>], out = z[1 % GATES<CELL>];
            forget = sigmoid_of(peep ? forget + peep[2 * of.units + j] * c : forget);
            T candidate = tanh(z[3 % GATES<CELL>]);
            c = forget * c + in * candidate;
            out = sigmoid_of(peep ? out + peep[of.units + j] * c : out);
            gates[j] = in, gates[of.units + j] = out;
            gates[2 * of.units + j] = forget, gates[3 * of.units + j] = candidate;
            f.cells[at * of.units + j] = f.cell[i] = c;
            if constexpr (PROJECTED) store(f.room[i], out * tanh(c));
            else f.keep(of, row, at, j, out * tanh(c));
        }
        if (CELL >= GRU) {
            T update = sigmoid_of(z[0]), reset = sigmoid_of(z[1 % GATES<CELL>]);
            gates[j] = update, gates[of.units + j] = reset;
            if (CELL == GRU) store(f.room[i], reset * f.state[i]);
        }
        if (CELL == LINEAR_GRU) {
            T made = sums[2 * of.units + j] + f.bias[j];
            T candidate = tanh(gates[of.units + j] * made + given[2 * of.units + j]);
            f.cells[at * of.units + j] = made;
            gates[2 * of.units + j] = candidate;
            f.keep(of, row, at, j, gates[j] * (f.state[i] - candidate) + candidate);
        }
    }
}

// A GRU's candidate, of what the reset gate has left of the state.
template <class T, class N> void forward_candidate(const Forward<T, N> &f, const Extents &of, int64 step) {
    const int64 columns = 3 * of.units;
    for (int64 i = first_thread(); i < of.rows * of.units; i += all_threads()) {
        int64 row = i / of.units, j = i % of.units, at;
        if (!has_step(f.lengths, of, row, step, at)) continue;
        T *gates = f.gates + at * columns;
        T candidate = tanh(f.projected[i] + f.given[at * columns + 2 * of.units + j]);
        gates[2 * of.units + j] = candidate;
        f.keep(of, row, at, j, gates[j] * (f.state[i] - candidate) + candidate);
    }
}

template <class T, class N> void forward_state(const Forward<T, N> &f, const Extents &of, int64 step) {
    for (int64 i = first_thread(); i < of.rows * of.state; i += all_threads()) {
        int64 row = i / of.state, at;
        if (has_step(f.lengths, of, row, step, at)) f.keep(of, row, at, i % of.state, f.projected[i]);
    }
}

// `sums` are the products of `slopes`, those of the gates, and `ups` are products on the way there:
// the slopes of the units before a projection, or of what a GRU's reset gate leaves of the state.
// `up` is what of the slopes passes by the gates. `narrow` is the state's slope as it is multiplied.
template <class T, class N> struct Backward {
    const T *dstates, *gates, *states, *first_state, *cells, *first_cell, *peepholes, *sums, *ups;
    const int64 *lengths;
    T *dgiven, *dstate, *dcell, *made, *projected, *up, *tail;
    N *slopes, *narrow;
};

// The slope of a row's state that comes from the step behind, if there is one.
template <int CELL, class T, class N>
T arrived(const Backward<T, N> &b, const Extents &of, int64 row, int64 s, int64 step) {
    int64 i = row * of.state + s, later;
    if (!has_step(b.lengths, of, row, step + 1, later)) return b.dstate[i];
    return CELL >= GRU ? b.sums[i] + b.up[i] : b.sums[i];
}

// The slopes of what the gates are computed from, given that of the units.
template <int CELL, class T, class N>
void backward_gates(const Backward<T, N> &b, const Extents &of, int64 row, int64 at, T before, int64 j, T d) {
    const int64 units = of.units, columns = GATES<CELL> * units, i = row * units + j;
    const T *gates = b.gates + at * columns;
    T dz[GATES<CELL>];
    if (CELL == TANH || CELL == RELU) {
        T y = b.states[at * of.state + j];
        dz[0] = d * (CELL == RELU ? (y > 0 ? T(1) : T(0)) : 1 - y * y);
    }
    if (CELL == LSTM) {
        const T *peep = b.peepholes;
        T in = gates[j], out = gates[units + j], forget = gates[2 * units + j];
        T candidate = gates[3 * units + j], c = b.cells[at * units + j], squashed = tanh(c);
        T dout = d * squashed * slope_of(out), dc = b.dcell[i] + d * out * (1 - squashed * squashed);
        if (peep) dc += peep[units + j] * dout;
        T din = dc * candidate * slope_of(in), dforget = dc * before * slope_of(forget);
        T carried = dc * forget;
        if (peep) carried += peep[j] * din + peep[2 * units + j] * dforget;
        b.dcell[i] = carried;
        dz[0] = din, dz[1 % GATES<CELL>] = dout, dz[2 % GATES<CELL>] = dforget;
        dz[3 % GATES<CELL>] = dc * in * (1 - candidate * candidate);
        if (b.made) b.made[at * units + j] = out * squashed;
    }
    if (CELL >= GRU) {
        T update = gates[j], reset = gates[units + j], candidate = gates[2 * units + j];
        T dcandidate = d * (1 - update) * (1 - candidate * candidate);
        b.up[i] = d * update;
        // The reset gate of a GRU is read once more, behind a product.
        if (CELL == GRU) b.tail[i] = reset;
        dz[0] = d * (before - candidate) * slope_of(update);
        dz[1 % GATES<CELL>] = CELL == GRU ? T(0) : dcandidate * b.cells[at * units + j] * slope_of(reset);
        dz[2 % GATES<CELL>] = dcandidate;
        if (CELL == LINEAR_GRU) b.made[at * units + j] = dcandidate * reset;
    }
    for (int n = 0; n < GATES<CELL>; n++) {
        b.dgiven[at * columns + n * units + j] = dz[n];
        // The candidate's product of a linear GRU is scaled by the reset gate.
        T slope = CELL == LINEAR_GRU && n == 2 ? b.made[at * units + j] : dz[n];
        store(b.slopes[row * columns + n * units + j], slope);
    }
}

template <int CELL, bool PROJECTED, class T, class N>
void backward_step(const Backward<T, N> &b, const Extents &of, int64 step) {
    for (int64 i = first_thread(); i < of.rows * of.units; i += all_threads()) {
        int64 row = i / of.units, j = i % of.units, at, earlier;
        if (!has_step(b.lengths, of, row, step, at)) continue;
        bool is_first = !has_step(b.lengths, of, row, step - 1, earlier);
        T before = 0;
        if (CELL == LSTM) before = is_first ? b.first_cell[i] : b.cells[earlier * of.units + j];
        if (CELL >= GRU) before = is_first ? b.first_state[i] : b.states[earlier * of.state + j];
        T d = 0;
        if constexpr (PROJECTED) d = b.ups[i];
        else d = arrived<CELL>(b, of, row, j, step) + b.dstates[at * of.state + j];
        backward_gates<CELL>(b, of, row, at, before, j, d);
    }
}

// The slope of a state that is a projection.
template <class T, class N> void backward_state(const Backward<T, N> &b, const Extents &of, int64 step) {
    for (int64 i = first_thread(); i < of.rows * of.state; i += all_threads()) {
        int64 row = i / of.state, s = i % of.state, at;
        if (!has_step(b.lengths, of, row, step, at)) continue;
        T d = arrived<LSTM>(b, of, row, s, step) + b.dstates[at * of.state + s];
        b.projected[at * of.state + s] = d;
        store(b.narrow[i], d);
    }
}

// The slope of a GRU's reset gate, of that of what it leaves of the state.
template <class T, class N> void backward_reset(const Backward<T, N> &b, const Extents &of, int64 step) {
    const int64 units = of.units, columns = 3 * units;
    for (int64 i = first_thread(); i < of.rows * units; i += all_threads()) {
        int64 row = i / units, j = i % units, at, earlier;
        if (!has_step(b.lengths, of, row, step, at)) continue;
        bool is_first = !has_step(b.lengths, of, row, step - 1, earlier);
        T before = is_first ? b.first_state[i] : b.states[earlier * of.state + j];
        T slope = b.ups[i] * before * slope_of(b.tail[i]);
        b.dgiven[at * columns + units + j] = slope;
        store(b.slopes[row * columns + units + j], slope);
        b.up[i] += b.ups[i] * b.tail[i];
    }
}

// The slope of the first state.
template <int CELL, bool PROJECTED, class T, class N>
void backward_end(const Backward<T, N> &b, const Extents &of) {
    for (int64 i = first_thread(); i < of.rows * of.state; i += all_threads()) {
        b.dstate[i] = arrived<CELL>(b, of, i / of.state, i % of.state, -1);
    }
}
