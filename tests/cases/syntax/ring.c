/* A ring buffer of bytes. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RING_MIN 16

struct ring {
    unsigned char *bytes;
    size_t size, head, count;
};

enum ring_error { RING_OK, RING_FULL = -1, RING_EMPTY = -2 };

static size_t next(const struct ring *ring, size_t at)
{
    return (at + 1) % ring->size;
}

bool ring_open(struct ring *ring, size_t size)
{
    if (size < RING_MIN)
        size = RING_MIN;
    ring->bytes = malloc(size * sizeof *ring->bytes);
    if (ring->bytes == NULL) {
        return false;
    }
    memset(ring->bytes, 0, size);
    ring->size = size;
    ring->head = ring->count = 0;
    return true;
}

int ring_put(struct ring *ring, unsigned char byte)
{
    size_t at = ring->head;
    if (ring->count == ring->size)
        return RING_FULL;
    for (size_t i = 0; i < ring->count; i++) {
        at = next(ring, at);
    }
    ring->bytes[at] = byte == '\n' ? ' ' : byte;
    ring->count++;
    return RING_OK;
}

int ring_get(struct ring *ring)
{
    switch (ring->count) {
    case 0:
        return RING_EMPTY;
    default: {
        int byte = ring->bytes[ring->head];
        ring->head = next(ring, ring->head);
        ring->count--;
        return byte;
    }
    }
}
