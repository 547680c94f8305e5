/* Programs that are harder to count: threads, processes, signals, changing inputs; the first argument says which. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) long work(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += i & 1 ? i : -i * 3;
    return sum;
}

/* a table of addresses of places in the code, which no comparison guards */
__attribute__((noinline)) long interpret(const unsigned char *code)
{
    static void *const places[] = {&&end, &&add, &&twice, &&back};
    long value = 1;
    goto *places[*code];
add:
    value += 3;
    goto *places[*++code];
twice:
    value *= 2;
    goto *places[*++code];
back:
    value -= 1;
    goto *places[*++code];
end:
    return value;
}

static volatile long sink;

/* fails where its first byte is another than that of the file: a trap or a jump */
__attribute__((noinline)) int reads_itself(void)
{
    volatile const unsigned char *code = (const unsigned char *)reads_itself;
    return *code == 0xcc || *code == 0xe9 ? 7 : 0;
}

/* writes over its own code what stood there before: code that a copy would not see */
__attribute__((noinline)) int changes_itself(void)
{
    unsigned char *page = (unsigned char *)((unsigned long)changes_itself & ~4095ul), *code = (unsigned char *)changes_itself;
    static unsigned char first;
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 0;
    if (first && first != *code)
        return 9;
    first = *code = *code == 0xcc || *code == 0xe9 ? 0x90 : *code;
    return first == 0x90 ? 9 : 0;
}

/* changes code of another function, which it may be sure of */
static int changes_another(unsigned char *code)
{
    if (mprotect((void *)((unsigned long)code & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 1;
    code[8] ^= 1;
    return 0;
}

#ifdef __x86_64__
/* a stretch of bytes that nothing reaches, in the middle of the code */
__attribute__((noinline)) long holds_data(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        __asm__ volatile("jmp 1f\n.byte 0x06, 0x0e, 0x16, 0x1e, 0x27\n1: add $2, %0" : "+r"(sum));
    return sum;
}
#endif

static void *thread(void *argument)
{
    return (void *)work((long)argument);
}

int main(int count, char **arguments)
{
    char what = count > 1 ? arguments[1][0] : 0;
    pthread_t threads[4];
    void *result;
    char line[64] = "";
    switch (what) {
    case 't':
        for (long i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread, (void *)20000);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], &result);
        break;
    case 'f':
        if (fork() == 0) {
            sink = work(1000);
            _exit(0);
        }
        wait(NULL);
        sink = work(500);
        break;
    case 's': abort();
    case 'e': sink = work(10); return 3;
    case 'l': for (;;) sink = work(1000);
    case 'r': sink = work((long)clock() % 977 + getpid() % 991); break;
    case 'i': printf("%ld\n", work(fgets(line, sizeof line, stdin) ? atol(line) : 0)); break;
    case 'g': printf("%ld\n", interpret((const unsigned char *)"\1\2\1\3\2\2\0")); break;
    case 'c': return reads_itself();
    case 'm': return changes_itself() + changes_itself();
#ifdef __x86_64__
    case 'd': return holds_data(40) != 80;
#endif
    case 'w': sink = work(10); return changes_another((unsigned char *)work);
    case 'x': sink = work(10); execl("/bin/true", "true", (char *)NULL); break;
    default: sink = work(100);
    }
    return 0;
}
