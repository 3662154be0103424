/* Columns lie in rows of memory, padded to whole vectors. A column is finished before the next one begins: what
   the ones before it take from it is a chain of dot products, each of which updates it for the next in the same
   sweep. So the tapes of four columns are enough: the reverse sweep fills them again, from the matrix. */
#if defined(__AVX512F__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif

#include <math.h>

#include "memory.h"

enum { VECTOR = 8, BLOCK = 16 };

static int64_t padded(int64_t m) { return (m + VECTOR - 1) / VECTOR * VECTOR; }

static void columns(double *restrict to, const double *restrict from, int64_t m, int64_t n, int64_t w) {
  for (int64_t i0 = 0; i0 < m; i0 += BLOCK)
    for (int64_t j = 0; j < n; j++) {
      int64_t i1 = i0 + BLOCK < m ? i0 + BLOCK : m;
      for (int64_t i = i0; i < i1; i++) to[j * w + i] = from[i * n + j];
    }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = m; i < w; i++) to[j * w + i] = 0.0;
}

static inline double dot(const double *x, const double *y, int64_t w) {
  double s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < w; i++) s += x[i] * y[i];
  return s;
}

/* Takes r q from a column, and returns its product with the next q. */
static inline double take(double *restrict a, const double *restrict q, const double *restrict next, double r,
                          int64_t w) {
  double s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < w; i++) {
    a[i] -= q[i] * r;
    s += next[i] * a[i];
  }
  return s;
}

/* Four columns together, by all q before the first of them: one sweep over q serves four. */
static inline void take4(double *restrict a, int64_t w, const double *restrict q, const double *restrict next,
                         double r[4]) {
  double *restrict b = a + w, *restrict c = b + w, *restrict d = c + w;
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0, r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (int64_t i = 0; i < w; i++) {
    double x = q[i], y = next[i];
    a[i] -= x * r0;
    b[i] -= x * r1;
    c[i] -= x * r2;
    d[i] -= x * r3;
    s0 += y * a[i];
    s1 += y * b[i];
    s2 += y * c[i];
    s3 += y * d[i];
  }
  r[0] = s0;
  r[1] = s1;
  r[2] = s2;
  r[3] = s3;
}

/* q holds the matrix's columns, and then Q's; r[j n + k] is R's element (k, j). */
static void factor(double *q, double *r, int64_t n, int64_t w, const double *zero) {
  for (int64_t j0 = 0; j0 < n; j0 += 4) {
    int64_t width = j0 + 4 <= n ? 4 : n - j0;
    double *a = q + j0 * w;
    if (width == 4 && j0) {
      double s[4];
      for (int64_t c = 0; c < 4; c++) s[c] = dot(q, a + c * w, w);
      for (int64_t k = 0; k < j0; k++) {
        for (int64_t c = 0; c < 4; c++) r[(j0 + c) * n + k] = s[c];
        take4(a, w, q + k * w, k + 1 < j0 ? q + (k + 1) * w : zero, s);
      }
    }
    for (int64_t j = j0; j < j0 + width; j++) {
      double *restrict own = q + j * w;
      int64_t k = width == 4 ? j0 : 0;
      double s = k < j ? dot(q + k * w, own, w) : 0.0;
      for (; k < j; k++) {
        r[j * n + k] = s;
        s = take(own, q + k * w, k + 1 < j ? q + (k + 1) * w : zero, s, w);
      }
      double length = r[j * n + j] = sqrt(dot(own, own, w));
      for (int64_t i = 0; i < w; i++) own[i] /= length;
    }
  }
}

static double total(const double *q, const double *r, int64_t n, int64_t w) {
  double of_q = 0.0, of_r = 0.0;
#pragma omp simd reduction(+ : of_q)
  for (int64_t i = 0; i < n * w; i++) of_q += q[i];
  for (int64_t j = 0; j < n; j++) {
#pragma omp simd reduction(+ : of_r)
    for (int64_t k = 0; k <= j; k++) of_r += r[j * n + k] * r[j * n + k] * r[j * n + k];
  }
  return of_r + of_q;
}

double primal(const double *matrix, int64_t m, int64_t n) {
  int64_t w = padded(m);
  double *q = doubles(n * w), *r = doubles(n * n), *zero = doubles(w);
  memset(zero, 0, (size_t)w * sizeof *zero);
  columns(q, matrix, m, n, w);
  factor(q, r, n, w, zero);
  double value = total(q, r, n, w);
  give(q, n * w);
  give(r, n * n);
  give(zero, w);
  return value;
}

/* What a column was before each of the first q was taken from it. */
static void again(double *tape, const double *q, const double *r, int64_t count, int64_t w) {
  for (int64_t k = 0; k < count; k++) {
    const double *restrict from = tape + k * w, *restrict x = q + k * w;
    double *restrict to = tape + (k + 1) * w, s = r[k];
#pragma omp simd
    for (int64_t i = 0; i < w; i++) to[i] = from[i] - x[i] * s;
  }
}

/* The same of four columns, whose tapes lie `step` apart: one sweep over q serves four. */
static void again4(double *tape, int64_t step, const double *q, const double *r, int64_t n, int64_t count, int64_t w) {
  for (int64_t k = 0; k < count; k++) {
    const double *restrict x = q + k * w;
    double *restrict a = tape + k * w, *restrict b = a + step, *restrict c = b + step, *restrict d = c + step;
    double r0 = r[k], r1 = r[n + k], r2 = r[2 * n + k], r3 = r[3 * n + k];
#pragma omp simd
    for (int64_t i = 0; i < w; i++) {
      double y = x[i];
      a[w + i] = a[i] - y * r0;
      b[w + i] = b[i] - y * r1;
      c[w + i] = c[i] - y * r2;
      d[w + i] = d[i] - y * r3;
    }
  }
}

/* One step back: `bar` of the column, `q_bar` of q; returned: the product of the new `bar` with the q before. */
static inline double back(double *restrict bar, double *restrict q_bar, const double *restrict q,
                          const double *restrict a, const double *restrict before, double r, double r_bar,
                          int64_t w) {
  double s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < w; i++) {
    double b = bar[i];
    q_bar[i] += r_bar * a[i] - r * b;
    b += r_bar * q[i];
    bar[i] = b;
    s += before[i] * b;
  }
  return s;
}

/* The same of four columns, whose tapes lie `step` apart. */
static inline void back4(double *restrict bar, double *restrict q_bar, const double *restrict q,
                         const double *restrict a, int64_t step, const double *restrict before, const double r[4],
                         double s[4], int64_t w) {
  double *restrict bar1 = bar + w, *restrict bar2 = bar1 + w, *restrict bar3 = bar2 + w;
  const double *restrict a1 = a + step, *restrict a2 = a1 + step, *restrict a3 = a2 + step;
  double r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3], s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  double u0 = 3.0 * r0 * r0 - s[0], u1 = 3.0 * r1 * r1 - s[1], u2 = 3.0 * r2 * r2 - s[2],
         u3 = 3.0 * r3 * r3 - s[3];
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (int64_t i = 0; i < w; i++) {
    double b0 = bar[i], b1 = bar1[i], b2 = bar2[i], b3 = bar3[i], x = q[i], y = before[i];
    q_bar[i] += ((u0 * a[i] - r0 * b0) + (u1 * a1[i] - r1 * b1)) + ((u2 * a2[i] - r2 * b2) + (u3 * a3[i] - r3 * b3));
    bar[i] = b0 += u0 * x;
    bar1[i] = b1 += u1 * x;
    bar2[i] = b2 += u2 * x;
    bar3[i] = b3 += u3 * x;
    s0 += y * b0;
    s1 += y * b1;
    s2 += y * b2;
    s3 += y * b3;
  }
  s[0] = s0;
  s[1] = s1;
  s[2] = s2;
  s[3] = s3;
}

/* The column became q by division by its length: its cotangent takes the place of q's. */
static void back_own(double *restrict bar, const double *restrict own, double length, int64_t w) {
  double over = 1.0 / length, length_bar = 3.0 * length * length - over * dot(bar, own, w);
  for (int64_t i = 0; i < w; i++) bar[i] = bar[i] * over + length_bar * own[i];
}

double gradient(const double *matrix, int64_t m, int64_t n, double *matrix_bar) {
  int64_t w = padded(m), step = n * w;
  double *a = doubles(n * w), *q = doubles(n * w), *r = doubles(n * n), *zero = doubles(w);
  double *q_bar = doubles(n * w), *tape = doubles(4 * step);
  memset(zero, 0, (size_t)w * sizeof *zero);
  columns(a, matrix, m, n, w);
  memcpy(q, a, (size_t)(n * w) * sizeof *q);
  factor(q, r, n, w, zero);
  double value = total(q, r, n, w);
  for (int64_t i = 0; i < n * w; i++) q_bar[i] = 1.0;
  for (int64_t j0 = (n - 1) / 4 * 4; j0 >= 0; j0 -= 4) {
    int64_t width = j0 + 4 <= n ? 4 : n - j0, first = width == 4 ? j0 : 0;
    for (int64_t c = 0; c < width; c++) memcpy(tape + c * step, a + (j0 + c) * w, (size_t)w * sizeof *tape);
    again4(tape, step, q, r + j0 * n, n, first, w);
    for (int64_t c = 0; c < width; c++)
      again(tape + c * step + first * w, q + first * w, r + (j0 + c) * n + first, j0 + c - first, w);
    for (int64_t j = j0 + width - 1; j >= j0; j--) {
      double *bar = q_bar + j * w, *rs = r + j * n, *own = tape + (j - j0) * step;
      back_own(bar, q + j * w, rs[j], w);
      double s = j > first ? dot(q + (j - 1) * w, bar, w) : 0.0;
      for (int64_t k = j - 1; k >= first; k--)
        s = back(bar, q_bar + k * w, q + k * w, own + k * w, k > first ? q + (k - 1) * w : zero, rs[k],
                 3.0 * rs[k] * rs[k] - s, w);
    }
    if (!first) continue;
    double *bar = q_bar + j0 * w, s[4];
    for (int64_t c = 0; c < 4; c++) s[c] = dot(q + (j0 - 1) * w, bar + c * w, w);
    for (int64_t k = j0 - 1; k >= 0; k--) {
      double rs[4];
      for (int64_t c = 0; c < 4; c++) rs[c] = r[(j0 + c) * n + k];
      back4(bar, q_bar + k * w, q + k * w, tape + k * w, step, k ? q + (k - 1) * w : zero, rs, s, w);
    }
  }
  for (int64_t i0 = 0; i0 < m; i0 += BLOCK)
    for (int64_t j = 0; j < n; j++) {
      int64_t i1 = i0 + BLOCK < m ? i0 + BLOCK : m;
      for (int64_t i = i0; i < i1; i++) matrix_bar[i * n + j] = q_bar[j * w + i];
    }
  give(a, n * w);
  give(q, n * w);
  give(r, n * n);
  give(zero, w);
  give(q_bar, n * w);
  give(tape, 4 * step);
  return value;
}
