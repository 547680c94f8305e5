/* Which schedulers the operations of a cycle go to where these are assigned together (queues.h says more). */

#include "queues.h"

/* Sets of queues are bits, and so are sets of these: bit k for the set whose queues are the bits of k. All of some sets,
   with one of these queues added that it does not have: none if there is no such. */
static uint32_t with_one_of(uint32_t sets, int32_t queues)
{
    return (queues & 1 ? (sets & 0x5555) << 1 : 0) | (queues & 2 ? (sets & 0x3333) << 2 : 0) |
           (queues & 4 ? (sets & 0x0F0F) << 4 : 0) | (queues & 8 ? (sets & 0x00FF) << 8 : 0);
}

static int32_t entries_of(const int32_t *entries, int32_t set)
{
    int32_t sum = 0;
    for (int32_t q = 0; q < QUEUES; q++)
        sum += set >> q & 1 ? entries[q] : 0;
    return sum;
}

/* Of some sets the one with the fewest entries, of equals the one with the first queue that the other has not. */
static int32_t least_filled(const int32_t *entries, uint32_t sets)
{
    int32_t best = __builtin_ctz(sets), least = entries_of(entries, best);
    for (uint32_t rest = sets & (sets - 1); rest; rest &= rest - 1) {
        const int32_t set = __builtin_ctz(rest), sum = entries_of(entries, set), differ = best ^ set;
        if (sum < least || (sum == least && set & differ & -differ)) {
            best = set;
            least = sum;
        }
    }
    return best;
}

void assign_apart(const int32_t *entries, const Wanted *wanted, int32_t count, int32_t *own)
{
    uint32_t left[QUEUES + 1]; /* sets that the operations from one on can take exactly */
    if (count == 1) {
        *own = least_of(entries, (uint32_t)wanted->queues);
        return;
    }
    left[count] = 1;
    for (int32_t k = count - 1; k >= 0; k--)
        left[k] = with_one_of(left[k + 1], wanted[k].queues);
    int32_t set = left[0] ? least_filled(entries, left[0]) : 0;
    for (int32_t k = 0; k < count; k++) {
        const int32_t able = wanted[k].queues & set;
        int32_t rest = able & (able - 1), q = able ? __builtin_ctz((uint32_t)able) : 0;
        for (; rest && !(left[k + 1] >> (set & ~(1 << q)) & 1); rest &= rest - 1)
            q = __builtin_ctz((uint32_t)rest);
        own[k] = q;
        set &= ~(1 << q);
    }
}

static int fit_apart(const Wanted *wanted, int32_t count)
{
    uint32_t sets = 1;
    for (int32_t k = 0; k < count; k++)
        sets = with_one_of(sets, wanted[k].queues);
    return sets != 0;
}

/* The second of two operations that go to the only queue that either may go to, one of those in `narrow`; the number
   of operations if there is none, -1 if more than two are for such queues alone. */
static int32_t second_there(const Wanted *wanted, int32_t count, int32_t narrow)
{
    int32_t few = 0, first = count, second = count;
    for (int32_t k = 0; k < count; k++)
        if (!(wanted[k].queues & ~narrow)) {
            second = few == 1 ? k : count;
            first = few++ ? first : k;
        }
    if (few > 2)
        return -1;
    const int32_t queues = second < count ? wanted[second].queues : 0;
    return queues && queues == wanted[first].queues && !(queues & (queues - 1)) ? second : count;
}

/* One of up to three operations that may go to `beside` and to one other queue alone is the second one there, and the rest
   go elsewhere. Of two branches among five the second one is one too many for it: what comes fifth goes to the other queue,
   then. 0 where they do not fit so. */
static int assign_beside(const int32_t *entries, int32_t beside, const Wanted *wanted, int32_t count, int32_t *own)
{
    int32_t first = -1, last = -1, few = 0, branches = 0, other = 0;
    for (int32_t k = 0; k < count; k++) {
        const int32_t rest = wanted[k].queues & ~(1 << beside);
        if (rest == wanted[k].queues || !rest || rest & (rest - 1))
            continue;
        first = few++ ? first : k;
        last = k;
        branches += wanted[k].branch;
        other = rest;
    }
    if (!few || few > 3 || count > QUEUES + 1)
        return 0;
    if (branches == 2 && count > QUEUES) {
        if (!(wanted[QUEUES].queues & other) || !fit_apart(wanted, QUEUES))
            return 0;
        assign_apart(entries, wanted, QUEUES, own);
        own[QUEUES] = __builtin_ctz((uint32_t)other);
        return 1;
    }
    const int32_t doubled = entries[beside] > entries[__builtin_ctz((uint32_t)other)] ? last : first;
    Wanted others[QUEUES];
    int32_t found[QUEUES];
    for (int32_t k = 0, n = 0; k < count; k++) {
        if (k == doubled)
            continue;
        others[n] = wanted[k];
        others[n++].queues = few < 3 && (k == first || k == last) ? other : wanted[k].queues;
    }
    if (!fit_apart(others, count - 1))
        return 0;
    assign_apart(entries, others, count - 1, found);
    for (int32_t k = 0, n = 0; k < count; k++)
        own[k] = k == doubled ? beside : found[n++];
    return 1;
}

/* The operations but for the second one of two that go to one queue; their number, -1 if there are too many. */
static int32_t without_second(const Wanted *wanted, int32_t count, int32_t narrow, int32_t *second, Wanted *rest)
{
    *second = second_there(wanted, count, narrow);
    if (*second < 0)
        return -1;
    int32_t n = 0;
    for (int32_t k = 0; k < count; k++)
        if (k != *second)
            rest[n++] = wanted[k];
    return n;
}

int fit_together(const Wanted *wanted, int32_t count, int32_t beside, int32_t narrow)
{
    static const int32_t none[QUEUES];
    Wanted rest[MOST_TOGETHER];
    int32_t second, own[MOST_TOGETHER];
    const int32_t n = without_second(wanted, count, narrow, &second, rest);
    if (n < 0)
        return 0;
    if (n <= QUEUES && fit_apart(rest, n))
        return APART_FROM_ONE_ANOTHER;
    return beside && assign_beside(none, beside - 1, rest, n, own) ? BESIDE : 0;
}

void assign_together(const int32_t *entries, const Wanted *wanted, int32_t count, int32_t beside, int32_t narrow, int32_t *own)
{
    Wanted rest[MOST_TOGETHER];
    int32_t second, found[MOST_TOGETHER];
    const int32_t n = without_second(wanted, count, narrow, &second, rest);
    if (beside)
        assign_beside(entries, beside - 1, rest, n, found);
    else
        assign_apart(entries, rest, n, found);
    for (int32_t k = 0, from = 0; k < count; k++)
        own[k] = k == second ? __builtin_ctz((uint32_t)wanted[k].queues) : found[from++];
}
