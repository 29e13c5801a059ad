//! An amount of bytes or of time, as the user writes it: `10GiB`, `30min`.
//!
//! Owns the units. A number without one is refused: nobody would know which is meant.

/// How much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Seconds.
    Seconds(u64),
}

/// Each unit by its name, and what one of it is.
const UNITS: [(&[u8], Amount); 11] = [
    (b"KiB", Amount::Bytes(1 << 10)),
    (b"MiB", Amount::Bytes(1 << 20)),
    (b"GiB", Amount::Bytes(1 << 30)),
    (b"TiB", Amount::Bytes(1 << 40)),
    (b"kB", Amount::Bytes(1000)),
    (b"MB", Amount::Bytes(1_000_000)),
    (b"GB", Amount::Bytes(1_000_000_000)),
    (b"TB", Amount::Bytes(1_000_000_000_000)),
    (b"s", Amount::Seconds(1)),
    (b"min", Amount::Seconds(60)),
    (b"h", Amount::Seconds(3600)),
];

impl Amount {
    /// The amount that a text is: digits and a unit, with nothing else. Nothing at all is no
    /// amount.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, unit) = text.split_at(digits);
        let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok().filter(|n| *n > 0)?;
        let (_, one) = UNITS.iter().find(|(name, _)| *name == unit)?;
        Some(match one {
            Self::Bytes(one) => Self::Bytes(number.checked_mul(*one)?),
            Self::Seconds(one) => Self::Seconds(number.checked_mul(*one)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_is_an_amount_and_nothing_else_is() {
        for (text, amount) in [
            ("10GiB", Amount::Bytes(10 << 30)),
            ("5MB", Amount::Bytes(5_000_000)),
            ("30min", Amount::Seconds(1800)),
            ("2h", Amount::Seconds(7200)),
        ] {
            assert_eq!(Amount::parse(text.as_bytes()), Some(amount), "{text}");
        }
        for text in ["", "10", "GiB", "10 GiB", "0s", "1.5h", "-1s", "10gib", "99999999999TiB", "30minutes"] {
            assert_eq!(Amount::parse(text.as_bytes()), None, "{text}");
        }
    }
}
