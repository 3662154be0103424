/* The forward sweep steps from one grid of the tape to the next; the reverse sweep gathers, row by row and in
   place, what a cell and its four neighbours took from it. What is read past the inner cells is a zero. */
#include <math.h>

#include "memory.h"

static inline double above(double v) { return v > 0.0 ? v : 0.0; }

static void edges(double *w, const double *c, int64_t n, int64_t m) {
  memcpy(w, c, (size_t)m * sizeof *w);
  memcpy(w + (n - 1) * m, c + (n - 1) * m, (size_t)m * sizeof *w);
  for (int64_t i = 1; i < n - 1; i++) {
    w[i * m] = c[i * m];
    w[i * m + m - 1] = c[i * m + m - 1];
  }
}

static void step(double *restrict w, const double *restrict c, const double *restrict vx, const double *restrict vy,
                 int64_t n, int64_t m) {
  for (int64_t i = 1; i < n - 1; i++) {
    const double *row = c + i * m, *up = row - m, *down = row + m;
    const double *vx_row = vx + (i - 1) * (m - 2) - 1, *vy_row = vy + (i - 1) * (m - 2) - 1;
#pragma omp simd
    for (int64_t j = 1; j < m - 1; j++) {
      double p = vx_row[j], q = vy_row[j], mid = row[j];
      double x = p > 0.0 ? p * (mid - up[j]) : p * (down[j] - mid);
      double y = q > 0.0 ? q * (mid - row[j - 1]) : q * (row[j + 1] - mid);
      w[i * m + j] = mid - 0.2 * (x + y);
    }
  }
}

double primal(const double *start, int64_t n, int64_t m, const double *vx, int64_t n2, int64_t m2, const double *vy,
              int64_t n3, int64_t m3, int64_t steps) {
  double *two = doubles(2 * n * m);
  memcpy(two, start, (size_t)(n * m) * sizeof *two);
  edges(two + n * m, start, n, m);
  for (int64_t t = 0; t < steps; t++) step(two + ((t + 1) & 1) * n * m, two + (t & 1) * n * m, vx, vy, n, m);
  double value = squares(two + (steps & 1) * n * m, n * m);
  give(two, 2 * n * m);
  return value;
}

/* Eight cells in one vector: clang makes no vectors of `back_row` without -ffast-math. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t flags __attribute__((vector_size(64)));

static inline eight at(const double *p) { return *(const eight *)p; }
static inline eight where(flags f, eight a, eight b) { return (eight)(((flags)a & f) | ((flags)b & ~f)); }
static inline eight positive(eight v) { return (eight)((flags)v & (flags)(v > 0.0)); }

/* What a cell gets back, but from its neighbours in the row; its wind's shadow gets its part. */
static inline double cell(double *vx_bar, const double *g, const double *g_up, const double *g_down, const double *c,
                          const double *vx, const double *vx_up, const double *vx_down, const double *vy, int64_t m,
                          int64_t j) {
  double p = vx[j], x = p > 0.0 ? c[j] - c[j - m] : c[j + m] - c[j];
  vx_bar[j] -= 0.2 * g[j] * x;
  return g[j] * (1.0 - 0.2 * (fabs(p) + fabs(vy[j]))) +
         0.2 * (above(vx_down[j]) * g_down[j] + above(-vx_up[j]) * g_up[j]);
}

/* One row of the grid, of the two winds and of what comes back: columns 1 to m - 2. */
static void back_row(double *restrict bar, double *restrict vx_bar, const double *g, const double *g_up,
                     const double *g_down, const double *c, const double *vx, const double *vx_up,
                     const double *vx_down, const double *vy, int64_t m) {
  int64_t last = m - 2, j = 2;
  bar[1] = cell(vx_bar, g, g_up, g_down, c, vx, vx_up, vx_down, vy, m, 1) + 0.2 * above(vy[2]) * g[2];
  for (; j + 8 <= last; j += 8) {
    eight p = at(vx + j), q = at(vy + j), mid = at(c + j), own = 0.2 * at(g + j);
    flags forward = (flags)(p > 0.0);
    eight x = where(forward, mid - at(c + j - m), at(c + j + m) - mid);
    *(eight *)(vx_bar + j) -= own * x;
    eight around = positive(at(vx_down + j)) * at(g_down + j) + positive(-at(vx_up + j)) * at(g_up + j) +
                   positive(at(vy + j + 1)) * at(g + j + 1) + positive(-at(vy + j - 1)) * at(g + j - 1);
    *(eight *)(bar + j) = at(g + j) - own * (where(forward, p, -p) + where((flags)(q > 0.0), q, -q)) + 0.2 * around;
  }
  for (; j < last; j++)
    bar[j] = cell(vx_bar, g, g_up, g_down, c, vx, vx_up, vx_down, vy, m, j) +
             0.2 * (above(vy[j + 1]) * g[j + 1] + above(-vy[j - 1]) * g[j - 1]);
  bar[last] = cell(vx_bar, g, g_up, g_down, c, vx, vx_up, vx_down, vy, m, last) +
              0.2 * above(-vy[last - 1]) * g[last - 1];
}

/* A step back, in place: `rows` hold what the row above and this one had. */
static void back(double *bar, double *vx_bar, double *rows, const double *c, const double *vx, const double *vy,
                 const double *zero, int64_t n, int64_t m) {
  int64_t w = m - 2;
  double *last = bar + (n - 1) * m, *old = rows, *up = rows + m;
  for (int64_t j = 1; j < m - 1; j++) bar[j] += 0.2 * above(vx[j - 1]) * bar[m + j];
  for (int64_t j = 1; j < m - 1; j++) last[j] += 0.2 * above(-vx[(n - 3) * w + j - 1]) * last[j - m];
  for (int64_t i = 1; i < n - 1; i++) {
    const double *row = vx + (i - 1) * w - 1, *vy_row = vy + (i - 1) * w - 1;
    double *here = bar + i * m;
    memcpy(old, here, (size_t)m * sizeof *old);
    back_row(here, vx_bar + (i - 1) * w - 1, old, i > 1 ? up : zero, i < n - 2 ? here + m : zero, c + i * m, row,
             i > 1 ? row - w : zero, i < n - 2 ? row + w : zero, vy_row, m);
    here[0] = old[0] + 0.2 * above(vy_row[1]) * old[1];
    here[m - 1] = old[m - 1] + 0.2 * above(-vy_row[m - 2]) * old[m - 2];
    double *other = old;
    old = up;
    up = other;
  }
}

double gradient(const double *start, int64_t n, int64_t m, const double *vx, int64_t n2, int64_t m2, const double *vy,
                int64_t n3, int64_t m3, int64_t steps, double *bar, double *vx_bar) {
  double *tape = doubles((steps + 1) * n * m), *rows = doubles(3 * m), *zero = rows + 2 * m;
  memset(zero, 0, (size_t)m * sizeof *zero);
  memset(vx_bar, 0, (size_t)(n2 * m2) * sizeof *vx_bar);
  memcpy(tape, start, (size_t)(n * m) * sizeof *tape);
  for (int64_t t = 0; t < steps; t++) {
    edges(tape + (t + 1) * n * m, start, n, m);
    step(tape + (t + 1) * n * m, tape + t * n * m, vx, vy, n, m);
  }
  double value = squares(tape + steps * n * m, n * m);
  twice(bar, tape + steps * n * m, n * m);
  for (int64_t t = steps - 1; t >= 0; t--) back(bar, vx_bar, rows, tape + t * n * m, vx, vy, zero, n, m);
  give(tape, (steps + 1) * n * m);
  give(rows, 3 * m);
  return value;
}
