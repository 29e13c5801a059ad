//! The values of registers while a region is compiled, and the machine's variables that hold them.
//! `forms` makes one form of a value (integer, float) of another.

mod forms;

use std::collections::HashMap;

use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, FuncRef, GlobalValueData, InstBuilder, MemFlagsData, SigRef, Signature, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

use super::context::{RegionContext, at};
use super::effects::Register;
use super::flow::{Flow, ValueForm, constant};
use super::relocations::{Keeper, Outside, distance_of};
use sim_exec::program::{Pred, Program, Slot};

/// One value in the forms that it has been asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    pub(crate) word: Option<Value>,
    pub(crate) long: Option<Value>,
    pub(crate) single: Option<Value>,
    pub(crate) double: Option<Value>,
    /// A NaN in `single` may be any.
    pub(crate) loose: bool,
}

impl Held {
    pub(super) fn word(value: Value) -> Held {
        Held { word: Some(value), ..Held::default() }
    }
    pub(super) fn long(value: Value) -> Held {
        Held { long: Some(value), ..Held::default() }
    }
    pub(super) fn single(value: Value, loose: bool) -> Held {
        Held { single: Some(value), loose, ..Held::default() }
    }
    pub(super) fn double(value: Value) -> Held {
        Held { double: Some(value), ..Held::default() }
    }
}

/// Memory that does not change while a region runs.
pub(super) fn fixed() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_readonly().with_can_move()
}

/// Memory that is there.
pub(super) fn plain() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// The values of one region.
pub(super) struct Values<'p, 'b> {
    pub(crate) program: &'p Program,
    pub(crate) flow: &'p Flow,
    pub(crate) b: FunctionBuilder<'b>,
    variables: HashMap<usize, Variable>,
    current: HashMap<u32, Held>,
    /// The same variables of the other half of a whole warp.
    other: HashMap<usize, Variable>,
    pub(crate) context: Value,
    /// The lane's number, and the address of its element of row 0.
    pub(crate) lane: Value,
    pub(crate) row: Value,
    /// How functions of the host are called.
    pub(crate) convention: CallConv,
    /// How functions that keep all registers are called.
    apart: Option<SigRef>,
    /// What is called so far, by the numbers of its name and of arguments.
    called: HashMap<(u32, u32, usize), FuncRef>,
    /// The guard of the instruction that is being compiled, when it has one.
    pub(crate) guard: Option<Value>,
}

impl<'p, 'b> Values<'p, 'b> {
    pub(super) fn new(
        program: &'p Program,
        flow: &'p Flow,
        b: FunctionBuilder<'b>,
        context: Value,
        convention: CallConv,
    ) -> Self {
        Values {
            program,
            flow,
            b,
            variables: HashMap::new(),
            current: HashMap::new(),
            other: HashMap::new(),
            context,
            lane: context,
            row: context,
            convention,
            apart: None,
            called: HashMap::new(),
            guard: None,
        }
    }

    /// Which forms values are at hand in.
    pub(super) fn at_hand(&self) -> HashMap<u32, Held> {
        self.current.clone()
    }

    /// Goes back to what was at hand.
    pub(super) fn restore(&mut self, known: HashMap<u32, Held>) {
        self.current = known;
    }

    /// Calls a function of the host through one that keeps all registers: five numbers.
    pub(super) fn call_keeper(&mut self, keeper: Keeper, arguments: [Value; 5]) {
        let signature = match self.apart {
            Some(known) => known,
            None => {
                let mut signature = Signature::new(CallConv::PreserveAll);
                signature.params.extend([AbiParam::new(types::I64); 5]);
                let new = self.b.import_signature(signature);
                self.apart = Some(new);
                new
            }
        };
        let callee = self.callee(Outside::Keeper(keeper), arguments.len(), |_| signature);
        self.b.ins().call(callee, &arguments);
    }

    /// A function outside that is called with so many arguments.
    fn callee(&mut self, outside: Outside, arguments: usize, signature: impl FnOnce(&mut Self) -> SigRef) -> FuncRef {
        let (kind, index) = outside.numbers();
        if let Some(&known) = self.called.get(&(kind, index, arguments)) {
            return known;
        }
        let (signature, name) = (signature(self), outside.name(self.b.func));
        let new = self.b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false });
        self.called.insert((kind, index, arguments), new);
        new
    }

    /// Calls a function of integers of this library, which gives one.
    pub(super) fn call(&mut self, function: usize, arguments: &[Value]) -> Value {
        let callee = self.callee(Outside::function(function), arguments.len(), |v| {
            let mut signature = Signature::new(v.convention);
            signature.params.extend(arguments.iter().map(|_| AbiParam::new(types::I64)));
            signature.returns.push(AbiParam::new(types::I64));
            v.b.import_signature(signature)
        });
        let call = self.b.ins().call(callee, arguments);
        self.b.inst_results(call)[0]
    }

    /// The address of something outside.
    pub(super) fn address_of(&mut self, outside: Outside) -> Value {
        let name = outside.name(self.b.func);
        let data = GlobalValueData::Symbol { name, offset: Imm64::new(0), colocated: false, tls: false };
        let global = self.b.create_global_value(data);
        self.b.ins().symbol_value(types::I64, global)
    }

    /// What names a function of this library to what calls it.
    pub(super) fn function(&mut self, function: usize) -> Value {
        self.int(types::I64, distance_of(function))
    }

    /// Forgets which forms values are at hand in: another block begins.
    pub(super) fn forget(&mut self) {
        self.current.clear();
    }

    /// Does something with the values of the other half of a whole warp. What is at hand of this
    /// one stays so.
    pub(super) fn with_other_half<R>(&mut self, first: usize, f: impl FnOnce(&mut Self) -> R) -> R {
        let (lane, row, known) = self.go_to_other_half(first);
        let result = f(self);
        self.come_back(lane, row, known);
        result
    }

    /// From now on the other half's values are named. Returns what [`Self::come_back`] needs.
    pub(super) fn go_to_other_half(&mut self, first: usize) -> (Value, Value, HashMap<u32, Held>) {
        let kept = (self.lane, self.row, std::mem::take(&mut self.current));
        std::mem::swap(&mut self.variables, &mut self.other);
        self.lane = self.b.ins().iadd_imm_s(kept.0, first as i64);
        self.row = self.b.ins().iadd_imm_s(kept.1, 8 * first as i64);
        kept
    }

    pub(super) fn come_back(&mut self, lane: Value, row: Value, known: HashMap<u32, Held>) {
        std::mem::swap(&mut self.variables, &mut self.other);
        (self.lane, self.row, self.current) = (lane, row, known);
    }

    fn ty(&self, register: Register) -> Type {
        match register {
            Register::Pred(_) => types::I8,
            Register::Row(row) => match self.flow.form(row) {
                ValueForm::Word => types::I32,
                ValueForm::Double => types::I64,
                ValueForm::Single => types::F32,
                ValueForm::LongFloat => types::F64,
            },
        }
    }

    fn variable(&mut self, register: Register) -> Variable {
        let (index, ty) = (self.flow.index(register), self.ty(register));
        match self.variables.get(&index) {
            Some(&known) => known,
            None => {
                let new = self.b.declare_var(ty);
                self.variables.insert(index, new);
                new
            }
        }
    }

    /// A number; of a vector type, the same in each of its parts.
    pub(super) fn int(&mut self, ty: Type, value: u64) -> Value {
        if ty.is_vector() {
            let part = self.int(ty.lane_type(), value);
            return self.b.ins().splat(ty, part);
        }
        let value = if ty == types::I64 { value as i64 } else { (value & ((1 << ty.bits()) - 1)) as i64 };
        self.b.ins().iconst(ty, value)
    }

    /// A field of the context.
    pub(super) fn field(&mut self, ty: Type, offset: usize) -> Value {
        let context = self.context;
        self.b.ins().load(ty, fixed(), context, offset as i32)
    }

    /// Takes a register's value from the frame.
    pub(super) fn enter(&mut self, register: Register) {
        let variable = self.variable(register);
        let value = match register {
            Register::Row(row) => {
                let (ty, base) = (self.ty(register), self.row);
                self.b.ins().load(ty, plain(), base, row as i32 * 256)
            }
            Register::Pred(pred) => self.mask_bit(pred),
        };
        self.b.def_var(variable, value);
        if let Register::Row(row) = register {
            self.current.remove(&row);
        }
    }

    fn mask_bit(&mut self, pred: u32) -> Value {
        let base = self.b.ins().load(types::I64, fixed(), self.context, at!(preds));
        let word = self.b.ins().load(types::I32, plain(), base, pred as i32 * 4);
        let lane = self.lane;
        let shifted = self.b.ins().ushr(word, lane);
        let bit = self.b.ins().band_imm_u(shifted, 1);
        self.b.ins().ireduce(types::I8, bit)
    }

    /// The value of a register's variable.
    pub(super) fn get(&mut self, register: Register) -> Value {
        let variable = self.variable(register);
        self.b.use_var(variable)
    }

    /// Gives a register's variable a value.
    pub(super) fn put(&mut self, register: Register, value: Value) {
        let variable = self.variable(register);
        self.b.def_var(variable, value);
        if let Register::Row(row) = register {
            self.current.remove(&row);
        }
    }

    /// What a function of the host has left in the context.
    pub(super) fn found(&mut self) -> Value {
        let context = self.context;
        self.b.ins().load(types::I64, plain(), context, at!(found))
    }

    /// Puts a register's value into the frame.
    pub(super) fn leave(&mut self, register: Register) {
        match register {
            Register::Row(row) => {
                let value = self.long(Slot(row));
                let base = self.row;
                self.b.ins().store(plain(), value, base, row as i32 * 256);
            }
            Register::Pred(pred) => {
                let base = self.b.ins().load(types::I64, fixed(), self.context, at!(preds));
                let word = self.b.ins().load(types::I32, plain(), base, pred as i32 * 4);
                let one = self.int(types::I32, 1);
                let lane = self.lane;
                let bit = self.b.ins().ishl(one, lane);
                let rest = self.b.ins().band_not(word, bit);
                let variable = self.variable(register);
                let value = self.b.use_var(variable);
                let value = self.b.ins().uextend(types::I32, value);
                let value = self.b.ins().ishl(value, lane);
                let word = self.b.ins().bor(rest, value);
                self.b.ins().store(plain(), word, base, pred as i32 * 4);
            }
        }
    }

    /// The value of an operand in the forms that are at hand.
    pub(super) fn held(&mut self, slot: Slot) -> Held {
        if slot.0 & Slot::CONSTANT != 0 {
            return match constant(self.program, slot) {
                Some(value) => {
                    let word = self.int(types::I32, value);
                    let long = self.int(types::I64, value);
                    Held { word: Some(word), long: Some(long), ..Held::default() }
                }
                None => {
                    let base = self.field(types::I64, std::mem::offset_of!(RegionContext, constants));
                    let offset = (slot.0 & !Slot::CONSTANT) as i32 * 256;
                    Held::long(self.b.ins().load(types::I64, fixed(), base, offset))
                }
            };
        }
        if let Some(&known) = self.current.get(&slot.0) {
            return known;
        }
        let register = Register::Row(slot.0);
        let variable = self.variable(register);
        let value = self.b.use_var(variable);
        let held = match self.flow.form(slot.0) {
            ValueForm::Word => Held::word(value),
            ValueForm::Double => Held::long(value),
            ValueForm::Single => Held::single(value, self.flow.loose.has(slot.0 as usize)),
            ValueForm::LongFloat => Held::double(value),
        };
        self.current.insert(slot.0, held);
        held
    }

    fn keep(&mut self, slot: Slot, held: Held) {
        if slot.0 & Slot::CONSTANT == 0 {
            self.current.insert(slot.0, held);
        }
    }

    /// Gives a row a value, where the guard holds.
    pub(super) fn define(&mut self, slot: Slot, value: Held) {
        if slot == Slot::NONE || slot.0 & Slot::CONSTANT != 0 {
            return;
        }
        let mut value = value;
        if let Some(guard) = self.guard {
            let mut old = self.held(slot);
            let merged = if let Some(new) = value.single {
                let before = self.single_of(&mut old, true);
                let may = self.flow.loose.has(slot.0 as usize);
                let loose = [(new, value.loose), (before, old.loose)];
                self.either(guard, loose, may)
            } else if let Some(new) = value.double {
                let before = self.double_of(&mut old);
                Held::double(self.b.ins().select(guard, new, before))
            } else if let (Some(new), true) = (value.word, self.flow.form(slot.0) == ValueForm::Word) {
                let before = self.word_of(&mut old);
                Held::word(self.b.ins().select(guard, new, before))
            } else {
                let new = self.long_of(&mut value);
                let before = self.long_of(&mut old);
                Held::long(self.b.ins().select(guard, new, before))
            };
            value = merged;
        }
        let variable = self.variable(Register::Row(slot.0));
        let kept = match self.flow.form(slot.0) {
            ValueForm::Word => self.word_of(&mut value.clone()),
            ValueForm::Double => self.long_of(&mut value.clone()),
            ValueForm::Single => {
                let loose = self.flow.loose.has(slot.0 as usize);
                self.single_of(&mut value.clone(), loose)
            }
            ValueForm::LongFloat => self.double_of(&mut value.clone()),
        };
        self.b.def_var(variable, kept);
        self.current.insert(slot.0, value);
    }

    /// One of two singles, each with whether its NaN may be any; `may`: so may that of the result.
    pub(super) fn either(&mut self, by: Value, [(a, any_a), (b, any_b)]: [(Value, bool); 2], may: bool) -> Held {
        let loose = any_a && any_b || may && (any_a || any_b);
        let a = if any_a && !loose { self.strict(a) } else { a };
        let b = if any_b && !loose { self.strict(b) } else { b };
        Held::single(self.b.ins().select(by, a, b), loose)
    }

    /// The truth (0 or 1) of a predicate, as instructions name it.
    pub(super) fn truth(&mut self, pred: u32) -> Value {
        let negated = pred & Pred::NEGATED != 0;
        let number = pred & !Pred::NEGATED;
        if number == Pred::ALWAYS.0 {
            return self.int(types::I8, u64::from(!negated));
        }
        let variable = self.variable(Register::Pred(number));
        let value = self.b.use_var(variable);
        if negated { self.b.ins().bxor_imm_u(value, 1) } else { value }
    }

    /// Gives a predicate a truth, where the guard holds.
    pub(super) fn set(&mut self, pred: u32, value: Value) {
        if pred == Pred::ALWAYS.0 {
            return;
        }
        let variable = self.variable(Register::Pred(pred));
        let value = match self.guard {
            Some(guard) => {
                let old = self.b.use_var(variable);
                self.b.ins().select(guard, value, old)
            }
            None => value,
        };
        self.b.def_var(variable, value);
    }

    pub(super) fn not(&mut self, truth: Value) -> Value {
        self.b.ins().bxor_imm_u(truth, 1)
    }
}
