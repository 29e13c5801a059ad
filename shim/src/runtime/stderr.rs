//! Messages to the user: single lines on standard error, each written with one `write(2)`.
//!
//! A message never ends the program: a limit of file sizes or a closed pipe raises no signal. Nor
//! does it go into a file that the program has opened as descriptor 2.
//!
//! Owns the prefix and the cut of long lines. Does not format on the heap and does not use stdio,
//! whose locks the program may hold.

use std::fmt::{self, Write};

struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is kept for the newline; what does not fit is cut, for a torn line is better
        // than none.
        let room = self.bytes.len() - 1 - self.len;
        let take = text.len().min(room);
        self.bytes[self.len..self.len + take].copy_from_slice(&text.as_bytes()[..take]);
        self.len += take;
        Ok(())
    }
}

/// Writes `streamsan: <message>` and a newline to standard error.
pub fn say(message: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 512], len: 0 };
    let _ = write!(line, "streamsan: ");
    let _ = line.write_fmt(message);
    line.bytes[line.len] = b'\n';
    signal_free::write_here(&line.bytes[..line.len + 1]);
}

/// For the libraries of ours that the program loads later ([`signal_free::stderr::SHIMS`]): whether
/// descriptor 2 is what it was when the program started.
#[unsafe(no_mangle)]
pub extern "C" fn streamsan_stderr_is_unchanged() -> i32 {
    signal_free::stderr::is_unchanged().into()
}
