/* A step reads one array and writes the next; r is read from a copy that lies backwards. The forward sweep keeps
   the y of every SEGMENT-th step; the reverse sweep makes those between again, which needs no sum, on a tape that
   stays in the cache. */
#if defined(__AVX512F__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif

#include "memory.h"

enum { SEGMENT = 32 };

static inline double next(double *restrict to, const double *restrict y, double alpha, int64_t k) {
  const double *last = y + k - 1;
#pragma omp simd
  for (int64_t i = 0; i < k; i++) to[i] = y[i] + alpha * last[-i];
  return to[k] = alpha;
}

/* Four sums side by side: one waits for its last addition. */
static inline double dot(const double *x, const double *y, int64_t k) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  int64_t part = k / 32 * 8;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (int64_t i = 0; i < part; i++) {
    s0 += x[i] * y[i];
    s1 += x[part + i] * y[part + i];
    s2 += x[2 * part + i] * y[2 * part + i];
    s3 += x[3 * part + i] * y[3 * part + i];
  }
#pragma omp simd reduction(+ : s0)
  for (int64_t i = 4 * part; i < k; i++) s0 += x[i] * y[i];
  return (s0 + s1) + (s2 + s3);
}

/* The first y, of which more is 0, and what r is backwards: r[k - 1 - i] is back[n - k + i]. */
static void begin(double *y, double *back, const double *r, int64_t n) {
  for (int64_t i = 0; i < n; i++) back[i] = r[n - 1 - i];
  y[0] = -r[0];
}

double primal(const double *r, int64_t n) {
  double *two = doubles(2 * n), *back = doubles(n), alpha = -r[0], beta = 1.0;
  begin(two, back, r, n);
  for (int64_t k = 1; k < n; k++) {
    double *y = two + ((k - 1) & 1) * n;
    beta *= 1.0 - alpha * alpha;
    alpha = -(r[k] + dot(back + n - k, y, k)) / beta;
    next(two + (k & 1) * n, y, alpha, k);
  }
  double value = squares(two + ((n - 1) & 1) * n, n);
  give(two, 2 * n);
  give(back, n);
  return value;
}

/* One step back: the cotangents of its y, of r; returned: the product that the step before asks for. */
static inline double step(double *restrict to, double *restrict r_bar, const double *restrict y_bar,
                          const double *restrict y, const double *restrict back, const double *restrict before,
                          double alpha, double s, int64_t k) {
  const double *last = y_bar + k - 1, *end = before + k - 2;
  double found = 0.0;
#pragma omp simd reduction(+ : found)
  for (int64_t i = 0; i < k - 1; i++) {
    double b = y_bar[i] + alpha * last[-i] + s * back[i];
    to[i] = b;
    r_bar[i] += s * y[i];
    found += b * end[-i];
  }
  to[k - 1] = y_bar[k - 1] + alpha * last[1 - k] + s * back[k - 1];
  r_bar[k - 1] += s * y[k - 1];
  return found;
}

double gradient(const double *r, int64_t n, double *bar) {
  int64_t kept = (n + SEGMENT - 1) / SEGMENT;
  double *states = doubles(kept * n), *tape = doubles((SEGMENT + 1) * n), *back = doubles(n);
  double *alphas = doubles(n), *betas = doubles(n), *two = doubles(2 * n), *r_bar = doubles(n);
  double alpha = alphas[0] = -r[0], beta = betas[0] = 1.0;
  begin(tape, back, r, n);
  for (int64_t k = 1; k < n; k++) {
    double *y = tape + (k - 1) % 2 * n;
    if ((k - 1) % SEGMENT == 0) memcpy(states + (k - 1) / SEGMENT * n, y, (size_t)k * sizeof *y);
    betas[k] = beta *= 1.0 - alpha * alpha;
    alphas[k] = alpha = -(r[k] + dot(back + n - k, y, k)) / beta;
    next(tape + k % 2 * n, y, alpha, k);
  }
  double *y_bar = two, *to = two + n, *y = tape + (n - 1) % 2 * n;
  double value = squares(y, n), alpha_bar = 0.0, beta_bar = 0.0, product = 0.0;
  twice(y_bar, y, n);
  memset(r_bar, 0, (size_t)n * sizeof *r_bar);
  /* A segment has its y of step k in row k - first; row 0 is a state. */
  for (int64_t first = (n - 2) / SEGMENT * SEGMENT, last = n - 1; first >= 0 && n > 1; last = first, first -= SEGMENT) {
    memcpy(tape, states + first / SEGMENT * n, (size_t)(first + 1) * sizeof *tape);
    for (int64_t k = first + 1; k < last; k++)
      next(tape + (k - first) * n, tape + (k - 1 - first) * n, alphas[k], k);
    for (int64_t k = last; k > first; k--) {
      const double *now = tape + (k - 1 - first) * n;
      if (k == last) { /* Its y was not there before. */
        product = 0.0;
#pragma omp simd reduction(+ : product)
        for (int64_t i = 0; i < k; i++) product += y_bar[i] * now[k - 1 - i];
      }
      alpha_bar += y_bar[k] + product;
      double sum_bar = alpha_bar / betas[k];
      beta_bar -= sum_bar * alphas[k];
      double *own = r_bar + n - k;
      r_bar[n - 1 - k] -= sum_bar;
      product = step(to, own, y_bar, now, back + n - k, k - 1 > first ? now - n : now, alphas[k], -sum_bar, k);
      alpha_bar = -2.0 * beta_bar * betas[k - 1] * alphas[k - 1];
      beta_bar *= 1.0 - alphas[k - 1] * alphas[k - 1];
      double *other = y_bar;
      y_bar = to;
      to = other;
    }
  }
  r_bar[n - 1] -= alpha_bar + y_bar[0];
  for (int64_t i = 0; i < n; i++) bar[i] = r_bar[n - 1 - i];
  give(states, kept * n);
  give(tape, (SEGMENT + 1) * n);
  give(back, n);
  give(alphas, n);
  give(betas, n);
  give(two, 2 * n);
  give(r_bar, n);
  return value;
}
