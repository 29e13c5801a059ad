//! The syntax tree of a PTX module: what was declared, and which instructions stand where.
//!
//! Owns the tree. Names are interned. Registers, labels and function-scope variables are resolved
//! to dense numbers. What an opcode means is left to the users of the tree (the interpreter of the
//! simulator, and `lower_ptx`).

use std::collections::HashMap;

use smallvec::SmallVec;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A name of the module, see [`Module::name`].
    Name
);
id!(
    /// A register of one function: an index into [`Body::registers`].
    Register
);
id!(
    /// A label of one function: an index into [`Body::labels`].
    Label
);
id!(
    /// A variable of one function: an index into [`Body::variables`].
    Local
);
id!(
    /// A jump table of one function: an index into [`Body::tables`].
    Table
);
id!(
    /// A call prototype of one function: an index into [`Body::prototypes`].
    Prototype
);
id!(
    /// An opcode with all its modifiers: an index into [`Module::opcodes`].
    Opcode
);

/// A state space that variables live in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory.
    Global,
    /// Memory of one block.
    Shared,
    /// Memory of one thread.
    Local,
    /// Read-only memory of the module.
    Const,
    /// Parameters of kernels, of functions, and of calls.
    Param,
}

/// A type of a register, variable or instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Type {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
    Pred,
}

impl Type {
    /// The type of that name (without the dot), if it is one of registers and variables.
    pub fn from_name(name: &str) -> Option<Type> {
        Some(match name {
            "b8" => Type::B8,
            "b16" => Type::B16,
            "b32" => Type::B32,
            "b64" | "texref" | "samplerref" | "surfref" => Type::B64,
            "b128" => Type::B128,
            "u8" => Type::U8,
            "u16" => Type::U16,
            "u32" => Type::U32,
            "u64" => Type::U64,
            "s8" => Type::S8,
            "s16" => Type::S16,
            "s32" => Type::S32,
            "s64" => Type::S64,
            "f16" => Type::F16,
            "f16x2" => Type::F16x2,
            "bf16" => Type::Bf16,
            "bf16x2" => Type::Bf16x2,
            "f32" => Type::F32,
            "f64" => Type::F64,
            "pred" => Type::Pred,
            _ => return None,
        })
    }

    /// Size in bytes; 1 for predicates.
    pub fn size(self) -> u32 {
        match self {
            Type::B8 | Type::U8 | Type::S8 | Type::Pred => 1,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 => 2,
            Type::B32 | Type::U32 | Type::S32 | Type::F32 | Type::F16x2 | Type::Bf16x2 => 4,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 8,
            Type::B128 => 16,
        }
    }
}

/// Who can see a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Linkage {
    /// Only this module.
    #[default]
    Internal,
    /// Defined here, seen by others.
    Visible,
    /// Defined elsewhere.
    Extern,
    /// Defined here unless another module does.
    Weak,
    /// One of several tentative definitions.
    Common,
}

/// One element of a variable's initial value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initial {
    /// Bits, cut to the element's size when stored.
    Bits(u64),
    /// The address of a symbol.
    Symbol {
        /// Whose address.
        name: Name,
        /// Added to it.
        offset: i64,
        /// True for `generic(symbol)`: the generic address rather than the one within its state
        /// space.
        generic: bool,
        /// `0xFF00(symbol)`: only these bits of the address, shifted down to bit 0.
        mask: Option<u64>,
    },
}

/// A declared variable or parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: Name,
    /// Where it lives.
    pub space: Space,
    /// Type of one element.
    pub ty: Type,
    /// 1, 2 or 4 (`.v2`, `.v4`).
    pub(crate) vector: u32,
    /// Alignment in bytes (the element's size when the text gives none).
    pub align: u32,
    /// Elements, 0 for an array without a size (dynamic shared memory).
    pub count: u64,
    /// The first elements' initial values; the rest is zero.
    pub initial: Vec<(u64, Initial)>,
    /// Who can see it.
    pub linkage: Linkage,
    /// A kernel parameter marked `.ptr`: the space it points to, `None` for generic.
    pub(crate) pointer: Option<Option<Space>>,
    /// True when the text has `[]` or `[n]` after the name.
    pub(crate) array: bool,
}

impl Variable {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.count.saturating_mul(u64::from(self.ty.size() * self.vector))
    }
}

/// A parameter or return value of a function: in the parameter space, or in a register.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// `.param`: a variable of the function (of none in a prototype or a declaration without a
    /// body).
    Space(Variable, Option<Local>),
    /// `.reg`: a register of the function.
    Register(Type, Option<Register>),
}

/// Limits and hints of a kernel (`.maxntid` and its kin): the name without the dot, and up to three
/// numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    /// The directive.
    pub name: Name,
    /// Its numbers.
    pub values: SmallVec<[u64; 3]>,
}

/// A kernel (`.entry`) or device function (`.func`), declared or defined.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// True for `.entry`.
    pub kernel: bool,
    /// Who can see it.
    pub(crate) linkage: Linkage,
    /// Return values.
    pub returns: Vec<Parameter>,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// `.noreturn`.
    pub(crate) noreturn: bool,
    /// Limits and hints.
    pub tuning: Vec<Tuning>,
    /// None for a declaration.
    pub body: Option<Body>,
    /// Line of its head.
    pub(crate) line: u32,
}

impl Function {
    /// The numbers of a limit or hint; none: 1 (PTX ISA, "Performance-Tuning Directives").
    #[must_use]
    pub fn tuned(&self, module: &Module, directive: &str) -> Option<[u32; 3]> {
        let tuning = self.tuning.iter().find(|tuning| module.name(tuning.name) == directive)?;
        Some([0, 1, 2].map(|at| tuning.values.get(at).map_or(1, |&n| u32::try_from(n).unwrap_or(u32::MAX))))
    }

    /// Blocks a cluster and axis, where the code fixes them (PTX ISA, "Cluster Dimension
    /// Directives").
    #[must_use]
    pub fn cluster(&self, module: &Module) -> Option<[u32; 3]> {
        self.tuned(module, "reqnctapercluster")
    }
}

/// A register that a function uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Its name.
    pub(crate) name: Name,
    /// Its type.
    pub ty: Type,
}

/// A label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelInfo {
    /// Its name (labels of different scopes may share one).
    pub(crate) name: Name,
    /// The instruction it stands before; equals the number of instructions at the end of the
    /// function.
    pub at: u32,
}

/// The head of a function that is called through a register.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PrototypeInfo {
    /// The label it is declared under.
    pub(crate) name: Name,
    /// Return values.
    pub(crate) returns: Vec<Parameter>,
    /// Parameters.
    pub(crate) parameters: Vec<Parameter>,
}

/// A source position from `.loc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Location {
    /// Number of the file, see [`Module::files`].
    pub file: u32,
    /// Line, counted from 1; 0 for none.
    pub line: u32,
    /// Column.
    pub(crate) column: u32,
    /// File and line of the call, in a function that was inlined.
    pub inlined_at: Option<(u32, u32)>,
}

/// What is inside a function.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    /// Registers that are used (not: declared).
    pub registers: Vec<RegisterInfo>,
    /// Variables of all its scopes, parameters and return values first.
    pub variables: Vec<Variable>,
    /// Labels.
    pub labels: Vec<LabelInfo>,
    /// `.branchtargets` and `.calltargets`: label and entries.
    pub tables: Vec<(Name, Vec<Label>)>,
    /// `.callprototype`.
    pub(crate) prototypes: Vec<PrototypeInfo>,
    /// Source positions that instructions refer to.
    pub locations: Vec<Location>,
    /// The instructions in order.
    pub code: Vec<Instruction>,
}

/// `@p` or `@!p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub register: Register,
    /// True for `@!p`.
    pub negated: bool,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Opcode and modifiers.
    pub opcode: Opcode,
    /// Its predicate.
    pub guard: Option<Guard>,
    /// Its operands in order.
    pub operands: SmallVec<[Operand; 4]>,
    /// Line of the PTX text.
    pub line: u32,
    /// Index into [`Body::locations`].
    pub location: Option<u32>,
}

/// What an address is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressBase {
    /// A register.
    Register(Register),
    /// A variable of the function.
    Local(Local),
    /// A symbol of the module.
    Symbol(Name),
    /// Nothing: an absolute address.
    Zero,
}

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// `%r1`
    Register(Register),
    /// `!%p1`
    Not(Register),
    /// An integer, two's complement.
    Int(u64),
    /// Bits of a single.
    F32(u32),
    /// Bits of a double.
    F64(u64),
    /// `%tid.x`, `WARP_SZ`: the name with the percent sign and component.
    Special(Name),
    /// The address of a variable of the function.
    Local(Local, i64),
    /// The address of a symbol of the module.
    Symbol(Name, i64),
    /// `[base+offset]`
    Memory(AddressBase, i64),
    /// `[base, {x, y}]`: a texture or tensor address, or a memory operand with more parts.
    MemoryList(Box<(AddressBase, i64, Vec<Operand>)>),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `(a, b)` of a call.
    List(Vec<Operand>),
    /// `a|b`
    Pair(Box<(Operand, Operand)>),
    /// A branch target.
    Label(Label),
    /// A jump table.
    Table(Table),
    /// A call prototype.
    Prototype(Prototype),
    /// `_`
    Sink,
}

/// An opcode cut at its dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpcodeInfo {
    /// The whole of it, `ld.global.f32`.
    pub text: String,
    /// Its parts, `ld`, `global`, `f32`.
    pub parts: Vec<String>,
}

/// A parsed PTX text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module {
    /// `.version`
    pub version: (u32, u32),
    /// `.target`, the first word: `sm_80`, `sm_90a`.
    pub target: String,
    /// `.address_size`, 64 when the text says nothing.
    pub(crate) address_size: u32,
    /// `.file`: number and name.
    pub(crate) files: Vec<(u32, String)>,
    /// Variables of the module.
    pub globals: Vec<Variable>,
    /// Functions, declarations and definitions, as they come.
    pub functions: Vec<Function>,
    /// `.alias new, old`
    pub aliases: Vec<(Name, Name)>,
    /// Opcodes in use.
    pub(crate) opcodes: Vec<OpcodeInfo>,
    pub(super) names: Vec<String>,
    pub(super) by_name: HashMap<String, Name>,
    pub(super) by_opcode: HashMap<String, Opcode>,
}

impl Module {
    /// The text of a name.
    pub fn name(&self, name: Name) -> &str {
        self.names.get(name.index()).map_or("", String::as_str)
    }

    /// The interned form of a text, if the module uses it.
    pub fn find_name(&self, text: &str) -> Option<Name> {
        self.by_name.get(text).copied()
    }

    /// The parts of an opcode.
    pub fn opcode(&self, opcode: Opcode) -> &OpcodeInfo {
        &self.opcodes[opcode.index()]
    }

    /// The definition of a function, or its declaration when there is none, following aliases.
    pub fn function(&self, name: Name) -> Option<&Function> {
        let name = self.aliases.iter().find(|(new, _)| *new == name).map_or(name, |&(_, old)| old);
        let mut found = None;
        for function in self.functions.iter().filter(|function| function.name == name) {
            if function.body.is_some() {
                return Some(function);
            }
            found = Some(function);
        }
        found
    }

    /// The name of a source file of `.loc`.
    pub fn file(&self, number: u32) -> Option<&str> {
        self.files.iter().find(|(n, _)| *n == number).map(|(_, name)| name.as_str())
    }

    pub(super) fn intern(&mut self, text: &str) -> Name {
        if let Some(&name) = self.by_name.get(text) {
            return name;
        }
        let name = Name(self.names.len() as u32);
        self.names.push(text.to_owned());
        self.by_name.insert(text.to_owned(), name);
        name
    }

    pub(super) fn intern_opcode(&mut self, text: &str) -> Opcode {
        if let Some(&opcode) = self.by_opcode.get(text) {
            return opcode;
        }
        let opcode = Opcode(self.opcodes.len() as u32);
        let parts = text.split('.').map(str::to_owned).collect();
        self.opcodes.push(OpcodeInfo { text: text.to_owned(), parts });
        self.by_opcode.insert(text.to_owned(), opcode);
        opcode
    }
}
