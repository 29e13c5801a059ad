// Matrix products of doubles: the shape of sm_80, and those that sm_90 adds, written in PTX.
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void k884(double *d, const double *a, const double *b) { int l = threadIdx.x; double x[2] = {d[l],d[l+32]};
 asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};" : "+d"(x[0]),"+d"(x[1]) : "d"(a[l]),"d"(b[l]));
 for(int i=0;i<2;i++) d[l+32*i]=x[i]; }
#endif
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void k4(double *d, const double *a, const double *b) { int l = threadIdx.x; double x[4] = {d[l],d[l+32],d[l+64],d[l+96]};
 asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" : "+d"(x[0]),"+d"(x[1]),"+d"(x[2]),"+d"(x[3]) : "d"(a[l]),"d"(a[l+32]),"d"(b[l]));
 for(int i=0;i<4;i++) d[l+32*i]=x[i]; }
extern "C" __global__ void k8(double *d, const double *a, const double *b) { int l = threadIdx.x; double x[4] = {d[l],d[l+32],d[l+64],d[l+96]};
 asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+d"(x[0]),"+d"(x[1]),"+d"(x[2]),"+d"(x[3]) : "d"(a[l]),"d"(a[l+32]),"d"(a[l+64]),"d"(a[l+96]),"d"(b[l]),"d"(b[l+32]));
 for(int i=0;i<4;i++) d[l+32*i]=x[i]; }
extern "C" __global__ void k16(double *d, const double *a, const double *b) { int l = threadIdx.x; double x[4] = {d[l],d[l+32],d[l+64],d[l+96]};
 asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};" : "+d"(x[0]),"+d"(x[1]),"+d"(x[2]),"+d"(x[3]) : "d"(a[l]),"d"(a[l+32]),"d"(a[l+64]),"d"(a[l+96]),"d"(a[l+128]),"d"(a[l+160]),"d"(a[l+192]),"d"(a[l+224]),"d"(b[l]),"d"(b[l+32]),"d"(b[l+64]),"d"(b[l+96]));
 for(int i=0;i<4;i++) d[l+32*i]=x[i]; }
#endif
