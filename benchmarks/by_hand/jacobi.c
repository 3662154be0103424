/* The adjoint of a five-point sweep is one, of a grid whose edge is zero. Nothing is saved. */
#include "memory.h"

static void sweep(double *restrict v, const double *restrict u, int64_t n, int64_t m) {
  for (int64_t i = 1; i < n - 1; i++)
    for (int64_t j = 1; j < m - 1; j++)
      v[i * m + j] = 0.25 * (u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] + u[i * m + j + 1]);
}

static double *swept(double *u, double *v, const double *start, int64_t n, int64_t m, int64_t steps) {
  memcpy(u, start, (size_t)(n * m) * sizeof *u);
  memcpy(v, start, (size_t)(n * m) * sizeof *v);
  for (int64_t t = 0; t < steps; t++) {
    sweep(v, u, n, m);
    double *other = u;
    u = v;
    v = other;
  }
  return u;
}

double primal(const double *start, int64_t n, int64_t m, int64_t steps) {
  double *u = doubles(n * m), *v = doubles(n * m);
  double value = squares(swept(u, v, start, n, m, steps), n * m);
  give(u, n * m);
  give(v, n * m);
  return value;
}

double gradient(const double *start, int64_t n, int64_t m, int64_t steps, double *bar) {
  double *a = doubles(n * m), *b = doubles(n * m);
  double *u = swept(a, b, start, n, m, steps), *v = u == a ? b : a;
  double value = squares(u, n * m);
  twice(bar, u, n * m); /* its edge gathers from every sweep */
  for (int64_t i = 0; i < n * m; i++) u[i] *= 2.0;
  for (int64_t j = 0; j < m; j++) u[j] = u[(n - 1) * m + j] = v[j] = v[(n - 1) * m + j] = 0.0;
  for (int64_t i = 0; i < n; i++) u[i * m] = u[i * m + m - 1] = v[i * m] = v[i * m + m - 1] = 0.0;
  for (int64_t t = 0; t < steps; t++) {
    for (int64_t j = 1; j < m - 1; j++) {
      bar[j] += 0.25 * u[m + j];
      bar[(n - 1) * m + j] += 0.25 * u[(n - 2) * m + j];
    }
    for (int64_t i = 1; i < n - 1; i++) {
      bar[i * m] += 0.25 * u[i * m + 1];
      bar[i * m + m - 1] += 0.25 * u[i * m + m - 2];
    }
    sweep(v, u, n, m);
    double *other = u;
    u = v;
    v = other;
  }
  for (int64_t i = 1; i < n - 1; i++)
    memcpy(bar + i * m + 1, u + i * m + 1, (size_t)(m - 2) * sizeof *u);
  give(a, n * m);
  give(b, n * m);
  return value;
}
