//! The grammar inside functions: scopes, declarations, labels, instructions and their operands.
//!
//! Owns everything between the braces of a function. Registers are numbered when first used, not
//! when declared: `.reg .b32 %r<4000000000>` costs nothing. Labels belong to the scope in which
//! they stand (inline assembly repeats them), and branches find them in their own or an outer
//! scope.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::ast::*;
use super::error::{ParseError, ParseErrorKind};
use super::lexer::{Number, Token};
use super::parser::{Parser, space};

type Result<T> = std::result::Result<T, ParseError>;

/// Scopes that may be open at once.
const MAX_DEPTH: usize = 200;

#[derive(Clone, Copy)]
enum Entity {
    Register(Register),
    Local(Local),
}

#[derive(Default)]
struct Scope<'a> {
    parent: usize,
    names: HashMap<Name, Entity>,
    /// Declared but unused single registers.
    single: HashMap<Name, Type>,
    /// `%r<10>`: prefix, count, type.
    ranges: Vec<(&'a str, u64, Type)>,
    labels: HashMap<Name, Label>,
}

/// Where a label is used before its scope is closed.
enum Use {
    Operand(usize, usize),
    Entry(usize, usize),
}

struct Pending {
    place: Use,
    name: Name,
    scope: usize,
    line: u32,
}

struct Builder<'a> {
    body: Body,
    scopes: Vec<Scope<'a>>,
    current: usize,
    depth: usize,
    pending: Vec<Pending>,
    location: Option<u32>,
}

impl<'a> Builder<'a> {
    fn find(&mut self, name: Name, word: &'a str) -> Option<Entity> {
        let mut at = self.current;
        loop {
            let scope = &mut self.scopes[at];
            if let Some(&entity) = scope.names.get(&name) {
                return Some(entity);
            }
            let single = scope.single.get(&name).copied();
            if let Some(ty) = single.or_else(|| in_range(&scope.ranges, word)) {
                let register = Register(self.body.registers.len() as u32);
                self.body.registers.push(RegisterInfo { name, ty });
                scope.names.insert(name, Entity::Register(register));
                return Some(Entity::Register(register));
            }
            if at == 0 {
                return None;
            }
            at = scope.parent;
        }
    }

    fn declare(&mut self, variable: Variable) -> Local {
        let local = Local(self.body.variables.len() as u32);
        self.scopes[self.current].names.insert(variable.name, Entity::Local(local));
        self.body.variables.push(variable);
        local
    }
}

fn in_range(ranges: &[(&str, u64, Type)], word: &str) -> Option<Type> {
    ranges.iter().find_map(|&(prefix, count, ty)| {
        let digits = word.strip_prefix(prefix)?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        (plain && digits.parse::<u64>().is_ok_and(|n| n < count)).then_some(ty)
    })
}

fn cut(word: &str) -> String {
    word.chars().take(60).collect()
}

impl<'a> Parser<'a> {
    /// The inside of a function, from after its `{` to after its `}`.
    pub(super) fn body(
        &mut self,
        returns: &mut [(Parameter, Option<Name>)],
        parameters: &mut [(Parameter, Option<Name>)],
    ) -> Result<Body> {
        let mut builder = Builder {
            body: Body::default(),
            scopes: vec![Scope::default()],
            current: 0,
            depth: 1,
            pending: Vec::new(),
            location: None,
        };
        for (parameter, name) in returns.iter_mut().chain(parameters.iter_mut()) {
            match parameter {
                Parameter::Space(variable, local) => *local = Some(builder.declare(variable.clone())),
                Parameter::Register(ty, register) => {
                    let Some(name) = *name else { continue };
                    let id = Register(builder.body.registers.len() as u32);
                    builder.body.registers.push(RegisterInfo { name, ty: *ty });
                    *register = Some(id);
                    builder.scopes[0].names.insert(name, Entity::Register(id));
                }
            }
        }
        while builder.depth > 0 {
            self.statement(&mut builder)?;
        }
        self.resolve(&mut builder)?;
        Ok(builder.body)
    }

    /// Fills in the labels that branches and jump tables name.
    fn resolve(&mut self, builder: &mut Builder<'a>) -> Result<()> {
        for pending in std::mem::take(&mut builder.pending) {
            let mut at = pending.scope;
            let found = loop {
                if let Some(&label) = builder.scopes[at].labels.get(&pending.name) {
                    break Some(label);
                }
                if at == 0 {
                    break None;
                }
                at = builder.scopes[at].parent;
            };
            let Some(label) = found else {
                let kind = ParseErrorKind::UnknownLabel(cut(self.module.name(pending.name)));
                return Err(ParseError { line: pending.line, kind });
            };
            match pending.place {
                Use::Operand(instruction, operand) => {
                    builder.body.code[instruction].operands[operand] = Operand::Label(label);
                }
                Use::Entry(table, entry) => builder.body.tables[table].1[entry] = label,
            }
        }
        // Jump tables and prototypes are named by the instructions that use them.
        let prototypes: HashMap<Name, u32> = builder.body.prototypes.iter().map(|p| p.name).zip(0..).collect();
        let tables: HashMap<Name, u32> = builder.body.tables.iter().map(|t| t.0).zip(0..).collect();
        for instruction in &mut builder.body.code {
            let wanted = match self.module.opcodes[instruction.opcode.index()].parts[0].as_str() {
                "brx" => 1,
                "call" => instruction.operands.len().wrapping_sub(1),
                _ => continue,
            };
            if let Some(Operand::Symbol(name, 0)) = instruction.operands.get(wanted) {
                if let Some(&found) = prototypes.get(name) {
                    instruction.operands[wanted] = Operand::Prototype(Prototype(found));
                } else if let Some(&found) = tables.get(name) {
                    instruction.operands[wanted] = Operand::Table(Table(found));
                }
            }
        }
        Ok(())
    }

    fn statement(&mut self, builder: &mut Builder<'a>) -> Result<()> {
        match self.lexer.next()? {
            Token::Punct(b'{') => {
                if builder.depth >= MAX_DEPTH {
                    return self.lexer.fail(ParseErrorKind::Limit("open scopes"));
                }
                builder.scopes.push(Scope { parent: builder.current, ..Scope::default() });
                builder.current = builder.scopes.len() - 1;
                builder.depth += 1;
                Ok(())
            }
            Token::Punct(b'}') => {
                builder.current = builder.scopes[builder.current].parent;
                builder.depth -= 1;
                Ok(())
            }
            Token::Punct(b';') => Ok(()),
            Token::Punct(b'@') => {
                let negated = self.eat(b'!')?;
                let word = self.word("a predicate")?;
                let Some(Entity::Register(register)) = self.entity(builder, word) else {
                    return self.unexpected("a predicate", Token::Word(word));
                };
                let line = self.lexer.line();
                let opcode = self.word("an instruction")?;
                self.instruction(builder, opcode, Some(Guard { register, negated }), line)
            }
            Token::Word(word) if word.starts_with('.') => self.inner_directive(builder, word),
            Token::Word(word) => {
                let line = self.lexer.line();
                if self.eat(b':')? { self.label(builder, word) } else { self.instruction(builder, word, None, line) }
            }
            other => self.unexpected("an instruction", other),
        }
    }

    fn entity(&mut self, builder: &mut Builder<'a>, word: &'a str) -> Option<Entity> {
        let name = self.module.intern(word);
        builder.find(name, word)
    }

    fn label(&mut self, builder: &mut Builder<'a>, word: &'a str) -> Result<()> {
        let name = self.module.intern(word);
        match self.lexer.peek()? {
            Token::Word(".branchtargets" | ".calltargets") => {
                let calls = self.word("a table")? == ".calltargets";
                let table = builder.body.tables.len();
                let mut entries = Vec::new();
                loop {
                    let line = self.lexer.line();
                    let target = self.word("a label")?;
                    if !calls {
                        let (place, name) = (Use::Entry(table, entries.len()), self.module.intern(target));
                        builder.pending.push(Pending { place, name, scope: builder.current, line });
                        entries.push(Label(u32::MAX));
                    }
                    if !self.eat(b',')? {
                        break;
                    }
                }
                builder.body.tables.push((name, entries));
                self.expect(b';', "`;`")
            }
            Token::Word(".callprototype") => {
                self.lexer.next()?;
                let strip = |list: Vec<(Parameter, Option<Name>)>| list.into_iter().map(|(p, _)| p).collect();
                let returns = strip(self.parameters()?);
                self.word("`_`")?;
                let parameters = strip(self.parameters()?);
                while !self.eat(b';')? {
                    match self.lexer.next()? {
                        Token::Word(_) | Token::Number(_) => {}
                        other => return self.unexpected("`;`", other),
                    }
                }
                builder.body.prototypes.push(PrototypeInfo { name, returns, parameters });
                Ok(())
            }
            _ => {
                let label = Label(builder.body.labels.len() as u32);
                builder.body.labels.push(LabelInfo { name, at: builder.body.code.len() as u32 });
                if builder.scopes[builder.current].labels.insert(name, label).is_some() {
                    return self.lexer.fail(ParseErrorKind::Duplicate(cut(word)));
                }
                Ok(())
            }
        }
    }

    fn inner_directive(&mut self, builder: &mut Builder<'a>, word: &'a str) -> Result<()> {
        match word {
            ".reg" => self.registers(builder),
            ".loc" => {
                let location = self.location()?;
                if builder.body.locations.last() != Some(&location) {
                    builder.body.locations.push(location);
                }
                builder.location = Some(builder.body.locations.len() as u32 - 1);
                Ok(())
            }
            ".file" => self.file(),
            ".pragma" => self.pragma(),
            // Visibility of a variable inside a function means nothing more.
            ".visible" | ".extern" | ".weak" => Ok(()),
            _ => match space(word) {
                Some(space) => {
                    loop {
                        let variable = self.variable(space, Linkage::Internal)?;
                        builder.declare(variable);
                        if !self.eat(b',')? {
                            break;
                        }
                    }
                    self.expect(b';', "`;`")
                }
                None => self.lexer.fail(ParseErrorKind::UnknownDirective(cut(word))),
            },
        }
    }

    /// `.reg .b32 %r<10>, %x;` after the directive.
    fn registers(&mut self, builder: &mut Builder<'a>) -> Result<()> {
        let word = self.word("a type")?;
        let Some(ty) = word.strip_prefix('.').and_then(Type::from_name) else {
            return self.lexer.fail(ParseErrorKind::UnknownType(cut(word)));
        };
        loop {
            let word = self.word("a register")?;
            let name = self.module.intern(word);
            let scope = builder.current;
            if self.eat(b'<')? {
                let count = self.int()?;
                self.expect(b'>', "`>`")?;
                builder.scopes[scope].ranges.push((word, count, ty));
            } else {
                builder.scopes[scope].single.insert(name, ty);
            }
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b';', "`;`")
    }

    fn instruction(
        &mut self,
        builder: &mut Builder<'a>,
        opcode: &'a str,
        guard: Option<Guard>,
        line: u32,
    ) -> Result<()> {
        let branch = opcode == "bra" || opcode == "bra.uni";
        let opcode = self.module.intern_opcode(opcode);
        let index = builder.body.code.len();
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        if branch {
            let line = self.lexer.line();
            let target = self.word("a label")?;
            let name = self.module.intern(target);
            builder.pending.push(Pending { place: Use::Operand(index, 0), name, scope: builder.current, line });
            operands.push(Operand::Label(Label(u32::MAX)));
            self.expect(b';', "`;`")?;
        } else if !self.eat(b';')? {
            loop {
                let operand = self.operand(builder, 0)?;
                operands.push(operand);
                if operands.len() > 64 {
                    return self.lexer.fail(ParseErrorKind::Limit("operands"));
                }
                if self.eat(b';')? {
                    break;
                }
                self.expect(b',', "`,` or `;`")?;
            }
        }
        builder.body.code.push(Instruction { opcode, guard, operands, line, location: builder.location });
        Ok(())
    }

    fn operand(&mut self, builder: &mut Builder<'a>, depth: u32) -> Result<Operand> {
        if depth > 3 {
            return self.lexer.fail(ParseErrorKind::Limit("nested operands"));
        }
        let operand = match self.lexer.next()? {
            Token::Punct(b'{') => Operand::Vector(self.operands(builder, depth, b'}')?),
            Token::Punct(b'(') => Operand::List(self.operands(builder, depth, b')')?),
            Token::Punct(b'[') => self.memory(builder, depth)?,
            Token::Punct(b'!') => {
                let word = self.word("a predicate")?;
                match self.entity(builder, word) {
                    Some(Entity::Register(register)) => Operand::Not(register),
                    _ => return self.unexpected("a predicate", Token::Word(word)),
                }
            }
            Token::Punct(b'-') => match self.lexer.next()? {
                Token::Number(Number::Int(value)) => Operand::Int(value.wrapping_neg()),
                Token::Number(Number::F32(bits)) => Operand::F32(bits ^ 1 << 31),
                Token::Number(Number::F64(bits)) => Operand::F64(bits ^ 1 << 63),
                other => return self.unexpected("a number", other),
            },
            Token::Number(Number::Int(value)) => Operand::Int(value),
            Token::Number(Number::F32(bits)) => Operand::F32(bits),
            Token::Number(Number::F64(bits)) => Operand::F64(bits),
            Token::Word("_") => Operand::Sink,
            Token::Word(word) => match self.entity(builder, word) {
                Some(Entity::Register(register)) => Operand::Register(register),
                Some(Entity::Local(local)) => Operand::Local(local, self.offset()?),
                None if word.starts_with('%') || word == "WARP_SZ" => Operand::Special(self.module.intern(word)),
                None => {
                    let name = self.module.intern(word);
                    Operand::Symbol(name, self.offset()?)
                }
            },
            other => return self.unexpected("an operand", other),
        };
        if self.eat(b'|')? {
            let second = self.operand(builder, depth + 1)?;
            return Ok(Operand::Pair(Box::new((operand, second))));
        }
        Ok(operand)
    }

    fn operands(&mut self, builder: &mut Builder<'a>, depth: u32, close: u8) -> Result<Vec<Operand>> {
        let mut out = Vec::new();
        if self.eat(close)? {
            return Ok(out);
        }
        loop {
            let operand = self.operand(builder, depth + 1)?;
            out.push(operand);
            if out.len() > 1024 {
                return self.lexer.fail(ParseErrorKind::Limit("operands of a list"));
            }
            if self.eat(close)? {
                return Ok(out);
            }
            self.expect(b',', "`,` or a closing bracket")?;
        }
    }

    /// A memory operand, after its `[`.
    fn memory(&mut self, builder: &mut Builder<'a>, depth: u32) -> Result<Operand> {
        let (base, mut offset) = match self.lexer.next()? {
            Token::Word(word) => match self.entity(builder, word) {
                Some(Entity::Register(register)) => (AddressBase::Register(register), 0),
                Some(Entity::Local(local)) => (AddressBase::Local(local), 0),
                None => (AddressBase::Symbol(self.module.intern(word)), 0),
            },
            Token::Number(Number::Int(value)) => (AddressBase::Zero, value as i64),
            Token::Punct(b'-') => (AddressBase::Zero, self.signed()?.wrapping_neg()),
            other => return self.unexpected("an address", other),
        };
        offset = self.offset()?.wrapping_add(offset);
        if self.eat(b']')? {
            return Ok(Operand::Memory(base, offset));
        }
        self.expect(b',', "`]` or `,`")?;
        let rest = self.operands(builder, depth, b']')?;
        Ok(Operand::MemoryList(Box::new((base, offset, rest))))
    }
}
