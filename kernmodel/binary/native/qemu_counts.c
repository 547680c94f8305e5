/*
 * A plugin of qemu's user mode that counts how often translated blocks of one stretch of code run, and which follows
 * which. qemu's packages have no header for plugins: what is used of the interface (docs/devel/tcg-plugins of qemu, API
 * version 1) is declared here.
 *
 * Arguments: out=FILE, first=ADDRESS, end=ADDRESS of the file, code=ADDRESS of its first executable segment, fixed=1
 * where it is loaded at the addresses of the file. When the program ends FILE has lines "block FIRST LAST COUNT", "edge
 * LAST FIRST COUNT" with addresses of the file, and "threads" if more than one ran. Another process that the program made
 * leaves FILE.process in place of that if it ran the code.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern uint64_t qemu_plugin_start_code(void);

EXPORT int qemu_plugin_version = 1;

/* A stretch that is executed as a whole; the ways into it, from the last instruction of the one before. */
struct way {
    uint64_t from, count;
    struct way *next;
};
struct stretch {
    uint64_t first, last, count;
    struct way *ways;
    struct stretch *next;
};

static struct stretch *stretches;
static uint64_t first, end, code, shift, before;
static bool fixed, known, threads;
static bool ran; /* in this process */
static char *out;
static pid_t owner;

static void executed(unsigned processor, void *data)
{
    struct stretch *one = data;
    struct way **place = &one->ways, *way;
    threads |= processor > 0;
    ran = true;
    one->count++;
    for (way = *place; way && way->from != before; way = *place)
        place = &way->next;
    if (!way) {
        way = calloc(1, sizeof *way);
        way->from = before;
        *place = way;
    }
    way->count++;
    before = one->last;
}

static struct stretch *stretch_of(uint64_t from, uint64_t to)
{
    struct stretch *one;
    for (one = stretches; one; one = one->next)
        if (one->first == from && one->last == to)
            return one;
    one = calloc(1, sizeof *one);
    one->first = from;
    one->last = to;
    one->next = stretches;
    stretches = one;
    return one;
}

static void translated(plugin_id id, struct qemu_plugin_tb *block)
{
    size_t count = qemu_plugin_tb_n_insns(block), from, to;
    (void)id;
    if (!known) {
        shift = fixed ? 0 : qemu_plugin_start_code() - code;
        known = true;
    }
#define AT(n) (qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, n)) - shift)
    for (from = 0; from < count && (AT(from) < first || AT(from) >= end); from++)
        ;
    for (to = from; to < count && AT(to) >= first && AT(to) < end; to++)
        ;
    if (from < to)
        qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(block, from), executed, 0,
                                               stretch_of(AT(from), AT(to - 1)));
}

static void finished(plugin_id id, void *data)
{
    FILE *file;
    (void)id, (void)data;
    if (getpid() != owner && !ran)
        return;
    if (getpid() != owner)
        strcat(out, ".process");
    file = fopen(out, "w");
    if (!file)
        return;
    if (threads)
        fputs("threads\n", file);
    for (struct stretch *one = stretches; one; one = one->next) {
        fprintf(file, "block %llx %llx %llu\n", (unsigned long long)one->first, (unsigned long long)one->last,
                (unsigned long long)one->count);
        for (struct way *way = one->ways; way; way = way->next)
            fprintf(file, "edge %llx %llx %llu\n", (unsigned long long)way->from, (unsigned long long)one->first,
                    (unsigned long long)way->count);
    }
    fclose(file);
}

static void forked(void)
{
    ran = false;
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments)
{
    (void)info;
    for (int n = 0; n < count; n++) {
        char *value = strchr(arguments[n], '=');
        if (!value++)
            return 1;
        if (!strncmp(arguments[n], "out=", 4))
            out = strcpy(malloc(strlen(value) + sizeof ".process"), value);
        else if (!strncmp(arguments[n], "first=", 6))
            first = strtoull(value, NULL, 0);
        else if (!strncmp(arguments[n], "end=", 4))
            end = strtoull(value, NULL, 0);
        else if (!strncmp(arguments[n], "code=", 5))
            code = strtoull(value, NULL, 0);
        else if (!strncmp(arguments[n], "fixed=", 6))
            fixed = value[0] == '1';
    }
    owner = getpid();
    pthread_atfork(NULL, NULL, forked);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return out ? 0 : 1;
}
