//! What a stream waits for in memory: a word, and how its value is compared.

use trace::{Op, WaitCompare};

/// How a wait compares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// The comparison.
    pub(crate) compare: WaitCompare,
    /// What is compared with.
    pub(crate) value: u64,
    /// 4 or 8.
    pub(crate) width: u8,
}

impl Condition {
    /// Whether a value in memory satisfies it.
    pub(crate) fn holds(&self, found: u64) -> bool {
        if self.width == 4 {
            let (found, value) = (found as u32, self.value as u32);
            match self.compare {
                WaitCompare::GreaterEqual => found.wrapping_sub(value) as i32 >= 0,
                WaitCompare::Equal => found == value,
                WaitCompare::And => found & value != 0,
                WaitCompare::Nor => !(found | value) != 0,
            }
        } else {
            match self.compare {
                WaitCompare::GreaterEqual => found.wrapping_sub(self.value) as i64 >= 0,
                WaitCompare::Equal => found == self.value,
                WaitCompare::And => found & self.value != 0,
                WaitCompare::Nor => !(found | self.value) != 0,
            }
        }
    }
}

/// A word in memory that a stream waits for.
#[derive(Clone, Copy, Debug)]
pub struct AwaitedWord {
    /// Its address.
    pub address: u64,
    pub(crate) condition: Condition,
}

impl AwaitedWord {
    /// What an op of a stream waits for, if it waits for a value.
    pub fn of(op: &Op<'_>) -> Option<Self> {
        match *op {
            Op::WaitValue { address, value, width, compare, .. } => {
                Some(Self { address, condition: Condition { compare, value, width } })
            }
            _ => None,
        }
    }

    /// Bytes that are compared: 4 or 8.
    pub fn width(&self) -> u8 {
        self.condition.width
    }

    /// Whether this value ends the wait.
    pub fn is_met_by(&self, found: u64) -> bool {
        self.condition.holds(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_as_the_hardware_does() {
        let c = |compare, value, width| Condition { compare, value, width };
        use WaitCompare::{And, Equal, GreaterEqual, Nor};
        assert!(c(GreaterEqual, 0xffff_fff0, 4).holds(3), "the difference wraps");
        assert!(!c(GreaterEqual, 3, 4).holds(0xffff_fff0));
        assert!(c(GreaterEqual, 0xffff_fff0, 8).holds(0xffff_fff0));
        assert!(!c(GreaterEqual, 0xffff_fff0, 8).holds(3));
        assert!(c(Equal, 0x1_0000_0005, 4).holds(5), "the upper half does not count");
        assert!(c(And, 6, 4).holds(2) && !c(And, 6, 4).holds(9));
        assert!(!c(Nor, 0xffff_0000, 4).holds(0x0000_ffff) && c(Nor, 0, 4).holds(1));
    }
}
