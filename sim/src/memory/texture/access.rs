//! Answers texture and surface instructions: what the opcode asks of an object, and with which
//! coordinates. Both front ends of the interpreter name instructions as PTX does; objects and their
//! texels are in `texture`, sampling in `sampling`.
//!
//! PTX ISA, "Texture Instructions" and "Surface Instructions": the order of the operands. What is
//! not simulated is refused by its name.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use cuda_sys::*;

use crate::interp::{AccessKind, TextureRequest, WarpTexture};
use crate::memory;
use crate::memory::array::{NOT_SIMULATED, channel_bytes};
use crate::memory::texture::sampling::Sample;
use crate::memory::texture::{Image, RETIRED, TEXTURE_OBJECTS, TextureObject, noted, warp};

/// What an instruction answers: raw bits of four elements. None: it is not simulated.
pub(super) type Answer = Result<Option<[u64; 4]>, String>;

/// Which coordinates an instruction has: of a line, an area or a room, of a direction (cube), and
/// before them the layer.
#[derive(Clone, Copy)]
pub(super) struct Geometry {
    pub(crate) axes: usize,
    pub(crate) cube: bool,
    pub(crate) layered: bool,
}

impl Geometry {
    pub(super) fn of(parts: &[&str]) -> Option<Geometry> {
        let (axes, cube, layered) = parts.iter().find_map(|part| {
            Some(match *part {
                "1d" => (1, false, false),
                "2d" => (2, false, false),
                "3d" => (3, false, false),
                "a1d" => (1, false, true),
                "a2d" => (2, false, true),
                "cube" => (3, true, false),
                "acube" => (3, true, true),
                _ => return None,
            })
        })?;
        Some(Geometry { axes, cube, layered })
    }

    /// How many coordinates an instruction gives: vectors have one, two or four elements.
    pub(super) fn given(self) -> usize {
        match self.axes + usize::from(self.layered) {
            3 => 4,
            count => count,
        }
    }
}

/// The object of a handle.
fn object_of(handle: u64) -> Result<Arc<TextureObject>, String> {
    let object = TEXTURE_OBJECTS.find(handle as usize).or_else(|| RETIRED.find(handle));
    object.ok_or_else(|| "not a texture or surface object".to_owned())
}

/// The parts of an opcode, and how many they are.
pub(super) fn names_of(opcode: &str) -> ([&str; 12], usize) {
    let mut names = [""; 12];
    let mut count = 0;
    for (name, part) in names.iter_mut().zip(opcode.split('.')) {
        *name = part;
        count += 1;
    }
    (names, count)
}

/// Answers an instruction for lanes of a warp. A lane that it says no to comes with the reason.
pub(crate) fn serve_warp(warp: &mut WarpTexture<'_>) -> Result<(), (u32, String)> {
    // What is sampled for all lanes at once is not noted.
    if !noted::is_wanted()
        && let Some(handle) = warp.one_object()
        && let Ok(object) = object_of(handle)
        && warp::serve(&object, warp)
    {
        return Ok(());
    }
    warp.lane_by_lane(serve)
}

/// Answers an instruction: the opcode names the geometry, the type of the coordinates and the width
/// of surface accesses.
pub(crate) fn serve(request: &TextureRequest<'_>) -> Result<[u64; 4], String> {
    let object = object_of(request.object)?;
    let (names, count) = names_of(request.opcode);
    let parts = &names[..count];
    let done = match (Geometry::of(parts), parts[0]) {
        (Some(geometry), "tex") => read(&object, geometry, parts, request),
        (Some(geometry), "tld4") if object.shows_base() => gather(object.base(), geometry, parts, request),
        (Some(geometry), "suld" | "sust" | "sured") if !geometry.cube => {
            surface(object.base(), geometry, parts, request)
        }
        (_, "txq" | "suq") => Ok(property(object.base(), parts)),
        _ => Ok(None),
    };
    done?.ok_or_else(|| {
        let why = format!("{} {NOT_SIMULATED}", request.opcode);
        crate::status::complain(&why);
        why
    })
}

/// Samples at the coordinates of the request.
fn sample(image: &Image, geometry: Geometry, request: &TextureRequest<'_>, what: Sample) -> Answer {
    let first = usize::from(geometry.layered);
    let Some(given) = request.coordinates.get(first..first + geometry.axes) else { return Ok(None) };
    let layer = if geometry.layered { request.coordinates[0] } else { 0 };
    let mut at = [0f32; 3];
    for (to, &bits) in at.iter_mut().zip(given) {
        *to = f32::from_bits(bits);
    }
    let sampled = if geometry.cube {
        image.sample_cube(at, layer, what)
    } else {
        image.sample(&at[..geometry.axes], geometry.layered.then_some(layer), what)
    };
    sampled.map(Some)
}

/// `tex`.
fn read(object: &TextureObject, geometry: Geometry, parts: &[&str], request: &TextureRequest<'_>) -> Answer {
    let first = usize::from(geometry.layered);
    let Some(given) = request.coordinates.get(first..first + geometry.axes) else { return Ok(None) };
    // Behind the coordinates: the level or gradients. Gradients may spread an anisotropic sample.
    // Offsets would stand there too.
    let behind = request.coordinates.get(geometry.given()..).unwrap_or_default();
    let lod = match (parts.get(1), behind) {
        (Some(&"level"), &[level]) => Some(f32::from_bits(level)),
        (Some(&"grad"), _) if object.texture.maxAnisotropy > 1 => None,
        // Which of a cube's axes they count along depends on the face.
        (Some(&"grad"), _) if geometry.cube && object.images.len() > 1 => None,
        (Some(&"grad"), gradients) => object.lod_of(geometry.axes, gradients),
        (_, []) => object.shows_base().then_some(0.0),
        _ => None,
    };
    let Some(lod) = lod else { return Ok(None) };
    match parts.last() {
        Some(&"s32") if !geometry.cube && behind.iter().all(|&level| level == 0) => {
            let mut at: Vec<i64> = given.iter().map(|&bits| i64::from(bits as i32)).collect();
            if geometry.layered {
                at.resize(2, 0);
                at.push(object.base().layer(request.coordinates[0], 1) as i64);
            }
            object.base().fetch(&at).map(Some)
        }
        Some(&"f32") => object.at_level(lod, |image| sample(image, geometry, request, Sample::Filtered)),
        _ => Ok(None),
    }
}

/// `tld4`: one component of four texels.
fn gather(image: &Image, geometry: Geometry, parts: &[&str], request: &TextureRequest<'_>) -> Answer {
    let component = match parts.get(1) {
        Some(&"r") => 0,
        Some(&"g") => 1,
        Some(&"b") => 2,
        Some(&"a") => 3,
        _ => return Ok(None),
    };
    let areas = geometry.cube || geometry.axes == 2;
    if !areas || request.coordinates.len() > geometry.given() {
        return Ok(None);
    }
    sample(image, geometry, request, Sample::Component(component))
}

/// `txq`, `suq`: what is known of an object's extents.
fn property(image: &Image, parts: &[&str]) -> Option<[u64; 4]> {
    let [width, height, depth] = image.view.size;
    let flat = !image.layered;
    let found = match *parts.get(1)? {
        "width" => width,
        "height" if !image.view.line => height,
        "depth" if flat && depth > 1 => depth,
        _ => return None,
    };
    Some([found, 0, 0, 0])
}

/// `suld`, `sust`, `sured`.
fn surface(image: &Image, geometry: Geometry, parts: &[&str], request: &TextureRequest<'_>) -> Answer {
    let first = usize::from(geometry.layered);
    let Some(given) = request.coordinates.get(first..first + geometry.axes) else { return Ok(None) };
    let formatted = parts.get(1) == Some(&"p");
    // What `.p` converts between is known where nothing is converted.
    if formatted && (parts[0] == "suld" || channel_bytes(image.view.format) != Some(4)) {
        return Ok(None);
    }
    let width = parts.iter().find_map(|part| match *part {
        "b8" => Some(1u64),
        "b16" => Some(2),
        "b32" | "u32" | "s32" => Some(4),
        "b64" | "u64" | "s64" => Some(8),
        _ => None,
    });
    let Some(width) = width else { return Ok(None) };
    let count = match () {
        () if formatted && parts[0] == "sust" => image.view.channels,
        () if parts.contains(&"v4") => 4,
        () if parts.contains(&"v2") => 2,
        () => 1,
    };
    let mut whole: Vec<i64> = given.iter().map(|&bits| i64::from(bits as i32)).collect();
    if formatted {
        whole[0] *= image.texel_bytes() as i64;
    }
    if geometry.layered {
        whole.resize(2, 0);
        whole.push(i64::from(request.coordinates[0] as i32));
    }
    let mut out = [0u64; 4];
    let Some(at) = image.surface_address(&whole, width * count, parts.contains(&"clamp")) else {
        return if parts.contains(&"trap") { Err("outside of the surface".into()) } else { Ok(Some(out)) };
    };
    if parts[0] == "sured" {
        let value = request.values.first().copied().unwrap_or(0);
        return reduce(image, at, parts, value);
    }
    noted::note(if parts[0] == "suld" { AccessKind::Read } else { AccessKind::Write }, at, width * count);
    let space = memory::get().space;
    for (n, out) in out.iter_mut().enumerate().take(count as usize) {
        let at = at + n as u64 * width;
        let mut bytes = [0u8; 8];
        let done = if parts[0] == "suld" {
            let done = space.read(at, &mut bytes[..width as usize]);
            *out = u64::from_le_bytes(bytes);
            done
        } else {
            let value = request.values.get(n).copied().unwrap_or(0).to_le_bytes();
            space.write(at, &value[..width as usize])
        };
        done.map_err(|fault| format!("no memory at 0x{:x}", fault.addr))?;
    }
    Ok(Some(out))
}

/// `sured`: one atomic operation on the bytes at an address.
fn reduce(image: &Image, at: u64, parts: &[&str], value: u64) -> Answer {
    let found = parts.iter().find(|part| matches!(**part, "add" | "min" | "max" | "and" | "or" | "xor"));
    let Some(&op) = found else { return Ok(None) };
    // `.b32` says only how many bits: the texels' format says the rest where it matters.
    let ty = match parts.iter().find(|part| matches!(**part, "u32" | "s32" | "u64" | "s64" | "b32")) {
        Some(&"b32") if matches!(op, "and" | "or" | "xor") => "u32",
        Some(&"b32") if image.view.format == CU_AD_FORMAT_SIGNED_INT32 => "s32",
        Some(&"b32") if image.view.format == CU_AD_FORMAT_UNSIGNED_INT32 => "u32",
        Some(&ty) => ty,
        None => return Ok(None),
    };
    let bytes = if ty.ends_with("64") { 8 } else { 4 };
    if !at.is_multiple_of(bytes) {
        return Err(format!("0x{at:x} is not a multiple of {bytes}"));
    }
    noted::note(AccessKind::Atomic, at, bytes);
    let view = memory::get().space.view(at, bytes, true);
    let place = view.map_err(|fault| format!("no memory at 0x{:x}", fault.addr))?;
    /// One operation, on an atomic of that type.
    macro_rules! apply {
        ($atomic:ty, $value:expr) => {{
            // SAFETY: these bytes are mapped and aligned, and kernels access them atomically.
            let cell = unsafe { <$atomic>::from_ptr(place.cast()) };
            let value = $value;
            match op {
                "add" => cell.fetch_add(value, Ordering::Relaxed),
                "min" => cell.fetch_min(value, Ordering::Relaxed),
                "max" => cell.fetch_max(value, Ordering::Relaxed),
                "and" => cell.fetch_and(value, Ordering::Relaxed),
                "or" => cell.fetch_or(value, Ordering::Relaxed),
                _ => cell.fetch_xor(value, Ordering::Relaxed),
            };
        }};
    }
    match ty {
        "u32" => apply!(AtomicU32, value as u32),
        "s32" => apply!(AtomicI32, value as i32),
        "u64" => apply!(AtomicU64, value),
        "s64" => apply!(AtomicI64, value as i64),
        _ => return Ok(None),
    }
    Ok(Some([0; 4]))
}
