//! Formats device-side printf: C's conversions over a packed argument buffer.

use super::warp::Warp;

/// One conversion of a format string.
#[derive(Debug, Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
    kind: u8,
}

/// Formats with the arguments at generic address `arguments`. Returns the text and the number of
/// arguments.
pub(crate) fn format(w: &mut Warp<'_>, format: &[u8], arguments: u64, lane: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    let mut at = arguments;
    let mut count = 0;
    let mut rest = format;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        if rest.first() == Some(&b'%') {
            out.push(b'%');
            rest = &rest[1..];
            continue;
        }
        let mut take = |size: u64, w: &mut Warp<'_>| {
            at = at.next_multiple_of(size);
            let bytes = w.read_bytes(at, size as u32, lane).unwrap_or_default();
            at += size;
            count += 1;
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(&bytes);
            u64::from_le_bytes(value)
        };
        let mut conversion = Conversion::default();
        let mut longs = 0;
        loop {
            let Some((&byte, tail)) = rest.split_first() else { return (out, count) };
            rest = tail;
            match byte {
                b'-' => conversion.left = true,
                b'+' => conversion.plus = true,
                b' ' => conversion.space = true,
                b'#' => conversion.alternate = true,
                b'0' if conversion.precision.is_none() && conversion.width == 0 => conversion.zero = true,
                b'0'..=b'9' => {
                    let digit = usize::from(byte - b'0');
                    let number = conversion.precision.as_mut().unwrap_or(&mut conversion.width);
                    *number = (*number * 10 + digit).min(4096);
                }
                b'.' => conversion.precision = Some(0),
                b'*' => {
                    let value = take(4, w) as i32;
                    match &mut conversion.precision {
                        Some(precision) => *precision = value.clamp(0, 4096) as usize,
                        None => {
                            conversion.left |= value < 0;
                            conversion.width = value.unsigned_abs().min(4096) as usize;
                        }
                    }
                }
                b'l' => longs += 1,
                b'z' | b'j' | b't' => longs = 1,
                b'h' | b'L' | b'q' => {}
                kind => {
                    conversion.kind = kind;
                    break;
                }
            }
        }
        conversion.long = longs > 0;
        match conversion.kind {
            b'd' | b'i' => {
                let value = if conversion.long { take(8, w) as i64 } else { i64::from(take(4, w) as i32) };
                integer(&mut out, &conversion, value.unsigned_abs(), value < 0);
            }
            b'u' | b'x' | b'X' | b'o' => {
                let value = take(if conversion.long { 8 } else { 4 }, w);
                integer(&mut out, &conversion, value, false);
            }
            b'c' => {
                let value = take(4, w) as u8;
                pad(&mut out, &conversion, b"", &[value]);
            }
            b'p' => {
                let text = format!("0x{:x}", take(8, w));
                pad(&mut out, &conversion, b"", text.as_bytes());
            }
            b's' => {
                let address = take(8, w);
                let mut text = if address == 0 { b"(null)".to_vec() } else { w.read_string(address, lane) };
                text.truncate(conversion.precision.unwrap_or(usize::MAX));
                pad(&mut out, &conversion, b"", &text);
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(take(8, w));
                float(&mut out, &conversion, value);
            }
            // C leaves it undefined; show it as it is.
            other => out.extend([b'%', other]),
        }
    }
    (out, count)
}

/// Writes a number's sign or prefix and its digits, padded to the width.
fn pad(out: &mut Vec<u8>, conversion: &Conversion, prefix: &[u8], digits: &[u8]) {
    let missing = conversion.width.saturating_sub(prefix.len() + digits.len());
    let zeros = conversion.zero && !conversion.left;
    if !conversion.left && !zeros {
        out.resize(out.len() + missing, b' ');
    }
    out.extend(prefix);
    if zeros {
        out.resize(out.len() + missing, b'0');
    }
    out.extend(digits);
    if conversion.left {
        out.resize(out.len() + missing, b' ');
    }
}

fn sign(conversion: &Conversion, negative: bool) -> &'static [u8] {
    match (negative, conversion.plus, conversion.space) {
        (true, ..) => b"-",
        (false, true, _) => b"+",
        (false, false, true) => b" ",
        _ => b"",
    }
}

fn integer(out: &mut Vec<u8>, conversion: &Conversion, value: u64, negative: bool) {
    let mut digits = match conversion.kind {
        b'x' => format!("{value:x}"),
        b'X' => format!("{value:X}"),
        b'o' => format!("{value:o}"),
        _ => value.to_string(),
    };
    let prefix: &[u8] = match conversion.kind {
        b'd' | b'i' => sign(conversion, negative),
        b'x' if conversion.alternate && value != 0 => b"0x",
        b'X' if conversion.alternate && value != 0 => b"0X",
        b'o' if conversion.alternate && value != 0 => b"0",
        _ => b"",
    };
    let Some(precision) = conversion.precision else { return pad(out, conversion, prefix, digits.as_bytes()) };
    if precision == 0 && value == 0 {
        digits.clear();
    }
    let digits = format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len())));
    // A precision overrules the flag for zeros.
    let plain = Conversion { zero: false, precision: None, ..*conversion };
    pad(out, &plain, prefix, digits.as_bytes());
}

fn float(out: &mut Vec<u8>, conversion: &Conversion, value: f64) {
    let negative = value.is_sign_negative();
    let magnitude = value.abs();
    let upper = conversion.kind.is_ascii_uppercase();
    let prefix = sign(conversion, negative);
    let text = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        let precision = conversion.precision.unwrap_or(6);
        match conversion.kind.to_ascii_lowercase() {
            b'f' => fixed(magnitude, precision, conversion.alternate),
            b'e' => exponential(magnitude, precision, conversion.alternate),
            b'g' => general(magnitude, precision.max(1), conversion.alternate),
            _ => hexadecimal(magnitude, conversion.precision),
        }
    };
    let text = if upper { text.to_ascii_uppercase() } else { text };
    let plain = Conversion { zero: conversion.zero && value.is_finite(), ..*conversion };
    pad(out, &plain, prefix, text.as_bytes());
}

fn fixed(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.precision$}");
    if alternate && precision == 0 { text + "." } else { text }
}

fn exponential(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if alternate && precision == 0 { "." } else { "" };
    format!("{digits}{point}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn general(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.*e}", precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |text: String| {
        if alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = exponential(value, precision - 1, alternate);
        match text.split_once('e') {
            Some((digits, exponent)) => format!("{}e{exponent}", trim(digits.to_owned())),
            None => text,
        }
    } else {
        trim(fixed(value, (precision as i32 - 1 - exponent).max(0) as usize, alternate))
    }
}

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let (mut exponent, mut fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let mut lead = 1;
    if exponent == 0 {
        lead = 0;
        exponent = if fraction == 0 { 0 } else { -1022 };
    } else {
        exponent -= 1023;
    }
    let digits = match precision {
        Some(precision) if precision < 13 => {
            let cut = 52 - 4 * precision as u32;
            let whole = (lead << 52) | fraction;
            let half = 1u64 << (cut - 1);
            let rest = whole & ((1 << cut) - 1);
            let up = rest > half || (rest == half && whole >> cut & 1 != 0);
            let whole = (whole >> cut) + u64::from(up);
            lead = whole >> (4 * precision);
            fraction = whole & ((1 << (4 * precision)) - 1);
            if precision == 0 { String::new() } else { format!("{fraction:0precision$x}") }
        }
        Some(precision) => format!("{fraction:013x}{}", "0".repeat(precision - 13)),
        None => format!("{fraction:013x}").trim_end_matches('0').to_owned(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_c_writes_them() {
        assert_eq!(fixed(2.5, 0, false), "2");
        assert_eq!(exponential(12345.678, 3, false), "1.235e+04");
        assert_eq!(general(0.0001, 6, false), "0.0001");
        assert_eq!(general(0.00001, 6, false), "1e-05");
        assert_eq!(general(1e6, 6, false), "1e+06");
        assert_eq!(general(100000.0, 6, false), "100000");
        assert_eq!(general(0.0, 6, false), "0");
        assert_eq!(hexadecimal(1.0, None), "0x1p+0");
        assert_eq!(hexadecimal(0.1, None), "0x1.999999999999ap-4");
        assert_eq!(hexadecimal(1.999, Some(1)), "0x2.0p+0");
    }

    #[test]
    fn integers_as_c_writes_them() {
        let write = |conversion: Conversion, value, negative| {
            let mut out = Vec::new();
            integer(&mut out, &conversion, value, negative);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(write(Conversion { kind: b'd', width: 5, zero: true, ..Default::default() }, 42, true), "-0042");
        assert_eq!(write(Conversion { kind: b'd', width: 5, left: true, ..Default::default() }, 42, false), "42   ");
        assert_eq!(write(Conversion { kind: b'd', precision: Some(3), ..Default::default() }, 7, false), "007");
        assert_eq!(write(Conversion { kind: b'x', alternate: true, ..Default::default() }, 255, false), "0xff");
        assert_eq!(write(Conversion { kind: b'd', precision: Some(0), ..Default::default() }, 0, false), "");
    }
}
