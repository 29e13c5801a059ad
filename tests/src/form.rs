//! The forms of a program's code: PTX or machine code alone, for an architecture, optimised or not.
//!
//! Owns the options that make a form, and its name: `ptx-80-G`, `sass-90-O2`, `sass-80-ptxas-O0`.

use std::fmt;
use std::str::FromStr;

/// How far code is optimised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// `-O2`.
    Optimised,
    /// `-Xptxas -O0`: the compiler optimises, the assembler does not.
    Assembled,
    /// `-G`: neither does.
    Debug,
}

impl Level {
    const ALL: [(Level, &'static str, &'static [&'static str]); 3] = [
        (Level::Optimised, "O2", &[]),
        (Level::Assembled, "ptxas-O0", &["-Xptxas", "-O0"]),
        (Level::Debug, "G", &["-G"]),
    ];

    fn row(self) -> (&'static str, &'static [&'static str]) {
        Self::ALL.into_iter().find(|row| row.0 == self).map_or(("", &[]), |row| (row.1, row.2))
    }
}

/// A form of a program's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// PTX alone; else machine code alone.
    pub is_ptx: bool,
    /// Compute capability, times ten.
    pub arch: u32,
    /// How far it is optimised.
    pub level: Level,
}

impl Form {
    /// What `nvcc` is told, behind other arguments: the last architecture counts.
    pub fn options(self) -> Vec<String> {
        let code = if self.is_ptx { "compute" } else { "sm" };
        let machine = [format!("-arch=compute_{}", self.arch), format!("-code={code}_{}", self.arch)];
        machine.into_iter().chain(self.level.row().1.iter().map(|option| (*option).to_owned())).collect()
    }

    /// What `STREAMSAN_SIM` is, so that this code is run.
    pub fn simulator(self) -> String {
        format!("code={}:arch={}", if self.is_ptx { "ptx" } else { "sass" }, self.arch)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", if self.is_ptx { "ptx" } else { "sass" }, self.arch, self.level.row().0)
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("no form of code: '{text}' (such as ptx-80-G, sass-90-ptxas-O0, sass-75-O2)");
        let (code, rest) = text.split_once('-').ok_or_else(bad)?;
        let (arch, level) = rest.split_once('-').ok_or_else(bad)?;
        let level = Level::ALL.into_iter().find(|row| row.1 == level).ok_or_else(bad)?.0;
        let is_ptx = match code {
            "ptx" => true,
            "sass" => false,
            _ => return Err(bad()),
        };
        Ok(Self { is_ptx, arch: arch.parse().map_err(|_| bad())?, level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["ptx-80-G", "sass-90-ptxas-O0", "sass-75-O2"] {
            assert_eq!(name.parse::<Form>().expect("a form").to_string(), name);
        }
        for bad in ["", "ptx", "ptx-80", "ptx-80-O9", "cubin-80-G", "sass-x-G"] {
            assert!(bad.parse::<Form>().is_err(), "{bad}");
        }
    }

    #[test]
    fn options_end_with_the_level() {
        let form: Form = "sass-90-ptxas-O0".parse().expect("a form");
        assert_eq!(form.options(), ["-arch=compute_90", "-code=sm_90", "-Xptxas", "-O0"]);
        assert_eq!(form.simulator(), "code=sass:arch=90");
        let form: Form = "ptx-80-G".parse().expect("a form");
        assert_eq!(
            (form.options().join(" "), form.simulator()),
            ("-arch=compute_80 -code=compute_80 -G".into(), "code=ptx:arch=80".into())
        );
    }
}
