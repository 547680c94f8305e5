/*
 * pi: the integral of 4 / (1 + x^2) from 0 to 1 by the midpoint rule with N intervals (double).
 *
 * No memory traffic: the kernel is bound by the divider, or without vectorisation by the chain of additions (Laukemann et al.,
 * "Automated Instruction Stream Throughput Prediction for Intel and AMD Microarchitectures", 2018, section III.B).
 */
#ifndef N
#define N 1000000000
#endif

double pi(void)
{
    double sum = 0.0;
    double delta_x = 1.0 / N;
    for (int i = 0; i < N; ++i) {
        double x = (i + 0.5) * delta_x;
        sum = sum + 4.0 / (1.0 + x * x);
    }
    return sum * delta_x;
}
