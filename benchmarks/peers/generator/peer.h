/* peer.h: what the loop of the generator and its protocols know of each other. */
#ifndef PEER_H
#define PEER_H
#include <stddef.h>

enum { ID_MAX = 256 };
typedef struct { char text[ID_MAX]; } job_id; /* what the protocol acknowledges a job by */

typedef struct conn {
    int fd, number;       /* the socket; the place among the connections */
    char queue[32];       /* where this connection adds jobs and fetches them */
    int consumer;         /* jobs are fetched here; it is set before the connection is opened */
    char *in; size_t inlen, incap;
    char *out; size_t outlen, outcap;
    int phase;            /* of the cycle */
    int adding, acking;   /* requests without an answer */
    int asked;            /* jobs that were asked for and have not come */
    int left;             /* jobs to take in this cycle */
    job_id *ids; int nids; /* jobs that have come, not yet acknowledged */
    double begun;         /* when the phase began */
    void *own;            /* of the protocol */
} conn;

/* All but open and close only write to the buffer, or read from it. */
typedef struct {
    const char *name;
    void (*open)(conn *c);                   /* log in and make the queue; blocks */
    void (*add)(conn *c);                    /* one job */
    void (*fetch)(conn *c, int n);           /* up to n jobs, as soon as there is one */
    void (*ack)(conn *c, const char *id);    /* a job is done */
    size_t (*parse)(conn *c, const char *p, size_t n); /* one message of the server: its length, or 0 if some of it is missing */
    void (*close)(conn *c);                  /* until the server has what has no answer; blocks. 0 where all has one */
} protocol;

extern const protocol disque, streams, amqp, nats, beanstalk;

/* what the command line says */
extern int depth, copies, body_length, quorum;
extern char *body;

/* for protocols: write; read more, blocking; end the program */
void put(conn *c, const void *data, size_t n);
void putf(conn *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void flush_out(conn *c);
void more(conn *c);
void drop(conn *c, size_t n);
void die(const char *what, const char *text, size_t n) __attribute__((noreturn));

/* for protocols: what the server said */
void added(conn *c, int n);
void delivered(conn *c, const char *id, size_t n);
void fetched(conn *c); /* no more jobs will come for the last fetch */
void acked(conn *c, int n);
void failed(const char *text, size_t n);

/* RESP, for two protocols */
void request(conn *c, int words, const char *const *word);
typedef void (*on_leaf)(conn *c, int level, int index, const char *p, size_t n);
/* one value: its length, or 0 if some of it is missing. An error is a failure. */
size_t resp_value(const char *p, size_t n);
/* every string in a value that is whole, with its place: how deep, and the how manieth there */
const char *resp_walk(conn *c, const char *p, int level, int index, on_leaf leaf);
#endif
