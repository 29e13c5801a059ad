//! The ops: what the trace stores of a call.
//!
//! Owns the table of ops with their tags and fields, and what is generated from it: [`Op`], its
//! encoding and decoding. An op says what the program asked for, in CUDA's terms. The crate `order`
//! and the analyzer work out what follows from it (order, accesses, races).
//!
//! Two families share one numbering: *definitions* (tags below 32: stacks, modules, images,
//! kernels, names), stored once and referenced by id, and *ops* proper. A definition always
//! precedes the first op that refers to it.
//!
//! # The table
//!
//! One row an op: its documentation, its tag, its name and its fields in the order of their
//! encoding.
//!
//! ```text
//! /// A stream was destroyed. Its pending work goes on; this is no synchronisation.
//! 35 StreamDestroy {
//!     /// Which.
//!     stream: StreamId,
//! }
//! ```
//!
//! The rows stand in one file for each kind of op: `definitions`, `order_ops` (contexts, streams,
//! events, host synchronisation; tags from 32), `memory_ops` (from 64), `work_ops` (from 96),
//! `graph_ops` (from 128) and `host_ops` (from 160). To add an op, write one row with a tag that is
//! free in the file of its kind; when a row may change, see the bump rule in the documentation of
//! the crate. Each file is a macro that adds its rows to those it is given and hands them to the
//! next; the last hands all of them to `op_enum`. Two rows with one tag do not compile.
//!
//! The types of fields are in [`kinds`] (small enumerations), [`items`] (items of lists, bits of
//! flags), [`region`] (the bytes that a copy touches) and [`launch_shape`].

pub mod file_identity;
pub mod inside;
pub mod items;
pub mod kinds;
pub mod launch_shape;
pub mod region;

use crate::codec::{DecodeError, Decoder, Encoder, Field, List, Text};
use crate::id::*;
use crate::op::inside::{InsideFrame, InsideRace, InsideSide};
use crate::op::items::*;
use crate::op::kinds::*;
use crate::op::launch_shape::LaunchShape;
use crate::op::region::Region;

/// The lowest tag of an op that is no definition.
pub const FIRST_OP: u16 = 32;

macro_rules! op_enum {
    ($($(#[$doc:meta])* $tag:literal $name:ident { $($(#[$fdoc:meta])* $field:ident : $type:ty,)* })*) => {
        /// One op. Variants are append-only; tags are never reused.
        #[derive(Clone, Copy, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub enum Op<'a> {
            $($(#[$doc])* $name { $($(#[$fdoc])* $field: $type,)* },)*
        }

        /// The tags, under the names of the ops.
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod tag {
            $(pub const $name: u16 = $tag;)*
        }

        impl core::fmt::Debug for Op<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $(Self::$name { $($field,)* } => {
                        let mut to = f.debug_struct(stringify!($name));
                        $(Field::show($field, stringify!($field), &mut to);)*
                        to.finish()
                    })*
                }
            }
        }

        impl<'a> Op<'a> {
            /// The number of this kind of op in the encoding.
            pub fn tag(&self) -> u16 {
                match self { $(Self::$name { .. } => $tag,)* }
            }

            /// Whether it defines what later ops refer to by id, and is none of the program's
            /// calls.
            #[inline]
            pub fn is_definition(&self) -> bool {
                self.tag() < FIRST_OP
            }

            /// The name of this kind of op, as `streamsan dump` prints it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$name { .. } => stringify!($name),)* }
            }

            /// Appends the fields (not the tag).
            pub fn encode(&self, to: &mut Encoder<'_>) {
                self.put(&mut [0; 2], to);
            }

            /// As [`Op::encode`], and the tag, at one jump; inlined, so that a buffer of known
            /// length is not measured at each field.
            #[inline(always)]
            pub(crate) fn put(&self, tag: &mut [u8; 2], to: &mut Encoder<'_>) {
                match self {
                    $(Self::$name { $($field,)* } => {
                        *tag = u16::to_le_bytes($tag);
                        $(Field::put($field, to);)*
                        let _ = &to;
                    })*
                }
            }

            /// Number of bytes that [`Op::encode`] appends.
            pub fn encoded_len(&self) -> usize {
                match self { $(Self::$name { $($field,)* } => 0 $(+ Field::encoded_len($field))*,)* }
            }

            /// Reads the fields of the op with this tag.
            #[deny(unreachable_patterns, reason = "two rows with one tag")]
            pub fn decode(tag: u16, bytes: &'a [u8]) -> Result<Self, DecodeError> {
                let mut from = Decoder::new(bytes);
                let _ = &mut from;
                match tag {
                    $($tag => Ok(Self::$name { $($field: Field::get(&mut from)?,)* }),)*
                    other => Err(DecodeError::UnknownTag(other)),
                }
            }
        }
    };
}

#[macro_use]
mod definitions;
#[macro_use]
mod order_ops;
#[macro_use]
mod memory_ops;
#[macro_use]
mod work_ops;
#[macro_use]
mod graph_ops;
#[macro_use]
mod host_ops;

definitions! {}
