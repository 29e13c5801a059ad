//! Which version of the runtime this file is.

/// The file's own name. The copies that are
/// `libcudart.so.12` and `.11` have another digit here.
static SONAME: [u8; 15] = *b"libcudart.so.13";

/// The version that it answers.
pub(crate) fn number() -> i32 {
    match major() {
        11 => 11080,
        12 => 12090,
        _ => 13000,
    }
}

/// 11, 12 or 13.
pub(crate) fn major() -> i32 {
    // SAFETY: reads one byte of a live static. Volatile, because the byte is changed in the file
    // after compilation.
    let digit = unsafe { std::ptr::read_volatile(&SONAME[14]) };
    10 + i32::from(digit - b'0')
}
