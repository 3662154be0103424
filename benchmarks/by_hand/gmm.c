/* The points do not depend on each other, so each has its reverse sweep at once, and nothing is saved. The
   exponentials of the scales are of no point. */
#include <math.h>

#include "memory.h"

/* z = L (x - mean) of one component; its term of the mixture. */
static inline double term_of(double *restrict away, double *restrict z, const double *restrict x,
                             const double *restrict mean, const double *restrict diagonal,
                             const double *restrict lower, int64_t d) {
  double square = 0.0;
  for (int64_t e = 0; e < d; e++) away[e] = x[e] - mean[e];
  for (int64_t e = 0; e < d; e++) {
    double s = diagonal[e] * away[e];
    for (int64_t f = 0; f < e; f++) s += lower[e * d + f] * away[f];
    z[e] = s;
    square += s * s;
  }
  return -0.5 * square;
}

static double *of_components(const double *scales, int64_t k, int64_t d) {
  double *made = doubles(k * d + k);
  for (int64_t c = 0; c < k; c++) {
    double logs = 0.0;
    for (int64_t e = 0; e < d; e++) {
      made[c * d + e] = exp(scales[c * d + e]);
      logs += scales[c * d + e];
    }
    made[k * d + c] = logs;
  }
  return made;
}

#define PARAMETERS                                                                                              \
  const double *weights, int64_t k, const double *means, int64_t k1, int64_t d, const double *scales, int64_t k2, \
      int64_t d1, const double *lower, int64_t k3, int64_t d2, int64_t d3, const double *x, int64_t n, int64_t d4

double primal(PARAMETERS) {
  double *made = of_components(scales, k, d), *away = doubles(2 * d + k), *z = away + d, *term = z + d, total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double high = -INFINITY, inside = 0.0;
    for (int64_t c = 0; c < k; c++) {
      term[c] = weights[c] + made[k * d + c] +
                term_of(away, z, x + i * d, means + c * d, made + c * d, lower + c * d * d, d);
      high = term[c] > high ? term[c] : high;
    }
    for (int64_t c = 0; c < k; c++) inside += exp(term[c] - high);
    total += high + log(inside);
  }
  give(away, 2 * d + k);
  give(made, k * d + k);
  return total;
}

double gradient(PARAMETERS, double *weights_bar, double *means_bar, double *scales_bar, double *lower_bar) {
  double *made = of_components(scales, k, d), *away = doubles(2 * k * d + k), *z = away + k * d, *term = z + k * d;
  double total = 0.0;
  memset(weights_bar, 0, (size_t)k * sizeof(double));
  memset(means_bar, 0, (size_t)(k * d) * sizeof(double));
  memset(scales_bar, 0, (size_t)(k * d) * sizeof(double));
  memset(lower_bar, 0, (size_t)(k * d * d) * sizeof(double));
  for (int64_t i = 0; i < n; i++) {
    double high = -INFINITY, inside = 0.0;
    for (int64_t c = 0; c < k; c++) {
      term[c] = weights[c] + made[k * d + c] +
                term_of(away + c * d, z + c * d, x + i * d, means + c * d, made + c * d, lower + c * d * d, d);
      high = term[c] > high ? term[c] : high;
    }
    for (int64_t c = 0; c < k; c++) inside += term[c] = exp(term[c] - high);
    total += high + log(inside);
    double share = 1.0 / inside;
    for (int64_t c = 0; c < k; c++) {
      const double *restrict ac = away + c * d, *restrict zc = z + c * d, *restrict low = lower + c * d * d;
      double *restrict mb = means_bar + c * d, *restrict lb = lower_bar + c * d * d;
      double p = term[c] * share;
      weights_bar[c] += p;
      for (int64_t e = 0; e < d; e++) {
        double pz = p * zc[e], slope = pz * made[c * d + e];
        scales_bar[c * d + e] -= slope * ac[e]; /* and p: below */
        mb[e] += slope;
        for (int64_t f = 0; f < e; f++) {
          lb[e * d + f] -= pz * ac[f];
          mb[f] += pz * low[e * d + f];
        }
      }
    }
  }
  for (int64_t c = 0; c < k; c++)
    for (int64_t e = 0; e < d; e++) scales_bar[c * d + e] += weights_bar[c];
  give(away, 2 * k * d + k);
  give(made, k * d + k);
  return total;
}
