//! Names of GPU architectures (`sm_90a`), and the generation of instruction encoding that each one
//! uses.
//!
//! Does not decide which image a driver loads (see `image::select`).

use std::fmt;
use std::str::FromStr;

/// The suffix of an architecture name: what other devices code built for it may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Variant {
    /// `sm_90`: runs on later minor versions of the same major version.
    #[default]
    Base,
    /// `sm_100f`: runs on the devices of one family.
    Family,
    /// `sm_90a`: runs on exactly this device.
    Exact,
}

/// An architecture name such as `sm_90a`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    /// Major times ten plus minor: 90 for compute capability 9.0, 120 for 12.0.
    pub sm: u16,
    /// The suffix.
    pub variant: Variant,
}

impl Arch {
    /// The plain architecture `sm_<sm>`.
    #[must_use]
    pub const fn new(sm: u16) -> Arch {
        Arch { sm, variant: Variant::Base }
    }

    /// Major compute capability (9 for `sm_90`).
    #[must_use]
    pub(crate) const fn major(self) -> u16 {
        self.sm / 10
    }

    /// The encoding generation, or `None` when no decoder exists for this architecture.
    #[must_use]
    pub const fn generation(self) -> Option<Generation> {
        match self.sm {
            70..=74 => Some(Generation::Volta),
            75..=79 => Some(Generation::Turing),
            80..=89 => Some(Generation::Ampere),
            90..=99 => Some(Generation::Hopper),
            107 => Some(Generation::BlackwellConsumer),
            100..=119 => Some(Generation::Blackwell),
            120..=129 => Some(Generation::BlackwellConsumer),
            _ => None,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.variant {
            Variant::Base => "",
            Variant::Family => "f",
            Variant::Exact => "a",
        };
        write!(f, "sm_{}{suffix}", self.sm)
    }
}

impl fmt::Debug for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no architecture name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an architecture name: {0:?}")]
pub struct ParseArchError(String);

impl FromStr for Arch {
    type Err = ParseArchError;

    /// Reads `sm_90a`, `compute_90`, `90` and the like.
    fn from_str(text: &str) -> Result<Arch, ParseArchError> {
        let bad = || ParseArchError(text.chars().take(32).collect());
        let rest = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).unwrap_or(text);
        let (digits, variant) = match rest.as_bytes().last() {
            Some(b'a') => (&rest[..rest.len() - 1], Variant::Exact),
            Some(b'f') => (&rest[..rest.len() - 1], Variant::Family),
            _ => (rest, Variant::Base),
        };
        if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        Ok(Arch { sm: digits.parse().map_err(|_| bad())?, variant })
    }
}

/// Architectures that share one instruction encoding. The order is that of time: comparisons are
/// meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// sm_70, sm_72: like Turing, without a uniform datapath.
    Volta,
    /// sm_75.
    Turing,
    /// sm_80 to sm_89.
    Ampere,
    /// sm_90.
    Hopper,
    /// sm_100 to sm_110.
    Blackwell,
    /// sm_120, sm_121.
    BlackwellConsumer,
}

impl Generation {
    /// Byte offset in constant bank 0 where the kernel parameters start. A cubin states it too
    /// (`EIATTR_PARAM_CBANK`), and that statement wins.
    #[must_use]
    pub(crate) const fn param_base(self) -> u32 {
        match self {
            Generation::Volta | Generation::Turing | Generation::Ampere => 0x160,
            Generation::Hopper => 0x210,
            Generation::Blackwell | Generation::BlackwellConsumer => 0x380,
        }
    }

    /// What the driver writes into constant bank 0 below the parameters, as byte offsets
    /// (measured).
    #[must_use]
    pub const fn bank0(self) -> Bank0 {
        match self {
            Generation::Volta | Generation::Turing => {
                Bank0 { block_dim: 0x0, grid_dim: 0xc, stack_pointer: 0x28, global_descriptor: None }
            }
            Generation::Ampere => {
                Bank0 { block_dim: 0x0, grid_dim: 0xc, stack_pointer: 0x28, global_descriptor: Some(0x118) }
            }
            Generation::Hopper => {
                Bank0 { block_dim: 0x0, grid_dim: 0xc, stack_pointer: 0x28, global_descriptor: Some(0x208) }
            }
            Generation::Blackwell | Generation::BlackwellConsumer => {
                Bank0 { block_dim: 0x360, grid_dim: 0x370, stack_pointer: 0x37c, global_descriptor: Some(0x358) }
            }
        }
    }
}

/// Byte offsets of the words that the driver keeps in constant bank 0 below the kernel parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank0 {
    /// `blockDim.x`; `.y` and `.z` follow, 4 bytes each.
    pub block_dim: u32,
    /// `gridDim.x`; `.y` and `.z` follow, 4 bytes each.
    pub grid_dim: u32,
    /// The first value of the stack pointer R1.
    pub stack_pointer: u32,
    /// The 8-byte descriptor that global accesses name; it is no part of an address.
    pub(crate) global_descriptor: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["sm_75", "sm_90a", "sm_100f", "sm_120"] {
            assert_eq!(name.parse::<Arch>().unwrap().to_string(), name);
        }
        assert_eq!("compute_86".parse::<Arch>().unwrap(), Arch::new(86));
        for bad in ["", "sm_", "sm_a", "sm_9 0", "sm_1000", "sm_-1", "a", "sm_é"] {
            assert!(bad.parse::<Arch>().is_err(), "{bad}");
        }
    }
}
