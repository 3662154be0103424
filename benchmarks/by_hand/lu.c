/* Elimination in place, four rows at a time; every value that the adjoint reads is final: nothing is saved. */
#include <math.h>

#include "memory.h"

static double factor(double *a, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const double *restrict top = a + k * n;
    int64_t i = k + 1;
    for (; i + 3 < n; i += 4) {
      double *restrict r0 = a + i * n, *restrict r1 = r0 + n, *restrict r2 = r1 + n, *restrict r3 = r2 + n;
      double f0 = r0[k] /= top[k], f1 = r1[k] /= top[k], f2 = r2[k] /= top[k], f3 = r3[k] /= top[k];
      for (int64_t j = k + 1; j < n; j++) {
        r0[j] -= f0 * top[j];
        r1[j] -= f1 * top[j];
        r2[j] -= f2 * top[j];
        r3[j] -= f3 * top[j];
      }
    }
    for (; i < n; i++) {
      double *restrict r = a + i * n;
      double f = r[k] /= top[k];
      for (int64_t j = k + 1; j < n; j++) r[j] -= f * top[j];
    }
  }
  double value = 0.0;
  for (int64_t k = 0; k < n; k++) value += log(fabs(a[k * n + k]));
  return value;
}

double primal(const double *matrix, int64_t n, int64_t m) {
  double *a = doubles(n * m);
  memcpy(a, matrix, (size_t)(n * m) * sizeof *a);
  double value = factor(a, n);
  give(a, n * m);
  return value;
}

double gradient(const double *matrix, int64_t n, int64_t m, double *bar) {
  double *a = doubles(n * m);
  memcpy(a, matrix, (size_t)(n * m) * sizeof *a);
  double value = factor(a, n);
  memset(bar, 0, (size_t)(n * m) * sizeof *bar);
  for (int64_t k = 0; k < n; k++) bar[k * n + k] = 1.0 / a[k * n + k];
  for (int64_t k = n - 1; k >= 0; k--) {
    const double *restrict top = a + k * n;
    double *restrict up = bar + k * n;
    double pivot = 1.0 / top[k], own = 0.0;
    int64_t i = k + 1;
    for (; i + 3 < n; i += 4) {
      double *restrict b0 = bar + i * n, *restrict b1 = b0 + n, *restrict b2 = b1 + n, *restrict b3 = b2 + n;
      const double *f = a + i * n + k;
      double f0 = f[0], f1 = f[n], f2 = f[2 * n], f3 = f[3 * n];
      double s0 = b0[k], s1 = b1[k], s2 = b2[k], s3 = b3[k];
#pragma omp simd reduction(- : s0, s1, s2, s3)
      for (int64_t j = k + 1; j < n; j++) {
        s0 -= b0[j] * top[j];
        s1 -= b1[j] * top[j];
        s2 -= b2[j] * top[j];
        s3 -= b3[j] * top[j];
        up[j] -= (b0[j] * f0 + b1[j] * f1) + (b2[j] * f2 + b3[j] * f3);
      }
      b0[k] = s0 * pivot;
      b1[k] = s1 * pivot;
      b2[k] = s2 * pivot;
      b3[k] = s3 * pivot;
      own += (b0[k] * f0 + b1[k] * f1) + (b2[k] * f2 + b3[k] * f3);
    }
    for (; i < n; i++) {
      double *restrict b = bar + i * n;
      double f = a[i * n + k], s = b[k];
#pragma omp simd reduction(- : s)
      for (int64_t j = k + 1; j < n; j++) {
        s -= b[j] * top[j];
        up[j] -= b[j] * f;
      }
      b[k] = s * pivot;
      own += b[k] * f;
    }
    up[k] -= own;
  }
  give(a, n * m);
  return value;
}
