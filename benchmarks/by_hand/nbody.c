/* Coordinates apart, forces of all bodies on one as vectors, summed in order. The adjoint gathers: what a
   body takes from another as reader and as read is one vector, so it is one sum a body. Saved: positions. */
#include <math.h>

#include "memory.h"

static void run(double *restrict tape, double *restrict v, double *restrict f, const double *mass, int64_t n,
                double dt, int64_t steps, int keep) {
  for (int64_t t = 0; t < steps; t++) {
    const double *restrict x = tape + (keep ? t * 3 * n : 0), *restrict y = x + n, *restrict z = y + n;
    double *restrict next = tape + (keep ? (t + 1) * 3 * n : 0);
    for (int64_t i = 0; i < n; i++) {
      double xi = x[i], yi = y[i], zi = z[i], ax = 0.0, ay = 0.0, az = 0.0;
      for (int64_t j = 0; j < n; j++) {
        double dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        double r2 = dx * dx + dy * dy + dz * dz + 0.01;
        double w = mass[j] / (r2 * sqrt(r2));
        f[j] = w * dx;
        f[n + j] = w * dy;
        f[2 * n + j] = w * dz;
      }
      for (int64_t j = 0; j < n; j++) {
        ax += f[j];
        ay += f[n + j];
        az += f[2 * n + j];
      }
      v[i] += dt * ax;
      v[n + i] += dt * ay;
      v[2 * n + i] += dt * az;
    }
    for (int64_t i = 0; i < 3 * n; i++) next[i] = x[i] + dt * v[i];
  }
}

static double energy(const double *v, const double *mass, int64_t n) {
  double total = 0.0;
  for (int64_t i = 0; i < n; i++)
    total += 0.5 * mass[i] * (v[i] * v[i] + v[n + i] * v[n + i] + v[2 * n + i] * v[2 * n + i]);
  return total;
}

static void apart(double *to, const double *from, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < 3; c++) to[c * n + i] = from[i * 3 + c];
}

double primal(const double *position, int64_t n, int64_t three, const double *velocity, int64_t n2, int64_t three2,
              const double *mass, int64_t n3, double dt, int64_t steps) {
  double *x = doubles(9 * n), *v = x + 3 * n, *f = v + 3 * n;
  apart(x, position, n);
  apart(v, velocity, n);
  run(x, v, f, mass, n, dt, steps, 0);
  double value = energy(v, mass, n);
  give(x, 9 * n);
  return value;
}

double gradient(const double *position, int64_t n, int64_t three, const double *velocity, int64_t n2, int64_t three2,
                const double *mass, int64_t n3, double dt, int64_t steps, double *x_bar, double *v_bar) {
  double *tape = doubles((steps + 1) * 3 * n), *v = doubles(12 * n), *f = v + 3 * n, *xb = f + 3 * n, *vb = xb + 3 * n;
  apart(tape, position, n);
  apart(v, velocity, n);
  run(tape, v, f, mass, n, dt, steps, 1);
  double value = energy(v, mass, n);
  for (int64_t i = 0; i < 3 * n; i++) {
    xb[i] = 0.0;
    vb[i] = mass[i % n] * v[i];
  }
  for (int64_t t = steps - 1; t >= 0; t--) {
    const double *restrict x = tape + t * 3 * n, *restrict y = x + n, *restrict z = y + n;
    for (int64_t i = 0; i < 3 * n; i++) vb[i] += dt * xb[i];
    for (int64_t i = 0; i < n; i++) {
      double xi = x[i], yi = y[i], zi = z[i], px = 0.0, py = 0.0, pz = 0.0;
      double m = dt * mass[i], bx = dt * vb[i], by = dt * vb[n + i], bz = dt * vb[2 * n + i];
#pragma omp simd reduction(+ : px, py, pz)
      for (int64_t j = 0; j < n; j++) {
        double dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        double qx = m * vb[j] - mass[j] * bx, qy = m * vb[n + j] - mass[j] * by, qz = m * vb[2 * n + j] - mass[j] * bz;
        double r2 = dx * dx + dy * dy + dz * dz + 0.01;
        double one = 1.0 / (r2 * sqrt(r2)), along = 3.0 * (qx * dx + qy * dy + qz * dz) * (one * one * sqrt(r2));
        px += one * qx - along * dx;
        py += one * qy - along * dy;
        pz += one * qz - along * dz;
      }
      xb[i] += px;
      xb[n + i] += py;
      xb[2 * n + i] += pz;
    }
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < 3; c++) {
      x_bar[i * 3 + c] = xb[c * n + i];
      v_bar[i * 3 + c] = vb[c * n + i];
    }
  give(tape, (steps + 1) * 3 * n);
  give(v, 12 * n);
  return value;
}
