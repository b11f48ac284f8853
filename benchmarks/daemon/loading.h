/* loading.h: what all load generators do alike: the clock, connections, latencies. */
#ifndef LOADING_H
#define LOADING_H
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }

/* latency: a histogram for each phase, with buckets of 1 us up to 200 ms */
#define HB 200000
static unsigned hist[3][HB + 1]; static unsigned long hn[3]; static double hmax[3];
static void rec(int ph, double s) { long u = s * 1e6; if (s > hmax[ph]) hmax[ph] = s; if (u > HB) u = HB; hist[ph][u]++; hn[ph]++; }
static long pct(int ph, double p) { unsigned long want = hn[ph] * p, c = 0; for (long i = 0; i <= HB; i++) { c += hist[ph][i]; if (c > want) return i; } return HB; }

/* a connection without delays of the kernel's */
static int dial(const char *host, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)}; inet_pton(AF_INET, host, &a.sin_addr);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (void *)&a, sizeof a)) { perror("connect"); exit(1); }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* the one line of JSON that a run ends with; phases: how many of add, get, ack were measured */
static void report(long jobs, double seconds, long errors, const char *first_error, int phases) {
    printf("{\"jobs\":%ld,\"seconds\":%.3f,\"jobs_s\":%.0f,\"errors\":%ld", jobs, seconds, jobs / seconds, errors);
    const char *nm[] = {"add", "get", "ack"};
    for (int i = 0; i < phases; i++) printf(",\"%s\":{\"p50\":%ld,\"p99\":%ld,\"max\":%.0f}", nm[i], pct(i, .5), pct(i, .99), hmax[i] * 1e6);
    if (errors) printf(",\"first_error\":\"%s\"", first_error);
    printf("}\n");
}
#endif
