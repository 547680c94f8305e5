/* What ../row_loops.py runs in its own process: calls of a row that are timed, and how often each loop of it is entered. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <x86intrin.h>

typedef double (*Row)(long, void *, void *, void *, void *, void *, double, double);

enum { ADDITIONS = 6400, LOOPS = 64, REGISTERS = 16, PAGE = 4096, TRAP = 0xcc, SINGLE_STEP = 0x100 };

static uint64_t seed = 88172645463325252ull;

static uint64_t now(void)
{
    unsigned aux;
    _mm_lfence();
    const uint64_t ticks = __rdtscp(&aux);
    _mm_lfence();
    return ticks;
}

/* Ticks of a chain of ADDITIONS cycles. */
static uint64_t chain(void)
{
    uint64_t sum = 1, begin = now();
    long passes = ADDITIONS / 8;
    __asm__ volatile("1: add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
                     "add %0, %0\n dec %1\n jne 1b" : "+r"(sum), "+r"(passes));
    const uint64_t end = now();
    return end - begin - (now() - end);
}

/* Ticks of passes of twelve operations that wait for nothing: a chain leaves room for another thread of the core, these
   do not, so that it shows. */
static uint64_t burst(void)
{
    uint64_t begin = now();
    long passes = ADDITIONS / 8;
    __asm__ volatile("1: lea 1(%%rsi), %%rax\n lea 1(%%rsi), %%rcx\n lea 1(%%rsi), %%rdx\n lea 1(%%rsi), %%r8\n"
                     "lea 1(%%rsi), %%rax\n lea 1(%%rsi), %%rcx\n lea 1(%%rsi), %%rdx\n lea 1(%%rsi), %%r8\n"
                     "lea 1(%%rsi), %%rax\n lea 1(%%rsi), %%rcx\n lea 1(%%rsi), %%rdx\n dec %0\n jne 1b"
                     : "+r"(passes) : : "rax", "rcx", "rdx", "r8");
    const uint64_t end = now();
    return end - begin - (now() - end);
}

/* Rows a little shorter than the longest, at random, so that their end is not foreseen. */
static long less(long granule)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (long)(seed >> 40 & 3) * granule;
}

static uint64_t calls(Row row, long longest, long granule, long times, void **at)
{
    row(longest, at[0], at[1], at[2], at[3], at[4], 0.37, 0.21);
    const uint64_t begin = now();
    for (long call = 0; call < times; call++) {
        row(longest - less(granule), at[0], at[1], at[2], at[3], at[4], 0.37, 0.21);
        _mm_lfence();
    }
    return now() - begin;
}

/* Per sample: ticks of the chain before and after, of the shorter calls and of the longer ones, and of the longer one of
   two bursts around them. */
void sample(Row row, long shorter, long longer, long granule, long times, void **at, long samples, uint64_t *ticks)
{
    for (long n = 0; n < samples; n++, ticks += 5) {
        ticks[0] = chain();
        const uint64_t before = burst();
        const uint64_t same = seed;
        ticks[2] = calls(row, shorter, granule, times, at);
        seed = same;
        ticks[3] = calls(row, longer, granule, times, at);
        const uint64_t behind = burst();
        ticks[1] = chain();
        ticks[4] = before > behind ? before : behind;
    }
}

void pin(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static uint8_t *heads[LOOPS], kept[LOOPS];
static uint64_t entered[LOOPS], found[LOOPS][REGISTERS];
static int loops, stepping = -1;
static const int numbers[REGISTERS] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                       REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void trapped(int number, siginfo_t *about, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)about;
    if (stepping >= 0) {
        *heads[stepping] = TRAP;
        stepping = -1;
        registers[REG_EFL] &= ~(greg_t)SINGLE_STEP;
        return;
    }
    uint8_t *at = (uint8_t *)(registers[REG_RIP] - 1);
    for (int k = 0; k < loops; k++)
        if (heads[k] == at) {
            for (int r = 0; r < REGISTERS && !entered[k]; r++)
                found[k][r] = (uint64_t)registers[numbers[r]];
            entered[k]++;
            *at = kept[k];
            registers[REG_RIP] = (greg_t)at;
            registers[REG_EFL] |= SINGLE_STEP;
            stepping = k;
            return;
        }
}

/* How often the code at each head runs in a call, and the registers when it does first. */
void count(Row row, long length, void **at, int many, uint8_t **where, uint64_t *often, uint64_t *registers)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    loops = many;
    memset(entered, 0, sizeof entered);
    for (int k = 0; k < many; k++) {
        heads[k] = where[k];
        mprotect((void *)((uintptr_t)where[k] & ~(uintptr_t)(PAGE - 1)), 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
        kept[k] = *where[k];
    }
    for (int k = 0; k < many; k++)
        *heads[k] = TRAP;
    row(length, at[0], at[1], at[2], at[3], at[4], 0.37, 0.21);
    for (int k = 0; k < many; k++)
        *heads[k] = kept[k];
    memcpy(often, entered, sizeof(uint64_t) * (size_t)many);
    memcpy(registers, found, sizeof(uint64_t) * REGISTERS * (size_t)many);
}
