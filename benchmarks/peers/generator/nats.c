/* nats.c: JetStream. A queue is a stream with retention by work queue on files, and one durable pull consumer with explicit
 * acknowledgement. A job is published as a request, which the stream's leader confirms. */
#define _GNU_SOURCE
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIRMS = 1, JOBS = 2, ANSWERS = 3 }; /* subscriptions */

static void publish(conn *c, const char *subject, int reply_to, const char *data, size_t n) {
    putf(c, "PUB %s ", subject);
    if (reply_to) putf(c, "_INBOX.%d.%d.%d ", (int)getpid(), c->number, reply_to);
    putf(c, "%zu\r\n", n); put(c, data, n); put(c, "\r\n", 2);
}

/* a message of the server: its length, or 0; of one with a subject also where the words and the data are */
typedef struct { char verb; int sid; char reply[ID_MAX]; const char *data; size_t size, headers; } message;
static size_t scan(const char *p, size_t n, message *m) {
    const char *end = memmem(p, n, "\r\n", 2);
    if (!end) return 0;
    size_t used = end + 2 - p; char line[1024], *word[8], *rest = 0; int words = 0;
    memset(m, 0, sizeof *m); m->verb = *p; m->data = p;
    m->size = end - p;
    int headers = !strncmp(p, "HMSG ", 5);
    if (!headers && strncmp(p, "MSG ", 4)) return used;
    if (used > sizeof line) die("a long line", p, 80);
    memcpy(line, p, used - 2); line[used - 2] = 0;
    for (char *w = strtok_r(line, " ", &rest); w && words < 8; w = strtok_r(0, " ", &rest)) word[words++] = w;
    if (words < (headers ? 5 : 4)) die("a message without its size", p, used - 2);
    m->verb = 'M'; m->sid = atoi(word[2]);
    if (words > (headers ? 5 : 4)) snprintf(m->reply, sizeof m->reply, "%s", word[3]);
    m->size = strtoul(word[words - 1], 0, 10); m->headers = headers ? strtoul(word[words - 2], 0, 10) : 0;
    m->data = p + used;
    used += m->size + 2;
    return used <= n ? used : 0;
}

/* ask JetStream, and end the program unless it agrees */
static void agree(conn *c, const char *subject, const char *text) {
    publish(c, subject, ANSWERS, text, strlen(text)); flush_out(c);
    for (;;) {
        message m; size_t used;
        while (!(used = scan(c->in, c->inlen, &m))) more(c);
        if (m.verb == '-') die("nats-server", m.data, m.size);
        if (m.verb == 'P' && c->in[1] == 'I') put(c, "PONG\r\n", 6), flush_out(c);
        int answered = m.verb == 'M' && m.sid == ANSWERS;
        if (answered && (m.headers || memmem(m.data, m.size, "\"error\"", 7))) die(subject, m.data, m.size);
        drop(c, used);
        if (answered) return;
    }
}
static void open_nats(conn *c) {
    char subject[128], text[512];
    putf(c, "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1}\r\n");
    for (int sid = CONFIRMS; sid <= ANSWERS; sid++) putf(c, "SUB _INBOX.%d.%d.%d %d\r\n", (int)getpid(), c->number, sid, sid);
    sprintf(subject, "$JS.API.STREAM.CREATE.%s", c->queue);
    sprintf(text, "{\"name\":\"%s\",\"subjects\":[\"jobs.%s\"],\"retention\":\"workqueue\",\"storage\":\"file\",\"num_replicas\":%d}", c->queue, c->queue, copies ? copies : 1);
    agree(c, subject, text);
    sprintf(subject, "$JS.API.CONSUMER.DURABLE.CREATE.%s.workers", c->queue);
    sprintf(text, "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"workers\",\"deliver_policy\":\"all\",\"ack_policy\":\"explicit\",\"ack_wait\":300000000000,\"max_ack_pending\":100000,\"max_waiting\":2000}}", c->queue);
    agree(c, subject, text);
}
static void add(conn *c) { char subject[48]; sprintf(subject, "jobs.%s", c->queue); publish(c, subject, CONFIRMS, body, body_length); }
static void fetch(conn *c, int n) {
    char subject[128], text[80];
    sprintf(subject, "$JS.API.CONSUMER.MSG.NEXT.%s.workers", c->queue);
    publish(c, subject, JOBS, text, sprintf(text, "{\"batch\":%d,\"expires\":20000000000}", n));
}
/* without an answer, as clients do unless they are asked for one */
static void ack(conn *c, const char *id) { publish(c, id, 0, "+ACK", 4); acked(c, 1); }

static size_t parse(conn *c, const char *p, size_t n) {
    message m; size_t used = scan(p, n, &m);
    if (!used) return 0;
    if (m.verb == '-') failed(m.data, m.size);
    if (m.verb == 'P' && p[1] == 'I') put(c, "PONG\r\n", 6);
    if (m.verb != 'M') return used;
    if (m.sid == CONFIRMS) {
        if (m.headers || memmem(m.data, m.size, "\"error\"", 7)) failed(m.data, m.size); else added(c, 1);
    } else if (m.sid == JOBS) {
        /* a status instead of a job: 404 and 408 say that there was none in time, 409 and 503 that something is wrong */
        if (m.headers && !m.reply[0]) { if (m.size > 11 && (!memcmp(m.data + 9, "404", 3) || !memcmp(m.data + 9, "408", 3))) fetched(c); else failed(m.data, m.size); }
        else delivered(c, m.reply, strlen(m.reply));
    }
    return used;
}
static void close_nats(conn *c) {
    put(c, "PING\r\n", 6); flush_out(c);
    for (int answered = 0; !answered;) {
        message m; size_t used;
        while (!(used = scan(c->in, c->inlen, &m))) more(c);
        answered = c->in[0] == 'P' && c->in[1] == 'O';
        drop(c, used);
    }
}
const protocol nats = {"nats", open_nats, add, fetch, ack, parse, close_nats};
