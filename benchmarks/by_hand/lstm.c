/* The forward sweep goes through a step's cells as vectors and saves the gates, the cell and its tanh. A cell
   sees no other, so the reverse sweep takes eight cells through all steps: their state and the cotangents of
   their weights stay in registers. */
#include <math.h>

#include "memory.h"

__attribute__((simd("notinbranch"))) double exp(double);
__attribute__((simd("notinbranch"))) double tanh(double);

typedef double lanes __attribute__((vector_size(64)));
enum { LANES = 8, FORGET = 0, ENTER, LEAVE, NEW, CELL, TANH, SAVED };

static inline lanes load(const double *from, int64_t count) {
  lanes v = {0.0};
  if (count >= LANES)
    memcpy(&v, from, sizeof v);
  else
    memcpy(&v, from, (size_t)count * sizeof *from);
  return v;
}

static inline void store(double *to, lanes v, int64_t count) {
  memcpy(to, &v, (size_t)(count >= LANES ? LANES : count) * sizeof *to);
}

/* Reads the cell and its tanh before the step in `before`, writes all of `now`; the sum of squares of h. */
static double step(double *restrict now, const double *restrict before, double *restrict h,
                   const double *restrict x, const double *restrict w, const double *restrict b, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    double state = before[LEAVE * n + i] * before[TANH * n + i];
    double forget = 1.0 / (1.0 + exp(-(w[i] * x[i] + w[n + i] * state + b[i])));
    double enter = 1.0 / (1.0 + exp(-(w[2 * n + i] * x[i] + w[3 * n + i] * state + b[n + i])));
    double leave = 1.0 / (1.0 + exp(-(w[4 * n + i] * x[i] + w[5 * n + i] * state + b[2 * n + i])));
    double new = tanh(w[6 * n + i] * x[i] + w[7 * n + i] * state + b[3 * n + i]);
    double cell = forget * before[CELL * n + i] + enter * new, most = tanh(cell);
    now[FORGET * n + i] = forget;
    now[ENTER * n + i] = enter;
    now[LEAVE * n + i] = leave;
    now[NEW * n + i] = new;
    now[CELL * n + i] = cell;
    now[TANH * n + i] = most;
    h[i] = leave * most;
  }
  return squares(h, n);
}

double primal(const double *inputs, int64_t steps, int64_t n, const double *w, int64_t four, int64_t two, int64_t n1,
              const double *b, int64_t four1, int64_t n2) {
  double *state = doubles((2 * SAVED + 1) * n), *h = state + 2 * SAVED * n, total = 0.0;
  memset(state, 0, (size_t)(SAVED * n) * sizeof *state);
  for (int64_t t = 0; t < steps; t++)
    total += step(state + ((t + 1) & 1) * SAVED * n, state + (t & 1) * SAVED * n, h, inputs + t * n, w, b, n);
  give(state, (2 * SAVED + 1) * n);
  return total;
}

double gradient(const double *inputs, int64_t steps, int64_t n, const double *w, int64_t four, int64_t two, int64_t n1,
                const double *b, int64_t four1, int64_t n2, double *w_bar, double *b_bar) {
  double *tape = doubles((steps + 1) * SAVED * n), *h = doubles(n), total = 0.0;
  memset(tape, 0, (size_t)(SAVED * n) * sizeof *tape);
  for (int64_t t = 0; t < steps; t++)
    total += step(tape + (t + 1) * SAVED * n, tape + t * SAVED * n, h, inputs + t * n, w, b, n);
  for (int64_t i = 0; i < n; i += LANES) {
    int64_t count = n - i;
    lanes of_state[4], w0[4] = {0}, w1[4] = {0}, b0[4] = {0}, h_bar = {0}, c_bar = {0};
    for (int g = 0; g < 4; g++) of_state[g] = load(w + (2 * g + 1) * n + i, count);
    for (int64_t t = steps; t > 0; t--) {
      const double *now = tape + t * SAVED * n + i, *before = now - SAVED * n;
      lanes forget = load(now + FORGET * n, count), enter = load(now + ENTER * n, count);
      lanes leave = load(now + LEAVE * n, count), new = load(now + NEW * n, count);
      lanes most = load(now + TANH * n, count), x = load(inputs + (t - 1) * n + i, count);
      lanes state = load(before + LEAVE * n, count) * load(before + TANH * n, count), pre[4];
      h_bar += 2.0 * (leave * most);
      c_bar += h_bar * leave * (1.0 - most * most);
      pre[0] = c_bar * load(before + CELL * n, count) * (forget - forget * forget);
      pre[1] = c_bar * new * (enter - enter * enter);
      pre[2] = h_bar * most * (leave - leave * leave);
      pre[3] = c_bar * enter * (1.0 - new * new);
      c_bar *= forget;
      h_bar = pre[0] * of_state[0] + pre[1] * of_state[1] + pre[2] * of_state[2] + pre[3] * of_state[3];
      for (int g = 0; g < 4; g++) {
        w0[g] += pre[g] * x;
        w1[g] += pre[g] * state;
        b0[g] += pre[g];
      }
    }
    for (int g = 0; g < 4; g++) {
      store(w_bar + 2 * g * n + i, w0[g], count);
      store(w_bar + (2 * g + 1) * n + i, w1[g], count);
      store(b_bar + g * n + i, b0[g], count);
    }
  }
  give(tape, (steps + 1) * SAVED * n);
  give(h, n);
  return total;
}
