/* peerload: one load generator for job queues of several kinds, each with a protocol in a file of its own.
 *
 *   peerload -t disque|streams|amqp|amqp-quorum|nats|beanstalk -p PORT [-c CONNS] [-d DEPTH] [-n JOBS] [-s SECONDS] [-b BODY] [-q QUEUES]
 *            [-r COPIES] [-m cycle|add|blocked]
 *
 * cycle: every connection adds DEPTH jobs with a request for each, in one write; waits until all are confirmed; takes DEPTH
 *   jobs of its queue and acknowledges each by a request of its own; over and over. Connections share queues, so a job may
 *   be taken by another connection than the one that added it. A consumer asks for all that it takes at once, where the protocol can.
 * add: only the first half of this. The phase "add" is the time until all DEPTH are confirmed.
 * blocked: one connection waits for a job; after 1 ms of silence another one adds it. The phase "add" is the time from before it is
 *   sent until it is received.
 * It ends after JOBS or SECONDS, what comes first, when all jobs that were added are acknowledged, and prints one JSON line. */
#define _GNU_SOURCE
#include "../../daemon/loading.h"
#include "peer.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { ADD, TAKE, END };
enum { STALLED_S = 60, ROOM = 65536 };
int depth = 1, copies = 0, body_length = 100, quorum = 0;
char *body;
static const protocol *peer;
static int add_only = 0;
static long total = 100000, started = 0, done = 0, errors = 0;
static double deadline;
static char first_error[200];

void put(conn *c, const void *data, size_t n) {
    if (c->outlen + n > c->outcap) { c->outcap = (c->outlen + n) * 2; c->out = realloc(c->out, c->outcap); }
    memcpy(c->out + c->outlen, data, n); c->outlen += n;
}
void putf(conn *c, const char *format, ...) {
    char text[1024]; va_list words;
    va_start(words, format); int n = vsnprintf(text, sizeof text, format, words); va_end(words);
    put(c, text, n);
}
void die(const char *what, const char *text, size_t n) { fprintf(stderr, "%s: %.*s\n", what, (int)n, text); exit(1); }
void failed(const char *text, size_t n) {
    errors++;
    if (first_error[0]) return;
    if (n > sizeof first_error - 1) n = sizeof first_error - 1;
    for (size_t i = 0; i < n; i++) first_error[i] = text[i] < ' ' || text[i] == '"' || text[i] == '\\' ? '\'' : text[i];
}
void added(conn *c, int n) { c->adding -= n; if (add_only) done += n; }
void acked(conn *c, int n) { c->acking -= n; done += n; }
void fetched(conn *c) { c->asked = 0; }
void delivered(conn *c, const char *id, size_t n) {
    /* a consumer is never sent more than DEPTH jobs that it has not acknowledged */
    if (c->nids >= depth || n >= ID_MAX) die("more jobs than asked for, or a long ID", id, n);
    memcpy(c->ids[c->nids].text, id, n); c->ids[c->nids++].text[n] = 0;
    if (c->asked) c->asked--;
}

void flush_out(conn *c) {
    for (size_t sent = 0; sent < c->outlen;) {
        ssize_t n = send(c->fd, c->out + sent, c->outlen - sent, MSG_NOSIGNAL);
        if (n < 0) { perror("send"); exit(1); }
        sent += n;
    }
    c->outlen = 0;
}
/* what has come, after waiting for it */
void more(conn *c) {
    if (c->incap - c->inlen < ROOM) { c->incap *= 2; c->in = realloc(c->in, c->incap); }
    ssize_t n = recv(c->fd, c->in + c->inlen, c->incap - c->inlen, 0);
    if (n < 0 && errno == EAGAIN) die("stalled", c->queue, strlen(c->queue));
    if (n <= 0) die("connection lost", c->queue, strlen(c->queue));
    c->inlen += n;
}
void drop(conn *c, size_t n) { c->inlen -= n; memmove(c->in, c->in + n, c->inlen); }
static void take_in(conn *c) {
    more(c);
    size_t at = 0, n;
    while (at < c->inlen && (n = peer->parse(c, c->in + at, c->inlen - at))) at += n;
    drop(c, at);
}

static void begin(conn *c) {
    if (errors || started >= total || now() >= deadline) { c->phase = END; return; }
    started += depth; c->phase = ADD; c->begun = now(); c->adding = depth;
    for (int i = 0; i < depth; i++) peer->add(c);
}
static void acknowledge(conn *c) {
    int n = c->nids;
    c->nids = 0; c->acking += n; c->left -= n;
    for (int i = 0; i < n; i++) peer->ack(c, c->ids[i].text);
}
/* all that can be done now */
static void advance(conn *c) {
    for (;;) {
        if (c->phase == ADD) {
            if (c->adding) return;
            rec(0, now() - c->begun);
            if (add_only) { begin(c); if (c->phase == END) return; continue; }
            /* what was pushed beyond the last cycle counts in this one, or other connections would wait for it */
            c->phase = TAKE; c->left += depth;
        }
        if (c->nids) acknowledge(c);
        if (c->phase == END) return;
        if (c->acking) return;
        if (c->left > 0) {
            if (!c->asked) { c->asked = c->left; peer->fetch(c, c->left); }
            return;
        }
        begin(c);
        if (c->phase != END) return;
    }
}

static void open_conn(conn *c, int port, int number, int queues, int consumer) {
    c->number = number; c->consumer = consumer; c->incap = 2 * ROOM; c->in = malloc(c->incap); c->ids = calloc(depth, sizeof *c->ids);
    sprintf(c->queue, "q%d", number % queues);
    c->fd = dial("127.0.0.1", port);
    struct timeval longest = {STALLED_S, 0}; setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    peer->open(c);
}

static void cycle(conn *cs, int conns) {
    struct epoll_event ev = {.events = EPOLLIN}, evs[256];
    int ep = epoll_create1(0), active = conns;
    for (int i = 0; i < conns; i++) {
        ev.data.ptr = cs + i; epoll_ctl(ep, EPOLL_CTL_ADD, cs[i].fd, &ev);
        begin(cs + i); flush_out(cs + i);
        if (cs[i].phase == END) active--;
    }
    while (!errors && (add_only ? active > 0 : done < started)) {
        int k = epoll_wait(ep, evs, 256, STALLED_S * 1000);
        if (k <= 0) { fprintf(stderr, "stalled: %ld of %ld done\n", done, started); exit(1); }
        for (int i = 0; i < k; i++) {
            conn *c = evs[i].data.ptr; int phase = c->phase;
            take_in(c); advance(c); flush_out(c);
            if (phase != END && c->phase == END) active--;
        }
    }
}

static void blocked(conn *consumer, conn *producer) {
    while (done < total && now() < deadline && !errors) {
        if (!consumer->asked) { consumer->asked = 1; peer->fetch(consumer, 1); flush_out(consumer); }
        struct timespec silence = {0, 1000000}; nanosleep(&silence, 0);
        double t0 = now();
        producer->adding = 1; peer->add(producer); flush_out(producer);
        while (!consumer->nids && !errors) {
            take_in(consumer);
            if (!consumer->nids && !consumer->asked) { consumer->asked = 1; peer->fetch(consumer, 1); }
            flush_out(consumer);
        }
        rec(0, now() - t0);
        acknowledge(consumer); flush_out(consumer);
        while (consumer->acking && !errors) take_in(consumer);
        while (producer->adding && !errors) take_in(producer);
    }
}

int main(int argc, char **argv) {
    const protocol *all[] = {&disque, &streams, &amqp, &nats, &beanstalk};
    int waits = 0, port = 0, conns = 1, queues = 1, o; double seconds = 1e9;
    while ((o = getopt(argc, argv, "t:p:c:d:n:s:b:q:r:m:")) != -1) switch (o) {
        case 't': for (size_t i = 0; i < sizeof all / sizeof *all; i++) if (!strncmp(optarg, all[i]->name, strlen(all[i]->name))) peer = all[i];
                  quorum = !strcmp(optarg, "amqp-quorum"); break;
        case 'p': port = atoi(optarg); break; case 'c': conns = atoi(optarg); break; case 'd': depth = atoi(optarg); break;
        case 'n': total = atol(optarg); break; case 's': seconds = atof(optarg); break; case 'b': body_length = atoi(optarg); break;
        case 'q': queues = atoi(optarg); break; case 'r': copies = atoi(optarg); break;
        case 'm': add_only = !strcmp(optarg, "add"); waits = !strcmp(optarg, "blocked"); break;
        default: return 2;
    }
    if (!peer || !port || conns < 1 || depth < 1 || queues < 1 || body_length < 1) { fprintf(stderr, "peerload: -t and -p are needed, and counts above 0\n"); return 2; }
    body = malloc(body_length + 1); memset(body, 'x', body_length); body[body_length] = 0;
    if (waits) { conns = 2; queues = 1; }
    conn *cs = calloc(conns, sizeof *cs);
    for (int i = 0; i < conns; i++) open_conn(cs + i, port, i, queues, waits ? i == 0 : !add_only);
    double start = now(); deadline = start + seconds;
    if (waits) blocked(cs, cs + 1); else cycle(cs, conns);
    for (int i = 0; i < conns && peer->close && !errors; i++) peer->close(cs + i);
    report(done, now() - start, errors, first_error, 1);
    return 0;
}
