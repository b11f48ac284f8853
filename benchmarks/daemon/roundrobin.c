/* roundrobin: a TCP proxy that gives each new connection to the next of several servers, as load balancers do.
 *
 *   roundrobin PORT SERVER_PORT...
 *
 * Everything is on 127.0.0.1. It ends with SIGTERM. Bytes that a side does not take at once are kept, and the other side is
 * not read meanwhile. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 256 * 1024 };
typedef struct side { int fd; size_t from, to; char *kept; struct side *other; } side; /* kept: what is to be sent on fd */

static int ep;

static struct sockaddr_in at(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static void watch(side *s, int op) {
    struct epoll_event ev = {.data.ptr = s};
    /* a side is read while nothing is kept for the other one, and written while something is kept for it */
    ev.events = (s->other->from == s->other->to ? EPOLLIN : 0) | (s->from < s->to ? EPOLLOUT : 0);
    if (epoll_ctl(ep, op, s->fd, &ev)) { perror("epoll_ctl"); exit(1); }
}

static void end(side *s) {
    close(s->fd); close(s->other->fd);
    s->fd = s->other->fd = -1; /* not freed: events of this round may name it, and a run has few connections */
}

static int push(side *s) { /* send what is kept; 0 if the connection is broken */
    while (s->from < s->to) {
        ssize_t n = send(s->fd, s->kept + s->from, s->to - s->from, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) return errno == EAGAIN;
        s->from += n;
    }
    s->from = s->to = 0;
    return 1;
}

static side *make(int fd) {
    int one = 1; side *s = calloc(1, sizeof *s);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    s->fd = fd; s->kept = malloc(ROOM);
    return s;
}

int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "roundrobin PORT SERVER_PORT...\n"); return 2; }
    int one = 1, next = 0, entry = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in here = at(atoi(argv[1]));
    setsockopt(entry, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(entry, (void *)&here, sizeof here) || listen(entry, 512)) { perror("listen"); return 1; }
    ep = epoll_create1(0);
    struct epoll_event ev = {.events = EPOLLIN}, evs[256];
    epoll_ctl(ep, EPOLL_CTL_ADD, entry, &ev);
    for (;;) {
        int k = epoll_wait(ep, evs, 256, -1);
        for (int i = 0; i < k; i++) {
            side *s = evs[i].data.ptr;
            if (!s) {
                int client = accept(entry, 0, 0), server = socket(AF_INET, SOCK_STREAM, 0);
                struct sockaddr_in there = at(atoi(argv[2 + next++ % (argc - 2)]));
                if (client < 0 || connect(server, (void *)&there, sizeof there)) { perror("connect"); close(client); close(server); continue; }
                side *a = make(client), *b = make(server);
                a->other = b; b->other = a;
                watch(a, EPOLL_CTL_ADD); watch(b, EPOLL_CTL_ADD);
                continue;
            }
            if (s->fd < 0) continue;
            side *o = s->other;
            if (!push(s)) { end(s); continue; }
            if (o->from == o->to && evs[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                ssize_t n = recv(s->fd, o->kept, ROOM, MSG_DONTWAIT);
                if (n == 0 || (n < 0 && errno != EAGAIN)) { end(s); continue; }
                o->from = 0; o->to = n > 0 ? n : 0;
                if (!push(o)) { end(s); continue; }
            }
            watch(s, EPOLL_CTL_MOD); watch(o, EPOLL_CTL_MOD);
        }
    }
}
