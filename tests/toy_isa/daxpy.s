daxpy:                      // r0: x, r1: y, r2: end of x, v0: a in every lane
.loop:
        ldi     v1, [r0], 32
        ldi     v2, [r1], 32
        fma     v2, v1, v0
        st      v2, [r1-32]
        cmp     r0, r2
        bne     .loop
        ret
