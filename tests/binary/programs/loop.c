/* A function whose first instruction is the head of its loop. */
__attribute__((noinline, naked)) void spin(void)
{
    __asm__("1: dec %edi\n\tjne 1b\n\tret");
}

int main(void)
{
    __asm__ volatile("mov $5, %%edi\n\tcall spin" ::: "rdi", "memory", "cc");
    return 0;
}
