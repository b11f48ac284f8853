/* amqp.c: AMQP 0-9-1 on one channel: durable queues, classic or quorum; persistent messages with publisher confirms; consumers
 * with manual acknowledgement, to whom DEPTH messages are pushed ahead. */
#include "peer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METHOD = 1, HEADER = 2, BODY = 3, HEARTBEAT = 8, FRAME_END = 0xCE };
enum { CONNECTION = 10, CHANNEL = 20, QUEUE = 50, BASIC = 60, CONFIRM = 85 };
enum { PERSISTENT = 2, HAS_DELIVERY_MODE = 1 << 12, DURABLE = 1 << 1 };

typedef struct {
    uint64_t published, settled; /* delivery tags: the last message published; all up to settled are confirmed */
    uint64_t tag, missing;       /* of the message that is being delivered: its tag, and bytes of its body */
    unsigned char *confirmed;    /* of the depth messages after settled */
    size_t frame;                /* where the length of the frame under way is written */
} amqp_state;

static void put_int(conn *c, uint64_t value, int bytes) { while (bytes--) { unsigned char b = value >> (8 * bytes); put(c, &b, 1); } }
static void put_short(conn *c, const char *text) { put_int(c, strlen(text), 1); put(c, text, strlen(text)); }
static void put_long(conn *c, const char *text, size_t n) { put_int(c, n, 4); put(c, text, n); }
static uint64_t get_int(const char *p, int bytes) { uint64_t value = 0; while (bytes--) value = value << 8 | (unsigned char)*p++; return value; }

static void begin_frame(conn *c, int type, int channel) {
    amqp_state *s = c->own;
    put_int(c, type, 1); put_int(c, channel, 2); s->frame = c->outlen; put_int(c, 0, 4);
}
static void end_frame(conn *c) {
    amqp_state *s = c->own; size_t n = c->outlen - s->frame - 4;
    for (int i = 0; i < 4; i++) c->out[s->frame + i] = n >> (8 * (3 - i));
    put_int(c, FRAME_END, 1);
}
static void begin_method(conn *c, int class, int method) { begin_frame(c, METHOD, class != CONNECTION); put_int(c, class, 2); put_int(c, method, 2); }

/* one frame: its length, or 0 if some of it is missing */
static size_t frame(const char *p, size_t n, int *type, const char **data, size_t *size) {
    if (n < 8) return 0;
    *type = *p; *data = p + 7; *size = get_int(p + 3, 4);
    if (n < *size + 8) return 0;
    if ((unsigned char)p[*size + 7] != FRAME_END) die("no frame of AMQP", p, n < 80 ? n : 80);
    return *size + 8;
}
/* the answer to a request; what it says is left in the buffer until the next one */
static void await(conn *c, int class, int method) {
    int type; const char *data; size_t size, used;
    flush_out(c);
    for (;;) {
        while (!(used = frame(c->in, c->inlen, &type, &data, &size))) more(c);
        int whole = type == METHOD && size >= 4;
        int got = whole && get_int(data, 2) == (uint64_t)class && get_int(data + 2, 2) == (uint64_t)method;
        /* Connection.Close and Channel.Close: a code and a text */
        if (whole && !got && get_int(data + 2, 2) == (get_int(data, 2) == CHANNEL ? 40 : 50) && get_int(data, 2) <= CHANNEL) die("RabbitMQ refused", data + 7, size - 7);
        drop(c, used);
        if (got) return;
    }
}

static void open_amqp(conn *c) {
    amqp_state *s = c->own = calloc(1, sizeof *s);
    s->confirmed = calloc(depth, 1);
    put(c, "AMQP\0\0\11\1", 8);
    await(c, CONNECTION, 10);
    begin_method(c, CONNECTION, 11); put_int(c, 0, 4); put_short(c, "PLAIN"); put_long(c, "\0guest\0guest", 12); put_short(c, "en_US"); end_frame(c);
    await(c, CONNECTION, 30); /* Tune; no heartbeats */
    begin_method(c, CONNECTION, 31); put_int(c, 10, 2); put_int(c, 131072, 4); put_int(c, 0, 2); end_frame(c);
    begin_method(c, CONNECTION, 40); put_short(c, "/"); put_short(c, ""); put_int(c, 0, 1); end_frame(c);
    await(c, CONNECTION, 41);
    begin_method(c, CHANNEL, 10); put_short(c, ""); end_frame(c);
    await(c, CHANNEL, 11);
    begin_method(c, QUEUE, 10); put_int(c, 0, 2); put_short(c, c->queue); put_int(c, DURABLE, 1);
    char table[64]; int n = sprintf(table, "%cx-queue-typeS", 12);
    put_int(c, n + 4 + (quorum ? 6 : 7), 4); put(c, table, n); put_long(c, quorum ? "quorum" : "classic", quorum ? 6 : 7); end_frame(c);
    await(c, QUEUE, 11);
    begin_method(c, CONFIRM, 10); put_int(c, 0, 1); end_frame(c);
    await(c, CONFIRM, 11);
    if (!c->consumer) return;
    begin_method(c, BASIC, 10); put_int(c, 0, 4); put_int(c, depth, 2); put_int(c, 0, 1); end_frame(c); /* Qos */
    await(c, BASIC, 11);
    begin_method(c, BASIC, 20); put_int(c, 0, 2); put_short(c, c->queue); put_short(c, "jobs"); put_int(c, 0, 1); put_int(c, 0, 4); end_frame(c); /* Consume */
    await(c, BASIC, 21);
}
static void add(conn *c) {
    amqp_state *s = c->own;
    s->published++;
    begin_method(c, BASIC, 40); put_int(c, 0, 2); put_short(c, ""); put_short(c, c->queue); put_int(c, 0, 1); end_frame(c);
    begin_frame(c, HEADER, 1); put_int(c, BASIC, 2); put_int(c, 0, 2); put_int(c, body_length, 8); put_int(c, HAS_DELIVERY_MODE, 2); put_int(c, PERSISTENT, 1); end_frame(c);
    begin_frame(c, BODY, 1); put(c, body, body_length); end_frame(c);
}
static void fetch(conn *c, int n) { (void)c; (void)n; /* they are pushed */ }
/* AMQP has no answer to this */
static void ack(conn *c, const char *id) { begin_method(c, BASIC, 80); put_int(c, strtoull(id, 0, 10), 8); put_int(c, 0, 1); end_frame(c); acked(c, 1); }

static void arrived(conn *c) {
    amqp_state *s = c->own; char id[24];
    delivered(c, id, sprintf(id, "%llu", (unsigned long long)s->tag));
}
/* single confirms may overtake one that is for several */
static void confirm(conn *c, uint64_t tag, int several) {
    amqp_state *s = c->own;
    if (tag <= s->settled || tag > s->published) die("a confirm of what was not published", c->queue, strlen(c->queue));
    for (uint64_t each = several ? s->settled + 1 : tag; each <= tag; each++) {
        unsigned char *seen = s->confirmed + each - s->settled - 1;
        if (!*seen) added(c, 1);
        *seen = 1;
    }
    if (!c->adding) { s->settled = s->published; memset(s->confirmed, 0, depth); }
}
static size_t parse(conn *c, const char *p, size_t n) {
    amqp_state *s = c->own; int type; const char *data; size_t size, used = frame(p, n, &type, &data, &size);
    if (!used) return 0;
    if (type == METHOD) {
        int class = get_int(data, 2), method = get_int(data + 2, 2); data += 4;
        if (class == BASIC && method == 80) confirm(c, get_int(data, 8), data[8] & 1);
        else if (class == BASIC && method == 60) s->tag = get_int(data + 1 + (unsigned char)*data, 8);
        else if (class == BASIC) failed("basic.nack, or the consumer was cancelled", 41);
        else if (class == CONNECTION || class == CHANNEL) failed(data + 3, size > 7 ? (unsigned char)data[2] : 0);
    } else if (type == HEADER) {
        s->missing = get_int(data + 4, 8);
        if (!s->missing) arrived(c);
    } else if (type == BODY) {
        s->missing -= size;
        if (!s->missing) arrived(c);
    }
    return used;
}
static void close_amqp(conn *c) {
    begin_method(c, CONNECTION, 50); put_int(c, 200, 2); put_short(c, ""); put_int(c, 0, 4); end_frame(c);
    await(c, CONNECTION, 51);
}
const protocol amqp = {"amqp", open_amqp, add, fetch, ack, parse, close_amqp};
