//! The grammar of a module: its directives, its variables and the heads of functions.
//!
//! Owns everything outside of functions. What is inside is parsed by `function_body`.

use smallvec::SmallVec;

use super::ast::*;
use super::error::{ParseError, ParseErrorKind};
use super::lexer::{Lexer, Number, Token};

/// Elements that one variable's initial value may list (a limit against damaged text; CUDA's
/// largest are below 1 Mi).
const MAX_INITIAL: usize = 1 << 28;

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) module: Module,
}

type Result<T> = std::result::Result<T, ParseError>;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Parser { lexer: Lexer::new(text), module: Module { address_size: 64, ..Module::default() } }
    }

    pub(super) fn module(mut self) -> Result<Module> {
        loop {
            match self.lexer.next()? {
                Token::End => return Ok(self.module),
                Token::Word(word) if word.starts_with('.') => self.directive(word)?,
                Token::Punct(b';') => {}
                other => return self.unexpected("a directive", other),
            }
        }
    }

    pub(super) fn unexpected<T>(&mut self, expected: &'static str, found: Token<'_>) -> Result<T> {
        let found = match found {
            Token::Word(word) | Token::Str(word) => word.chars().take(60).collect(),
            Token::Number(number) => format!("{number:?}"),
            Token::Punct(byte) => char::from(byte).to_string(),
            Token::End => return self.lexer.fail(ParseErrorKind::UnexpectedEnd(expected)),
        };
        self.lexer.fail(ParseErrorKind::Unexpected { expected, found })
    }

    pub(super) fn eat(&mut self, byte: u8) -> Result<bool> {
        let found = self.lexer.peek()? == Token::Punct(byte);
        if found {
            self.lexer.next()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        match self.lexer.next()? {
            Token::Punct(found) if found == byte => Ok(()),
            other => self.unexpected(expected, other),
        }
    }

    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'a str> {
        match self.lexer.next()? {
            Token::Word(word) => Ok(word),
            other => self.unexpected(expected, other),
        }
    }

    pub(super) fn int(&mut self) -> Result<u64> {
        match self.lexer.next()? {
            Token::Number(Number::Int(value)) => Ok(value),
            other => self.unexpected("an integer", other),
        }
    }

    /// An integer with an optional sign.
    pub(super) fn signed(&mut self) -> Result<i64> {
        let negative = self.eat(b'-')?;
        let value = self.int()? as i64;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    /// `+n`, `-n` or `+-n`, if one stands here.
    pub(super) fn offset(&mut self) -> Result<i64> {
        let plus = self.eat(b'+')?;
        if plus || self.lexer.peek()? == Token::Punct(b'-') { self.signed() } else { Ok(0) }
    }

    fn directive(&mut self, word: &'a str) -> Result<()> {
        match word {
            ".version" => self.version(),
            ".target" => {
                self.module.target = self.word("a target")?.to_owned();
                while self.eat(b',')? {
                    self.word("a target option")?;
                }
                Ok(())
            }
            ".address_size" => {
                self.module.address_size = self.int()?.min(u64::from(u32::MAX)) as u32;
                Ok(())
            }
            ".file" => self.file(),
            ".section" => self.section(),
            ".pragma" => self.pragma(),
            ".alias" => {
                let new = self.word("a name")?;
                self.expect(b',', "`,`")?;
                let old = self.word("a name")?;
                let pair = (self.module.intern(new), self.module.intern(old));
                self.module.aliases.push(pair);
                self.expect(b';', "`;`")
            }
            // Old debug information: the text runs to the next directive, and nothing emits it any
            // more.
            ".loc" => self.location().map(|_| ()),
            _ => self.declaration(word),
        }
    }

    fn version(&mut self) -> Result<()> {
        // `9.0` lexes as a float; the digits after the dot are a number of their own (`8.10` is
        // later than `8.9`), but no version so far has two of them.
        match self.lexer.next()? {
            Token::Number(Number::F64(bits)) => {
                let tenths = (f64::from_bits(bits) * 10.0).round().clamp(0.0, 1e6) as u32;
                self.module.version = (tenths / 10, tenths % 10);
            }
            Token::Number(Number::Int(major)) => self.module.version = (major.min(1_000_000) as u32, 0),
            other => return self.unexpected("a version", other),
        }
        Ok(())
    }

    pub(super) fn file(&mut self) -> Result<()> {
        let number = self.int()?;
        let name = match self.lexer.next()? {
            Token::Str(name) => name.to_owned(),
            other => return self.unexpected("a file name", other),
        };
        // Time stamp and size.
        while self.eat(b',')? {
            self.int()?;
        }
        self.module.files.push((number.min(u64::from(u32::MAX)) as u32, name));
        Ok(())
    }

    /// Skips `.section .debug_x { ... }`.
    fn section(&mut self) -> Result<()> {
        self.word("a section name")?;
        self.expect(b'{', "`{`")?;
        let mut depth = 1u32;
        while depth > 0 {
            match self.lexer.next()? {
                Token::Punct(b'{') => depth += 1,
                Token::Punct(b'}') => depth -= 1,
                Token::End => return self.lexer.fail(ParseErrorKind::UnexpectedEnd("a section")),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn pragma(&mut self) -> Result<()> {
        loop {
            match self.lexer.next()? {
                Token::Str(_) | Token::Punct(b',') => {}
                Token::Punct(b';') => return Ok(()),
                other => return self.unexpected("a pragma", other),
            }
        }
    }

    /// `.loc file line column[, function_name label[+n], inlined_at file line column]`, after the
    /// directive.
    pub(super) fn location(&mut self) -> Result<Location> {
        let cut = |value: u64| value.min(u64::from(u32::MAX)) as u32;
        let (file, line, column) = (cut(self.int()?), cut(self.int()?), cut(self.int()?));
        let mut location = Location { file, line, column, inlined_at: None };
        while self.eat(b',')? {
            match self.word("an attribute of .loc")? {
                "function_name" => {
                    self.word("a label")?;
                    self.offset()?;
                }
                _ => {
                    location.inlined_at = Some((cut(self.int()?), cut(self.int()?)));
                    self.int()?;
                }
            }
        }
        Ok(location)
    }

    /// A variable or function, from its first directive on.
    fn declaration(&mut self, first: &'a str) -> Result<()> {
        let mut linkage = Linkage::Internal;
        let mut word = first;
        loop {
            linkage = match word {
                ".extern" => Linkage::Extern,
                ".visible" => Linkage::Visible,
                ".weak" => Linkage::Weak,
                ".common" => Linkage::Common,
                _ => break,
            };
            word = self.word("a declaration")?;
        }
        match word {
            ".entry" => self.function(true, linkage),
            ".func" => self.function(false, linkage),
            _ => match space(word) {
                Some(space) => {
                    loop {
                        let variable = self.variable(space, linkage)?;
                        self.module.globals.push(variable);
                        if !self.eat(b',')? {
                            break;
                        }
                    }
                    self.expect(b';', "`;`")
                }
                None => self.lexer.fail(ParseErrorKind::UnknownDirective(word.chars().take(60).collect())),
            },
        }
    }

    /// A variable from after its space to before its `;`, `,` or `)`.
    pub(super) fn variable(&mut self, space: Space, linkage: Linkage) -> Result<Variable> {
        let mut align = 0u64;
        let mut vector = 1;
        let mut ty = None;
        let mut pointer = None;
        let name = loop {
            let word = self.word("a name")?;
            match word {
                // Of what a pointer points to, not of the parameter.
                ".align" if pointer.is_some() => _ = self.int()?,
                ".align" => align = self.int()?,
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                ".v8" => vector = 8,
                ".ptr" => pointer = Some(None),
                ".global" | ".const" | ".shared" | ".local" | ".param" if pointer.is_some() => {
                    pointer = Some(self::space(word));
                }
                // Attributes without meaning here: `.managed` changes who may touch a global, not
                // its layout.
                ".attribute" => self.parenthesised()?,
                _ if word.starts_with('.') => match Type::from_name(&word[1..]) {
                    Some(found) => ty = Some(found),
                    None => return self.lexer.fail(ParseErrorKind::UnknownType(word.chars().take(60).collect())),
                },
                _ => break word,
            }
        };
        let Some(ty) = ty else { return self.lexer.fail(ParseErrorKind::UnknownType(String::new())) };
        let mut dimensions: SmallVec<[u64; 3]> = SmallVec::new();
        while self.eat(b'[')? {
            if self.eat(b']')? {
                dimensions.push(0);
            } else {
                dimensions.push(self.int()?);
                self.expect(b']', "`]`")?;
            }
            if dimensions.len() > 16 {
                return self.lexer.fail(ParseErrorKind::Limit("dimensions"));
            }
        }
        let array = !dimensions.is_empty();
        let mut initial = Vec::new();
        let mut written = 0;
        if self.eat(b'=')? {
            written = self.initial(&dimensions, &mut initial)?;
        }
        if dimensions.first() == Some(&0) && written > 0 {
            let row = dimensions[1..].iter().fold(1u64, |a, &b| a.saturating_mul(b)).max(1);
            dimensions[0] = written.div_ceil(row);
        }
        let count = dimensions.iter().fold(1u64, |a, &b| a.saturating_mul(b));
        if count > 1 << 40 {
            return self.lexer.fail(ParseErrorKind::Limit("elements of a variable"));
        }
        let natural = ty.size() * vector;
        let align = if align == 0 { natural } else { align.min(1 << 20) as u32 };
        if !align.is_power_of_two() {
            return self.lexer.fail(ParseErrorKind::BadNumber(align.to_string()));
        }
        let name = self.module.intern(name);
        Ok(Variable { name, space, ty, vector, align, count, initial, linkage, pointer, array })
    }

    fn parenthesised(&mut self) -> Result<()> {
        self.expect(b'(', "`(`")?;
        let mut depth = 1u32;
        while depth > 0 {
            match self.lexer.next()? {
                Token::Punct(b'(') => depth += 1,
                Token::Punct(b')') => depth -= 1,
                Token::End => return self.lexer.fail(ParseErrorKind::UnexpectedEnd("an attribute")),
                _ => {}
            }
        }
        Ok(())
    }

    /// An initial value, nested braces flattened. Returns the number of elements it covers.
    fn initial(&mut self, dimensions: &[u64], out: &mut Vec<(u64, Initial)>) -> Result<u64> {
        let mut depth = 0usize;
        let mut index = 0u64;
        loop {
            match self.lexer.peek()? {
                Token::Punct(b'{') => {
                    self.lexer.next()?;
                    depth += 1;
                    if depth > 17 {
                        return self.lexer.fail(ParseErrorKind::Limit("nested braces"));
                    }
                    continue;
                }
                Token::Punct(b'}') if depth > 0 => {}
                _ => {
                    let value = self.initial_element()?;
                    if value != Initial::Bits(0) {
                        out.push((index, value));
                    }
                    index += 1;
                    if out.len() > MAX_INITIAL {
                        return self.lexer.fail(ParseErrorKind::Limit("initial values"));
                    }
                }
            }
            while depth > 0 && self.eat(b'}')? {
                // A closing brace completes a row of the dimensions inside it.
                let row =
                    dimensions.get(depth - 1..).unwrap_or(&[]).iter().fold(1u64, |a, &b| a.saturating_mul(b)).max(1);
                index = index.div_ceil(row).saturating_mul(row);
                depth -= 1;
            }
            if depth == 0 {
                return Ok(index);
            }
            self.expect(b',', "`,` or `}`")?;
        }
    }

    fn initial_element(&mut self) -> Result<Initial> {
        let negative = self.eat(b'-')?;
        match self.lexer.next()? {
            Token::Number(Number::Int(value)) if self.lexer.peek()? == Token::Punct(b'(') => {
                self.lexer.next()?;
                let word = self.word("a symbol")?;
                let mut symbol = self.symbol(word)?;
                self.expect(b')', "`)`")?;
                if let Initial::Symbol { mask, .. } = &mut symbol {
                    *mask = Some(value);
                }
                Ok(symbol)
            }
            Token::Number(Number::Int(value)) => Ok(Initial::Bits(if negative { value.wrapping_neg() } else { value })),
            Token::Number(Number::F32(bits)) => Ok(Initial::Bits(u64::from(bits))),
            Token::Number(Number::F64(bits)) => Ok(Initial::Bits(bits)),
            Token::Word(word) => self.symbol(word),
            other => self.unexpected("an initial value", other),
        }
    }

    /// `name`, `name+4`, `generic(name)`, `generic(name)+4`, `generic(name+4)`.
    fn symbol(&mut self, word: &'a str) -> Result<Initial> {
        let generic = word == "generic" && self.eat(b'(')?;
        let name = if generic { self.word("a symbol")? } else { word };
        let mut offset = self.offset()?;
        if generic {
            self.expect(b')', "`)`")?;
            offset = offset.wrapping_add(self.offset()?);
        }
        Ok(Initial::Symbol { name: self.module.intern(name), offset, generic, mask: None })
    }

    /// The parameters of a function or prototype, parentheses included, if there are any.
    pub(super) fn parameters(&mut self) -> Result<Vec<(Parameter, Option<Name>)>> {
        let mut out = Vec::new();
        if !self.eat(b'(')? || self.eat(b')')? {
            return Ok(out);
        }
        loop {
            match self.word("a parameter")? {
                ".param" => {
                    let variable = self.variable(Space::Param, Linkage::Internal)?;
                    out.push((Parameter::Space(variable, None), None));
                }
                ".reg" => {
                    let word = self.word("a type")?;
                    let Some(ty) = word.strip_prefix('.').and_then(Type::from_name) else {
                        return self.lexer.fail(ParseErrorKind::UnknownType(word.chars().take(60).collect()));
                    };
                    let name = self.word("a name")?;
                    out.push((Parameter::Register(ty, None), Some(self.module.intern(name))));
                }
                other => return self.unexpected("`.param` or `.reg`", Token::Word(other)),
            }
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b')', "`)`")?;
        Ok(out)
    }

    fn function(&mut self, kernel: bool, linkage: Linkage) -> Result<()> {
        let mut noreturn = false;
        // Attributes may stand before the return value.
        while self.lexer.peek()? == Token::Word(".attribute") {
            self.lexer.next()?;
            self.parenthesised()?;
        }
        let mut returns = self.parameters()?;
        let line = self.lexer.line();
        let name = self.word("a function name")?;
        let name = self.module.intern(name);
        let mut parameters = self.parameters()?;
        let mut tuning = Vec::new();
        let body = loop {
            match self.lexer.next()? {
                Token::Punct(b';') => break None,
                Token::Punct(b'{') => break Some(self.body(&mut returns, &mut parameters)?),
                Token::Word(".noreturn") => noreturn = true,
                Token::Word(".pragma") => self.pragma()?,
                Token::Word(".attribute") => self.parenthesised()?,
                Token::Word(word) if word.starts_with('.') => {
                    let name = self.module.intern(&word[1..]);
                    let mut values = SmallVec::new();
                    while matches!(self.lexer.peek()?, Token::Number(_)) && values.len() < 3 {
                        values.push(self.int()?);
                        self.eat(b',')?;
                    }
                    tuning.push(Tuning { name, values });
                }
                other => return self.unexpected("`{`, `;` or a directive of the function", other),
            }
        };
        let strip = |list: Vec<(Parameter, Option<Name>)>| list.into_iter().map(|(parameter, _)| parameter).collect();
        let (returns, parameters) = (strip(returns), strip(parameters));
        let function = Function { name, kernel, linkage, returns, parameters, noreturn, tuning, body, line };
        self.module.functions.push(function);
        Ok(())
    }
}

/// The state space of a directive.
pub(super) fn space(word: &str) -> Option<Space> {
    Some(match word {
        ".global" | ".tex" => Space::Global,
        ".shared" => Space::Shared,
        ".local" => Space::Local,
        ".const" => Space::Const,
        ".param" => Space::Param,
        _ => return None,
    })
}
