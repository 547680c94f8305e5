# Laukemann, Hammer, Hofmann, Hager, Wellein (PMBS 2018), section II-A: latency benchmark of vaddpd (the part printed)
loop:
        inc %eax
        vaddpd %xmm0, %xmm1, %xmm0
        vaddpd %xmm1, %xmm0, %xmm0
        vaddpd %xmm0, %xmm1, %xmm0
        vaddpd %xmm1, %xmm0, %xmm0
        cmp %eax, %edx
        jl loop
