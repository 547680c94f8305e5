# Laukemann, Hammer, Hofmann, Hager, Wellein (PMBS 2018), section III-B: pi, gcc 7.2 -O1, sum kept on the stack
.L2:
        vxorpd %xmm0, %xmm0, %xmm0
        vcvtsi2sd %eax, %xmm0, %xmm0
        vaddsd %xmm4, %xmm0, %xmm0
        vmulsd %xmm3, %xmm0, %xmm0
        vmulsd %xmm0, %xmm0, %xmm0
        vaddsd %xmm2, %xmm0, %xmm0
        vdivsd %xmm0, %xmm1, %xmm0
        vaddsd (%rsp), %xmm0, %xmm5
        vmovsd %xmm5, (%rsp)
        addl $1, %eax
        cmpl $1000000000, %eax
        jne .L2
