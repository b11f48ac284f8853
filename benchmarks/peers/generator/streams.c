/* streams.c: Redis Streams with a consumer group: XADD, XREADGROUP, and XACK with XDEL, because a stream keeps what is only acknowledged. */
#include "peer.h"

#include <stdio.h>
#include <string.h>

static void open_streams(conn *c) {
    const char *word[] = {"XGROUP", "CREATE", c->queue, "workers", "0", "MKSTREAM"};
    size_t used;
    request(c, 6, word); flush_out(c);
    do more(c); while (!(used = resp_value(c->in, c->inlen)));
    if (*c->in != '+' && strncmp(c->in, "-BUSYGROUP", 10)) die("XGROUP", c->in, used);
    drop(c, used);
}
static void add(conn *c) { const char *word[] = {"XADD", c->queue, "*", "body", body}; request(c, 5, word); }
static void fetch(conn *c, int n) {
    char count[16], name[16]; sprintf(count, "%d", n); sprintf(name, "c%d", c->number);
    const char *word[] = {"XREADGROUP", "GROUP", "workers", name, "COUNT", count, "BLOCK", "20000", "STREAMS", c->queue, ">"};
    request(c, 11, word);
}
static void ack(conn *c, const char *id) {
    const char *word[] = {"XACK", c->queue, "workers", id}, *end[] = {"XDEL", c->queue, id};
    request(c, 4, word); request(c, 3, end);
}

/* streams, each a name and entries, each an ID and fields */
static void leaf(conn *c, int level, int index, const char *p, size_t n) { if (level == 4 && index == 0) delivered(c, p, n); }
static size_t parse(conn *c, const char *p, size_t n) {
    size_t used = resp_value(p, n);
    if (!used) return 0;
    if (c->adding || c->acking) {
        /* the reply to XACK counts with that to XDEL, so both are taken together */
        size_t second = c->adding ? 0 : resp_value(p + used, n - used);
        if (!c->adding && !second) return 0;
        resp_walk(c, p, 0, 0, leaf);
        if (second) resp_walk(c, p + used, 0, 0, leaf);
        if (c->adding) added(c, 1); else acked(c, 1);
        return used + second;
    }
    resp_walk(c, p, 0, 0, leaf);
    fetched(c);
    return used;
}
const protocol streams = {"streams", open_streams, add, fetch, ack, parse, 0};
