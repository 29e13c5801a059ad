//! Generated kernels: syntax trees at random, their text in CUDA C++, and an interpreter of one
//! thread.
//!
//! Owns the generator's language. What the analysis says of a kernel is compared in `ranges_fuzz`.

use kernels::AccessKind;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::fmt::Write;

/// xorshift64*
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }
    pub fn pick<T: Copy>(&mut self, v: &[T]) -> T {
        v[self.below(v.len() as u64) as usize]
    }
}

/// 32-bit unsigned expressions, wrapping.
pub enum Expr {
    Leaf(&'static str),
    Num(u32),
    Var(usize),
    Bin(&'static str, Box<Expr>, Box<Expr>),
    Sel(Box<Cond>, Box<Expr>, Box<Expr>),
}

pub struct Cond {
    op: &'static str,
    signed: bool,
    a: Expr,
    b: Expr,
}

/// A statement of a kernel.
pub enum Stmt {
    /// pointer, kind, wide elements, sign-extended index, index
    Access(u8, AccessKind, bool, bool, Expr),
    If(Cond, Vec<Stmt>, Vec<Stmt>),
    Return(Cond),
    For(Loop),
    /// The innermost loop ends, or its next turn begins.
    Leave(Cond),
    Continue(Cond),
    /// One or the other, as data say.
    Ask(Vec<Stmt>, Vec<Stmt>),
    /// Again and again, until data say otherwise.
    Wait(Vec<Stmt>),
    /// A variable gets another value.
    Set(usize, Expr),
}

/// A loop that counts.
pub struct Loop {
    var: usize,
    start: Expr,
    bound: Expr,
    next: Expr,
    signed: bool,
    /// It goes on until the variable is the bound, and not as long as it is smaller.
    until_equal: bool,
    body: Vec<Stmt>,
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Through,
    Leaves,
    Continues,
    Returns,
}

const LEAVES: [&str; 9] = ["tx", "ty", "bx", "by", "i", "n", "m", "d", "i"];

fn expr(r: &mut Rng, depth: u32, vars: usize) -> Expr {
    if depth == 0 || r.below(4) == 0 {
        return match r.below(5) {
            0 => Expr::Num(r.pick(&[0, 1, 2, 3, 4, 7, 8, 31, 32, 100, 1000])),
            1 | 2 if vars > 0 => Expr::Var(r.below(vars as u64) as usize),
            _ => Expr::Leaf(r.pick(&LEAVES)),
        };
    }
    let op = r.pick(&["+", "+", "+", "-", "*", "*", ">>", "<<", "&", "/", "%", "min", "max", "smin", "|", "^", "?"]);
    let a = Box::new(expr(r, depth - 1, vars));
    let b = match op {
        ">>" | "<<" => Expr::Num(r.below(7) as u32),
        "&" | "|" | "^" => Expr::Num(r.pick(&[1, 3, 7, 31, 0xff, 0xffff_fff0, 0x0f0, 64])),
        "/" | "%" => {
            if r.below(3) == 0 {
                Expr::Leaf("d")
            } else {
                Expr::Num(r.pick(&[2, 3, 4, 12, 32, 100]))
            }
        }
        "*" if r.below(3) > 0 => Expr::Num(r.pick(&[2, 3, 4, 5, 16, 33, 128])),
        _ => expr(r, depth - 1, vars),
    };
    if op == "?" {
        return Expr::Sel(Box::new(cond(r, vars)), a, Box::new(b));
    }
    Expr::Bin(op, a, Box::new(b))
}

fn cond(r: &mut Rng, vars: usize) -> Cond {
    Cond {
        op: r.pick(&["<", "<", "<", "<=", ">", ">=", "==", "!="]),
        signed: r.below(2) == 0,
        a: expr(r, 1, vars),
        b: expr(r, 1, 0),
    }
}

/// Statements at random; `asks`: data decide some of them.
pub fn block(r: &mut Rng, depth: u32, vars: usize, loops: u32, asks: bool) -> Vec<Stmt> {
    statements(r, (depth, vars, loops), asks, false)
}

/// The same; `inside`: they lie in a loop.
fn statements(r: &mut Rng, (depth, vars, loops): (u32, usize, u32), asks: bool, inside: bool) -> Vec<Stmt> {
    (0..1 + r.below(2))
        .map(|_| match r.below(if asks { 16 } else { 10 }) {
            0 | 12 if inside && r.below(2) == 0 => Stmt::Leave(cond(r, vars)),
            1 if inside && r.below(4) == 0 => Stmt::Continue(cond(r, vars)),
            10 | 11 if vars > 0 => Stmt::Set(r.below(vars as u64) as usize, next(r, vars - 1)),
            // (Most loops on data only wait.)
            12 | 13 if depth > 0 => {
                let body =
                    if r.below(3) == 0 { statements(r, (depth - 1, vars, loops), asks, true) } else { Vec::new() };
                Stmt::Wait(body)
            }
            14 | 15 if depth > 0 => {
                let other =
                    if r.below(2) == 0 { statements(r, (depth - 1, vars, loops), asks, inside) } else { Vec::new() };
                Stmt::Ask(statements(r, (depth - 1, vars, loops), asks, inside), other)
            }
            0..=3 if depth > 0 => {
                let other =
                    if r.below(3) == 0 { statements(r, (depth - 1, vars, loops), asks, inside) } else { Vec::new() };
                Stmt::If(cond(r, vars), statements(r, (depth - 1, vars, loops), asks, inside), other)
            }
            4 | 5 if depth > 0 && loops > 0 => {
                let start = expr(r, 1, vars);
                // Few iterations: the bound is masked.
                let bound = Expr::Bin("&", Box::new(expr(r, 1, 0)), Box::new(Expr::Num(127)));
                let body = statements(r, (depth - 1, vars + 1, loops - 1), asks, true);
                let (signed, until_equal) = (r.below(2) == 0, r.below(4) == 0);
                Stmt::For(Loop { var: vars, start, bound, next: next(r, vars), signed, until_equal, body })
            }
            6 if depth == 3 || (inside && r.below(2) == 0) => Stmt::Return(cond(r, vars)),
            _ => {
                // No plain reads: the assembler sinks a discarded one, volatile or not, past later
                // exits.
                // (Volatile stores are atomic ones.)
                const STORE: AccessKind = AccessKind::AtomicWrite;
                let kind = r.pick(&[STORE, STORE, STORE, AccessKind::Atomic]);
                Stmt::Access(r.below(2) as u8, kind, r.below(4) == 0, r.below(2) == 0, expr(r, 2, vars))
            }
        })
        .collect()
}

/// What a loop makes of its variable: the next one of a progression, as a rule.
fn next(r: &mut Rng, var: usize) -> Expr {
    let bin = |op, a, b| Expr::Bin(op, Box::new(a), Box::new(b));
    let step = bin("+", Expr::Var(var), Expr::Num(r.pick(&[1, 1, 2, 3, 4, 32, 64])));
    match r.below(10) {
        // The next one, or a new start.
        0 | 1 => Expr::Sel(Box::new(cond(r, var + 1)), Box::new(step), Box::new(expr(r, 1, var + 1))),
        2 => bin(r.pick(&["min", "max", "smin"]), step, expr(r, 1, var)),
        3 => {
            let scaled = bin("*", step, Expr::Num(r.pick(&[1, 3, 5])));
            bin("&", scaled, Expr::Num(r.pick(&[7, 63, 0x7c])))
        }
        4 => expr(r, 2, var + 1),
        _ => step,
    }
}

impl Expr {
    fn text(&self) -> String {
        match self {
            Expr::Leaf(s) => (*s).to_owned(),
            Expr::Num(n) => format!("{n}u"),
            Expr::Var(v) => format!("(unsigned)v{v}"),
            Expr::Bin(op @ ("min" | "max"), a, b) => format!("{op}({}, {})", a.text(), b.text()),
            Expr::Bin("smin", a, b) => format!("(unsigned)min((int)({}), (int)({}))", a.text(), b.text()),
            Expr::Bin(op, a, b) => format!("({} {op} {})", a.text(), b.text()),
            Expr::Sel(c, a, b) => format!("({} ? {} : {})", c.text(), a.text(), b.text()),
        }
    }
    fn eval(&self, e: &Env) -> u32 {
        match self {
            Expr::Leaf(s) => e.leaf(s),
            Expr::Num(n) => *n,
            Expr::Var(v) => e.vars[*v],
            Expr::Sel(c, a, b) => {
                if c.eval(e) {
                    a.eval(e)
                } else {
                    b.eval(e)
                }
            }
            Expr::Bin(op, a, b) => {
                let (a, b) = (a.eval(e), b.eval(e));
                match *op {
                    "+" => a.wrapping_add(b),
                    "-" => a.wrapping_sub(b),
                    "*" => a.wrapping_mul(b),
                    ">>" => a >> b,
                    "<<" => a << b,
                    "&" => a & b,
                    "|" => a | b,
                    "^" => a ^ b,
                    "/" => a / b,
                    "%" => a % b,
                    "min" => a.min(b),
                    "max" => a.max(b),
                    _ => (a as i32).min(b as i32) as u32,
                }
            }
        }
    }
}

impl Cond {
    fn text(&self) -> String {
        let cast = if self.signed { "(int)" } else { "(unsigned)" };
        format!("({cast}({}) {} {cast}({}))", self.a.text(), self.op, self.b.text())
    }
    fn eval(&self, e: &Env) -> bool {
        let (a, b) = (self.a.eval(e), self.b.eval(e));
        let o = if self.signed { (a as i32).cmp(&(b as i32)) } else { a.cmp(&b) };
        match self.op {
            "<" => o.is_lt(),
            "<=" => o.is_le(),
            ">" => o.is_gt(),
            ">=" => o.is_ge(),
            "==" => o.is_eq(),
            _ => o.is_ne(),
        }
    }
}

/// Statements in CUDA C++.
pub fn text(block: &[Stmt], out: &mut String) {
    for s in block {
        match s {
            Stmt::Access(p, kind, wide, signed, e) => {
                let ty = if *wide { "unsigned long long" } else { "int" };
                let at =
                    format!("(({ty} *)p{p})[(long long)({})({})]", if *signed { "int" } else { "unsigned" }, e.text());
                match kind {
                    AccessKind::Write | AccessKind::AtomicWrite => writeln!(out, "*(volatile {ty} *)&{at} = 1;"),
                    AccessKind::Read | AccessKind::AtomicRead => writeln!(out, "(void)*(volatile {ty} *)&{at};"),
                    AccessKind::Atomic => writeln!(out, "atomicAdd(&{at}, ({ty})1);"),
                }
                .unwrap();
            }
            Stmt::If(c, a, b) => {
                writeln!(out, "if {} {{", c.text()).unwrap();
                text(a, out);
                out.push_str("} else {\n");
                text(b, out);
                out.push_str("}\n");
            }
            Stmt::Return(c) => writeln!(out, "if {} return;", c.text()).unwrap(),
            Stmt::Ask(a, b) => {
                writeln!(out, "if ({ASKED}) {{").unwrap();
                text(a, out);
                out.push_str("} else {\n");
                text(b, out);
                out.push_str("}\n");
            }
            Stmt::Wait(body) => {
                writeln!(out, "while ({ASKED}) {{").unwrap();
                text(body, out);
                out.push_str("}\n");
            }
            Stmt::Set(v, e) => writeln!(out, "v{v} = {};", e.text()).unwrap(),
            Stmt::Leave(c) => writeln!(out, "if {} break;", c.text()).unwrap(),
            Stmt::Continue(c) => writeln!(out, "if {} continue;", c.text()).unwrap(),
            Stmt::For(l) => {
                let ty = if l.signed { "int" } else { "unsigned" };
                let (v, goes_on) = (l.var, if l.until_equal { "!=" } else { "<" });
                let (start, bound, next) = (l.start.text(), l.bound.text(), l.next.text());
                writeln!(
                    out,
                    "for ({ty} v{v} = ({ty})({start}), c{v} = 0; v{v} {goes_on} ({ty})({bound}) && c{v} < 70; \
                     v{v} = ({ty})({next}), c{v}++) {{"
                )
                .unwrap();
                text(&l.body, out);
                out.push_str("}\n");
            }
        }
    }
}

/// The condition that data decide.
const ASKED: &str = "*(volatile int *)q";
/// Rounds of a loop that waits.
const ROUNDS: u32 = 5;

/// What a thread knows.
pub struct Env {
    /// What it loads.
    pub data: Rng,
    pub t: [u32; 3],
    pub b: [u32; 3],
    pub bd: [u32; 3],
    pub params: [u32; 3],
    pub vars: Vec<u32>,
}

impl Env {
    fn leaf(&self, s: &str) -> u32 {
        match s {
            "tx" => self.t[0],
            "ty" => self.t[1],
            "bx" => self.b[0],
            "by" => self.b[1],
            "i" => self.b[0] * self.bd[0] + self.t[0],
            "n" => self.params[0],
            "m" => self.params[1],
            _ => self.params[2],
        }
    }
}

/// What is touched: by pointer and kind, offsets with their widths.
pub type Truth = BTreeMap<(u8, AccessKind), FxHashSet<(i64, i64)>>;

/// Runs a block for one thread.
pub fn run(block: &[Stmt], e: &mut Env, t: &mut Truth) -> Flow {
    for s in block {
        let flow = match s {
            Stmt::Access(p, kind, wide, signed, x) => {
                let v = x.eval(e);
                let i = if *signed { i64::from(v as i32) } else { i64::from(v) };
                let w = if *wide { 8 } else { 4 };
                t.entry((*p, *kind)).or_default().insert((i * w, w));
                Flow::Through
            }
            Stmt::If(c, a, b) => {
                let taken = c.eval(e);
                run(if taken { a } else { b }, e, t)
            }
            Stmt::Return(c) if c.eval(e) => Flow::Returns,
            Stmt::Leave(c) if c.eval(e) => Flow::Leaves,
            Stmt::Continue(c) if c.eval(e) => Flow::Continues,
            Stmt::Return(_) | Stmt::Leave(_) | Stmt::Continue(_) => Flow::Through,
            Stmt::Ask(a, b) => {
                let taken = e.data.below(2) == 0;
                run(if taken { a } else { b }, e, t)
            }
            Stmt::Wait(body) => {
                let rounds = e.data.below(u64::from(ROUNDS)) as u32;
                turns((0..rounds).map(|_| run(body, e, t)))
            }
            Stmt::Set(v, x) => {
                e.vars[*v] = x.eval(e);
                Flow::Through
            }
            Stmt::For(l) => l.run(e, t),
        };
        if flow != Flow::Through {
            return flow;
        }
    }
    Flow::Through
}

/// How a loop ends whose turns end so.
fn turns(mut turns: impl Iterator<Item = Flow>) -> Flow {
    match turns.find(|turn| matches!(turn, Flow::Leaves | Flow::Returns)) {
        Some(Flow::Returns) => Flow::Returns,
        _ => Flow::Through,
    }
}

impl Loop {
    fn run(&self, e: &mut Env, t: &mut Truth) -> Flow {
        let mut x = self.start.eval(e);
        let turn = |count| {
            if count > 0 {
                x = self.next.eval(e);
            }
            let end = self.bound.eval(e);
            let go = match (self.until_equal, self.signed) {
                (true, _) => x != end,
                (false, true) => (x as i32) < end as i32,
                (false, false) => x < end,
            };
            e.vars.truncate(self.var);
            e.vars.push(x);
            if go { run(&self.body, e, t) } else { Flow::Leaves }
        };
        let flow = turns((0..70).map(turn));
        e.vars.truncate(self.var);
        flow
    }
}
