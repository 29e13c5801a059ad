#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cstdio>
#include <vector>
#include <algorithm>
int main(){int n=200000;std::vector<unsigned>h(n);for(int i=0;i<n;i++)h[i]=i*2654435761u;unsigned*a,*b,*s;cudaMalloc(&a,4*n);cudaMalloc(&b,4*n);cudaMalloc(&s,4*n);cudaMemcpy(a,h.data(),4*n,cudaMemcpyHostToDevice);void*t=0;size_t z=0;cub::DeviceRadixSort::SortKeys(t,z,a,b,n);cudaMalloc(&t,z);cub::DeviceRadixSort::SortKeys(t,z,a,b,n);cub::DeviceScan::InclusiveSum(nullptr,z,b,s,n);void*t2;cudaMalloc(&t2,z);cub::DeviceScan::InclusiveSum(t2,z,b,s,n);
 std::vector<unsigned>o(n),c(n);cudaMemcpy(o.data(),b,4*n,cudaMemcpyDeviceToHost);cudaMemcpy(c.data(),s,4*n,cudaMemcpyDeviceToHost);bool ok=std::is_sorted(o.begin(),o.end());unsigned x=0;for(int i=0;i<n;i++){x+=o[i];if(c[i]!=x){ok=false;break;}}printf("SORT a %p b %p s %p bytes %d %s %s\n",a,b,s,4*n,ok?"right":"WRONG",cudaGetErrorString(cudaGetLastError()));return !ok;}
