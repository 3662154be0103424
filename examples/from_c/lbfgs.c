#include "lbfgs.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 10, LINE_SEARCH = 20 };

static const double DECREASE = 1e-3, CURVATURE = 0.9, INTERVAL = 0.1, LONGEST = 1e10;
static const double GRADIENT = 1e-5, PROGRESS = 2.2204460492503131e-09;

static double dot(size_t n, const double *a, const double *b) {
    double total = 0;
    for (size_t i = 0; i < n; i++) total += a[i] * b[i];
    return total;
}

static double largest(size_t n, const double *a) {
    double found = 0;
    for (size_t i = 0; i < n; i++) found = fmax(found, fabs(a[i]));
    return found;
}

/* --- the line search of More and Thuente (1994) ------------------------------------------ */

/* A step along the direction: the value there, and its slope. */
typedef struct { double step, value, slope; } trial;

typedef struct {
    trial best, other; /* the minimum lies between them, once bracketed */
    bool bracketed;
} interval;

/* Where the cubic through two trials has its minimum, as a part of the way from a to b. */
static double cubic(trial a, trial b, bool real) {
    double theta = 3 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope;
    double s = fmax(fabs(theta), fmax(fabs(a.slope), fabs(b.slope)));
    double square = theta / s * (theta / s) - a.slope / s * (b.slope / s);
    double gamma = s * sqrt(real ? square : fmax(0, square));
    if (b.step < a.step) gamma = -gamma;
    return (gamma - a.slope + theta) / (gamma - a.slope + gamma + b.slope);
}

/* The next step after trial `t`, within [low, high]; the interval shrinks around the minimum. */
static double next_step(interval *in, trial t, double low, double high) {
    trial a = in->best, b = in->other;
    double way = t.step - a.step, secant = t.step - t.slope / (t.slope - a.slope) * way;
    bool turned = t.slope * copysign(1, a.slope) < 0;
    double next;
    if (t.value > a.value) { /* too far */
        double c = a.step + cubic(a, t, true) * way;
        double q = a.step + a.slope / ((a.value - t.value) / way + a.slope) / 2 * way;
        next = fabs(c - a.step) < fabs(q - a.step) ? c : c + (q - c) / 2;
        in->bracketed = true;
    } else if (turned) { /* the minimum is behind */
        double c = t.step - cubic(t, a, true) * way;
        next = fabs(c - t.step) > fabs(secant - t.step) ? c : secant;
        in->bracketed = true;
    } else if (fabs(t.slope) < fabs(a.slope)) { /* it flattens */
        double r = cubic(t, a, false), c = t.step - r * way;
        if (!(r < 0)) c = t.step > a.step ? high : low;
        bool near = fabs(c - t.step) < fabs(secant - t.step);
        next = near == in->bracketed ? c : secant;
        if (in->bracketed) {
            double bound = t.step + 0.66 * (b.step - t.step);
            next = t.step > a.step ? fmin(bound, next) : fmax(bound, next);
        } else {
            next = fmax(low, fmin(high, next));
        }
    } else if (in->bracketed) {
        next = t.step + cubic(t, b, true) * (b.step - t.step);
    } else {
        next = t.step > a.step ? high : low;
    }
    if (t.value > a.value) {
        in->other = t;
    } else {
        if (turned) in->other = a;
        in->best = t;
    }
    return next;
}

/* --- the search --------------------------------------------------------------------------- */

typedef struct {
    size_t n;
    objective *evaluate;
    void *state;
    double *x, *g, *from, *d; /* where we are, the gradient there; where the line starts, its direction */
} line;

static int at_step(line *l, double step, trial *found) {
    int status;
    for (size_t i = 0; i < l->n; i++) l->x[i] = l->from[i] + step * l->d[i];
    found->step = step;
    status = l->evaluate(l->state, l->x, &found->value, l->g);
    found->slope = dot(l->n, l->g, l->d);
    return status;
}

/* From `start` (step 0) on, until value and slope are small enough; `found` is the last trial. */
static int search(line *l, trial start, double step, trial *found) {
    double least = DECREASE * start.slope, low = 0, high = 5 * step, width = LONGEST, before = 2 * width;
    interval in = {start, start, false};
    bool reached = false; /* a point of enough decrease whose slope is not negative */
    for (int k = 0; k < LINE_SEARCH; k++) {
        int status = at_step(l, step, found);
        double enough = start.value + step * least;
        if (status != 0) return status;
        if (found->value <= enough && fabs(found->slope) <= -CURVATURE * start.slope) return 0;
        if (in.bracketed && (step <= low || step >= high || high - low <= INTERVAL * high)) return 0;
        reached = reached || (found->value <= enough && found->slope >= 0);
        if (!reached && found->value <= in.best.value && found->value > enough) {
            /* with the decrease that is asked for taken off, the minimum is the point we want */
            trial t = *found;
            trial *all[] = {&t, &in.best, &in.other};
            for (int j = 0; j < 3; j++) all[j]->value -= all[j]->step * least, all[j]->slope -= least;
            step = next_step(&in, t, low, high);
            for (int j = 1; j < 3; j++) all[j]->value += all[j]->step * least, all[j]->slope += least;
        } else {
            step = next_step(&in, *found, low, high);
        }
        if (in.bracketed) {
            double now = fabs(in.other.step - in.best.step);
            if (now >= 0.66 * before) step = in.best.step + 0.5 * (in.other.step - in.best.step);
            before = width;
            width = now;
            low = fmin(in.best.step, in.other.step);
            high = fmax(in.best.step, in.other.step);
        } else {
            low = step + 1.1 * (step - in.best.step);
            high = step + 4 * (step - in.best.step);
        }
        step = fmax(0, fmin(LONGEST, step));
        if (in.bracketed && (step <= low || step >= high || high - low <= INTERVAL * high))
            step = in.best.step;
    }
    return 0;
}

/* The differences of the last points and gradients, in rings. */
typedef struct {
    double *s[PAIRS], *y[PAIRS], rho[PAIRS];
    int first, count;
} memory;

/* d = -H g, by the recursion of Nocedal. */
static void direction(size_t n, const memory *m, const double *g, double *d) {
    double alpha[PAIRS];
    for (size_t i = 0; i < n; i++) d[i] = -g[i];
    if (m->count == 0) return;
    for (int k = m->count - 1; k >= 0; k--) {
        int at = (m->first + k) % PAIRS;
        alpha[at] = m->rho[at] * dot(n, m->s[at], d);
        for (size_t i = 0; i < n; i++) d[i] -= alpha[at] * m->y[at][i];
    }
    int last = (m->first + m->count - 1) % PAIRS;
    double scale = 1 / (m->rho[last] * dot(n, m->y[last], m->y[last]));
    for (size_t i = 0; i < n; i++) d[i] *= scale;
    for (int k = 0; k < m->count; k++) {
        int at = (m->first + k) % PAIRS;
        double more = alpha[at] - m->rho[at] * dot(n, m->y[at], d);
        for (size_t i = 0; i < n; i++) d[i] += more * m->s[at][i];
    }
}

/* Remember a step and what it did to the gradient; not where the function is not convex along it. */
static void remember(line *l, memory *m, const double *old, double slope, trial found) {
    double curvature = (found.slope - slope) * found.step;
    if (curvature <= -DBL_EPSILON * slope * found.step) return;
    int at = (m->first + m->count) % PAIRS;
    if (m->count == PAIRS) {
        m->first = (m->first + 1) % PAIRS;
    } else {
        m->count++;
    }
    for (size_t i = 0; i < l->n; i++) {
        m->s[at][i] = found.step * l->d[i];
        m->y[at][i] = l->g[i] - old[i];
    }
    m->rho[at] = 1 / curvature;
}

int lbfgs(size_t n, double *x, int iterations, objective *evaluate, progress *tell, void *state) {
    double *room = (double *)malloc((4 + 2 * PAIRS) * n * sizeof(double));
    if (!room) return -1;
    line l = {n, evaluate, state, x, room, room + n, room + 2 * n};
    double *old = room + 3 * n;
    memory m = {0};
    for (int k = 0; k < PAIRS; k++) {
        m.s[k] = room + (4 + 2 * (size_t)k) * n;
        m.y[k] = m.s[k] + n;
    }
    trial now = {0, 0, 0};
    int status = evaluate(state, x, &now.value, l.g);
    if (status == 0) tell(state, 0);
    for (int k = 1; status == 0 && k <= iterations && largest(n, l.g) > GRADIENT; k++) {
        trial start = {0, now.value, 0};
        direction(n, &m, l.g, l.d);
        start.slope = dot(n, l.g, l.d);
        memcpy(l.from, x, n * sizeof(double));
        memcpy(old, l.g, n * sizeof(double));
        status = search(&l, start, k == 1 ? fmin(1 / sqrt(dot(n, l.d, l.d)), LONGEST) : 1, &now);
        if (status != 0) break;
        if (!(now.value <= start.value)) { /* rounding errors are all that is left: back to the best point */
            memcpy(x, l.from, n * sizeof(double));
            status = evaluate(state, x, &now.value, l.g);
            break;
        }
        tell(state, k);
        remember(&l, &m, old, start.slope, now);
        double scale = fmax(fmax(fabs(start.value), fabs(now.value)), 1);
        if (start.value - now.value <= PROGRESS * scale) break;
    }
    free(room);
    return status;
}
