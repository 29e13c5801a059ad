//! Descriptors of the graph interface: bags of attributes.
//!
//! Owns setting, getting and what a descriptor refers to. A descriptor that another one refers to
//! is kept as it was then, because programs destroy theirs early. What attributes mean is in
//! `graph` and `backend`.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::graph::Graph;
use super::{ATTRIBUTE_TYPE, BAD_PARAM, NOT_FINALIZED, NULL_POINTER, Res};

/// Types of attributes (`cudnnBackendAttributeType_t`).
pub(super) mod kind {
    use std::ffi::c_int;
    pub(crate) const BOOLEAN: c_int = 2;
    pub(crate) const INT64: c_int = 3;
    pub(crate) const FLOAT: c_int = 4;
    pub(crate) const DOUBLE: c_int = 5;
    pub(crate) const DESCRIPTOR: c_int = 15;
    /// Of the last one that is known.
    const LAST: c_int = 29;

    /// Bytes of an element.
    pub(crate) fn bytes(of: c_int) -> Option<usize> {
        Some(match of {
            // A handle, a pointer.
            0 | 6 | INT64 | DOUBLE | DESCRIPTOR => 8,
            BOOLEAN | 24 => 1,
            // A fraction.
            26 => 16,
            // Enumerations, `int32_t` and `float`.
            1..=LAST => 4,
            _ => return None,
        })
    }
}

/// The value of an attribute.
#[derive(Clone)]
enum Value {
    Plain { kind: c_int, bytes: Vec<u8> },
    Descriptors(Vec<Arc<Descriptor>>),
}

/// A descriptor as it is at one time.
#[derive(Clone, Default)]
pub(super) struct Descriptor {
    /// A `cudnnBackendDescriptorType_t`.
    pub kind: c_int,
    pub finalized: bool,
    values: BTreeMap<c_int, Value>,
    /// Of a finalized graph of operations, and of what was made from one.
    pub graph: Option<&'static Graph>,
}

/// What a `cudnnBackendDescriptor_t` points to.
pub(super) struct Slot(pub Arc<Descriptor>);

impl Descriptor {
    /// One of which nothing is set.
    pub(super) fn new(kind: c_int) -> Descriptor {
        Descriptor { kind, ..Descriptor::default() }
    }

    /// The attribute's elements, of one of these types.
    fn plain(&self, name: c_int, kinds: &[c_int]) -> Option<(&[u8], c_int)> {
        match self.values.get(&name)? {
            Value::Plain { kind, bytes } if kinds.contains(kind) => Some((bytes, *kind)),
            _ => None,
        }
    }

    /// Integers of 64 bits.
    pub(super) fn ints(&self, name: c_int) -> Vec<i64> {
        let (bytes, _) = self.plain(name, &[kind::INT64]).unwrap_or_default();
        bytes.as_chunks::<8>().0.iter().map(|eight| i64::from_le_bytes(*eight)).collect()
    }

    /// One of an enumeration, or what it is by default.
    pub(super) fn number(&self, name: c_int) -> Option<i32> {
        match self.values.get(&name)? {
            Value::Plain { bytes, .. } => Some(i32::from_le_bytes(*bytes.first_chunk()?)),
            Value::Descriptors(_) => None,
        }
    }

    /// Whether it is set, and true.
    pub(super) fn is(&self, name: c_int) -> bool {
        self.plain(name, &[kind::BOOLEAN]).is_some_and(|(bytes, _)| bytes.first().is_some_and(|byte| *byte != 0))
    }

    /// A factor, of either precision.
    pub(super) fn real(&self, name: c_int) -> Option<f64> {
        let (bytes, of) = self.plain(name, &[kind::FLOAT, kind::DOUBLE])?;
        match of {
            kind::FLOAT => Some(f64::from(f32::from_le_bytes(*bytes.first_chunk()?))),
            _ => Some(f64::from_le_bytes(*bytes.first_chunk()?)),
        }
    }

    /// Addresses.
    pub(super) fn addresses(&self, name: c_int) -> Vec<u64> {
        let (bytes, _) = self.plain(name, &[0, 6]).unwrap_or_default();
        bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect()
    }

    /// What it refers to.
    pub(super) fn descriptors(&self, name: c_int) -> &[Arc<Descriptor>] {
        match self.values.get(&name) {
            Some(Value::Descriptors(list)) => list,
            _ => &[],
        }
    }

    /// The one that it refers to.
    pub(super) fn descriptor(&self, name: c_int) -> Res<&Arc<Descriptor>> {
        self.descriptors(name).first().ok_or(BAD_PARAM)
    }

    /// Sets an attribute from what the program has.
    ///
    /// # Safety
    /// `from` points to so many elements of the type; descriptors among them are alive.
    pub(super) unsafe fn set(&mut self, name: c_int, of: c_int, count: i64, from: *const c_void) -> Res<()> {
        let count = usize::try_from(count).map_err(|_| BAD_PARAM)?;
        let size = kind::bytes(of).ok_or(ATTRIBUTE_TYPE)?;
        if from.is_null() && count > 0 {
            return Err(NULL_POINTER);
        }
        let value = match of {
            kind::DESCRIPTOR => {
                let slots = from.cast::<*const Slot>();
                // SAFETY: the caller's promise.
                let slot = |at: usize| unsafe { slots.add(at).read().as_ref() };
                let kept = |at: usize| {
                    let descriptor = slot(at).ok_or(NULL_POINTER)?.0.clone();
                    if descriptor.finalized { Ok(descriptor) } else { Err(NOT_FINALIZED) }
                };
                Value::Descriptors((0..count).map(kept).collect::<Res<_>>()?)
            }
            _ => {
                let mut bytes = vec![0; count * size];
                // SAFETY: the caller's promise; nothing is copied where there is no element.
                unsafe { std::ptr::copy(from.cast::<u8>(), bytes.as_mut_ptr(), count * size) };
                Value::Plain { kind: of, bytes }
            }
        };
        self.values.insert(name, value);
        Ok(())
    }

    /// Sets an attribute to integers.
    pub(super) fn put_ints(&mut self, name: c_int, values: &[i64]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.values.insert(name, Value::Plain { kind: kind::INT64, bytes });
    }

    /// Lets it refer to descriptors.
    pub(super) fn put_descriptors(&mut self, name: c_int, list: Vec<Arc<Descriptor>>) {
        self.values.insert(name, Value::Descriptors(list));
    }

    /// Hands an attribute out: as many elements as there is room for, and how many there are. An
    /// attribute that was not set has none.
    ///
    /// # Safety
    /// There is room at `to` for so many elements of the type, and in `found` for a number, or they
    /// are null; descriptors at `to` are alive.
    pub(super) unsafe fn get(&self, name: c_int, of: c_int, room: i64, found: *mut i64, to: *mut c_void) -> Res<()> {
        let size = kind::bytes(of).ok_or(ATTRIBUTE_TYPE)?;
        let room = if to.is_null() { 0 } else { usize::try_from(room).map_err(|_| BAD_PARAM)? };
        let count = match self.values.get(&name) {
            None => 0,
            Some(Value::Plain { kind, bytes }) if *kind == of => {
                let given = room.min(bytes.len() / size);
                // SAFETY: the caller's promise.
                unsafe { std::ptr::copy(bytes.as_ptr(), to.cast::<u8>(), given * size) };
                bytes.len() / size
            }
            Some(Value::Descriptors(list)) if of == kind::DESCRIPTOR => {
                for (at, descriptor) in list.iter().take(room).enumerate() {
                    // SAFETY: the caller's promise.
                    let slot = unsafe { to.cast::<*mut Slot>().add(at).read().as_mut() };
                    slot.ok_or(NULL_POINTER)?.0 = descriptor.clone();
                }
                list.len()
            }
            Some(_) => return Err(ATTRIBUTE_TYPE),
        };
        if !found.is_null() {
            // SAFETY: the caller's promise.
            unsafe { found.write(if room == 0 { count } else { count.min(room) } as i64) };
        }
        Ok(())
    }
}
