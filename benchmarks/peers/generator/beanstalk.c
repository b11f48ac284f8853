/* beanstalk.c: put, reserve, delete. There is no request for several jobs: a reserve for each, in one write. */
#define _GNU_SOURCE
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_beanstalk(conn *c) {
    int lines = 0;
    putf(c, "use %s\r\n", c->queue);
    if (strcmp(c->queue, "default")) putf(c, "watch %s\r\nignore default\r\n", c->queue);
    flush_out(c);
    while (lines < 3) {
        more(c);
        for (char *end; (end = memmem(c->in, c->inlen, "\r\n", 2)); lines++) drop(c, end + 2 - c->in);
    }
}
static void add(conn *c) { putf(c, "put 1024 0 300 %d\r\n", body_length); put(c, body, body_length); put(c, "\r\n", 2); }
static void fetch(conn *c, int n) { while (n--) put(c, "reserve\r\n", 9); }
static void ack(conn *c, const char *id) { putf(c, "delete %s\r\n", id); }

static size_t parse(conn *c, const char *p, size_t n) {
    const char *end = memmem(p, n, "\r\n", 2);
    if (!end) return 0;
    size_t used = end + 2 - p;
    if (!strncmp(p, "INSERTED ", 9)) added(c, 1);
    else if (!strncmp(p, "DELETED\r\n", 9)) acked(c, 1);
    else if (!strncmp(p, "RESERVED ", 9)) {
        const char *size = memchr(p + 9, ' ', end - p - 9);
        size_t whole = used + strtoul(size, 0, 10) + 2;
        if (whole > n) return 0;
        delivered(c, p + 9, size - p - 9);
        return whole;
    } else failed(p, end - p);
    return used;
}
const protocol beanstalk = {"beanstalk", open_beanstalk, add, fetch, ack, parse, 0};
