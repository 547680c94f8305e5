/* Inner loops of kernels, each over one row, for ../row_loops.py, which reads the lines that begin with //@: name, arrays
   that are walked, bytes of an element, and how far the arrays begin behind a line. */
#define RX __restrict
#define K(name,T1,T2,T3,T4,T5) __attribute__((noinline)) double name(long n, T1*RX a, T2*RX b, T3*RX c, T4*RX d, T5*RX e, double s, double t)
typedef double D; typedef float F; typedef int I; typedef unsigned char B;
#define LOOP for (long i = 0; i < n; ++i)
#define SQRT __builtin_sqrt
//@ add 3 8
K(add,D,D,D,D,D){ LOOP a[i] = b[i] + c[i]; return 0; }
//@ copy 2 8
K(copy,D,D,D,D,D){ LOOP a[i] = b[i] * 1.0 + 0.0 * s; return 0; }
//@ scale 2 8
K(scale,D,D,D,D,D){ LOOP a[i] = s * b[i]; return 0; }
//@ update 1 8
K(update,D,D,D,D,D){ LOOP a[i] = s * a[i]; return 0; }
//@ triad 3 8
K(triad,D,D,D,D,D){ LOOP a[i] = b[i] + s * c[i]; return 0; }
//@ schoenauer 4 8
K(schoenauer,D,D,D,D,D){ LOOP a[i] = b[i] + c[i] * d[i]; return 0; }
//@ saxpy 2 4
K(saxpy,F,F,F,F,F){ float f = s; LOOP a[i] += f * b[i]; return 0; }
//@ dotd 2 8
K(dotd,D,D,D,D,D){ double r = 0; LOOP r += a[i] * b[i]; return r; }
//@ dotf 2 4
K(dotf,F,F,F,F,F){ float r = 0; LOOP r += a[i] * b[i]; return r; }
//@ sumi 1 4
K(sumi,I,I,I,I,I){ int r = 0; LOOP r += a[i]; return r; }
//@ kahan 2 8
K(kahan,D,D,D,D,D){ double r = 0, k = 0; LOOP { double y = a[i]*b[i] - k, z = r + y; k = (z - r) - y; r = z; } return r; }
//@ pi 0 8
K(pi,D,D,D,D,D){ double r = 0; LOOP { double x = (i + 0.5) * s; r += 4.0 / (1.0 + x * x); } return r; }
//@ bicg 3 8
K(bicg,D,D,D,D,D){ double r = 0; LOOP { a[i] += s * b[i]; r += b[i] * c[i]; } return r; }
//@ gemver 5 8
K(gemver,D,D,D,D,D){ LOOP a[i] = a[i] + s * b[i] + t * c[i]; return 0; }
//@ mvt 3 8
K(mvt,D,D,D,D,D){ double r = 0, q = 0; LOOP { r += a[i] * b[i]; q += a[i] * c[i]; } return r + q; }
//@ gesummv 3 8
K(gesummv,D,D,D,D,D){ double r = 0, q = 0; LOOP { r = a[i] * c[i] + r; q = b[i] * c[i] + q; } return s * r + t * q; }
//@ syr2k 4 8
K(syr2k,D,D,D,D,D){ LOOP a[i] += b[i] * s + c[i] * t; return 0; }
//@ twoprod 4 8
K(twoprod,D,D,D,D,D){ LOOP { a[i] = b[i] * c[i]; d[i] = b[i] * s; } return 0; }
//@ jacobi1 2 8
K(jacobi1,D,D,D,D,D){ LOOP a[i] = 0.33333 * (b[i-1] + b[i] + b[i+1]); return 0; }
//@ jacobi2 4 8
K(jacobi2,D,D,D,D,D){ LOOP a[i] = 0.2 * (b[i] + b[i-1] + b[i+1] + c[i] + d[i]); return 0; }
//@ jacobi2w 4 8 0,8,8,8
K(jacobi2w,D,D,D,D,D){ LOOP a[i] = 0.2 * (b[i] + b[i-1] + b[i+1] + c[i] + d[i]); return 0; }
//@ jacobi2f 4 4 0,4,4,4
K(jacobi2f,F,F,F,F,F){ LOOP a[i] = 0.2f * (b[i] + b[i-1] + b[i+1] + c[i] + d[i]); return 0; }
//@ box9 4 8
K(box9,D,D,D,D,D){ LOOP a[i] = s*(b[i-1]+b[i]+b[i+1]+c[i-1]+c[i]+c[i+1]+d[i-1]+d[i]+d[i+1]); return 0; }
//@ box9w 4 8 16,8,24,40
K(box9w,D,D,D,D,D){ LOOP a[i] = s*(b[i-1]+b[i]+b[i+1])+t*(c[i-1]+c[i]+c[i+1])+(d[i-1]+d[i]+d[i+1]); return 0; }
//@ heat3 5 8 0,8,16,24,32
K(heat3,D,D,D,D,D){ LOOP a[i] = 0.125*(b[i] - 2.0*c[i] + d[i]) + 0.125*(e[i] - 2.0*c[i] + b[i+8]) + 0.125*(c[i+1] - 2.0*c[i] + c[i-1]) + c[i]; return 0; }
//@ longr 2 8
K(longr,D,D,D,D,D){ LOOP a[i] = 2.0*a[i] - s*b[i] + t*(b[i-4]+b[i+4]) + s*(b[i-3]+b[i+3]) + t*(b[i-2]+b[i+2]) + s*(b[i-1]+b[i+1]); return 0; }
//@ iso3f 3 4
K(iso3f,F,F,F,F,F){ float f=s,g=t; LOOP { float v = f*b[i] + g*(b[i-1]+b[i+1]) + f*(b[i-2]+b[i+2]) + g*(b[i-3]+b[i+3]) + f*(b[i-4]+b[i+4]); a[i] = 2.0f*b[i] - a[i] + c[i]*v; } return 0; }
//@ uxx 5 8 0,0,8,16,24
K(uxx,D,D,D,D,D){ LOOP { double q = 0.25*(b[i]+b[i+64]+c[i]+c[i+64]); a[i] += (s/q)*(t*(d[i]-d[i-1]) + s*(d[i+1]-d[i-2]) + t*(e[i]-e[i+1])); } return 0; }
//@ fdtd 3 8
K(fdtd,D,D,D,D,D){ LOOP a[i] = a[i] - 0.5*(b[i] - b[i-1]); return 0; }
//@ fdtd3 4 8
K(fdtd3,D,D,D,D,D){ LOOP a[i] = a[i] - 0.7*(b[i+1] - b[i] + c[i] - d[i]); return 0; }
//@ fir4f 2 4
K(fir4f,F,F,F,F,F){ float h0=s,h1=t,h2=s+t,h3=s-t; LOOP a[i] = h0*b[i]+h1*b[i+1]+h2*b[i+2]+h3*b[i+3]; return 0; }
//@ fir8d 2 8
K(fir8d,D,D,D,D,D){ double h0=s,h1=t,h2=s+t,h3=s-t,h4=s*t,h5=s*s,h6=t*t,h7=s*0.3; LOOP a[i] = h0*b[i]+h1*b[i+1]+h2*b[i+2]+h3*b[i+3]+h4*b[i+4]+h5*b[i+5]+h6*b[i+6]+h7*b[i+7]; return 0; }
//@ conv5f 2 4
K(conv5f,F,F,F,F,F){ float h0=s,h1=t,h2=s+t,h3=s-t,h4=s*t; LOOP a[i] += h0*b[i]+h1*b[i+1]+h2*b[i+2]+h3*b[i+3]+h4*b[i+4]; return 0; }
//@ corr 2 8 0,8
K(corr,D,D,D,D,D){ double r=0; LOOP r += a[i]*b[i]; return r; }
//@ horn 2 8
K(horn,D,D,D,D,D){ LOOP { double x = b[i]; a[i] = ((((((0.1*x+s)*x+t)*x+0.3)*x+0.4)*x+0.5)*x+0.6)*x+0.7; } return 0; }
//@ hornf 2 4
K(hornf,F,F,F,F,F){ float f=s,g=t; LOOP { float x = b[i]; a[i] = (((((0.1f*x+f)*x+g)*x+0.3f)*x+0.4f)*x+0.5f)*x+0.6f; } return 0; }
//@ prefd 1 8
K(prefd,D,D,D,D,D){ double r=0; LOOP { r += a[i]; a[i] = r*s; } return r; }
//@ prefi 2 4
K(prefi,I,I,I,I,I){ int r=0; LOOP { r += b[i]; a[i] = r; } return r; }
//@ recur 2 8
K(recur,D,D,D,D,D){ double y=0; LOOP { y = s*y + t*b[i]; a[i] = y; } return y; }
//@ recur2 2 8
K(recur2,D,D,D,D,D){ double y=0,z=0; LOOP { double w = b[i] + s*y - t*z; z = y; y = w; a[i] = w; } return y; }
//@ seidel 3 8
K(seidel,D,D,D,D,D){ LOOP a[i] = (a[i-1] + a[i] + a[i+1] + b[i] + c[i]) * 0.2; return 0; }
//@ adi 4 8
K(adi,D,D,D,D,D){ LOOP { a[i] = -0.3 / (s*a[i-1] + 1.7); } return 0; }
//@ trisolv 2 8
K(trisolv,D,D,D,D,D){ double r=s; LOOP r -= a[i]*b[i]; return r; }
//@ cholsub 2 8
K(cholsub,D,D,D,D,D){ LOOP a[i] -= s*b[i]; return 0; }
//@ durbin 3 8
K(durbin,D,D,D,D,D){ LOOP a[i] = b[i] + s*c[n-1-i]; return 0; }
//@ gramn 1 8
K(gramn,D,D,D,D,D){ double r=0; LOOP r += a[i]*a[i]; return SQRT(r); }
//@ divs 2 8
K(divs,D,D,D,D,D){ LOOP a[i] = b[i] / s; return 0; }
//@ divv 3 8
K(divv,D,D,D,D,D){ LOOP a[i] = b[i] / c[i]; return 0; }
//@ divf 3 4
K(divf,F,F,F,F,F){ LOOP a[i] = b[i] / c[i]; return 0; }
//@ sqrtv 2 8
K(sqrtv,D,D,D,D,D){ LOOP a[i] = SQRT(b[i]); return 0; }
//@ nbody 4 8
K(nbody,D,D,D,D,D){ double x=0,y=0,z=0; LOOP { double dx=a[i]-s, dy=b[i]-t, dz=c[i]-0.3; double q=dx*dx+dy*dy+dz*dz+0.01; double w=d[i]/(q*SQRT(q)); x+=w*dx; y+=w*dy; z+=w*dz; } return x+y+z; }
//@ hash 1 1
K(hash,B,B,B,B,B){ unsigned h = 2166136261u; LOOP { h ^= a[i]; h *= 16777619u; } return h; }
//@ bpairs 2 4 0,4
K(bpairs,I,I,I,I,I){ int m = 0; LOOP { int q = a[i] + b[i]; m = q > m ? q : m; } return m; }
//@ editd 3 4
K(editd,I,I,I,I,I){ int g = a[0], u = s, left = t; LOOP { int o = g + (u != b[i]); g = a[i]; int best = left < g ? left + 1 : g + 1; left = o < best ? o : best; a[i] = left; } return left; }
//@ maxd 1 8
K(maxd,D,D,D,D,D){ double m = a[0]; LOOP m = a[i] > m ? a[i] : m; return m; }
//@ argmax 1 8
K(argmax,D,D,D,D,D){ double m = -1; long k = 0; LOOP if (a[i] > m) { m = a[i]; k = i; } return k + m; }
//@ shortp 3 4
K(shortp,F,F,F,F,F){ float f=s; LOOP { float q = f + b[i]; a[i] = q < a[i] ? q : a[i]; } return 0; }
//@ life 4 1
K(life,B,B,B,B,B){ LOOP { int r = b[i-1]+b[i]+b[i+1]+c[i-1]+c[i+1]+d[i-1]+d[i]+d[i+1]; a[i] = (B)(r == 3 || (r == 2 && c[i])); } return 0; }
//@ lifecopy 2 1
K(lifecopy,B,B,B,B,B){ LOOP a[i] = b[i] + 1; return 0; }
//@ spmv 3 8
K(spmv,D,I,D,D,D){ double r = 0; LOOP r += a[i] * c[b[i] & 1023]; return r; }
//@ gathr 3 8
K(gathr,D,I,D,D,D){ LOOP a[i] = c[b[i] & 1023] * s; return 0; }
//@ scatr 3 8
K(scatr,D,I,D,D,D){ LOOP c[b[i] & 1023] = a[i]; return 0; }
//@ histo 1 4
K(histo,I,I,I,I,I){ LOOP a[b[i] & 511]++; return 0; }
//@ cpair 4 8
K(cpair,D,D,D,D,D){ for (long i = 0; i < n; i += 2) { double x = b[i]*c[i] - b[i+1]*c[i+1], y = b[i]*c[i+1] + b[i+1]*c[i]; a[i] = x; a[i+1] = y; } return 0; }
//@ trans4 2 8
K(trans4,D,D,D,D,D){ for (long i = 0; i < n; i += 4) { a[i] = b[i+3]; a[i+1] = b[i+1]; a[i+2] = b[i+2]; a[i+3] = b[i]; } return 0; }
//@ revers 2 8
K(revers,D,D,D,D,D){ LOOP a[i] = b[n-1-i]; return 0; }
//@ cvtfd 2 8
K(cvtfd,D,F,D,D,D){ LOOP a[i] = b[i]; return 0; }
//@ cvtdf 2 8
K(cvtdf,F,D,D,D,D){ LOOP a[i] = b[i]; return 0; }
//@ cvtid 2 8
K(cvtid,D,I,D,D,D){ LOOP a[i] = b[i] * s; return 0; }
//@ condi 3 8
K(condi,D,D,D,D,D){ LOOP if (b[i] > s) a[i] = b[i] * c[i]; return 0; }
//@ absd 3 8
K(absd,D,D,D,D,D){ LOOP a[i] = __builtin_fabs(b[i] - c[i]); return 0; }
//@ sad 2 1
K(sad,B,B,B,B,B){ int r=0; LOOP { int q = a[i]-b[i]; r += q < 0 ? -q : q; } return r; }
//@ blend 3 2
K(blend,short,short,short,short,short){ LOOP a[i] = (short)((b[i]*77 + c[i]*51) >> 7); return 0; }
//@ lcg 1 8
K(lcg,long,long,long,long,long){ unsigned long x = 88172645463325252ul; LOOP { x ^= x << 13; x ^= x >> 7; x ^= x << 17; a[i] = x; } return x; }
//@ crcx 1 8
K(crcx,long,long,long,long,long){ unsigned long x = 1; LOOP { x = (x * 6364136223846793005ul + a[i]); x ^= x >> 29; } return x; }
//@ popc 1 8
K(popc,long,long,long,long,long){ long r = 0; LOOP r += __builtin_popcountl(a[i]); return r; }
//@ three 3 8
K(three,D,D,D,D,D){ double r=0,q=1e9; LOOP { r += a[i]*b[i]; q = c[i] < q ? c[i] : q; } return r+q; }
//@ wave 3 8
K(wave,D,D,D,D,D){ LOOP a[i] = 2.0*b[i] - a[i] + s*(b[i-1] - 2.0*b[i] + b[i+1]) * c[i]; return 0; }
