//! Makes `libcudart.so.12` or `.11` out of `libcudart.so.13`: the same library under the other
//! name, symbol versions included.
//!
//! `streamsan-cudart12 libstreamsan_sim_cudart.so libcudart.so.12`
//!
//! The linker takes the symbol version from the library's name, so one build gives one version. In
//! the copy, the other name replaces the first wherever that stands (the string table of the
//! dynamic section, and the static by which the library itself knows which one it is), and the
//! hashes of its version definitions are computed again.

use std::process::ExitCode;

const FROM: &[u8] = b"libcudart.so.13";
const NAMES: [&str; 2] = ["libcudart.so.12", "libcudart.so.11"];
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_VERDEF: u64 = 0x6fff_fffc;
const DT_VERDEFNUM: u64 = 0x6fff_fffd;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(from), Some(to), None) = (args.next(), args.next(), args.next()) else {
        eprintln!("usage: streamsan-cudart12 libstreamsan_sim_cudart.so .../libcudart.so.12");
        return ExitCode::from(2);
    };
    let file_name = std::path::Path::new(&to).file_name().unwrap_or_default();
    let Some(name) = NAMES.iter().find(|name| file_name == **name) else {
        eprintln!("streamsan-cudart12: it makes {} only", NAMES.join(" and "));
        return ExitCode::from(2);
    };
    let renamed =
        std::fs::read(&from).map_err(|error| error.to_string()).and_then(|file| rename(file, name.as_bytes()));
    match renamed.and_then(|file| std::fs::write(&to, file).map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("streamsan-cudart12: {}: {error}", from.to_string_lossy());
            ExitCode::FAILURE
        }
    }
}

fn number(file: &[u8], at: usize, bytes: usize) -> Result<u64, String> {
    let field = file.get(at..at + bytes).ok_or("not a 64-bit ELF library")?;
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(field);
    Ok(u64::from_le_bytes(word))
}

/// The hash that version definitions carry (System V's symbol hash).
fn elf_hash(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, &byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

fn rename(mut file: Vec<u8>, to: &[u8]) -> Result<Vec<u8>, String> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit ELF library".into());
    }
    let (table, entry, count) = (number(&file, 32, 8)?, number(&file, 54, 2)?, number(&file, 56, 2)?);
    let segment = |n: u64, field: u64, bytes: usize| number(&file, (table + n * entry + field) as usize, bytes);
    let mut loads = Vec::new();
    let mut dynamic = None;
    for n in 0..count {
        let (offset, address, size) = (segment(n, 8, 8)?, segment(n, 16, 8)?, segment(n, 32, 8)?);
        match segment(n, 0, 4)? as u32 {
            PT_LOAD => loads.push((address, offset, size)),
            PT_DYNAMIC => dynamic = Some((offset, size)),
            _ => {}
        }
    }
    let (dynamic, size) = dynamic.ok_or("no dynamic section")?;
    let (mut at, mut definitions) = (None, 0);
    for entry in (dynamic..dynamic + size).step_by(16) {
        let value = number(&file, entry as usize + 8, 8)?;
        match number(&file, entry as usize, 8)? {
            DT_VERDEF => at = Some(value),
            DT_VERDEFNUM => definitions = value,
            _ => {}
        }
    }
    let at = at.ok_or("no symbol versions (was it linked with GNU ld?)")?;
    let load = loads.iter().find(|(address, _, size)| (*address..address + size).contains(&at));
    let (address, offset, _) = load.ok_or("damaged dynamic section")?;
    let mut definition = (at - address + offset) as usize;

    let (old, new) = (elf_hash(FROM), elf_hash(to));
    for _ in 0..definitions {
        if number(&file, definition + 8, 4)? as u32 == old {
            file[definition + 8..definition + 12].copy_from_slice(&new.to_le_bytes());
        }
        definition += number(&file, definition + 16, 4)? as usize;
    }
    let mut found = 0;
    for start in 0..file.len().saturating_sub(FROM.len()) {
        if file[start..].starts_with(FROM) {
            file[start..start + to.len()].copy_from_slice(to);
            found += 1;
        }
    }
    if found == 0 { Err("its name is not libcudart.so.13".into()) } else { Ok(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_the_loader_does() {
        // Taken from a library that binutils made: `readelf -V`, vd_hash of GLIBC_2.2.5.
        assert_eq!(elf_hash(b"GLIBC_2.2.5"), 0x0969_1a75);
    }

    #[test]
    fn refuses_what_is_no_library() {
        for file in [&b""[..], b"hello", b"\x7fELF\x02\x01", &[0x7f, b'E', b'L', b'F', 2, 1, 0, 0, 0]] {
            assert!(rename(file.to_vec(), b"libcudart.so.12").is_err());
        }
    }
}
