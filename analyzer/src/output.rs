//! Names of the files that a run writes: what stands for what in them.
//!
//! Owns the placeholders, which mean what they mean in Valgrind, and the check that a file can be written.

use crate::options::Options;

/// The name of this machine.
pub fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer has room for its length; the last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Replaces `%p` by the process id, `%h` by the host, `%q{VAR}` by a variable of the environment and `%%` by a percent sign. The error is a
/// line for the user.
pub fn expand(name: &str, pid: u32, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('%') => out.push('%'),
            Some('p') => out.push_str(&pid.to_string()),
            Some('h') => out.push_str(&host()),
            Some('q') => {
                let inner = chars.as_str().strip_prefix('{').and_then(|text| text.split_once('}'));
                let Some((key, tail)) = inner else {
                    return Err(format!("in '{name}': '%q' needs a variable: '%q{{NAME}}'"));
                };
                let value = variable(key).ok_or_else(|| format!("in '{name}': the environment has no '{key}'"))?;
                out.push_str(&value);
                rest = tail;
                continue;
            }
            other => {
                let other = other.map_or_else(String::new, String::from);
                return Err(format!("in '{name}': '%{other}' is none of %p, %h, %q{{VAR}}, %%"));
            }
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Ok(out)
}

/// Expands the names of all files that the options say to write.
pub fn expand_all(options: &mut Options, pid: u32) -> Result<(), String> {
    for name in files(options).into_iter().flatten() {
        *name = expand(name, pid, |key| std::env::var(key).ok())?;
    }
    Ok(())
}

/// All files that a run writes besides the trace. The error says which can not be written; it comes before the program runs, not after an hour.
pub fn check_writable(options: &mut Options) -> Result<(), String> {
    let trace = options.output.take();
    let names: Vec<String> = files(options).into_iter().flatten().map(|name| name.clone()).collect();
    options.output = trace;
    for path in names {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        opened.map_err(|error| format!("{path} can not be written: {error}"))?;
    }
    Ok(())
}

fn files(o: &mut Options) -> [Option<&mut String>; 13] {
    [
        o.log_file.as_mut(),
        o.json.as_mut(),
        o.sarif.as_mut(),
        o.html.as_mut(),
        o.junit.as_mut(),
        o.parquet.as_mut(),
        o.gen_suppressions.as_mut(),
        o.write_baseline.as_mut(),
        o.snapshot.as_mut(),
        o.exact.compare.as_mut(),
        o.output.as_mut(),
        o.sim_options.addresses.as_mut(),
        o.sim_options.results.as_mut(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
        let e = |name: &str| expand(name, 42, |key| (key == "RANK").then(|| "7".to_string()));
        assert_eq!(e("a.%p.%q{RANK}.%%.json").unwrap(), "a.42.7.%.json");
        assert_eq!(e("plain").unwrap(), "plain");
        assert_eq!(e("%h").unwrap(), host());
        assert!(e("%q{NONE}").unwrap_err().contains("no 'NONE'"));
        assert!(e("%q").unwrap_err().contains("%q{NAME}"));
        assert!(e("%x").unwrap_err().contains("'%x' is none of"));
        assert!(e("50%").unwrap_err().contains("'%' is none of"));
    }
}
