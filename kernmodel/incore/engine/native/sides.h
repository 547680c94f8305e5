/* Which of two schedulers the µops of interleaved ports get that leave the queue in front of them, and which port.

   Each scheduler is a side; a pair is two alike ports, one of each side. Where few µops wait, and for the ports of no pair
   many more on one side, those of a cycle get their sides by the slots in which they were dispatched. Else they pass
   through the queue, and those that leave it in a cycle get the sides in turn. What dispatch knows of the schedulers is
   some cycles old. docs/front-end.md has the experiments; the field names are those of `Core`. */
#ifndef KERNMODEL_SIDES_H
#define KERNMODEL_SIDES_H

#include <stdint.h>

#include "layout.h"

enum { PLACES = 8, SIDE_CYCLES = 8 };

/* `place_of`: of a port among the interleaved ones, pair by pair, -1 for others; `entered`, `left`: µops by place, in all;
   `..._by`: the same until the end of a cycle; `start`: the side of the first µop that leaves the queue; `turn`: of each side
   the port from which the next one is looked for. As a cycle sees it: `held`, `room`: entries of the sides that are taken, and
   that there are; `uneven`: whether slots do not tell the side; `avoided`: ports whose µops do not go to a side. */
typedef struct {
    int32_t places, place_of[PORTS], port_of[PLACES], start, turn[2], held[2], room[2], uneven;
    uint32_t ports_of[2], avoided[2];
    int32_t entered[PLACES], left[PLACES], entered_by[SIDE_CYCLES][PLACES], left_by[SIDE_CYCLES][PLACES];
} Sides;

static inline void sides_begin(Sides *v, const Core *c)
{
    for (int32_t port = 0; port < PORTS; port++) {
        const int32_t place = v->place_of[port] = c->interleaved[port] - 1;
        if (place < 0)
            continue;
        v->port_of[place] = port;
        v->ports_of[place & 1] |= 1u << port;
        v->room[place & 1] = c->rooms[c->scheduler_of[port]];
        v->places = place < v->places ? v->places : place + 1;
    }
}

/* µops of a place that wait, as a cycle knows it of those that entered and that left so many cycles before. */
static inline int32_t sides_waiting(const Sides *v, const Core *c, int64_t now, int32_t place, int32_t delay)
{
    return v->entered_by[(now - delay) & (SIDE_CYCLES - 1)][place] - v->left_by[(now - c->left_delay) & (SIDE_CYCLES - 1)][place];
}

/* What a cycle knows before µops leave the queue. */
static inline void sides_look(Sides *v, const Core *c, int64_t now)
{
    int32_t waiting[2] = {0, 0};
    v->uneven = 0;
    v->held[0] = v->held[1] = 0;
    for (int32_t place = 0; place < v->places; place += 2) {
        const int32_t one = sides_waiting(v, c, now, place, c->mode_delay);
        const int32_t other = sides_waiting(v, c, now, place + 1, c->mode_delay);
        v->uneven |= one - other >= c->pair_gap || other - one >= c->pair_gap;
        waiting[0] += one;
        waiting[1] += other;
        for (int32_t side = 0; side < 2; side++)
            v->held[side] += v->entered[place + side] - v->left_by[(now - c->left_delay) & (SIDE_CYCLES - 1)][place + side];
    }
    v->uneven |= waiting[0] + waiting[1] >= c->most_by_slot;
    v->avoided[0] = v->avoided[1] = 0;
    if (waiting[0] < c->heavy_side && waiting[1] < c->heavy_side)
        return;
    for (int32_t place = 0; place < v->places; place++) {
        const int32_t own = sides_waiting(v, c, now, place, c->choice_delay);
        if (waiting[place & 1] >= c->heavy_side && own - sides_waiting(v, c, now, place ^ 1, c->choice_delay) >= c->pair_gap)
            v->avoided[place & 1] |= 1u << v->port_of[place];
    }
}

/* The port of a side for a µop that so many can execute: the next one in turn of several, unless far fewer wait for another;
   -1 where the side has none of them, or no room. */
static inline int32_t sides_port(Sides *v, const Core *c, int64_t now, uint32_t ports, int32_t side)
{
    const uint32_t able = ports & v->ports_of[side], behind = able & ~((1u << v->turn[side]) - 1);
    if (!able || v->held[side] >= v->room[side])
        return -1;
    const int32_t next = __builtin_ctz(behind ? behind : able);
    if (!(able & (able - 1)))
        return next;
    int32_t least = next, fewest = INT32_MAX, own = 0;
    for (uint32_t rest = able; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest), waiting = sides_waiting(v, c, now, v->place_of[port], c->choice_delay);
        least = waiting < fewest ? port : least;
        fewest = waiting < fewest ? waiting : fewest;
        own = port == next ? waiting : own;
    }
    if (own - fewest >= c->turn_gap)
        return least;
    v->turn[side] = next + 1;
    return next;
}

static inline void sides_enter(Sides *v, int32_t port)
{
    const int32_t place = v->place_of[port];
    if (place >= 0) {
        v->entered[place]++;
        v->held[place & 1]++;
    }
}

static inline void sides_leave(Sides *v, int32_t port)
{
    if (v->place_of[port] >= 0)
        v->left[v->place_of[port]]++;
}

static inline void sides_end(Sides *v, int64_t now)
{
    for (int32_t place = 0; place < v->places; place++) {
        v->entered_by[now & (SIDE_CYCLES - 1)][place] = v->entered[place];
        v->left_by[now & (SIDE_CYCLES - 1)][place] = v->left[place];
    }
}

/* What later cycles depend on, beside how many wait; the number of values. */
static inline int32_t sides_state(const Sides *v, const Core *c, int64_t now, int64_t *out)
{
    int32_t n = 0;
    out[n++] = v->start | v->turn[0] << 1 | v->turn[1] << 8;
    for (int32_t k = 1; k <= c->left_delay; k++) {
        int64_t entered = 0, left = 0;
        for (int32_t place = 0; place < v->places; place++) {
            entered = entered << 7 | (v->entered[place] - v->entered_by[(now - k) & (SIDE_CYCLES - 1)][place]);
            left = left << 7 | (v->left[place] - v->left_by[(now - k) & (SIDE_CYCLES - 1)][place]);
        }
        out[n++] = entered;
        out[n++] = left;
    }
    return n;
}

#endif
