// A matrix whose rows are dense in one tensor is copied into one whose columns are: through tiles, so
// that neighbours are read and written by neighbours. Threads are those of whole warps.

#define SIDE 32

struct Turn { int64 rows, columns, down, across; };

template <class T> void put(T &place, T element) { place = element; }
template <class To, class From> void put(To &place, From element) { convert(place, element); }

template <class In, class Out, class Rest>
void turned(const In *in, Out *out, const Rest &rest, int64 count, Turn of) {
    __shared__ In tile[SIDE][SIDE + 1];
    int64 high = (of.rows + SIDE - 1) / SIDE, wide = (of.columns + SIDE - 1) / SIDE;
    unsigned lane = threadIdx.x % SIDE, line = threadIdx.x / SIDE, lines = blockDim.x / SIDE;
    for (int64 task = blockIdx.x; task < count * high * wide; task += gridDim.x) {
        int64 at[2];
        rest.at(task / (high * wide), at);
        int64 row = task / wide % high * SIDE, column = task % wide * SIDE;
        for (unsigned r = line; r < SIDE; r += lines) {
            if (row + r >= of.rows || column + lane >= of.columns) continue;
            tile[r][lane] = in[at[0] + (row + r) * of.down + column + lane];
        }
        __syncthreads();
        for (unsigned c = line; c < SIDE; c += lines) {
            if (row + lane >= of.rows || column + c >= of.columns) continue;
            put(out[at[1] + (column + c) * of.across + row + lane], tile[lane][c]);
        }
        __syncthreads();
    }
}
