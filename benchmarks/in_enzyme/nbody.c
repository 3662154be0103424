#include "plain.h"

static double program(const double *restrict position, int64_t n, int64_t three, const double *restrict velocity,
                      int64_t n1, int64_t three1, const double *restrict mass, int64_t n2, double dt, int64_t steps) {
  double *x = copied(position, 3 * n), *v = copied(velocity, 3 * n), energy = 0.0;
  for (int64_t t = 0; t < steps; t++) {
    for (int64_t i = 0; i < n; i++) {
      double ax = 0.0, ay = 0.0, az = 0.0;
      for (int64_t j = 0; j < n; j++) {
        double dx = x[3 * j] - x[3 * i], dy = x[3 * j + 1] - x[3 * i + 1], dz = x[3 * j + 2] - x[3 * i + 2];
        double r2 = dx * dx + dy * dy + dz * dz + 0.01;
        double w = mass[j] / (r2 * sqrt(r2));
        ax += w * dx;
        ay += w * dy;
        az += w * dz;
      }
      v[3 * i] += dt * ax;
      v[3 * i + 1] += dt * ay;
      v[3 * i + 2] += dt * az;
    }
    for (int64_t i = 0; i < 3 * n; i++) x[i] += dt * v[i];
  }
  for (int64_t i = 0; i < n; i++)
    energy += 0.5 * mass[i] * (v[3 * i] * v[3 * i] + v[3 * i + 1] * v[3 * i + 1] + v[3 * i + 2] * v[3 * i + 2]);
  free(x);
  free(v);
  return energy;
}
