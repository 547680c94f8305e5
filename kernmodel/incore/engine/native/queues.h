/* Which schedulers the operations of a cycle go to where these are assigned together: the compiled twin of
   kernmodel.incore.engine.queues. */

#ifndef KERNMODEL_QUEUES_H
#define KERNMODEL_QUEUES_H

#include <stdint.h>

enum { QUEUES = 4, MOST_TOGETHER = QUEUES + 2 };

/* An operation: bits of the queues that it may go to; whether it is a branch with a unit of its own in one of them. */
typedef struct { int32_t queues, branch; } Wanted;

/* Of some queues, or ports, the one with the fewest entries, the first of equals; 0 if there are none. */
static inline int32_t least_of(const int32_t *entries, uint32_t those)
{
    int32_t least = those ? __builtin_ctz(those) : 0;
    for (uint32_t rest = those & (those - 1); rest; rest &= rest - 1) {
        const int32_t other = __builtin_ctz(rest);
        least = entries[other] < entries[least] ? other : least;
    }
    return least;
}

/* Different queues for so many operations of a cycle, which fit into one, by the entries that each queue holds. */
void assign_apart(const int32_t *entries, const Wanted *wanted, int32_t count, int32_t *own);

/* Whether so many operations fit into a cycle: 0 if they do not, APART_FROM_ONE_ANOTHER if they do without a queue
   that gets two of several, else BESIDE. `beside`, `narrow`: as in Core, the former 0 for none. */
enum { APART_FROM_ONE_ANOTHER = 1, BESIDE = 2 };
int fit_together(const Wanted *wanted, int32_t count, int32_t beside, int32_t narrow);

/* The queues of operations that so fit. */
void assign_together(const int32_t *entries, const Wanted *wanted, int32_t count, int32_t beside, int32_t narrow, int32_t *own);

#endif
