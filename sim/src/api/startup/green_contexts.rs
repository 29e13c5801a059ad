//! Resources of devices, and green contexts made of them.
//!
//! How multiprocessors are split follows `cuda.h` (`cuDevSmResourceSplitByCount`): groups of at
//! least the smallest partition, in steps of the alignment of the architecture.

use cuda_sys::*;

use crate::api::startup::devices::MULTIPROCESSORS;
use crate::api::*;
use crate::config;
use crate::handles::handle_of;
use crate::objects::context::{CONTEXTS, Context, DESCRIPTORS, Descriptor, GREEN_CONTEXTS, GreenContext};
use crate::objects::stream::resolve;

/// A warp scheduler's pair, or a cluster: smallest partition and alignment, by compute capability
/// (CUDA C++ Programming Guide, green contexts).
fn granularity(flags: c_uint) -> (u32, u32) {
    let arch = config::get_or_default().arch;
    match (arch >= 90, flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING != 0) {
        (true, true) => (2, 2),
        (true, false) => (8, 8),
        (false, _) if arch >= 80 => (4, 2),
        (false, _) => (2, 2),
    }
}

/// So many multiprocessors.
fn multiprocessors(count: u32) -> CUdevResource {
    let (least, alignment) = granularity(0);
    let mut resource = CUdevResource::zeroed();
    resource.type_ = CU_DEV_RESOURCE_TYPE_SM;
    resource.anon1.sm = CUdevSmResource {
        smCount: count,
        minSmPartitionSize: least,
        smCoscheduledAlignment: alignment,
        flags: 0,
        localityDomainId: 0,
    };
    resource
}

/// The resource of a kind, where `count` multiprocessors are.
fn resource(kind: CUdevResourceType, count: u32, device: u32) -> Result<CUdevResource, CUresult> {
    let mut found = CUdevResource::zeroed();
    found.type_ = kind;
    match kind {
        CU_DEV_RESOURCE_TYPE_SM => return Ok(multiprocessors(count)),
        CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG => {
            found.anon1.wqConfig = CUdevWorkqueueConfigResource {
                device: device as CUdevice,
                wqConcurrencyLimit: 8,
                sharingScope: CU_WORKQUEUE_SCOPE_DEVICE_CTX,
            };
        }
        CU_DEV_RESOURCE_TYPE_WORKQUEUE => {}
        _ => return Err(CUresult::ERROR_INVALID_RESOURCE_TYPE),
    }
    Ok(found)
}

/// The multiprocessors of a resource.
fn count_of(resource: &CUdevResource) -> Result<u32, CUresult> {
    if resource.type_ != CU_DEV_RESOURCE_TYPE_SM {
        return Err(CUresult::ERROR_INVALID_RESOURCE_TYPE);
    }
    // SAFETY: the type says that this member is in use; it is plain data.
    Ok(unsafe { resource.anon1.sm }.smCount)
}

/// The share of multiprocessors that a context has.
fn share(ctx: &Context) -> u32 {
    GreenContext::of(ctx).map_or(MULTIPROCESSORS as u32, |green| green.share.multiprocessors)
}

fn split_by_count(
    result: *mut CUdevResource,
    groups: *mut c_uint,
    input: *const CUdevResource,
    remaining: *mut CUdevResource,
    flags: c_uint,
    least: c_uint,
) -> Res {
    let known = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    let all = count_of(&get(input)?)?;
    if groups.is_null() || flags & !known != 0 || least > all {
        return Err(INVALID);
    }
    let (smallest, alignment) = granularity(flags);
    let each = least.max(smallest).next_multiple_of(alignment);
    let most = all / each;
    if result.is_null() {
        return put(groups, most);
    }
    let made = get(groups)?.min(most);
    for group in 0..made as usize {
        // SAFETY: the C interface: the array holds as many resources as the caller says.
        put(unsafe { result.add(group) }, multiprocessors(each))?;
    }
    put_if(remaining, multiprocessors(all - made * each));
    put(groups, made)
}

fn split(
    result: *mut CUdevResource,
    groups: c_uint,
    input: *const CUdevResource,
    remainder: *mut CUdevResource,
    params: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS,
) -> Res {
    let mut left = count_of(&get(input)?)?;
    let wanted = list(params.cast_const(), groups as usize)?;
    let (smallest, alignment) = granularity(0);
    for (group, wanted) in wanted.iter().enumerate() {
        // Zero asks for as many as there are.
        let count = if wanted.smCount == 0 { left / alignment * alignment } else { wanted.smCount };
        if count < smallest || !count.is_multiple_of(alignment) || count > left {
            return Err(CUresult::ERROR_INVALID_RESOURCE_CONFIGURATION);
        }
        left -= count;
        if !result.is_null() {
            // SAFETY: the C interface: the array holds as many resources as the caller says.
            put(unsafe { result.add(group) }, multiprocessors(count))?;
        }
        // SAFETY: as many parameters were just read from there.
        unsafe { (*params.add(group)).smCount = count };
    }
    put_if(remainder, multiprocessors(left));
    Ok(())
}

abi! {
    call fn [cuDeviceGetDevResource plain](_z, dev: CUdevice, to: *mut CUdevResource, kind: CUdevResourceType) {
        let device = super::contexts::device(dev)?;
        put(to, resource(kind, MULTIPROCESSORS as u32, device)?)
    }
    call fn [cuCtxGetDevResource plain](_z, ctx: CUcontext, to: *mut CUdevResource, kind: CUdevResourceType) {
        let ctx = CONTEXTS.find(ctx.bits()).ok_or(CUresult::ERROR_INVALID_CONTEXT)?;
        put(to, resource(kind, share(&ctx), ctx.device)?)
    }
    call fn [cuGreenCtxGetDevResource plain](_z, ctx: CUgreenCtx, to: *mut CUdevResource, kind: CUdevResourceType) {
        let green = GREEN_CONTEXTS.get(ctx.bits())?;
        put(to, resource(kind, green.share.multiprocessors, green.ctx.device)?)
    }
    call fn [cuStreamGetDevResource legacy, cuStreamGetDevResource_ptsz per_thread](
        zero, stream: CUstream, to: *mut CUdevResource, kind: CUdevResourceType
    ) {
        let ctx = resolve(stream.bits(), zero)?.ctx.clone();
        put(to, resource(kind, share(&ctx), ctx.device)?)
    }
    call fn [cuDevSmResourceSplitByCount plain](
        _z, result: *mut CUdevResource, groups: *mut c_uint, input: *const CUdevResource,
        remaining: *mut CUdevResource, flags: c_uint, least: c_uint
    ) {
        split_by_count(result, groups, input, remaining, flags, least)
    }
    call fn [cuDevSmResourceSplit plain](
        _z, result: *mut CUdevResource, groups: c_uint, input: *const CUdevResource, remainder: *mut CUdevResource,
        flags: c_uint, params: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS
    ) {
        if flags != 0 || groups == 0 {
            return Err(INVALID);
        }
        split(result, groups, input, remainder, params)
    }
    call fn [cuDevResourceGenerateDesc plain](
        _z, desc: *mut CUdevResourceDesc, resources: *mut CUdevResource, count: c_uint
    ) {
        let resources = list(resources.cast_const(), count as usize)?;
        let of_multiprocessors: Vec<&CUdevResource> =
            resources.iter().filter(|resource| resource.type_ == CU_DEV_RESOURCE_TYPE_SM).collect();
        if resources.is_empty() || desc.is_null() {
            return Err(INVALID);
        }
        let mut multiprocessors = 0;
        for resource in &of_multiprocessors {
            multiprocessors += count_of(resource)?;
        }
        if of_multiprocessors.is_empty() {
            multiprocessors = MULTIPROCESSORS as u32;
        }
        if multiprocessors == 0 {
            return Err(CUresult::ERROR_INVALID_RESOURCE_CONFIGURATION);
        }
        let made = std::sync::Arc::new(Descriptor { multiprocessors });
        put(desc, CUdevResourceDesc::from_bits(DESCRIPTORS.insert(made)))
    }
    call fn [cuGreenCtxCreate plain](
        _z, ctx: *mut CUgreenCtx, desc: CUdevResourceDesc, dev: CUdevice, flags: c_uint
    ) {
        let device = super::contexts::device(dev)?;
        let desc = DESCRIPTORS.find(desc.bits()).ok_or(INVALID)?;
        if flags != CU_GREEN_CTX_DEFAULT_STREAM || ctx.is_null() {
            return Err(INVALID);
        }
        put(ctx, CUgreenCtx::from_bits(GreenContext::create(device, *desc)?))
    }
    call fn [cuGreenCtxDestroy plain](_z, ctx: CUgreenCtx) {
        let green = GREEN_CONTEXTS.remove(ctx.bits())?;
        green.ctx.destroy();
        super::contexts::release(green.ctx.device)
    }
    call fn [cuCtxFromGreenCtx plain](_z, ctx: *mut CUcontext, green: CUgreenCtx) {
        put(ctx, CUcontext::from_bits(handle_of(&GREEN_CONTEXTS.get(green.bits())?.ctx)))
    }
    call fn [cuGreenCtxGetId plain](_z, ctx: CUgreenCtx, id: *mut u64) {
        put(id, GREEN_CONTEXTS.get(ctx.bits())?.ctx.id.0)
    }
}
