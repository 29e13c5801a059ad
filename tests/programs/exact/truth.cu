// Kernels whose bytes are known: the host prints, for each launch, what it must read, write and update.
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <vector>
#define CK(x) do{cudaError_t e_=(x); if(e_){printf("CUDA %s %s\n",#x,cudaGetErrorString(e_));return 1;}}while(0)
static int seq=0; static const char*cur="";
static void L(const char*n){cur=n;}
static void X(char kind,const void*p,long len,long stride=0,long count=1){printf("X %d %s %d %lx %ld %ld %ld\n",seq,cur,kind=='r'?0:kind=='w'?1:2,(long)p,len,stride?stride:len,count);}
static void N(){printf("N %d %s\n",seq,cur);seq++;}
__global__ void k_copy(const float*a,float*b,int n){int i=blockIdx.x*blockDim.x+threadIdx.x; if(i<n)b[i]=a[i];}
__global__ void k_even(float*b,int n){int i=blockIdx.x*blockDim.x+threadIdx.x; if(i<n)b[2*i]=1;}
__global__ void k_red(float*c,const int*ix,int n){int i=blockIdx.x*blockDim.x+threadIdx.x; if(i<n)atomicAdd(c+ix[i],1.f);}
__global__ void k_atom(int*c,int*o){o[threadIdx.x]=atomicAdd(c,1);}
__global__ void k_cas(unsigned*c){atomicCAS(c+threadIdx.x,0u,5u);}
__global__ void k_sys(int*c){atomicAdd_system(c+threadIdx.x,1);}
__global__ void k_half(__half*b,int n){int i=blockIdx.x*blockDim.x+threadIdx.x; if(i<n)b[i*3]=__float2half(1);}
__global__ void k_byte(uint8_t*b){b[threadIdx.x*5]=1;}
__global__ void k_vec(const int4*a,int4*b){b[threadIdx.x]=a[threadIdx.x];}
__global__ void k_gather(const float*a,const int*ix,float*b,int n){int i=threadIdx.x; if(i<n)b[i]=__ldg(a+ix[i]);}
__global__ void k_table(float*const*t,int n){int i=threadIdx.x; if(i<n)t[i&7][i]=2;}
__global__ void k_generic(float*g,int which){__shared__ float s[64]; float*p=(which>>(threadIdx.x&31))&1?g:s; p[threadIdx.x]=3; __syncthreads(); if(p[threadIdx.x^1]==17)g[1000]=1;}
__global__ void k_async(const float4*a,float*b){__shared__ float4 s[128]; __pipeline_memcpy_async(&s[threadIdx.x],a+threadIdx.x,16); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); b[threadIdx.x]=s[threadIdx.x].x;}
__global__ void k_zfill(const float4*a,float*b){__shared__ float4 s[128]; __pipeline_memcpy_async(&s[threadIdx.x],a+threadIdx.x,16,threadIdx.x%4*4); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); b[threadIdx.x]=s[threadIdx.x].x;}
__device__ __noinline__ void deep(float*b,int d){ if(d>0)deep(b+1,d-1); *b=d;}
__global__ void k_call(float*b){deep(b+threadIdx.x*8,3);}
__global__ void k_local(float*b,int k){float a[32]; for(int i=0;i<32;i++)a[i]=i*k; b[threadIdx.x]=a[(threadIdx.x*k)&31];}
__device__ int counter; __device__ float array_[100];
__global__ void k_global(int*o){array_[threadIdx.x]=1; if(threadIdx.x==0)atomicAdd(&counter,1);}
__constant__ float cst[64];
__global__ void k_const(float*o,int k){o[threadIdx.x]=cst[(threadIdx.x*k)&63];}
__global__ void k_big(float*b,long n){for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x)b[i]=1;}
__global__ void k_scatter(int*b,const int*p,int n){for(int i=blockIdx.x*blockDim.x+threadIdx.x;i<n;i+=gridDim.x*blockDim.x)b[p[i]]=1;}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__>=900
__global__ void k_bulk(const char*a,char*b){extern __shared__ __align__(128) char s[]; __shared__ __align__(8) uint64_t bar; unsigned sa=__cvta_generic_to_shared(s),ba=__cvta_generic_to_shared(&bar);
 if(threadIdx.x==0){asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(ba)); asm volatile("fence.proxy.async;"); asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(ba),"r"(4112)); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];"::"r"(sa),"l"(a),"r"(4112),"r"(ba):"memory");}
 __syncthreads(); unsigned d=0; while(!d){asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" :"=r"(d):"r"(ba):"memory");} __syncthreads();
 if(threadIdx.x==0){asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;"::"l"(b),"r"(sa),"r"(4096):"memory"); asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0],[%1],%2;"::"l"(b+8192),"r"(sa),"r"(64):"memory"); asm volatile("cp.async.bulk.commit_group;"); asm volatile("cp.async.bulk.wait_group 0;");}}
#else
__global__ void k_bulk(const char*a,char*b){}
#endif
int main(){ char*m;const long S=64<<20; CK(cudaMalloc(&m,S)); CK(cudaMemset(m,0,S)); float*a=(float*)m,*b=(float*)(m+(8<<20)); int*ix; CK(cudaMalloc(&ix,4*1024)); std::vector<int>hi(1024); for(int i=0;i<1024;i++)hi[i]=(i*37)%1024*3; CK(cudaMemcpy(ix,hi.data(),4096,cudaMemcpyHostToDevice));
 cudaStream_t s; CK(cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking));
 L("copy");X('r',a,4000);X('w',b,4000);N(); k_copy<<<4,256,0,s>>>(a,b,1000);
 L("even");X('w',b,4,8,500);N(); k_even<<<2,256,0,s>>>(b,500);
 L("red");X('r',ix,1024);for(int i=0;i<256;i++)X('a',a+hi[i],4);N(); k_red<<<1,256,0,s>>>(a,ix,256);
 L("atom");X('a',a,4);X('w',b,256);N(); k_atom<<<1,64,0,s>>>((int*)a,(int*)b);
 L("cas");X('a',a,128);N(); k_cas<<<1,32,0,s>>>((unsigned*)a);
 L("sys");X('a',a,128);N(); k_sys<<<1,32,0,s>>>((int*)a);
 L("half");X('w',b,2,6,300);N(); k_half<<<2,256,0,s>>>((__half*)b,300);
 L("byte");X('w',b,1,5,96);N(); k_byte<<<1,96,0,s>>>((uint8_t*)b);
 L("vec");X('r',a,4096);X('w',b,4096);N(); k_vec<<<1,256,0,s>>>((int4*)a,(int4*)b);
 L("gather");X('r',ix,400);for(int i=0;i<100;i++)X('r',a+hi[i],4);X('w',b,400);N(); k_gather<<<1,128,0,s>>>(a,ix,b,100);
 float*t[8];for(int i=0;i<8;i++)CK(cudaMalloc(&t[i],4096)); float**dt;CK(cudaMalloc(&dt,64));CK(cudaMemcpy(dt,t,64,cudaMemcpyHostToDevice));
 L("table");X('r',dt,64);for(int i=0;i<200;i++)X('w',t[i&7]+i,4);N(); k_table<<<1,256,0,s>>>(dt,200);
 L("generic");for(int i=0;i<64;i++)if(0x0f0f0f0f>>(i&31)&1){X('w',b+i,4);X('r',b+(i^1),4);}N(); k_generic<<<1,64,0,s>>>(b,0x0f0f0f0f);
 L("async");X('r',a,2048);X('w',b,512);N(); k_async<<<1,128,0,s>>>((float4*)a,b);
 L("zfill");for(int i=0;i<128;i++)X('r',a+4*i,16-i%4*4);X('w',b,512);N(); k_zfill<<<1,128,0,s>>>((float4*)a,b);
 L("call");X('w',b,16,32,32);N(); k_call<<<1,32,0,s>>>(b);
 L("local");X('w',b,128);N(); k_local<<<1,32,0,s>>>(b,3);
 void*gp;int*cp;CK(cudaGetSymbolAddress(&gp,array_));CK(cudaGetSymbolAddress((void**)&cp,counter));
 L("global");X('w',gp,400);X('a',cp,4);N(); k_global<<<1,100,0,s>>>((int*)b);
 L("const");X('w',b,128);N(); k_const<<<1,32,0,s>>>(b,5);
 L("bulk");X('r',a,4112);X('w',b,4096);X('a',(char*)b+8192,64);N(); k_bulk<<<1,32,8192,s>>>((char*)a,(char*)b);
 CK(cudaStreamSynchronize(s));
 L("big");X('w',m,48<<20);N(); k_big<<<1056,256,0,s>>>((float*)m,12<<20);
 CK(cudaStreamSynchronize(s));
 // A graph of two kernels, launched twice.
 cudaGraph_t g;cudaGraphExec_t ge; CK(cudaStreamBeginCapture(s,cudaStreamCaptureModeThreadLocal)); k_even<<<1,128,0,s>>>(b,128); k_copy<<<1,64,0,s>>>(b,a,64); CK(cudaStreamEndCapture(s,&g)); CK(cudaGraphInstantiate(&ge,g,0));
 for(int i=0;i<2;i++){ L("g_even");X('w',b,4,8,128);N(); L("g_copy");X('r',b,256);X('w',a,256);N(); CK(cudaGraphLaunch(ge,s)); CK(cudaStreamSynchronize(s)); }
 CK(cudaDeviceSynchronize()); int v;CK(cudaMemcpy(&v,b,4,cudaMemcpyDeviceToHost)); printf("OK %d launches\n",seq); return 0; }
