//! Writes the body of a random kernel: instructions, branches and loops.
//!
//! Does not write what stands before and behind it.

use std::fmt::Write;

use super::forms::{OPEN, TEMPLATES, TOGETHER};
use crate::interp_support::both::Random;

/// Registers of each kind.
pub(crate) const WORDS: u64 = 10;
pub(crate) const LONGS: u64 = 6;
pub(crate) const SINGLES: u64 = 8;
pub(crate) const DOUBLES: u64 = 4;
pub(crate) const SHORTS: u64 = 4;
pub(crate) const PREDS: u64 = 5;

pub(crate) struct Writer {
    pub random: Random,
    /// Whether what PTX leaves open is left out.
    pub exact: bool,
    pub text: String,
    pub labels: u32,
}

impl Writer {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.random.next() >> 11) % n
    }

    fn fill(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut word = String::new();
        for c in template.chars().chain(['\n']) {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '%' | '_') {
                word.push(c);
                continue;
            }
            let (kind, rest) = word.split_at(word.len().min(1));
            match (kind, rest) {
                ("r" | "R", "") => write!(out, "%r{}", self.below(WORDS)),
                ("l" | "L", "") => write!(out, "%l{}", self.below(LONGS)),
                ("f" | "F", "") => write!(out, "%f{}", self.below(SINGLES)),
                ("d" | "D", "") => write!(out, "%d{}", self.below(DOUBLES)),
                ("h" | "H", "") => write!(out, "%h{}", self.below(SHORTS)),
                ("p" | "P" | "q", "") => write!(out, "%p{}", self.below(PREDS)),
                ("i", "") => write!(out, "{}", self.below(36)),
                ("A", step) if step.parse::<u64>().is_ok() => {
                    write!(out, "{}", self.below(4) * step.parse::<u64>().unwrap())
                }
                ("I", step @ ("4" | "8" | "16")) => {
                    let step: u64 = step.parse().unwrap();
                    write!(out, "{}", self.below(32 / step) * step)
                }
                _ => write!(out, "{word}"),
            }
            .unwrap();
            word.clear();
            if c != '\n' {
                out.push(c);
            }
        }
        out
    }

    fn one(&mut self, together: bool) {
        let warp = together && self.below(12) == 0;
        let list = if warp { TOGETHER } else { TEMPLATES };
        let mut template = list[self.below(list.len() as u64) as usize];
        while self.exact && OPEN.iter().any(|word| template.contains(word)) {
            template = list[self.below(list.len() as u64) as usize];
        }
        let guard = if !warp && ![".cc", "%t,"].iter().any(|own| template.contains(own)) && self.below(5) == 0 {
            format!("@{}%p{} ", if self.below(2) == 0 { "!" } else { "" }, self.below(PREDS))
        } else {
            String::new()
        };
        self.write(&guard, template);
    }

    /// An instruction with registers. Two results of one must be two registers.
    fn write(&mut self, guard: &str, template: &str) {
        let text = (0..50).map(|_| self.fill(template)).find(|text| !repeats(text));
        if let Some(text) = text {
            writeln!(self.text, "{guard}{text};").unwrap();
        }
    }

    /// The seed's instruction, with several registers. Seeds that follow each other go through all.
    pub(crate) fn one_form(&mut self, seed: u64) {
        let forms = TEMPLATES.len() + TOGETHER.len();
        let template = TEMPLATES.iter().chain(TOGETHER).nth(seed as usize % forms).expect("one of them");
        writeln!(self.text, "// {template}").unwrap();
        for _ in 0..6 {
            self.write("", template);
        }
    }

    /// `together`: all lanes of a warp are there. `inside`: the loop that may be left.
    pub(crate) fn statements(&mut self, count: u64, depth: u32, together: bool, inside: Option<u32>) {
        for _ in 0..count {
            match self.below(12) {
                2 if self.below(3) == 0
                    && let Some(label) = inside =>
                {
                    let (pred, to) = (self.below(PREDS), if self.below(3) == 0 { "next" } else { "out" });
                    writeln!(self.text, "@%p{pred} bra L{label}_{to};").unwrap();
                }
                0 if depth > 0 => {
                    let label = self.labels;
                    self.labels += 1;
                    let (pred, both) = (self.below(PREDS), self.below(2) == 0);
                    writeln!(self.text, "@%p{pred} bra L{label}_else;").unwrap();
                    let count = 1 + self.below(6);
                    self.statements(count, depth - 1, false, inside);
                    if both {
                        writeln!(self.text, "bra L{label}_end;").unwrap();
                    }
                    writeln!(self.text, "L{label}_else:").unwrap();
                    if both {
                        self.statements(count, depth - 1, false, inside);
                        writeln!(self.text, "L{label}_end:").unwrap();
                    }
                }
                1 if depth > 0 => {
                    let label = self.labels;
                    self.labels += 1;
                    let uniform = self.below(2) == 0;
                    let trips = if uniform {
                        "mov.u32".into()
                    } else {
                        format!("and.b32 %n{label}, %r{}, 7; //", self.below(WORDS))
                    };
                    let trips = if uniform { format!("{trips} %n{label}, {};", 1 + self.below(5)) } else { trips };
                    writeln!(self.text, "{trips}\nL{label}_loop:").unwrap();
                    let count = 1 + self.below(7);
                    let inner = (!uniform || self.below(2) == 0).then_some(label);
                    self.statements(count, depth - 1, together && inner.is_none(), inner);
                    writeln!(
                        self.text,
                        "L{label}_next:\nsub.s32 %n{label}, %n{label}, 1;\nsetp.gt.s32 %again, %n{label}, 0;"
                    )
                    .unwrap();
                    writeln!(self.text, "@%again bra L{label}_loop;\nL{label}_out:").unwrap();
                }
                _ => self.one(together),
            }
        }
    }
}

/// Whether an instruction names a register twice among its results.
fn repeats(text: &str) -> bool {
    text.split(';').any(|text| {
        let results = match text.find('{') {
            Some(open)
                if text.starts_with("ld")
                    || text[..open].trim_end().ends_with("b64")
                    || text[..open].trim_end().ends_with("b32") =>
            {
                text[open..].split('}').next().unwrap_or("")
            }
            _ => match text.find('|') {
                Some(_) => text.split(',').next().unwrap_or(""),
                None => return false,
            },
        };
        let names: Vec<&str> = results.split(['{', ',', '|', ' ']).filter(|name| name.starts_with('%')).collect();
        names.iter().enumerate().any(|(at, name)| names[..at].contains(name))
    })
}
