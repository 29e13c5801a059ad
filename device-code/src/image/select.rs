//! Which entry of an image a driver takes for a device.
//!
//! Owns the rule, which follows NVIDIA's documentation of binary compatibility. A cubin runs on
//! devices of its own major version and the same or a later minor version. `a` variants run on
//! exactly their device, `f` variants on their family. A cubin wins over PTX. Of several PTX texts,
//! the newest that is not newer than the device is compiled.

use super::fatbin::{Entry, EntryKind};
use crate::arch::{Arch, Variant};

/// True when code made for `code` runs on a device `device` (whose own variant is ignored: devices
/// have all features of their architecture).
#[must_use]
pub fn runs_on(kind: EntryKind, code: Arch, device: Arch) -> bool {
    match (code.variant, kind) {
        (Variant::Exact, _) => code.sm == device.sm,
        (Variant::Family, EntryKind::Cubin) => family(code.sm) == family(device.sm) && code.sm <= device.sm,
        (Variant::Family, EntryKind::Ptx) => family(code.sm) == family(device.sm) && code.sm <= device.sm,
        (Variant::Base, EntryKind::Cubin) => code.major() == device.major() && code.sm <= device.sm,
        (Variant::Base, EntryKind::Ptx) => code.sm <= device.sm,
    }
}

/// Families of devices, by the first of them: 10.0 and 10.3; 11.0 (once named 10.1); 12.0 and 12.1.
fn family(sm: u16) -> u16 {
    match sm {
        100 | 103 => 100,
        101 | 110 => 110,
        120 | 121 => 120,
        other => other,
    }
}

pub(super) fn choose<'a, 'd: 'a>(
    entries: impl IntoIterator<Item = &'a Entry<'d>>,
    device: Arch,
) -> Option<&'a Entry<'d>> {
    entries
        .into_iter()
        .enumerate()
        .filter(|(_, e)| runs_on(e.kind, e.arch, device))
        // Cubins first; then the newest; then the most specific; of equals the first in the file.
        .max_by_key(|(n, e)| (e.kind == EntryKind::Cubin, e.arch.sm, e.arch.variant, std::cmp::Reverse(*n)))
        .map(|(_, e)| e)
}

/// The `.target` of PTX text; `sm_0` when it names none.
pub(super) fn ptx_target(text: &[u8]) -> Arch {
    let none = Arch::new(0);
    let Some(at) = text.windows(7).position(|w| w == b".target") else { return none };
    let rest = &text[at + 7..];
    let start = rest.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(rest.len());
    let rest = &rest[start..];
    let end = rest.iter().position(|b| b.is_ascii_whitespace() || *b == b',').unwrap_or(rest.len());
    std::str::from_utf8(&rest[..end]).ok().and_then(|t| t.parse().ok()).unwrap_or(none)
}
