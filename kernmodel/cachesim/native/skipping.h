/* Running the innermost loop, with what provably changes nothing left out. */

#include "programs.h"

/* ---- Leaving out what changes nothing -------------------------------------------------------------------------- */

/* Iterations in which every reference touches the same lines as in the iteration before it are left out, where that is
 * exact. Let S be the touches of the iteration that was executed last, in their order, and let all lines that S touches
 * be in the first level afterwards, those that are stored to modified, with a first level that writes back. Then
 * executing S again consists of hits, of which nothing but the hit counters and the first level's order could change:
 *
 * - FIFO, RANDOM: hits change nothing (RANDOM draws at insertions only).
 * - LRU, MRU: executing S puts the lines of S to the front of their sets, in the order of their last touch in S, and
 *   leaves the others in their order behind. They stand like that already, since nothing else was put to the front.
 * - PLRU: a node of the tree points away from the last way below it that was touched. In the repetition that is the
 *   touch of a line X at some point t of S. At t of the first execution X was touched in the same way of the set: had it
 *   moved since, it would have been touched again later, and t not the last. And no later touch went through the node:
 *   the line touched, or the one that took its way later, would now be below the node, with a touch after t.
 *
 * So the state is a fixed point of S, and what comes next begins at the iteration in which a reference touches another
 * line. All this holds for each set by itself as long as misses in one set do not reach into another set of the first
 * level, which only an inclusive level's evictions and streaming stores do. Therefore, without those, of an iteration in
 * which some references go to another line, only the touches that fall into the sets which they leave and enter are
 * executed; for the other sets the iteration is the same as the one before it.
 *
 * A streaming store repeats itself too while its buffer stays open and no line was inserted anywhere since its copies
 * were looked for: it only marks bytes. The last iteration before it goes to another line is executed, since the buffer
 * may become complete in it. */

enum { LEAST_SKIPPED = 32 };  /* iterations of an inner loop that is looked at */
enum { MOST_UNCHECKED = 64 }; /* iterations that are executed before looking for a fixed point again */

INLINE u64 address_at(const Walk *w, const Inner *in, u64 it) { return in->address + in->stride * (it - w->base); }

/* How often `stride` fits into `distance`. */
INLINE u64 steps_within(u64 distance, u64 stride)
{
    if ((stride & (stride - 1)) == 0)
        return distance >> __builtin_ctzll(stride);
    return distance < stride ? 0 : distance / stride;
}

/* Find the lines that a reference touches at iteration `it`, and how long they stay the same. */
INLINE void locate(const Walk *w, Inner *in, u64 it, u64 end)
{
    const Level *l = w->sim->levels;
    u64 first = address_at(w, in, it), last = first + in->last, steps = UINT64_MAX;
    in->low = quotient(&l->line, first);
    in->high = in->low;
    u64 low_base = in->low * l->line_bytes, high_base = low_base;
    if (UNLIKELY(last - low_base >= l->line_bytes)) {
        in->high = quotient(&l->line, last);
        high_base = in->high * l->line_bytes;
    }
    if ((i64)in->stride > 0) {
        steps = steps_within(high_base + (l->line_bytes - 1) - last, in->stride);
        if (UNLIKELY(in->low != in->high)) {
            u64 leaving = steps_within(low_base + (l->line_bytes - 1) - first, in->stride);
            steps = leaving < steps ? leaving : steps;
        }
    } else if (in->stride) {
        steps = steps_within(first - low_base, 0 - in->stride);
        if (UNLIKELY(in->low != in->high)) {
            u64 leaving = steps_within(last - high_base, 0 - in->stride);
            steps = leaving < steps ? leaving : steps;
        }
    }
    if (in->kind == STREAM && steps)
        steps--;
    in->until = steps < end - it ? it + steps + 1 : UINT64_MAX;
}

/* Whether all lines of a reference are where repeating the touch changes nothing. */
static int settled_in(const Walk *w, const Inner *in)
{
    const Sim *s = w->sim;
    const Level *l = s->levels;
    if (in->kind == STREAM) {
        const Buffer *buffer = in->low == in->high ? open_buffer(s, in->low) : NULL;
        return buffer && buffer->fills == s->fills;
    }
    for (u64 number = in->low;; number++) {
        const u64 *b = set_of(l, number);
        i64 way = (b[l->keys] | 1) == key_of(number) ? 0 : find(l, b, number);
        if (way < 0 || (in->kind == STORE && !(b[l->keys + (u64)way] & 1)))
            return 0;
        if (number == in->high)
            return 1;
    }
}

static int all_settled(const Walk *w)
{
    for (int i = 0; i < w->inner_count; i++)
        if (!settled_in(w, &w->inner[i]))
            return 0;
    return 1;
}

/* Count the hits of a reference up to iteration `it`. */
INLINE void add_hits(Inner *in, u64 it)
{
    in->hits += (in->high - in->low + 1) * (it - in->since);
    in->since = it;
}

/* Mark what streaming stores write in iterations that are left out; 0 (and nothing done) if a buffer could become
 * complete. */
static int gather_ahead(Walk *w, u64 it, u64 next)
{
    u64 bytes = 0;
    for (int i = 0; i < w->inner_count; i++)
        if (w->inner[i].kind == STREAM)
            bytes += w->inner[i].last + 1;
    for (int i = 0; i < w->inner_count; i++)
        if (w->inner[i].kind == STREAM && open_buffer(w->sim, w->inner[i].low)->missing <= (u128)bytes * (next - it))
            return 0;
    for (int i = 0; i < w->inner_count; i++) {
        const Inner *in = &w->inner[i];
        u64 start = in->low * w->sim->levels[0].line_bytes;
        for (u64 at = it; in->kind == STREAM && at < next; at++) {
            u64 first = address_at(w, in, at) - start;
            gather(open_buffer(w->sim, in->low), first, first + in->last);
        }
    }
    return 1;
}

/* Mark the sets that the lines of a reference belong to. */
INLINE void mark_sets(Sim *s, const Inner *in, u64 mark)
{
    for (u64 number = in->low;; number++) {
        s->marks[set_index(s->levels, number)] = mark;
        if (number == in->high)
            return;
    }
}

INLINE int is_marked(const Sim *s, u64 number, u64 mark) { return s->marks[set_index(s->levels, number)] == mark; }

INLINE int touches_marked(const Sim *s, const Inner *in, u64 mark)
{
    for (u64 number = in->low;; number++) {
        if (is_marked(s, number, mark))
            return 1;
        if (number == in->high)
            return 0;
    }
}

/* Find the lines of a reference that goes to others at iteration `it`. */
INLINE void relocate(const Walk *w, Inner *in, u64 it, u64 end)
{
    if (in->period) {
        in->high = in->low += in->step;
        in->until += in->period;
        return;
    }
    add_hits(in, it);
    locate(w, in, it, end);
}

/* Whether the only line of a reference is the first of its set, with order kept by recency, and modified if it is
 * stored to: then a touch changes nothing. */
INLINE int is_first(const Level *l, const Inner *in)
{
    u64 key = set_of(l, in->low)[l->keys];
    return l->recency && (key | in->clean) == key_of(in->low) && in->low == in->high;
}

/* Execute an access; its hits are taken off because they are counted here. */
INLINE void execute_inner(const Walk *w, Inner *in, u64 it)
{
    u64 first = address_at(w, in, it);
    in->hits -= in->high - in->low + 1;
    execute(w->sim, in->kind, first, first + in->last, in->served);
}

/* Of an access only the requests in marked sets: in the others the touches would come without those around them. */
INLINE void execute_marked(const Walk *w, Inner *in, u64 it, u64 mark)
{
    Sim *s = w->sim;
    const Level *l = s->levels;
    u64 first = address_at(w, in, it), last = first + in->last;
    s->asking = in->served;
    for (u64 number = in->low;; number++) {
        if (is_marked(s, number, mark)) {
            u64 base = number * l->line_bytes, end = base + (l->line_bytes - 1);
            u64 from = first > base ? first : base, to = last < end ? last : end;
            in->hits--; /* it is counted here */
            in->served[request(s, in->kind, number, from, to)]++;
        }
        if (number == in->high)
            return;
    }
}

/* An iteration in which some references go to other lines, executed in the sets concerned. 0 if the state is no fixed
 * point after it, else the next iteration of this kind. */
static u64 run_event(Walk *w, u64 it, u64 end)
{
    Sim *s = w->sim;
    const Level *l = s->levels;
    Inner *inner = w->inner, *stop = w->inner + w->inner_count;
    u64 misses = l->load_misses + l->store_misses, next = end;
    u64 mark = ++s->mark;
    for (Inner *in = inner; in < stop; in++)
        if (in->until == it) {
            mark_sets(s, in, mark);
            relocate(w, in, it, end);
            mark_sets(s, in, mark);
        }
    for (Inner *in = inner; in < stop; in++) {
        next = in->until < next ? in->until : next;
        if (!is_first(l, in))
            execute_marked(w, in, it, mark);
    }
    if (misses == l->load_misses + l->store_misses)
        return next;
    for (Inner *in = inner; in < stop; in++)
        if (touches_marked(s, in, mark) && !is_first(l, in) && !settled_in(w, in))
            return 0;
    return next;
}

static u64 next_event(const Walk *w, u64 end)
{
    u64 next = end;
    for (int i = 0; i < w->inner_count; i++)
        next = w->inner[i].until < next ? w->inner[i].until : next;
    return next;
}

/* The same where a miss in one set may reach into another one: all sets are concerned. */
static u64 run_whole_event(Walk *w, u64 it, u64 end)
{
    for (int i = 0; i < w->inner_count; i++)
        if (w->inner[i].until == it)
            relocate(w, &w->inner[i], it, end);
    for (int i = 0; i < w->inner_count; i++)
        execute_inner(w, &w->inner[i], it);
    return all_settled(w) ? next_event(w, end) : 0;
}

/* From a fixed point at iteration `it`: leave out, execute where lines change, until the end or until the state is no
 * fixed point; the next iteration to execute. */
static u64 run_settled(Walk *w, u64 it, u64 end)
{
    int whole = w->sim->any_inclusive || w->streams;
    for (u64 next = next_event(w, end); next;) {
        if (w->streams && next > it && !gather_ahead(w, it, next))
            break;
        it = next;
        if (it == end)
            break;
        next = whole ? run_whole_event(w, it, end) : run_event(w, it, end);
        it++;
    }
    return it;
}

/* Where all references move by the same number of lines at the same intervals, and sets are not hashed, the same
 * references fall into the same sets in each period: which of them move and which are concerned is found once. */

/* Whether none of the references concerned touch different lines in the same set. */
static int are_apart(const Walk *w, const Event *event)
{
    const Level *l = w->sim->levels;
    for (Inner **a = event->touched; a < event->stop; a++)
        for (Inner **b = event->touched; b < a; b++)
            if ((*a)->low != (*b)->low && set_index(l, (*a)->low) == set_index(l, (*b)->low))
                return 0;
    return 1;
}

/* The next of the events of a period, and the references that move in it and that are concerned by it. */
static Event *plan_event(Walk *w, Event *event, u64 it, u64 end)
{
    Sim *s = w->sim;
    u64 mark = ++s->mark;
    event->at = it;
    event->touched = event->moving;
    for (Inner *in = w->inner; in < w->inner + w->inner_count; in++)
        if (in->until == it) {
            *event->touched++ = in;
            mark_sets(s, in, mark);
            relocate(w, in, it, end);
            mark_sets(s, in, mark);
        }
    event->stop = event->touched;
    for (Inner *in = w->inner; in < w->inner + w->inner_count; in++)
        if (touches_marked(s, in, mark))
            *event->stop++ = in;
    event->apart = are_apart(w, event);
    event[1].moving = event->stop;
    return event + 1;
}

/* All events of one period; the one behind the last. */
static Event *plan(Walk *w, u64 it, u64 end)
{
    Event *event = w->events;
    event->moving = w->planned;
    u64 after = it + w->inner->period;
    for (u64 next = next_event(w, end); next < after && next < end; next = next_event(w, end))
        event = plan_event(w, event, next, end);
    for (const Event *done = w->events; done < event; done++)
        for (Inner **at = done->moving; at < done->touched; at++) /* back again */
            (*at)->high = (*at)->low -= (*at)->step;
    return event;
}

/* Execute an event as run_event does; whether the state is a fixed point after it. It is where only one line of each set
 * was touched: that line is there, as the last one inserted, or was there. */
INLINE int run_planned(Walk *w, const Event *event, u64 it)
{
    Sim *s = w->sim;
    const Level *l = s->levels;
    for (Inner **at = event->moving; at < event->touched; at++)
        (*at)->high = (*at)->low += (*at)->step;
    for (Inner **at = event->touched; at < event->stop; at++) {
        Inner *in = *at;
        if (is_first(l, in))
            continue;
        if (LIKELY(s->plain && in->kind == LOAD)) {
            in->hits--;
            s->asking = in->served;
            in->served[plain_load_line(s, s->levels, in->low)]++;
        } else
            execute_inner(w, in, it);
    }
    if (LIKELY(event->apart && l->write_allocate))
        return 1;
    for (Inner **at = event->touched; at < event->stop; at++)
        if (!is_first(l, *at) && !settled_in(w, *at))
            return 0;
    return 1;
}

/* As run_settled. */
static u64 run_periods(Walk *w, u64 it, u64 end)
{
    u64 period = w->inner->period;
    const Event *stop = plan(w, it, end);
    if (stop == w->events)
        return end;
    for (;;)
        for (Event *event = w->events; event < stop; event++) {
            it = event->at;
            if (it >= end)
                return end;
            event->at += period;
            if (!run_planned(w, event, it))
                return it + 1;
        }
}

/* The period of a reference, if it never touches two lines and moves by whole lines at equal intervals: with a stride
 * that a line is a multiple of, or that is a multiple of a line. `usual_period` and `step` are known beforehand. */
INLINE void find_period(const Walk *w, Inner *in)
{
    const Level *l = w->sim->levels;
    u64 place = remainder_of(&l->line, in->address), room = l->line_bytes;
    if (in->usual_period > 1) {
        room = in->pace.by;
        place = remainder_of(&in->pace, place);
    }
    in->period = in->usual_period && place + in->last < room ? in->usual_period : 0;
}

/* Bring the addresses to iteration `it`. */
static void rebase(Walk *w, u64 it)
{
    for (int i = 0; i < w->inner_count; i++)
        w->inner[i].address = address_at(w, &w->inner[i], it);
    w->base = it;
}

/* Whether run_periods is for this program. */
static int is_periodic(const Walk *w)
{
    if (w->sim->any_inclusive || w->streams || w->sim->levels->hashed || w->inner_count > MOST_PLANNED)
        return 0;
    for (int i = 0; i < w->inner_count; i++)
        if (!w->inner[i].period || w->inner[i].period != w->inner->period || w->inner[i].step != w->inner->step)
            return 0;
    return w->inner_count > 0;
}

static void run_skipping(Walk *w, u64 end)
{
    u64 it = 0, unchecked = 1;
    for (int i = 0; i < w->inner_count; i++)
        find_period(w, &w->inner[i]);
    int periodic = is_periodic(w);
    while (it < end) {
        u64 count = unchecked < end - it ? unchecked : end - it;
        run_all(w, count);
        it += count;
        if (it == end)
            return;
        for (int i = 0; i < w->inner_count; i++) {
            locate(w, &w->inner[i], it - 1, end);
            w->inner[i].since = it;
        }
        if (all_settled(w)) {
            u64 before = it;
            it = periodic ? run_periods(w, it, end) : run_settled(w, it, end);
            for (int i = 0; i < w->inner_count; i++)
                add_hits(&w->inner[i], it);
            rebase(w, it);
            unchecked = it - before > unchecked ? 1 : unchecked;
        }
        if (unchecked < MOST_UNCHECKED)
            unchecked *= 2;
    }
}

/* Whether leaving out saves more than it costs. An event costs about as much as two or three accesses that hit and one
 * more for each reference, and there is one in `moves` of 1024 iterations: references that begin at the same place in a
 * line go to others together, those that cross from a line to the next twice a line. */
static int is_worth_it(const Walk *w, u64 iterations)
{
    const Level *l = w->sim->levels;
    u64 moves = 0, places = 0, crossing = 0, count = (u64)w->inner_count;
    for (const Inner *in = w->inner; in < w->inner + count; in++) {
        u64 place = remainder_of(&l->line, in->address), bit = (u64)1 << (place * 64 / l->line_bytes);
        u64 pace = in->pace.by < l->line_bytes ? in->pace.by * 1024 / l->line_bytes : 1024;
        if (!pace)
            continue;
        if (pace == 1024 || !(places & bit))
            moves += pace;
        places |= bit;
        if (remainder_of(&in->pace, place) + in->last >= in->pace.by && !(crossing & bit)) {
            moves += pace;
            crossing |= bit;
        }
    }
    return iterations >= LEAST_SKIPPED && (5 + 2 * count) * (moves < 1024 ? moves : 1024) < 2 * count * 1024;
}

/* Whether the rules above speak of this program and this first level. */
static int may_skip(const Walk *w, u64 iterations)
{
    const Level *l = w->sim->levels;
    return w->sim->skip && !w->irregular && !l->sectored && (l->write_back || !w->stores) && is_worth_it(w, iterations);
}

/* Add the hits that were only counted by reference to the counters; of a streaming store they went to memory. */
static void count_hits(Sim *s, Inner *in)
{
    in->served[in->kind == STREAM ? s->count : 0] += in->hits;
    if (in->kind == LOAD)
        s->levels[0].load_hits += in->hits;
    else if (in->kind == STORE)
        s->levels[0].store_hits += in->hits;
    in->hits = 0;
}

/* Execute iterations of the innermost loop. */
static void run_row(Walk *w, u64 iterations)
{
    w->base = 0;
    for (int i = 0; i < w->inner_count; i++)
        w->inner[i].served = w->sim->served + w->inner[i].number * (w->sim->count + 1);
    if (may_skip(w, iterations))
        run_skipping(w, iterations);
    else
        run_all(w, iterations);
    for (int i = 0; i < w->inner_count; i++)
        count_hits(w->sim, &w->inner[i]);
    w->sim->accesses += iterations * (u64)w->inner_count;
}
