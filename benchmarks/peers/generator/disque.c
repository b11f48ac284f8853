/* disque.c: ADDJOB, GETJOB COUNT, ACKJOB. */
#include "peer.h"

#include <stdio.h>

static void open_disque(conn *c) { (void)c; }
static void add(conn *c) {
    char r[16]; sprintf(r, "%d", copies);
    const char *word[] = {"ADDJOB", c->queue, body, "5000", "REPLICATE", r};
    request(c, copies ? 6 : 4, word);
}
static void fetch(conn *c, int n) {
    char count[16]; sprintf(count, "%d", n);
    const char *word[] = {"GETJOB", "TIMEOUT", "20000", "COUNT", count, "FROM", c->queue};
    request(c, 7, word);
}
static void ack(conn *c, const char *id) { const char *word[] = {"ACKJOB", id}; request(c, 2, word); }

/* queue, ID and body of each job */
static void leaf(conn *c, int level, int index, const char *p, size_t n) { if (level == 2 && index == 1) delivered(c, p, n); }
static size_t parse(conn *c, const char *p, size_t n) {
    size_t used = resp_value(p, n);
    if (!used) return 0;
    /* replies come in the order of requests, and no phase has two kinds under way */
    int taking = !c->adding && !c->acking;
    resp_walk(c, p, 0, 0, leaf);
    if (taking) fetched(c); else if (c->adding) added(c, 1); else acked(c, 1);
    return used;
}
const protocol disque = {"disque", open_disque, add, fetch, ack, parse, 0};
