# Laukemann, Hammer, Hofmann, Hager, Wellein (PMBS 2018), Table IV: Schoenauer triad, gcc 7.2 -O3 for Zen
.L10:
        vmovaps 0(%r13,%rax), %xmm0
        vmovaps (%r15,%rax), %xmm3
        incl %esi
        vfmadd132pd (%r14,%rax), %xmm3, %xmm0
        vmovaps %xmm0, (%r12,%rax)
        addq $16, %rax
        cmpl %esi, %ebx
        ja .L10
