# Laukemann, Hammer, Hofmann, Hager, Wellein (PMBS 2018), section II-C: the instruction form of the latency benchmark
        vfmadd132pd (%rax), %xmm0, %xmm0
