/* Runs code and times it: commands on standard input, samples on standard output (one line each, see kernmodel/measure/host.py).
 *
 * A sample is the time of one call in ticks of the time stamp counter, between two readings of the core's clock (a chain
 * of dependent additions), of its issue (a loop with a taken branch in each cycle: a sibling thread that is awake
 * shows there) and of its loads (independent ones of one line: a sibling that mostly loads shows there), with the
 * number of context switches on the way and the share of the time in which others ran. Nothing is judged here.
 *
 * The process ends with its parent, and when standard input ends. It writes no file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

typedef void work_t(long repetitions, long argument, char **buffers);
__attribute__((weak)) work_t km_kernel;

enum { BUFFERS = 64, LINE = 1 << 22, PAGES = 8192, OWN_PAGES = 6 };
/* where code, its saved registers and its data are: addresses that fit 31 bits, far from this program's own */
static char *const CODE = (char *)0x23000000, *const SAVE = (char *)0x22000000, *const DATA = (char *)0x24000000;
enum { CODE_BYTES = 1 << 20, SAVE_BYTES = 4096, DATA_BYTES = 4096 };

static char *buffers[BUFFERS], *raws[BUFFERS];
static size_t lengths[BUFFERS];
static work_t *work;
static sigjmp_buf back;
static volatile sig_atomic_t running;
static int shared_page = -1, mapped, own_pages = 1;
static char *pages[PAGES]; /* those that are mapped, the first of which is DATA */
static long page_bytes;

#if defined(__x86_64__)
static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high)::"rcx", "memory");
    return (uint64_t)high << 32 | low;
}
#define CHAIN "add %1, %0\n\t"
#define PASSES ".p2align 5\n1:\tmov (%3), %1\n\tmov %2, 64(%3)\n\tsub $1, %0\n\tjne 1b"
#define LOADS "mov (%8), %0\n\tmov (%8), %1\n\tmov (%8), %2\n\tmov (%8), %3\n\tmov (%8), %4\n\tmov (%8), %5\n\tmov (%8), %6\n\tmov (%8), %7\n\t"
static void flush_small_numbers(void)
{
    uint32_t state;
    __asm__ volatile("stmxcsr %0" : "=m"(state));
    state |= 0x8040;
    __asm__ volatile("ldmxcsr %0" ::"m"(state));
}
#elif defined(__aarch64__)
static inline uint64_t ticks(void)
{
    uint64_t value;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(value)::"memory");
    return value;
}
#define CHAIN "add %0, %0, %1\n\t"
#define PASSES ".p2align 5\n1:\tadd %1, %1, #1\n\tsubs %0, %0, #1\n\tb.ne 1b"
#define LOADS                                                                                                          \
    "ldr %0, [%8]\n\tldr %1, [%8]\n\tldr %2, [%8]\n\tldr %3, [%8]\n\tldr %4, [%8]\n\tldr %5, [%8]\n\tldr %6, [%8]\n\t"      \
    "ldr %7, [%8]\n\t"
static void flush_small_numbers(void) {}
#else
#error "only x86-64 and AArch64 are measured"
#endif

#define X8(text) text text text text text text text text
enum { CHAIN_ROUNDS = 150, CHAIN_ADDS = 64, ISSUE_PASSES = 3600, LOAD_ROUNDS = 60, BEST_OF = 2 };

/* ticks of CHAIN_ROUNDS * CHAIN_ADDS additions of which each waits for the one before: a cycle each on every core */
static uint64_t overhead;

static uint64_t chain_ticks(void)
{
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < BEST_OF; round++) {
        uint64_t value = 1, one = 1, start = ticks();
        for (int i = 0; i < CHAIN_ROUNDS; i++)
            __asm__ volatile(X8(X8(CHAIN)) : "+r"(value) : "r"(one) : "cc");
        uint64_t taken = ticks() - start;
        best = taken < best ? taken : best;
    }
    return best - overhead;
}

/* ticks of a loop that takes a branch in each cycle, on x86-64 beside a load and a store; once, since a neighbour on the
 * same core comes and goes. Cores that two threads share predict branches and fetch for one thread after the other: a
 * sibling that is awake doubles the time. Beside one that mostly waits, additions and loads take as long as alone while
 * loops that load and store take longer. */
static uint64_t issue_ticks(void)
{
    static volatile uint64_t cells[16] __attribute__((aligned(64)));
    uint64_t left = ISSUE_PASSES, a = 1, b = 1, start;
    /* what was measured may have thrown both lines out of all caches */
    for (int i = 0; i < 2; i++)
        (void)cells[0], (void)cells[8], (void)ticks();
    start = ticks();
    __asm__ volatile(PASSES : "+r"(left), "+r"(a), "+r"(b) : "r"(cells) : "cc", "memory");
    return ticks() - start - overhead;
}

/* ticks of as many loads as the core executes side by side, all of one line, which stays in the first cache */
static uint64_t load_ticks(void)
{
    static volatile uint64_t cell[8] __attribute__((aligned(64)));
    uint64_t a, b, c, d, e, f, g, h, start;
    /* what was measured may have thrown the line out of all caches */
    for (int i = 0; i < 2; i++)
        (void)*cell, (void)ticks();
    start = ticks();
    for (int i = 0; i < LOAD_ROUNDS; i++)
        __asm__ volatile(X8(LOADS)
                         : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d), "=&r"(e), "=&r"(f), "=&r"(g), "=&r"(h)
                         : "r"(cell)
                         : "memory");
    return ticks() - start - overhead;
}

/* what reading the time twice takes */
static void find_overhead(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20000; i++) {
        uint64_t start = ticks(), taken = ticks() - start;
        best = taken < best ? taken : best;
    }
    overhead = best;
}

static long switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void reply(const char *text)
{
    puts(text);
    fflush(stdout);
}

/* The data that code finds: 64-bit pointers into themselves. */
static void fill_page(void)
{
    uint64_t *words = (uint64_t *)(void *)DATA;
    for (long i = 0; i < page_bytes / 8; i++)
        words[i] = (uintptr_t)DATA + 0x800;
}

/* A page of data wherever code touches memory that is not there: of so few that all of them are in L1, one as a rule.
   Others than the first one begin as this one is then. */
static int map_page(uintptr_t address)
{
    uintptr_t page = address & -(uintptr_t)page_bytes;
    if (shared_page < 0 || mapped >= PAGES || page < 0x10000 || page >> 46)
        return 0;
    const long place = mapped % own_pages * page_bytes;
    char *found = mmap((void *)page, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, shared_page, place);
    if (found == MAP_FAILED)
        return 0;
    if (place && mapped < own_pages)
        memcpy(found, DATA, page_bytes);
    pages[mapped++] = found;
    return 1;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!running)
        _exit(3);
    if (number == SIGSEGV && info->si_code == SEGV_MAPERR && map_page((uintptr_t)info->si_addr))
        return;
    siglongjmp(back, number);
}

static void catch_signals(void)
{
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        sigaction(caught[i], &action, NULL);
}

static char *fixed(char *where, size_t bytes, int protection)
{
    char *found = mmap(where, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return found == where ? found : NULL;
}

/* Take code, and so many different pages for what it touches: the first one stays, others are forgotten. */
static void load_code(int number, const char *digits)
{
    size_t count = strlen(digits) / 2;
    if (count > CODE_BYTES) {
        reply("error code too long");
        return;
    }
    if (mprotect(CODE, CODE_BYTES, PROT_READ | PROT_WRITE)) {
        reply("error mprotect");
        return;
    }
    memset(CODE, 0xcc, CODE_BYTES);
    for (size_t i = 0; i < count; i++) {
        unsigned byte = 0;
        sscanf(digits + 2 * i, "%2x", &byte);
        CODE[i] = (char)byte;
    }
    mprotect(CODE, CODE_BYTES, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(CODE, CODE + count);
    work = (work_t *)(uintptr_t)CODE;
    /* the code before may have overwritten them */
    fill_page();
    while (mapped > 1 && (number > 1 || own_pages > 1))
        munmap(pages[--mapped], page_bytes);
    own_pages = number;
    reply("ok");
}

/* What a block of bytes finds: a page of pointers at DATA, and a page that holds vectors of normal numbers at SAVE + 256. */
static void prepare_memory(void)
{
    shared_page = memfd_create("data", MFD_CLOEXEC);
    if (shared_page < 0 || ftruncate(shared_page, OWN_PAGES * page_bytes) || !fixed(SAVE, SAVE_BYTES, PROT_READ | PROT_WRITE) ||
        !fixed(CODE, CODE_BYTES, PROT_READ) || !map_page((uintptr_t)DATA)) {
        reply("error no memory at the addresses for code");
        exit(1);
    }
    fill_page();
    /* in double precision a number near 1, in single precision a normal one */
    uint32_t *numbers = (uint32_t *)(void *)(SAVE + 256);
    for (int i = 0; i < 32; i++)
        numbers[i] = 0x3ff00000;
    /* others, whose quotients by these have all their digits */
    for (int i = 32; i < 64; i++)
        numbers[i] = 0x3fb504f3;
    /* near 1 in single precision, so that a chain of divisions by it does not end at 0, by which they take longer */
    for (int i = 64; i < 96; i++)
        numbers[i] = 0x3f800001;
}

static long huge_kib(const void *where)
{
    char line[512];
    long kib = 0;
    int inside = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    if (!maps)
        return -1;
    while (fgets(line, sizeof line, maps)) {
        unsigned long first, last;
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2 && strchr(line, '-') < strchr(line, ' '))
            inside = (uintptr_t)where >= first && (uintptr_t)where < last;
        else if (inside && sscanf(line, "AnonHugePages: %ld kB", &kib) == 1)
            break;
    }
    fclose(maps);
    return kib;
}

enum { HUGE = 2 << 20 };

/* buffer INDEX BYTES HUGE OFFSET: its start has this offset from a multiple of 2 MiB; numbers are normal */
static void make_buffer(int index, size_t bytes, int huge, size_t offset, const char *fill)
{
    size_t whole = (bytes + offset + 2 * (size_t)HUGE) & -(size_t)HUGE;
    char *raw = mmap(NULL, whole + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        reply("error no memory");
        return;
    }
    char *base = (char *)(((uintptr_t)raw + HUGE - 1) & -(uintptr_t)HUGE);
    madvise(base, whole, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    char *start = base + offset;
    size_t count;
    if (lengths[index])
        munmap(raws[index], lengths[index]);
    raws[index] = raw;
    lengths[index] = whole + HUGE;
    if (!strcmp(fill, "double"))
        for (count = 0; count < bytes / 8; count++)
            ((double *)(void *)start)[count] = 1.0 + (double)(count % 7) / 8;
    else if (!strcmp(fill, "float"))
        for (count = 0; count < bytes / 4; count++)
            ((float *)(void *)start)[count] = 1.0f + (float)(count % 7) / 8;
    else
        memset(start, 0, bytes);
    if (huge)
        madvise(base, whole, MADV_COLLAPSE);
    buffers[index] = start;
    printf("ok %ld %lu\n", huge_kib(start), (unsigned long)(uintptr_t)start);
    fflush(stdout);
}

static int guarded(long repetitions, long argument)
{
    int fault = sigsetjmp(back, 1);
    if (!fault) {
        running = 1;
        work(repetitions, argument, buffers);
    }
    running = 0;
    return fault;
}

/* limits of issue and loads for a tick of the chain, 0: not known, and of calls, of which longer ones do not wait; ticks of
 * the chain when it was read last */
static double quiet_issue, quiet_loads, quiet_call;
static uint64_t last_chain;

/* Whether the core is undisturbed now or within so many milliseconds: a call beside a busy sibling is not worth its time. */
static int quiet_within(double *milliseconds)
{
    while (quiet_issue > 0 && last_chain) {
        double chain = (double)last_chain;
        if ((double)issue_ticks() <= quiet_issue * chain && (double)load_ticks() <= quiet_loads * chain)
            return 1;
        struct timeval start, now;
        gettimeofday(&start, NULL);
        last_chain = chain_ticks();
        gettimeofday(&now, NULL);
        *milliseconds -= 1e3 * (double)(now.tv_sec - start.tv_sec) + 1e-3 * (double)(now.tv_usec - start.tv_usec);
        if (*milliseconds < 0)
            return 0;
    }
    return 1;
}

static void sample(long which, long repetitions, long argument)
{
    uint64_t chain = chain_ticks(), issue = issue_ticks(), loads = load_ticks();
    double wall = seconds(CLOCK_MONOTONIC), ran = seconds(CLOCK_THREAD_CPUTIME_ID);
    long before = switches();
    uint64_t start = ticks();
    running = 1;
    work(repetitions, argument, buffers);
    running = 0;
    uint64_t taken = ticks() - start - overhead;
    long after = switches();
    ran = seconds(CLOCK_THREAD_CPUTIME_ID) - ran;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    uint64_t loads_after = load_ticks(), issue_after = issue_ticks(), chain_after = chain_ticks();
    last_chain = chain_after;
    printf("s %ld %lu %lu %lu %lu %lu %lu %lu %ld %.6f\n", which, (unsigned long)taken, (unsigned long)chain,
           (unsigned long)chain_after, (unsigned long)issue, (unsigned long)issue_after, (unsigned long)loads,
           (unsigned long)loads_after, after - before, wall > ran ? 1 - ran / wall : 0.0);
}

static void set_alarm(long seconds)
{
    struct itimerval limit = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_REAL, &limit, NULL);
}

/* run SAMPLES SECONDS WAIT COUNT (REPETITIONS ARGUMENT)*: each in turn, SAMPLES times, fewer where the core is disturbed for
 * WAIT milliseconds in all (0: whatever disturbs); then "end" or "fault SIGNAL" */
static void run(char *rest)
{
    long pairs[32][2], samples, seconds, wait, count;
    int used = 0;
    if (sscanf(rest, "%ld %ld %ld %ld%n", &samples, &seconds, &wait, &count, &used) != 4 || count > 32 || !work) {
        reply("error run");
        return;
    }
    for (long i = 0; i < count; i++) {
        int more = 0;
        rest += used;
        if (sscanf(rest, "%ld %ld%n", &pairs[i][0], &pairs[i][1], &more) != 2) {
            reply("error run");
            return;
        }
        used = more;
    }
    volatile int fault = 0;
    double left = (double)wait;
    set_alarm(seconds);
    for (long i = 0; i < count && !fault; i++) {
        uint64_t start = ticks();
        fault = guarded(pairs[i][0], pairs[i][1]);
        if ((double)(ticks() - start) > quiet_call * (double)last_chain)
            wait = 0;
    }
    if (!fault && !(fault = sigsetjmp(back, 1)))
        for (long number = 0; number < samples && (!wait || quiet_within(&left)); number++)
            for (long i = 0; i < count; i++)
                sample(i, pairs[i][0], pairs[i][1]);
    running = 0;
    set_alarm(0);
    if (fault)
        printf("fault %d\n", fault);
    else
        puts("end");
    fflush(stdout);
}

/* log MILLISECONDS REPETITIONS ARGUMENT: call after call for so long; the start and end of each in ticks */
static void keep_log(long milliseconds, long repetitions, long argument)
{
    enum { MOST = 1 << 16 };
    static uint64_t times[MOST][2];
    static long moved[MOST];
    struct timeval now;
    long count = 0;
    gettimeofday(&now, NULL);
    double end = (double)now.tv_sec + 1e-6 * (double)now.tv_usec + 1e-3 * (double)milliseconds;
    uint64_t chain = chain_ticks();
    do {
        long before = switches();
        times[count][0] = ticks();
        work(repetitions, argument, buffers);
        times[count][1] = ticks();
        moved[count++] = switches() - before;
        gettimeofday(&now, NULL);
    } while (count < MOST && (double)now.tv_sec + 1e-6 * (double)now.tv_usec < end);
    uint64_t chain_after = chain_ticks();
    for (long i = 0; i < count; i++)
        printf("l %lu %lu %ld\n", (unsigned long)times[i][0], (unsigned long)times[i][1], moved[i]);
    printf("end %lu %lu\n", (unsigned long)chain, (unsigned long)chain_after);
    fflush(stdout);
}

#if defined(__x86_64__)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
/* code that is given as bytes can ask for nothing of the system but what this program goes on doing */
static int seal(void)
{
    static const unsigned allowed[] = {SYS_read,         SYS_write,     SYS_mmap,      SYS_munmap,     SYS_mprotect,
                                       SYS_rt_sigreturn, SYS_getrusage, SYS_setitimer, SYS_exit_group, SYS_rt_sigprocmask,
                                       SYS_brk,          SYS_fstat,     SYS_newfstatat, SYS_gettimeofday,
                                       SYS_sched_setaffinity, SYS_madvise, SYS_clock_gettime};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter rules[2 * ALLOWED + 5];
    unsigned short n = 0;
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL);
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++) {
        rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL);
    struct sock_fprog program = {.len = n, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
static int seal(void)
{
    return 1;
}
#endif

static int pin(int processor)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    return sched_setaffinity(0, sizeof one, &one);
}

static void obey(char *line)
{
    long a, b, c;
    int index, huge, digits = 0;
    size_t bytes, offset;
    char fill[16];
    if (sscanf(line, "code %d %n", &index, &digits) == 1 && index >= 1 && index <= OWN_PAGES)
        load_code(index, line + digits);
    else if (!strncmp(line, "run ", 4))
        run(line + 4);
    else if (sscanf(line, "log %ld %ld %ld", &a, &b, &c) == 3 && work)
        keep_log(a, b, c);
    else if (sscanf(line, "buffer %d %zu %d %zu %15s", &index, &bytes, &huge, &offset, fill) == 5 && index >= 0 &&
             index < BUFFERS)
        make_buffer(index, bytes, huge, offset, fill);
    else if (sscanf(line, "value %d %ld", &index, &a) == 2 && index >= 0 && index < BUFFERS) {
        buffers[index] = (char *)(uintptr_t)a;
        reply("ok");
    } else if (sscanf(line, "quiet %lf %lf %lf", &quiet_issue, &quiet_loads, &quiet_call) == 3)
        reply("ok");
    else if (sscanf(line, "pin %d", &index) == 1)
        reply(pin(index) ? "error pin" : "ok");
    else if (!strcmp(line, "ticks")) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("ok %lu %ld\n", (unsigned long)ticks(), now.tv_sec * 1000000000L + now.tv_nsec);
        fflush(stdout);
    } else if (!strcmp(line, "seal"))
        reply(seal() ? "error seal" : "ok");
    else if (!strcmp(line, "kernel") && km_kernel) {
        work = km_kernel;
        printf("ok %lu\n", (unsigned long)(uintptr_t)km_kernel);
        fflush(stdout);
    } else
        reply("error command");
}

int main(int count, char **arguments)
{
    static char line[LINE], standard_output[1 << 16];
    setvbuf(stdout, standard_output, _IOFBF, sizeof standard_output);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count > 1)
        pin(atoi(arguments[1]));
    /* where that is allowed nothing but the system itself interrupts a sample */
    struct sched_param first = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &first);
    page_bytes = sysconf(_SC_PAGESIZE);
    flush_small_numbers();
    catch_signals();
    find_overhead();
    prepare_memory();
    printf("ready %ld %d %d\n", page_bytes, CHAIN_ROUNDS * CHAIN_ADDS, ISSUE_PASSES);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        obey(line);
    }
    return 0;
}
