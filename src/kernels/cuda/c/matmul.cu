// Products of matrices: a block computes a tile, a thread some of its elements; the sums go through
// the depth in order, the same bits for any number of blocks.

#define TILE 64
#define DEPTH 16
#define OWN 4

template <class T> T multiplied(T a, T b, T sum) {
    if constexpr (is_float<T>) return fma(a, b, sum);
    else return plus(times(a, b), sum);
}

// One matrix: its extents, and the steps between its rows and columns.
struct Matrix { int64 rows, columns, down, across; };

// Elements of the matrix from a corner on, and 0 outside of it, as rows of the tile.
template <class T, class S, bool TURNED>
void fetch(T (&tile)[DEPTH][TILE], const S *from, Matrix m, int64 row, int64 column) {
    for (unsigned i = threadIdx.x; i < TILE * DEPTH; i += blockDim.x) {
        // Neighbours in memory are read by neighbours in the block.
        bool is_across = m.across <= m.down;
        unsigned wide = TURNED ? DEPTH : TILE, high = TURNED ? TILE : DEPTH;
        unsigned r = is_across ? i / wide : i % high, c = is_across ? i % wide : i / high;
        bool is_inside = row + r < m.rows && column + c < m.columns;
        T x = is_inside ? load(from[(row + r) * m.down + (column + c) * m.across]) : T(0);
        if constexpr (TURNED) tile[c][r] = x;
        else tile[r][c] = x;
    }
}

// T: the type of the sums.
template <class T, bool ADDS, class S, class To>
void multiply_tile(const S *a, const S *b, To *y, Matrix m, Matrix n, Matrix to, int64 row, int64 column) {
    __shared__ T left[DEPTH][TILE], right[DEPTH][TILE];
    unsigned r = threadIdx.x / (TILE / OWN) * OWN, c = threadIdx.x % (TILE / OWN) * OWN;
    T sums[OWN][OWN] = {};
    for (int64 k = 0; k < m.columns; k += DEPTH) {
        fetch<T, S, true>(left, a, m, row, k);
        fetch<T, S, false>(right, b, n, k, column);
        __syncthreads();
        for (int d = 0; d < DEPTH; d++) {
            for (int i = 0; i < OWN; i++) {
                for (int j = 0; j < OWN; j++) {
                    sums[i][j] = multiplied(left[d][r + i], right[d][c + j], sums[i][j]);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < OWN; i++) {
        for (int j = 0; j < OWN; j++) {
            int64 down = row + r + i, across = column + c + j;
            if (down >= to.rows || across >= to.columns) continue;
            To &place = y[down * to.down + across * to.across];
            if constexpr (ADDS) store(place, plus(T(load(place)), sums[i][j]));
            else store(place, sums[i][j]);
        }
    }
}

template <class T, bool ADDS, class S, class To, class Batch>
void multiply(const S *a, const S *b, To *y, const Batch &batch, int64 count, Matrix m, Matrix n, Matrix to) {
    int64 high = (to.rows + TILE - 1) / TILE, wide = (to.columns + TILE - 1) / TILE;
    for (int64 tile = blockIdx.x; tile < count * high * wide; tile += gridDim.x) {
        int64 at[3];
        batch.at(tile / (high * wide), at);
        int64 row = tile / wide % high * TILE, column = tile % wide * TILE;
        multiply_tile<T, ADDS>(a + at[0], b + at[1], y + at[2], m, n, to, row, column);
    }
}
