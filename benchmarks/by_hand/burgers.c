/* The forward sweep steps from one row of the tape to the next; the reverse sweep gathers. */
#include "memory.h"

static void step(double *restrict w, const double *restrict u, double nu, int64_t n) {
  w[0] = u[0];
  w[n - 1] = u[n - 1];
  for (int64_t i = 1; i < n - 1; i++)
    w[i] = u[i] + (nu * (u[i + 1] - 2.0 * u[i] + u[i - 1]) - 0.05 * u[i] * (u[i + 1] - u[i - 1]));
}

double primal(const double *start, int64_t n, double nu, int64_t steps) {
  double *two = doubles(2 * n);
  memcpy(two, start, (size_t)n * sizeof *two);
  for (int64_t t = 0; t < steps; t++) step(two + ((t + 1) & 1) * n, two + (t & 1) * n, nu, n);
  double value = squares(two + (steps & 1) * n, n);
  give(two, 2 * n);
  return value;
}

static void back(double *restrict bar, const double *restrict g, const double *restrict u, double nu, int64_t n) {
  /* of an inner element the two edges read, but are not stored to */
  bar[0] = g[0] + g[1] * (nu + 0.05 * u[1]);
  bar[n - 1] = g[n - 1] + g[n - 2] * (nu - 0.05 * u[n - 2]);
  for (int64_t i = 2; i < n - 2; i++)
    bar[i] = g[i] * (1.0 - 2.0 * nu - 0.05 * (u[i + 1] - u[i - 1])) + g[i + 1] * (nu + 0.05 * u[i + 1]) +
             g[i - 1] * (nu - 0.05 * u[i - 1]);
  bar[1] = g[1] * (1.0 - 2.0 * nu - 0.05 * (u[2] - u[0])) + (n > 3 ? g[2] * (nu + 0.05 * u[2]) : 0.0);
  if (n > 3)
    bar[n - 2] = g[n - 2] * (1.0 - 2.0 * nu - 0.05 * (u[n - 1] - u[n - 3])) + g[n - 3] * (nu - 0.05 * u[n - 3]);
}

double gradient(const double *start, int64_t n, double nu, int64_t steps, double *bar) {
  double *tape = doubles((steps + 1) * n), *two = doubles(n);
  memcpy(tape, start, (size_t)n * sizeof *tape);
  for (int64_t t = 0; t < steps; t++) step(tape + (t + 1) * n, tape + t * n, nu, n);
  double value = squares(tape + steps * n, n);
  double *now = steps & 1 ? two : bar, *next = steps & 1 ? bar : two;
  twice(now, tape + steps * n, n);
  for (int64_t t = steps - 1; t >= 0; t--) {
    back(next, now, tape + t * n, nu, n);
    double *other = now;
    now = next;
    next = other;
  }
  give(tape, (steps + 1) * n);
  give(two, n);
  return value;
}
