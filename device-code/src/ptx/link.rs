//! Joins several PTX texts into one, as the device linker joins objects.
//!
//! Owns which of several definitions of a name stays (a strong one before weak ones, else the
//! first), and the renaming of what a text keeps to itself where another text has the name too.
//! Numbers of source files are moved apart, so that lines stay right. Does not know where texts
//! come from, and leaves unresolved names as they are: whoever runs the code knows which functions
//! need no body.

use std::collections::{HashMap, HashSet};

use super::{Linkage, Module, ParseError, parse};

/// Texts could not be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// One of them is no PTX.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// Two of them define the same name for all.
    #[error("two images define `{0}`")]
    Twice(String),
}

/// Joins texts; the head (version, target) is that of the first.
///
/// # Errors
/// [`LinkError`].
pub fn link(texts: &[&str]) -> Result<String, LinkError> {
    let modules = texts.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
    let owners = owners(&modules)?;
    let mut out = String::with_capacity(texts.iter().map(|text| text.len() + 1).sum());
    let mut files = 0;
    for (number, (text, module)) in texts.iter().zip(&modules).enumerate() {
        Copier { number, module, owners: &owners, files }.copy(text, &mut out);
        files += module.files.iter().map(|(file, _)| *file).max().unwrap_or(0);
        out.push('\n');
    }
    Ok(out)
}

/// Which text's definition of a name counts for all texts.
#[derive(Clone, Copy)]
struct Owner {
    text: usize,
    /// Strength, and among tentative definitions the size.
    rank: (u8, u64),
}

/// Strong before weak before tentative before private: the last only keeps its name if no other
/// wants it.
fn rank(linkage: Linkage, size: u64) -> Option<(u8, u64)> {
    Some(match linkage {
        Linkage::Extern => return None,
        Linkage::Internal => (0, 0),
        Linkage::Common => (1, size),
        Linkage::Weak => (2, 0),
        Linkage::Visible => (3, 0),
    })
}

fn owners(modules: &[Module]) -> Result<HashMap<&str, Owner>, LinkError> {
    let mut owners: HashMap<&str, Owner> = HashMap::new();
    for (text, module) in modules.iter().enumerate() {
        for (name, linkage, size) in definitions(module) {
            let Some(rank) = rank(linkage, size) else { continue };
            let owner = owners.entry(name).or_insert(Owner { text, rank });
            if owner.text == text {
                owner.rank = owner.rank.max(rank);
                continue;
            }
            if linkage == Linkage::Visible && owner.rank.0 == rank.0 {
                return Err(LinkError::Twice(name.to_owned()));
            }
            if rank > owner.rank {
                *owner = Owner { text, rank };
            }
        }
    }
    Ok(owners)
}

/// What a text defines at its top level: name, who sees it, and bytes.
fn definitions(module: &Module) -> impl Iterator<Item = (&str, Linkage, u64)> {
    let functions = module.functions.iter().filter(|f| f.body.is_some()).map(|f| (f.name, f.linkage, 0));
    let variables = module.globals.iter().map(|v| (v.name, v.linkage, v.size()));
    let aliases = module.aliases.iter().map(|&(new, _)| (new, Linkage::Weak, 0));
    functions.chain(variables).chain(aliases).map(|(name, linkage, size)| (module.name(name), linkage, size))
}

/// Copies one text.
struct Copier<'a> {
    number: usize,
    module: &'a Module,
    owners: &'a HashMap<&'a str, Owner>,
    /// Numbers of source files that earlier texts have used.
    files: u32,
}

impl Copier<'_> {
    fn copy(&self, text: &str, out: &mut String) {
        let elsewhere = |name: &str| self.owners.get(name).is_some_and(|owner| owner.text != self.number);
        // Private here, but the name is another's.
        let renamed: HashSet<&str> = definitions(self.module)
            .filter(|(name, linkage, _)| *linkage == Linkage::Internal && elsewhere(name))
            .map(|(name, ..)| name)
            .collect();
        let dropped =
            |names: &[&str]| !names.is_empty() && names.iter().all(|name| elsewhere(name) && !renamed.contains(name));
        let mut rest = text.trim_end_matches('\0');
        while !rest.is_empty() {
            let statement = Statement::first_of(rest);
            let (whole, tail) = rest.split_at(statement.len);
            rest = tail;
            match statement.kind {
                Kind::Head if self.number > 0 => {}
                // The definition that counts stands in another text. A function's declaration
                // stays: it says what the parameters are.
                Kind::Function { body: true } | Kind::Variable | Kind::Alias if dropped(&statement.names) => {}
                _ => self.write(whole, &renamed, out),
            }
        }
    }

    /// Copies a statement word by word.
    fn write(&self, text: &str, renamed: &HashSet<&str>, out: &mut String) {
        // Behind these words comes the number of a source file.
        let mut file = false;
        for (piece, word) in Pieces(text) {
            if piece != Piece::Word {
                out.push_str(word);
                continue;
            }
            match word.parse::<u32>() {
                Ok(number) if file => out.push_str(&number.saturating_add(self.files).to_string()),
                _ => out.push_str(word),
            }
            file = matches!(word, ".file" | ".loc" | "inlined_at");
            if renamed.contains(word) {
                out.push_str("$link");
                out.push_str(&self.number.to_string());
            }
        }
    }
}

/// What stands at the top level of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// `.version`, `.target`, `.address_size`: once in a text.
    Head,
    /// With a body, or declared only.
    Function {
        body: bool,
    },
    Variable,
    Alias,
    /// Anything else, blanks at the end too.
    Other,
}

/// A statement of the top level.
struct Statement<'a> {
    len: usize,
    kind: Kind,
    /// What it defines or declares.
    names: Vec<&'a str>,
}

impl<'a> Statement<'a> {
    /// The first one, with the blanks and comments before it.
    fn first_of(text: &'a str) -> Statement<'a> {
        let mut statement = Statement { len: 0, kind: Kind::Other, names: Vec::new() };
        let (mut depth, mut brackets) = (0_u32, 0_u32);
        let (mut line, mut section, mut pragma, mut value) = (false, false, false, false);
        let mut first = true;
        for (piece, word) in Pieces(text) {
            statement.len += word.len();
            match piece {
                Piece::Blank if line && word.contains('\n') => return statement,
                Piece::Word if depth == 0 && brackets == 0 => {
                    match word {
                        ".version" | ".target" | ".address_size" if first => {
                            (statement.kind, line) = (Kind::Head, true);
                        }
                        ".file" | ".loc" if first => line = true,
                        ".section" if first => section = true,
                        ".alias" if first => statement.kind = Kind::Alias,
                        ".entry" | ".func" => statement.kind = Kind::Function { body: false },
                        ".global" | ".const" | ".shared" | ".local" | ".tex" if statement.kind == Kind::Other => {
                            statement.kind = Kind::Variable;
                        }
                        _ if word.starts_with('.') || word.starts_with(|c: char| c.is_ascii_digit()) || value => {}
                        _ => {
                            let several = statement.kind == Kind::Variable;
                            if several || (statement.names.is_empty() && statement.kind != Kind::Other) {
                                statement.names.push(word);
                            }
                        }
                    }
                    pragma |= word == ".pragma";
                    first = false;
                }
                Piece::Word => first = false,
                Piece::Punct('(' | '[') if depth == 0 => brackets += 1,
                Piece::Punct(')' | ']') if depth == 0 => brackets = brackets.saturating_sub(1),
                // Behind a comma comes the next variable, not more of the value.
                Piece::Punct('=') if depth == 0 => value = true,
                Piece::Punct(',') if depth == 0 && brackets == 0 => value = false,
                Piece::Punct('{') => {
                    depth += 1;
                    if let Kind::Function { body } = &mut statement.kind {
                        *body = true;
                    }
                }
                Piece::Punct('}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && (section || matches!(statement.kind, Kind::Function { .. })) {
                        return statement;
                    }
                }
                // A function's head may hold pragmas, each with its own semicolon.
                Piece::Punct(';') if depth == 0 && pragma && statement.kind != Kind::Other => pragma = false,
                Piece::Punct(';') if depth == 0 => return statement,
                _ => {}
            }
        }
        statement
    }
}

/// What a piece of a text is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Piece {
    /// A name, a directive or a number.
    Word,
    /// White space and comments.
    Blank,
    /// A string, or what is not ASCII.
    Other,
    Punct(char),
}

/// Cuts a text into pieces; all together are the text.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = (Piece, &'a str);

    fn next(&mut self) -> Option<(Piece, &'a str)> {
        let text = self.0;
        let first = text.chars().next()?;
        let until = |found: Option<usize>| found.unwrap_or(text.len());
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
        let (piece, end) = match first {
            '"' => (Piece::Other, until(text[1..].find('"').map(|at| at + 2))),
            '/' if text.starts_with("//") => (Piece::Blank, until(text.find('\n'))),
            '/' if text.starts_with("/*") => (Piece::Blank, until(text.find("*/").map(|at| at + 2))),
            _ if first.is_ascii_whitespace() => (Piece::Blank, until(text.find(|c: char| !c.is_ascii_whitespace()))),
            _ if is_word(first) => (Piece::Word, until(text.find(|c| !is_word(c)))),
            _ if first.is_ascii_graphic() => (Piece::Punct(first), 1),
            _ => (Piece::Other, first.len_utf8()),
        };
        let (cut, rest) = text.split_at(end);
        self.0 = rest;
        Some((piece, cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

    fn linked(texts: &[&str]) -> Module {
        let texts: Vec<String> = texts.iter().map(|text| format!("{HEAD}{text}")).collect();
        let joined = link(&texts.iter().map(String::as_str).collect::<Vec<_>>()).expect("they link");
        assert_eq!(joined.matches(".version").count(), 1, "{joined}");
        parse(&joined).unwrap_or_else(|error| panic!("{error}\n{joined}"))
    }

    fn variables(module: &Module) -> Vec<(&str, u64, Linkage)> {
        module.globals.iter().map(|v| (module.name(v.name), v.size(), v.linkage)).collect()
    }

    fn bodies(module: &Module) -> Vec<&str> {
        module.functions.iter().filter(|f| f.body.is_some()).map(|f| module.name(f.name)).collect()
    }

    #[test]
    fn private_names_stay_apart_and_others_are_kept() {
        let module = linked(&[
            ".global .align 4 .u32 own = 1;\n.visible .func one() { ret; }",
            ".extern .func one();\n.global .align 4 .u32 own = 2;\n.global .u32 lone;\n\
             .visible .func two() { .reg .u32 %r<2>; ld.global.u32 %r1, [own+4]; call one; ret; }",
        ]);
        let names: Vec<&str> = variables(&module).iter().map(|v| v.0).collect();
        assert_eq!(names, ["own", "own$link1", "lone"]);
        assert_eq!(bodies(&module), ["one", "two"]);
        // A private name gives way to one that all see, whichever comes first.
        let module = linked(&[".func f() { ret; }\n.entry k() { call f; ret; }", ".visible .func f() { ret; }"]);
        assert_eq!(bodies(&module), ["f$link0", "k", "f"]);
    }

    #[test]
    fn a_strong_definition_stands_for_weak_ones_and_declarations() {
        let module = linked(&[
            ".extern .global .align 4 .b8 table[8];\n.weak .global .align 4 .u32 v = 1;\n\
             .weak .func g() .pragma \"nounroll\"; { ret; }\n.weak .entry k(.param .u64 p) .maxntid 128, 1, 1 { ret; }",
            "/* .weak; */ .visible .global .align 4 .b8 table[8] = {1, 2, 3, 4};\n\
             .weak .global .align 4 .u32 v = {2};\n.weak .func g() { { exit; } ret; }\n\
             .weak .entry k(.param .u64 p) .maxntid 128, 1, 1 { ret; } // .weak",
            ".visible .func g() { trap; }\n.common .global .b8 c[4];",
            ".common .global .b8 c[16];",
        ]);
        assert_eq!(
            variables(&module),
            [("v", 4, Linkage::Weak), ("table", 8, Linkage::Visible), ("c", 16, Linkage::Common)]
        );
        assert_eq!(bodies(&module), ["k", "g"]);
    }

    #[test]
    fn lines_of_every_text_keep_their_file() {
        let text = |file: &str| {
            format!(
                ".visible .func {file}() {{\n.loc 2 7 3\n.loc 1 5 1, function_name $L+2, inlined_at 2 7 3\nret; }}\n\
                 .file 1 \"{file}.h\"\n.file 2 \"{file}.cu\", 12, 34\n.section .debug_str {{ .b8 1 }}\n"
            )
        };
        let module = linked(&[&text("a"), &text("b")]);
        let places = |n: usize| {
            let body = module.functions[n].body.as_ref().expect("a body");
            let file = |number| module.file(number).expect("known");
            body.locations.iter().map(|l| (file(l.file), l.line, l.inlined_at.map(|i| file(i.0)))).collect::<Vec<_>>()
        };
        assert_eq!(places(0), [("a.cu", 7, None), ("a.h", 5, Some("a.cu"))]);
        assert_eq!(places(1), [("b.cu", 7, None), ("b.h", 5, Some("b.cu"))]);
    }

    #[test]
    fn what_cannot_be_joined_is_an_error() {
        let text = format!("{HEAD}.visible .func one() {{ ret; }}\n");
        assert_eq!(link(&[&text, &text]), Err(LinkError::Twice("one".into())));
        assert!(matches!(link(&["nonsense {"]), Err(LinkError::Parse(_))));
    }
}
