/* solve.c - the factors by which present blocks and recovery blocks make up the missing ones.
 *
 * Block i has a constant c_i; recovery block e is the sum of c_i^e * D_i over all blocks. Let x_k be the constants of
 * the m missing blocks.
 *
 * Exponents in a row, e0 .. e0+m-1 (all volumes up to some point, or a large one): then the equations are a Vandermonde
 * system, and interpolation solves it without any elimination. With L_k the polynomial of degree m-1 that is 1 at x_k
 * and 0 at the other x, the factor of a present block c in missing block k is (c/x_k)^e0 * L_k(c), which is a quotient
 * of products: one addition of logarithms per factor. The factors of the recovery blocks are the coefficients of L_k /
 * x_k^e0; they come out of the synthetic division of prod(x - x_l) by (x - x_k), highest first. All is O(m) per factor
 * column, needs O(m) memory, and there is always a solution.
 *
 * Other exponents: the m x m matrix x_k^e is inverted by elimination, its rows handled by the region kernels. A factor
 * of a present block is then a product of matrices; it is computed for a batch of blocks when the batch is needed. Such
 * a matrix may be singular; rows are exchanged for spare recovery blocks then, as long as there are any. */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "par2/gf16.h"
#include "par2/internal.h"

struct solver {
    size_t m;
    bool in_a_row;
    uint16_t e0;         /* in a row: the first */
    uint16_t *x;         /* constants of the missing blocks */
    uint16_t *q;         /* in a row: log of x_k^e0 * prod over l != k of (x_k - x_l) */
    uint16_t *master;    /* in a row: the m+1 coefficients of prod(x - x_l) */
    uint16_t *exponents; /* else: those chosen */
    uint8_t *
        inverse; /* else: row j has the factors of recovery block j in missing blocks 0..m; row_bytes each */
    size_t row_bytes;
};

static uint16_t log_times(uint16_t log, uint32_t n)
{
    return (uint16_t)((uint64_t)log * n % GF16_ORDER);
}

static uint16_t add_logs(uint32_t a, uint32_t b)
{
    return (uint16_t)((a + b) % GF16_ORDER);
}

/* ---- exponents in a row ---- */

/* log of prod over l of (c - x_l), the l-th factor left out where it is 0. */
static uint16_t log_product(const struct solver *v, uint16_t c)
{
    uint64_t sum = 0;
    for (size_t l = 0; l < v->m; l++) {
        uint16_t difference = c ^ v->x[l];
        sum += difference != 0 ? gf16_log[difference] : 0;
    }
    return (uint16_t)(sum % GF16_ORDER);
}

static int solve_row(struct solver *v)
{
    v->q = mem_alloc(v->m * sizeof(uint16_t));
    v->master = mem_zalloc(v->m + 1, sizeof(uint16_t));
    if (v->q == NULL || v->master == NULL) {
        return -ENOMEM;
    }
    v->master[0] = 1;
    for (size_t k = 0; k < v->m; k++) {
        v->q[k] = add_logs(log_product(v, v->x[k]), log_times(gf16_log[v->x[k]], v->e0));
        for (size_t j = k + 1; j > 0; j--) { /* times (x - x_k) */
            v->master[j] = v->master[j - 1] ^ gf16_mul(v->master[j], v->x[k]);
        }
        v->master[0] = gf16_mul(v->master[0], v->x[k]);
    }
    return 0;
}

static void present_row(const struct solver *v, uint16_t log, size_t n, struct gf16_coef *coef)
{
    uint16_t c = gf16_exp[log];
    uint32_t p = add_logs(log_product(v, c), log_times(log, v->e0));
    for (size_t k = 0; k < v->m; k++) {
        uint32_t below = (uint32_t)v->q[k] + gf16_log[c ^ v->x[k]];
        coef[k * n] = gf16_coef(gf16_exp[(p + 2 * GF16_ORDER - below) % GF16_ORDER]);
    }
}

/* ---- any exponents ---- */

/* Rows of 2m values: the equations, then what became of the identity. Kept as a kernel keeps sums. */
struct elimination {
    const struct gf16_kernel *kernel;
    size_t m, units;
    uint8_t *acc; /* acc[u][row] */
    uint8_t *in;  /* one packed row */
    uint16_t *row;
    struct gf16_coef *factors;
};

static void load_row(struct elimination *g, size_t row)
{
    const struct gf16_kernel *k = g->kernel;
    k->unpack((uint8_t *)g->row, g->acc + row * k->unit, g->m * k->unit, g->units);
}

/* row := g->row, through a muladd of 1 into cleared sums. */
static void store_row(struct elimination *g, size_t row)
{
    const struct gf16_kernel *k = g->kernel;
    const struct gf16_coef one = gf16_coef(1);
    k->pack(g->in, k->in_bytes, (const uint8_t *)g->row, g->units);
    for (size_t u = 0; u < g->units; u++) {
        uint8_t *to = g->acc + (u * g->m + row) * k->unit;
        memset(to, 0, k->unit);
        k->muladd(to, g->in + u * k->in_bytes, &one, 1, 1, 1);
    }
}

static void make_row(struct elimination *g, const struct solver *v, size_t row, uint16_t exponent)
{
    memset(g->row, 0, g->units * g->kernel->unit);
    for (size_t k = 0; k < v->m; k++) {
        g->row[k] = gf16_pow(v->x[k], exponent);
    }
    g->row[v->m + row] = 1;
}

/* Column `col` of every row, as factors. */
static void load_column(struct elimination *g, size_t col)
{
    const struct gf16_kernel *k = g->kernel;
    size_t per_unit = k->unit / 2, u = col / per_unit;
    uint16_t values[GF16_UNIT_MAX / 2];
    for (size_t r = 0; r < g->m; r++) {
        k->unpack((uint8_t *)values, g->acc + (u * g->m + r) * k->unit, k->unit, 1);
        g->factors[r] = gf16_coef(values[col % per_unit]);
    }
}

/* All rows lose their part in column `col`; `row`, which stands in g->row, is scaled to 1 there. */
static void pivot(struct elimination *g, size_t row, size_t col)
{
    const struct gf16_kernel *k = g->kernel;
    uint16_t scale = gf16_inv(g->row[col]);
    load_column(g, col);
    for (size_t i = 0; i < 2 * g->m; i++) {
        g->row[i] = gf16_mul(g->row[i], scale);
    }
    for (size_t u = 0; u < g->units; u++) {
        memset(g->acc + (u * g->m + row) * k->unit, 0, k->unit);
    }
    g->factors[row] = gf16_coef(1);
    k->pack(g->in, k->in_bytes, (const uint8_t *)g->row, g->units);
    k->muladd(g->acc, g->in, g->factors, g->m, 1, g->units);
}

/* Row `row` said nothing new: equation `exponent` takes its place, less what rows 0..row already say. */
static int replace_row(struct elimination *g, const struct solver *v, size_t row, uint16_t exponent,
                       const uint32_t *column)
{
    make_row(g, v, row, exponent);
    uint16_t *fresh = mem_alloc(2 * v->m * sizeof(uint16_t));
    if (fresh == NULL) {
        return -ENOMEM;
    }
    memcpy(fresh, g->row, 2 * v->m * sizeof(uint16_t));
    for (size_t q = 0; q < row; q++) {
        load_row(g, q);
        uint16_t factor = fresh[column[q]];
        for (size_t i = 0; i < 2 * v->m; i++) {
            fresh[i] ^= gf16_mul(factor, g->row[i]);
        }
    }
    memset(g->row, 0, g->units * g->kernel->unit);
    memcpy(g->row, fresh, 2 * v->m * sizeof(uint16_t));
    store_row(g, row);
    mem_free(fresh);
    return 0;
}

/* Brings the equations to a permutation of the identity: row r then says what missing block column[r] is. */
static int eliminate(struct elimination *g, const struct solver *v, const uint16_t *exponents,
                     size_t count, uint32_t *chosen, uint32_t *column)
{
    size_t spare = v->m;
    for (size_t r = 0; r < v->m; r++) {
        chosen[r] = (uint32_t)r;
        make_row(g, v, r, exponents[r]);
        store_row(g, r);
    }
    for (size_t r = 0; r < v->m;) {
        load_row(g, r);
        uint32_t col = 0;
        while (col < v->m && g->row[col] == 0) {
            col++;
        }
        if (col < v->m) {
            column[r++] = col;
            pivot(g, r - 1, col);
        } else if (spare == count) {
            return ERR_FULL;
        } else {
            chosen[r] = (uint32_t)spare++;
            int rv = replace_row(g, v, r, exponents[chosen[r]], column);
            if (rv < 0) {
                return rv;
            }
        }
    }
    return 0;
}

static int solve_any(struct solver *v, const uint16_t *exponents, size_t count, uint32_t *chosen)
{
    const struct gf16_kernel *k = gf16_best();
    struct elimination g = {.kernel = k, .m = v->m, .units = (4 * v->m + k->unit - 1) / k->unit};
    size_t half = (2 * v->m + GF16_UNIT_MAX - 1) / GF16_UNIT_MAX * GF16_UNIT_MAX;
    g.acc = mem_aligned(64, g.units * v->m * k->unit);
    g.in = mem_aligned(64, g.units * k->in_bytes);
    g.row = mem_aligned(64, g.units * k->unit);
    g.factors = mem_alloc(v->m * sizeof(*g.factors));
    uint32_t *column = mem_alloc(v->m * sizeof(uint32_t));
    v->exponents = mem_alloc(v->m * sizeof(uint16_t));
    v->inverse = mem_zalloc(v->m, half);
    v->row_bytes = half;
    int rv = g.acc == NULL || g.in == NULL || g.row == NULL || g.factors == NULL ||
                     v->exponents == NULL || v->inverse == NULL || column == NULL
                 ? -ENOMEM
                 : eliminate(&g, v, exponents, count, chosen, column);
    for (size_t r = 0; r < v->m && rv == 0; r++) { /* kept by recovery block */
        load_row(&g, r);
        v->exponents[r] = exponents[chosen[r]];
        for (size_t j = 0; j < v->m; j++) {
            memcpy(v->inverse + j * half + 2 * column[r], &g.row[v->m + j], 2);
        }
    }
    mem_free(g.acc);
    mem_free(g.in);
    mem_free(g.row);
    mem_free(g.factors);
    mem_free(column);
    return rv;
}

/* out[i][k] = sum over j of c_i^(e_j) * inverse[j][k], a batch of j at a time. */
static int present_any(const struct solver *v, const uint16_t *logs, size_t n,
                       struct gf16_coef *coef)
{
    const struct gf16_kernel *k = gf16_best();
    size_t units = v->row_bytes / k->unit;
    uint8_t *acc = mem_aligned(64, n * v->row_bytes),
            *in = mem_aligned(64, k->batch * units * k->in_bytes);
    uint16_t *row = mem_aligned(64, v->row_bytes);
    struct gf16_coef *powers = mem_alloc(n * k->batch * sizeof(*powers));
    bool ok = acc != NULL && in != NULL && row != NULL && powers != NULL;
    if (ok) {
        memset(acc, 0, n * v->row_bytes);
    }
    for (size_t from = 0; from < v->m && ok; from += k->batch) {
        size_t ins = v->m - from < k->batch ? v->m - from : k->batch;
        for (size_t j = 0; j < ins; j++) {
            k->pack(in + j * k->in_bytes, ins * k->in_bytes, v->inverse + (from + j) * v->row_bytes,
                    units);
            for (size_t i = 0; i < n; i++) {
                powers[i * ins + j] =
                    gf16_coef(gf16_exp[log_times(logs[i], v->exponents[from + j])]);
            }
        }
        k->muladd(acc, in, powers, n, ins, units);
    }
    for (size_t i = 0; i < n && ok; i++) {
        k->unpack((uint8_t *)row, acc + i * k->unit, n * k->unit, units);
        for (size_t o = 0; o < v->m; o++) {
            coef[o * n + i] = gf16_coef(row[o]);
        }
    }
    mem_free(acc);
    mem_free(in);
    mem_free(row);
    mem_free(powers);
    return ok ? 0 : -ENOMEM;
}

/* ---- both ---- */

/* The first of m exponents in a row; count: there are not so many. */
static size_t find_row(const uint16_t *exponents, size_t count, size_t m)
{
    for (size_t start = 0, i = 0; i < count; i++) {
        if (i > start && exponents[i] != exponents[i - 1] + 1) {
            start = i;
        }
        if (i - start + 1 == m) {
            return start;
        }
    }
    return count;
}

int par2_solver_new(struct solver **out, const uint16_t *missing_logs, size_t missing,
                    const uint16_t *exponents, size_t exponent_count, uint32_t *chosen)
{
    PRE(missing > 0 && missing <= exponent_count);
    struct solver *v = mem_zalloc(1, sizeof(*v));
    if (v == NULL) {
        return -ENOMEM;
    }
    v->m = missing;
    v->x = mem_alloc(missing * sizeof(uint16_t));
    int rv = v->x != NULL ? 0 : -ENOMEM;
    for (size_t k = 0; k < missing && rv == 0; k++) {
        v->x[k] = gf16_exp[missing_logs[k]];
    }
    size_t start = find_row(exponents, exponent_count, missing);
    v->in_a_row = start < exponent_count;
    if (rv == 0 && v->in_a_row) {
        v->e0 = exponents[start];
        for (size_t k = 0; k < missing; k++) {
            chosen[k] = (uint32_t)(start + k);
        }
        rv = solve_row(v);
    } else if (rv == 0) {
        rv = solve_any(v, exponents, exponent_count, chosen);
    }
    if (rv < 0) {
        par2_solver_free(v);
        return rv;
    }
    *out = v;
    return 0;
}

void par2_solver_free(struct solver *v)
{
    if (v != NULL) {
        mem_free(v->x);
        mem_free(v->q);
        mem_free(v->master);
        mem_free(v->exponents);
        mem_free(v->inverse);
        mem_free(v);
    }
}

int par2_solver_present(const struct solver *v, const uint16_t *logs, size_t n,
                        struct gf16_coef *coef)
{
    if (!v->in_a_row) {
        return present_any(v, logs, n, coef);
    }
    for (size_t i = 0; i < n; i++) {
        present_row(v, logs[i], n, coef + i);
    }
    return 0;
}

void par2_solver_start(const struct solver *v, uint16_t *state)
{
    for (size_t k = 0; k < v->m; k++) {
        state[k] = 1;
    }
}

void par2_solver_recovery(const struct solver *v, uint16_t *state, size_t last, size_t n,
                          struct gf16_coef *coef)
{
    PRE(n <= last + 1 && last < v->m);
    for (size_t i = 0; i < n; i++) {
        size_t j = last - i;
        for (size_t k = 0; k < v->m; k++) {
            uint16_t value;
            if (v->in_a_row) {
                value = gf16_mul(state[k], gf16_exp[GF16_ORDER - v->q[k]]);
                state[k] = v->master[j] ^ gf16_mul(v->x[k], state[k]);
            } else {
                memcpy(&value, v->inverse + j * v->row_bytes + 2 * k, 2);
            }
            coef[k * n + i] = gf16_coef(value);
        }
    }
}
