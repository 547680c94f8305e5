# Laukemann, Hammer, Hofmann, Hager, Wellein (PMBS 2018), Table VI: pi, gcc 7.2 -O3 for Skylake
.L2:
        vextracti128 $0x1, %ymm2, %xmm1
        vcvtdq2pd %xmm2, %ymm0
        vaddpd %ymm7, %ymm0, %ymm0
        addl $1, %eax
        vcvtdq2pd %xmm1, %ymm1
        vaddpd %ymm7, %ymm1, %ymm1
        vpaddd %ymm8, %ymm2, %ymm2
        vmulpd %ymm6, %ymm0, %ymm0
        vmulpd %ymm6, %ymm1, %ymm1
        vfmadd132pd %ymm0, %ymm5, %ymm0
        vfmadd132pd %ymm1, %ymm5, %ymm1
        vdivpd %ymm0, %ymm4, %ymm0
        vdivpd %ymm1, %ymm4, %ymm1
        vaddpd %ymm1, %ymm0, %ymm0
        vaddpd %ymm0, %ymm3, %ymm3
        cmpl $125000000, %eax
        jne .L2
