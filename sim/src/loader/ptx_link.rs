//! Joins several PTX texts into one, for the driver's linker.
//!
//! Owns the renaming: what a text keeps to itself gets a name of its own. The heads of all texts
//! but the first are left out. Declarations of what another text defines are fine where they are.

use std::collections::HashSet;

use kernels::ptx::{Linkage, Module};

/// Directives that may stand once in a text only, or that refer to numbers of their own text
/// (source positions).
const DROPPED: [&str; 5] = [".version", ".target", ".address_size", ".file", ".loc"];

/// Joins texts; each must parse.
///
/// # Errors
/// What is wrong with a text, or the name that two of them define.
pub fn join(texts: &[&str]) -> Result<String, String> {
    let mut out = String::new();
    let mut defined: HashSet<String> = HashSet::new();
    for (number, text) in texts.iter().enumerate() {
        let module = kernels::ptx::parse(text).map_err(|error| error.to_string())?;
        let mut private = HashSet::new();
        for (name, linkage, whole) in symbols(&module) {
            match linkage {
                Linkage::Internal if number > 0 => {
                    private.insert(name);
                }
                Linkage::Visible if whole && !defined.insert(name.to_owned()) => {
                    return Err(format!("two images define `{name}`"));
                }
                _ => {}
            }
        }
        copy(text, number, &private, &mut out);
        out.push('\n');
    }
    Ok(out)
}

/// What a text has at its top level: name, who sees it, and whether it is more than a declaration.
fn symbols(module: &Module) -> impl Iterator<Item = (&str, Linkage, bool)> {
    let functions = module.functions.iter().map(|f| (module.name(f.name), f.linkage, f.body.is_some()));
    let variables = module.globals.iter().map(|v| (module.name(v.name), v.linkage, true));
    functions.chain(variables)
}

/// Copies a text word by word: private names get the text's number, directives of the head are left
/// out.
fn copy(text: &str, number: usize, private: &HashSet<&str>, out: &mut String) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    for line in text.lines() {
        let first = line.trim_start().split(|c: char| !is_word(c)).next().unwrap_or_default();
        if number > 0 && DROPPED.contains(&first) {
            continue;
        }
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let end = match c {
                // A string, or a comment to the end of the line.
                '"' => rest[1..].find('"').map_or(rest.len(), |at| at + 2),
                '/' if rest.starts_with("//") => rest.len(),
                _ if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ => c.len_utf8(),
            };
            let (word, tail) = rest.split_at(end);
            out.push_str(word);
            if private.contains(word) {
                out.push_str(&format!("$link{number}"));
            }
            rest = tail;
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

    #[test]
    fn private_names_stay_apart_and_heads_stand_once() {
        let first = format!("{HEAD}.global .align 4 .u32 own = 1;\n.visible .func one() {{ ret; }}\n");
        let second = format!(
            "{HEAD}.extern .func one();\n.global .align 4 .u32 own = 2;\n.visible .func two() {{ call one; ret; }}\n"
        );
        let joined = join(&[&first, &second]).expect("both parse");
        let module = kernels::ptx::parse(&joined).expect("the result parses");
        let names: Vec<&str> = module.globals.iter().map(|v| module.name(v.name)).collect();
        assert_eq!(names, ["own", "own$link1"]);
        assert_eq!(joined.matches(".version").count(), 1);
        assert_eq!(module.functions.iter().filter(|f| f.body.is_some()).count(), 2);
    }

    #[test]
    fn two_definitions_of_a_name_are_an_error() {
        let text = format!("{HEAD}.visible .func one() {{ ret; }}\n");
        assert_eq!(join(&[&text, &text]).unwrap_err(), "two images define `one`");
        assert!(join(&["nonsense {"]).is_err());
    }
}
