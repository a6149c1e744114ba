/* What the C peers share: arguments, random matrices, a clock, output, and a check that the product is one. */
#ifndef GEMM_PEER_H
#define GEMM_PEER_H
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct problem { int m, n, k, threads, reps, warmup; };

static struct problem problem_of(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: %s M N K THREADS REPS\n", argv[0]);
        exit(2);
    }
    struct problem p = {atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), 3};
    if (p.m < 1 || p.n < 1 || p.k < 1 || p.threads < 1 || p.reps < 1) {
        fprintf(stderr, "%s: all arguments must be positive\n", argv[0]);
        exit(2);
    }
    return p;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Random values in [-0.5, 0.5): processors multiply zeros faster than data. */
static float *noise(size_t n) {
    static uint32_t s = 12345;
    float *x = (float *)aligned_alloc(64, (4 * n + 63) / 64 * 64);
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (s >> 8) * (1.0f / 16777216.0f) - 0.5f;
    }
    return x;
}

/* The largest error of a few elements against float64, over the size that such a sum has. */
static double check(const float *x, const float *w, const float *y, const struct problem *p) {
    double worst = 0;
    for (int t = 0; t < 16; t++) {
        int i = (int)((long)t * 7919 % p->m), j = (int)((long)t * 104729 % p->n);
        double sum = 0;
        for (int k = 0; k < p->k; k++) sum += (double)x[(size_t)i * p->k + k] * w[(size_t)j * p->k + k];
        double e = fabs(sum - y[(size_t)i * p->n + j]) / (sqrt(p->k) / 12);
        if (e > worst) worst = e;
    }
    return worst;
}

static void begin_rows(const char *name, const struct problem *p) {
    printf("{\"name\":\"%s\",\"m\":%d,\"n\":%d,\"k\":%d,\"threads\":%d,\"seconds\":[", name, p->m, p->n, p->k, p->threads);
}

static void one_row(int i, double seconds) { printf("%s%.9f", i ? "," : "", seconds); }

static void end_rows(double error) {
    printf("],\"error\":%.2g}\n", error);
    if (!(error < 0.05)) {
        fprintf(stderr, "the product is wrong\n");
        exit(1);
    }
}
#endif
