# Laukemann, Hammer, Hofmann, Hager, Wellein (PMBS 2018), Table VII: pi, gcc 7.2 -O2 for Skylake
.L2:
        vxorpd %xmm0, %xmm0, %xmm0
        vcvtsi2sd %eax, %xmm0, %xmm0
        addl $1, %eax
        vaddsd %xmm5, %xmm0, %xmm0
        vmulsd %xmm3, %xmm0, %xmm0
        vfmadd132sd %xmm0, %xmm4, %xmm0
        vdivsd %xmm0, %xmm2, %xmm0
        vaddsd %xmm0, %xmm1, %xmm1
        cmpl $1000000000, %eax
        jne .L2
