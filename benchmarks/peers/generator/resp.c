/* resp.c: requests and replies of Redis and Disque. */
#define _GNU_SOURCE
#include "peer.h"

#include <stdlib.h>
#include <string.h>

void request(conn *c, int words, const char *const *word) {
    putf(c, "*%d\r\n", words);
    for (int i = 0; i < words; i++) { size_t n = strlen(word[i]); putf(c, "$%zu\r\n", n); put(c, word[i], n); put(c, "\r\n", 2); }
}

size_t resp_value(const char *p, size_t n) {
    const char *end = memmem(p, n, "\r\n", 2);
    if (!end) return 0;
    size_t used = end + 2 - p; long count = atol(p + 1);
    switch (*p) {
        case '+': case ':': case '-': return used;
        case '$': if (count < 0) return used; used += count + 2; return used <= n ? used : 0;
        case '*':
            for (long i = 0; i < count; i++) {
                size_t item = used < n ? resp_value(p + used, n - used) : 0;
                if (!item) return 0;
                used += item;
            }
            return used;
    }
    die("this is no reply", p, used);
}

const char *resp_walk(conn *c, const char *p, int level, int index, on_leaf leaf) {
    const char *rest = strstr(p, "\r\n") + 2; long count = atol(p + 1);
    if (*p == '-') failed(p, rest - 2 - p);
    if (*p == '$' && count >= 0) { leaf(c, level, index, rest, count); return rest + count + 2; }
    if (*p == '*') for (long i = 0; i < count; i++) rest = resp_walk(c, rest, level + 1, i, leaf);
    return rest;
}
