// Time of kernels of different kinds, bare and patched.
#include <cstdio>
#include <vector>
#include <chrono>
#include <cuda_runtime.h>
__global__ void k_stream(float*b,long n){for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x)b[i]+=1;}
__global__ void k_scatter(int*b,const int*p,int n){for(int i=blockIdx.x*blockDim.x+threadIdx.x;i<n;i+=gridDim.x*blockDim.x)b[p[i]]=1;}
__global__ void k_reread(const float*a,float*o,int rep){float s=0;for(int r=0;r<rep;r++)for(int i=threadIdx.x;i<4096;i+=blockDim.x)s+=a[i^r];o[blockIdx.x*blockDim.x+threadIdx.x]=s;}
__global__ void k_tiny(float*a){a[threadIdx.x]=1;}
template<class F>void run(const char*n,int times,F f){f();cudaDeviceSynchronize();auto t=std::chrono::steady_clock::now();for(int i=0;i<times;i++)f();cudaDeviceSynchronize();double d=std::chrono::duration<double>(std::chrono::steady_clock::now()-t).count();printf("TIME %s %.3f ms %s\n",n,d*1e3/times,cudaGetErrorString(cudaGetLastError()));}
int main(){float*a;long n=64<<20;cudaMalloc(&a,4*n);cudaMemset(a,0,4*n);int m=8<<20;int*p;cudaMalloc(&p,4l*m);std::vector<int>h(m);for(int i=0;i<m;i++)h[i]=(int)((i*2654435761ull)%n);cudaMemcpy(p,h.data(),4l*m,cudaMemcpyHostToDevice);
 run("tiny",200,[&]{k_tiny<<<1,64>>>(a);}); run("stream64MB",5,[&]{k_stream<<<1056,256>>>(a,16<<20);}); run("scatter8M",2,[&]{k_scatter<<<1056,256>>>((int*)a,p,m);}); run("reread",3,[&]{k_reread<<<1056,256>>>(a,a+8192,64);}); return 0;}
