//! Rows of [`driver_api!`](crate::driver_api!): launches, host functions, stream memory operations
//! and external semaphores. How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_launches {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_copies! { {$($to)*} { $($rows)*

    both   fn cuStreamAddCallback(stream: CUstream, callback: CUstreamCallback, user_data: *mut c_void, flags: c_uint)
        [legacy cuStreamAddCallback, per_thread cuStreamAddCallback_ptsz];
    after  fn cuImportExternalSemaphore(
        ext_sem_out: *mut CUexternalSemaphore, sem_handle_desc: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC
    ) [plain cuImportExternalSemaphore];
    after  fn cuSignalExternalSemaphoresAsync(
        ext_sem_array: *const CUexternalSemaphore, params_array: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        num_ext_sems: c_uint, stream: CUstream
    ) [legacy cuSignalExternalSemaphoresAsync, per_thread cuSignalExternalSemaphoresAsync_ptsz]
        partly "ordered with waits of this process; other APIs are not seen";
    after  fn cuWaitExternalSemaphoresAsync(
        ext_sem_array: *const CUexternalSemaphore, params_array: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        num_ext_sems: c_uint, stream: CUstream
    ) [legacy cuWaitExternalSemaphoresAsync, per_thread cuWaitExternalSemaphoresAsync_ptsz]
        partly "ordered with signals of this process; other APIs are not seen";
    both   fn cuDestroyExternalSemaphore(ext_sem: CUexternalSemaphore) [plain cuDestroyExternalSemaphore];
    after  fn cuStreamWaitValue32(stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint)
        [legacy cuStreamWaitValue32, per_thread cuStreamWaitValue32_ptsz];
    after  fn cuStreamWaitValue32_v2(stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint)
        [legacy cuStreamWaitValue32_v2, per_thread cuStreamWaitValue32_v2_ptsz];
    after  fn cuStreamWaitValue64(stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint)
        [legacy cuStreamWaitValue64, per_thread cuStreamWaitValue64_ptsz];
    after  fn cuStreamWaitValue64_v2(stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint)
        [legacy cuStreamWaitValue64_v2, per_thread cuStreamWaitValue64_v2_ptsz];
    after  fn cuStreamWriteValue32(stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint)
        [legacy cuStreamWriteValue32, per_thread cuStreamWriteValue32_ptsz];
    after  fn cuStreamWriteValue32_v2(stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint)
        [legacy cuStreamWriteValue32_v2, per_thread cuStreamWriteValue32_v2_ptsz];
    after  fn cuStreamWriteValue64(stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint)
        [legacy cuStreamWriteValue64, per_thread cuStreamWriteValue64_ptsz];
    after  fn cuStreamWriteValue64_v2(stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint)
        [legacy cuStreamWriteValue64_v2, per_thread cuStreamWriteValue64_v2_ptsz];
    after  fn cuStreamBatchMemOp(
        stream: CUstream, count: c_uint, param_array: *mut CUstreamBatchMemOpParams, flags: c_uint
    ) [legacy cuStreamBatchMemOp, per_thread cuStreamBatchMemOp_ptsz];
    after  fn cuStreamBatchMemOp_v2(
        stream: CUstream, count: c_uint, param_array: *mut CUstreamBatchMemOpParams, flags: c_uint
    ) [legacy cuStreamBatchMemOp_v2, per_thread cuStreamBatchMemOp_v2_ptsz];
    after  fn cuLaunchKernel(
        function: CUfunction, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint,
        block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, stream: CUstream,
        kernel_params: *mut *mut c_void, extra: *mut *mut c_void
    ) [legacy cuLaunchKernel, per_thread cuLaunchKernel_ptsz];
    after  fn cuLaunchKernelEx(
        config: *const CUlaunchConfig, function: CUfunction, kernel_params: *mut *mut c_void, extra: *mut *mut c_void
    ) [legacy cuLaunchKernelEx, per_thread cuLaunchKernelEx_ptsz];
    after  fn cuLaunchCooperativeKernel(
        function: CUfunction, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint,
        block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, stream: CUstream,
        kernel_params: *mut *mut c_void
    ) [legacy cuLaunchCooperativeKernel, per_thread cuLaunchCooperativeKernel_ptsz];
    both   fn cuLaunchHostFunc(stream: CUstream, callback: CUhostFn, user_data: *mut c_void)
        [legacy cuLaunchHostFunc, per_thread cuLaunchHostFunc_ptsz];
    both   fn cuLaunchHostFunc_v2(stream: CUstream, callback: CUhostFn, user_data: *mut c_void, sync_mode: c_uint)
        [legacy cuLaunchHostFunc_v2, per_thread cuLaunchHostFunc_v2_ptsz];
    after  fn cuFuncSetBlockShape(function: CUfunction, x: c_int, y: c_int, z: c_int) [plain cuFuncSetBlockShape] no_effect;
    after  fn cuFuncSetSharedSize(function: CUfunction, bytes: c_uint) [plain cuFuncSetSharedSize] no_effect;
    after  fn cuParamSetSize(function: CUfunction, byte_count: c_uint) [plain cuParamSetSize] no_effect;
    after  fn cuParamSeti(function: CUfunction, offset: c_int, value: c_uint) [plain cuParamSeti] no_effect;
    after  fn cuParamSetf(function: CUfunction, offset: c_int, value: f32) [plain cuParamSetf] no_effect;
    after  fn cuParamSetv(function: CUfunction, offset: c_int, ptr: *mut c_void, byte_count: c_uint)
        [plain cuParamSetv] no_effect;
    after  fn cuLaunch(function: CUfunction) [legacy cuLaunch] not_modelled;
    after  fn cuLaunchGrid(function: CUfunction, grid_width: c_int, grid_height: c_int) [legacy cuLaunchGrid] not_modelled;
    after  fn cuLaunchGridAsync(function: CUfunction, grid_width: c_int, grid_height: c_int, stream: CUstream)
        [legacy cuLaunchGridAsync]
        partly "ordered in its stream; its parameters are not known";
    after  fn cuLaunchCooperativeKernelMultiDevice(
        launch_params_list: *mut CUDA_LAUNCH_PARAMS, num_devices: c_uint, flags: c_uint
    ) [plain cuLaunchCooperativeKernelMultiDevice];
    after  fn cuParamSetTexRef(function: CUfunction, tex_unit: c_int, tex_ref: CUtexref) [plain cuParamSetTexRef] no_effect;

    } } };
}
