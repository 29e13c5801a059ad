//! Rows of [`driver_api!`](crate::driver_api!): memory sets.
//! How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_sets {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_code! { {$($to)*} { $($rows)*

    both   fn cuMemsetD8(dst_device: CUdeviceptr_v1, uc: u8, n: c_uint) [legacy cuMemsetD8];
    both   fn cuMemsetD8_v2(dst_device: CUdeviceptr, uc: u8, n: usize)
        [legacy cuMemsetD8_v2, per_thread cuMemsetD8_v2_ptds];
    both   fn cuMemsetD16(dst_device: CUdeviceptr_v1, us: u16, n: c_uint) [legacy cuMemsetD16];
    both   fn cuMemsetD16_v2(dst_device: CUdeviceptr, us: u16, n: usize)
        [legacy cuMemsetD16_v2, per_thread cuMemsetD16_v2_ptds];
    both   fn cuMemsetD32(dst_device: CUdeviceptr_v1, ui: c_uint, n: c_uint) [legacy cuMemsetD32];
    both   fn cuMemsetD32_v2(dst_device: CUdeviceptr, ui: c_uint, n: usize)
        [legacy cuMemsetD32_v2, per_thread cuMemsetD32_v2_ptds];
    both   fn cuMemsetD2D8(dst_device: CUdeviceptr_v1, dst_pitch: c_uint, uc: u8, width: c_uint, height: c_uint)
        [legacy cuMemsetD2D8];
    both   fn cuMemsetD2D8_v2(dst_device: CUdeviceptr, dst_pitch: usize, uc: u8, width: usize, height: usize)
        [legacy cuMemsetD2D8_v2, per_thread cuMemsetD2D8_v2_ptds];
    both   fn cuMemsetD2D16(dst_device: CUdeviceptr_v1, dst_pitch: c_uint, us: u16, width: c_uint, height: c_uint)
        [legacy cuMemsetD2D16];
    both   fn cuMemsetD2D16_v2(dst_device: CUdeviceptr, dst_pitch: usize, us: u16, width: usize, height: usize)
        [legacy cuMemsetD2D16_v2, per_thread cuMemsetD2D16_v2_ptds];
    both   fn cuMemsetD2D32(dst_device: CUdeviceptr_v1, dst_pitch: c_uint, ui: c_uint, width: c_uint, height: c_uint)
        [legacy cuMemsetD2D32];
    both   fn cuMemsetD2D32_v2(dst_device: CUdeviceptr, dst_pitch: usize, ui: c_uint, width: usize, height: usize)
        [legacy cuMemsetD2D32_v2, per_thread cuMemsetD2D32_v2_ptds];
    after  fn cuMemsetD8Async(dst_device: CUdeviceptr, uc: u8, n: usize, stream: CUstream)
        [legacy cuMemsetD8Async, per_thread cuMemsetD8Async_ptsz];
    after  fn cuMemsetD16Async(dst_device: CUdeviceptr, us: u16, n: usize, stream: CUstream)
        [legacy cuMemsetD16Async, per_thread cuMemsetD16Async_ptsz];
    after  fn cuMemsetD32Async(dst_device: CUdeviceptr, ui: c_uint, n: usize, stream: CUstream)
        [legacy cuMemsetD32Async, per_thread cuMemsetD32Async_ptsz];
    after  fn cuMemsetD2D8Async(
        dst_device: CUdeviceptr, dst_pitch: usize, uc: u8, width: usize, height: usize, stream: CUstream
    ) [legacy cuMemsetD2D8Async, per_thread cuMemsetD2D8Async_ptsz];
    after  fn cuMemsetD2D16Async(
        dst_device: CUdeviceptr, dst_pitch: usize, us: u16, width: usize, height: usize, stream: CUstream
    ) [legacy cuMemsetD2D16Async, per_thread cuMemsetD2D16Async_ptsz];
    after  fn cuMemsetD2D32Async(
        dst_device: CUdeviceptr, dst_pitch: usize, ui: c_uint, width: usize, height: usize, stream: CUstream
    ) [legacy cuMemsetD2D32Async, per_thread cuMemsetD2D32Async_ptsz];

    } } };
}
