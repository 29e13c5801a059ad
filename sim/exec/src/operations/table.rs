//! The table of operations: one row for each thing that an instruction can be. It owns what the
//! execution core, native code and listings have to know of an operation, and nothing else says it
//! again.
//!
//! A row is
//!
//! ```text
//! Name(parameter: Type) = function, kind, [operand: Role(place) if condition, ..], { key: value };
//! ```
//!
//! - `function` executes the operation for a warp (an `InstFn`).
//! - `kind` is how native code executes it for single lanes and packs (`Kind`).
//! - The operands have the names that listings print. `Read` and `Write` are of rows, `Test` and
//!   `Set` of predicates, `Word` and `Long` are numbers of 32 and 64 bits. `Any` reads every
//!   register, as far as is known; native code then asks for no other operand. `encoding` lists
//!   the places. A condition says in which instructions the operand is there.
//! - The keys, all optional:
//!   - `whole`: what native code of whole warps does with an operation that stops other native code
//!     (`Whole`; default: it stops there as well);
//!   - `then`: where control goes (`Then`; default: on);
//!   - `narrow`: whether a row that it writes has 32 bits at most (default: no);
//!   - `pure`: the result depends on the operands alone (default: no; asked of `Kind::Foreign`).
//!
//! `program` makes the enumeration `Operation` from the table. The folder's `mod.rs` makes the
//! functions that answer from it. `build` makes a struct for each row, which becomes an
//! instruction, and `operands` a type by which the interpreter and native code read it: both have
//! the operands by their names.

macro_rules! for_each_operation {
    ($row:ident) => {
        $row! {
            /// A function of one lane's values, applied to each lane.
            Lane(op: LaneOp) = op.run, Kind::Lane(op), [
                a: Read(A), b: Read(B) if |i| i.arity() > 1, c: Read(C) if |i| i.arity() > 2,
                combined: Test(C) if |i| i.outcome() != ResultUse::Value && i.fields.y != COMBINE_NONE,
                d: Write(D) if |i| i.outcome() != ResultUse::Predicate,
                p: Set(D) if |i| i.outcome() == ResultUse::Predicate,
                q: Set(Z) if |i| i.outcome() == ResultUse::Predicate,
                constant: Long(X), combine: Word(Y)
            ], {};

            // Moves and predicates.

            /// Does nothing.
            Nothing = control::nothing, Kind::Nothing, [], {};
            /// One of two rows by a predicate.
            Select = control::select, Kind::Select,
                [a: Read(A), b: Read(B), which: Test(C), d: Write(D)], {};
            /// A function of two predicates.
            Predicate = control::predicate, Kind::Predicate,
                [a: Test(A), b: Test(B), d: Set(D), function: Word(Y)], {};
            /// Bits of rows in rows of another width.
            Repack = control::repack, Kind::Repack, [
                from: Read(List(X after Z)), into: Write(List(Z)),
                from_bits: Word(A), into_bits: Word(B)
            ], {};
            /// A special register by its number.
            Special = control::special, Kind::Special, [d: Write(D), number: Word(Y)], {};
            /// R2P: predicates from the bits of a row. Those that the mask leaves out are kept.
            FromRegister = predicates::from_register, Kind::Foreign, [
                a: Read(A), mask: Read(B), kept: Test(Also(Span(Z, 7))), into: Set(Span(Z, 7)),
                byte: Word(Y)
            ], { pure: true };
            /// P2R.
            ToRegister = predicates::to_register, Kind::Foreign,
                [a: Read(A), mask: Read(B), from: Test(Span(Z, 7)), d: Write(D), byte: Word(Y)],
                { pure: true };
            /// ISETP.
            IntCompare = predicates::compare, Kind::IntCompare, [
                a: Read(A), b: Read(B), combined: Test(C), low: Test(X) if |i| i.fields.y & EXTENDED != 0,
                p: Set(D), q: Set(Z), how: Word(Y)
            ], {};
            /// PLOP3: two truth tables of three predicates, a byte each.
            Table = predicates::logic, Kind::Table,
                [a: Test(A), b: Test(B), c: Test(C), p: Set(D), q: Set(Z), tables: Word(Y)], {};
            /// Whether a row is not zero.
            NotZero = predicates::not_zero, Kind::NotZero,
                [a: Read(A), combined: Test(C), p: Set(D), combine: Word(Y)], {};
            /// R2UR that not all lanes execute, or that says which lanes differ.
            ToUniform = predicates::to_uniform, Kind::Stop,
                [a: Read(A), other: Test(C), d: Write(D), p: Set(Z), or: Word(Y)], {};

            // Arithmetic that is no function of rows alone, or of none that is inlined.

            /// IADD3, with carries in predicates.
            Add3 = integer::add3, Kind::Add3, [
                a: Read(A), b: Read(B), c: Read(C), carry: Test(Packed(X[0..16])),
                carry2: Test(Packed(X[16..32])), d: Write(D), over: Set(Packed(X[32..48])),
                over2: Set(Packed(X[48..64])), signs: Word(Y)
            ], {};
            /// The upper half of IMAD.WIDE, with carries in predicates.
            AddWide = integer::add_wide, Kind::AddWide, [
                a: Read(A), b: Read(B), carry: Test(Packed(X[0..16])), d: Write(D),
                over: Set(Packed(X[32..48]))
            ], {};
            /// PTX's `add.cc` and its like; the flag is a row.
            WithCarry = with_carry, Kind::WithCarry, [
                a: Read(A), b: Read(B), c: Read(C) if |i| i.fields.y >> 3 & 1 != 0,
                carry: Read(X) if |i| i.fields.y & 1 != 0, d: Write(D), over: Write(X) if |i| i.fields.y >> 1 & 1 != 0,
                how: Word(Y)
            ], {};
            /// FSETP and DSETP.
            FloatCompare(double: bool) = if double { floats::compare_doubles } else { floats::compare },
                Kind::FloatCompare { double }, [
                    a: Read(A), b: Read(B), combined: Test(C), p: Set(D), q: Set(Z), how: Word(Y), flags: Long(X)
                ], {};
            /// DSETP with an outcome that hangs on no comparison.
            ChooseDouble = floats::choose_double, Kind::Foreign,
                [a: Read(A), b: Read(B), combined: Test(C), p: Set(D), q: Set(Z), how: Word(Y)], { pure: true };
            /// FCHK.
            CheckQuotient = floats::check_quotient, Kind::Foreign,
                [a: Read(A), b: Read(B), p: Set(D)], { pure: true };
            /// Conversions between numbers of formats or numbers of bits.
            FloatToFloat = convert::float_to_float, Kind::Foreign,
                [a: Read(A), d: Write(D), from: Word(Y), to: Word(Z), flags: Long(X)],
                { pure: true, narrow: |i| i.fields.z != convert::FLOAT64 };
            FloatToInt = convert::float_to_int, Kind::Foreign,
                [a: Read(A), d: Write(D), from: Word(Y), bits: Word(Z), signed: Word(B), flags: Long(X)],
                { pure: true, narrow: |i| i.fields.z <= 32 };
            IntToFloat = convert::int_to_float, Kind::Foreign,
                [a: Read(A), d: Write(D), bits: Word(Y), to: Word(Z), signed: Word(B), flags: Long(X)],
                { pure: true, narrow: |i| i.fields.z != convert::FLOAT64 };
            IntToInt = convert::int_to_int, Kind::Foreign, [
                a: Read(A), d: Write(D), from_bits: Word(Y), to_bits: Word(Z), from_signed: Word(B),
                to_signed: Word(C), kept: Long(X)
            ], { pure: true, narrow: |i| i.fields.x >> 32 == 0 };
            /// Two numbers in one word.
            PackPair = convert::pack_pair, Kind::Foreign,
                [high: Read(A), low: Read(B), d: Write(D), to: Word(Z), flags: Long(X)],
                { pure: true, narrow: |_| true };
            /// HADD2, HMUL2, HFMA2, HMNMX2; of binary16 or bfloat16, with a pair or a single.
            Halves(bf16: bool, single: bool) = match (bf16, single) {
                (false, false) => halves::run::<Half, false>,
                (false, true) => halves::run::<Half, true>,
                (true, false) => halves::run::<Brain, false>,
                (true, true) => halves::run::<Brain, true>,
            }, Kind::Foreign,
                [a: Read(A), b: Read(B), c: Read(C), d: Write(D), how: Word(Y), flags: Long(X)],
                { pure: true, narrow: |_| true };
            /// HSET2.
            HalfSet(bf16: bool) = if bf16 { halves::set::<Brain> } else { halves::set::<Half> }, Kind::Foreign, [
                a: Read(A), b: Read(B), combined: Test(C), d: Write(D), how: Word(Y), flags: Long(X), result: Word(Z)
            ], { pure: true, narrow: |_| true };
            /// HSETP2.
            HalfSetPreds(bf16: bool) = if bf16 { halves::set_preds::<Brain> } else { halves::set_preds::<Half> },
                Kind::Foreign,
                [a: Read(A), b: Read(B), combined: Test(C), p: Set(D), q: Set(Z), how: Word(Y), flags: Long(X)],
                { pure: true };
            /// MUFU of a half.
            HalfSpecial = halves::special, Kind::Foreign,
                [a: Read(A), d: Write(D), function: Word(Y), which: Word(Z)],
                { pure: true, narrow: |_| true };

            // Addresses and memory. `offset` is added to the address. `count` is the number of
            // elements, which are in `d` or `value` if there is one, otherwise in `all`.

            /// The address of a parameter, of a variable of the frame, of dynamic shared memory.
            ParamAddress = load_store::param_address, Kind::ParamAddress, [d: Write(D), offset: Long(X)], {};
            FrameAddress = load_store::frame_address, Kind::FrameAddress, [d: Write(D), offset: Long(X)], {};
            DynamicShared = load_store::dynamic_shared_address, Kind::DynamicShared, [d: Write(D), offset: Long(X)], {};
            /// `cvta`.
            ConvertAddress = load_store::convert_address, Kind::ConvertAddress,
                [a: Read(A), d: Write(D), space: Word(Z), back: Word(Y)], {};
            /// `isspacep`.
            IsSpace = load_store::is_space, Kind::Foreign,
                [address: Read(A), p: Set(D), space: Word(Z), cluster: Word(Y)], {};
            /// QSPC.
            IsInSpace = memory::is_in_space, Kind::Foreign,
                [address: Read(A), p: Set(D), offset: Long(X), space: Word(Y)], {};
            /// `mapa` and `getctarank`.
            MapToBlock = cluster_memory::map_to_block, Kind::Stop,
                [rest: Any, address: Read(A), rank: Read(B), d: Write(D), shared: Word(Y)], {};
            RankOf = cluster_memory::rank_of, Kind::Stop,
                [rest: Any, address: Read(A), d: Write(D), shared: Word(Y)], {};
            /// A load, of which `bits` are kept; `strength` is as of
            /// `exec::told::strength`.
            Load(ty: LaneTy) = of_cell!(ty, load_store::load),
                Kind::Load { size: ty.size(), signed: ty.is_signed() }, [
                    address: Read(A), d: Write(D) if |i| i.fields.z >> 4 == 1,
                    all: Write(List(Z[4..32])) if |i| i.fields.z >> 4 != 1,
                    offset: Long(X), space: Word(Z[0..4]), count: Word(Z[4..32]),
                    bits: Word(C), strength: Word(B)
                ], {};
            /// A load of a kernel's parameter at an offset that is known.
            LoadParam(ty: LaneTy) = of_cell!(ty, load_store::load_param),
                Kind::LoadParam { size: ty.size(), signed: ty.is_signed() }, [
                    d: Write(D) if |i| i.fields.z >> 4 == 1,
                    all: Write(List(Z[4..32])) if |i| i.fields.z >> 4 != 1,
                    offset: Long(X), count: Word(Z[4..32]), bits: Word(C)
                ], {};
            /// A store, with a strength, too.
            Store(ty: LaneTy) = of_cell!(ty, load_store::store), Kind::Store { size: ty.size() }, [
                    address: Read(A), value: Read(B) if |i| i.fields.z >> 4 == 1,
                    all: Read(List(Z[4..32])) if |i| i.fields.z >> 4 != 1,
                    offset: Long(X), space: Word(Z[0..4]), count: Word(Z[4..32]),
                    strength: Word(D)
                ], {};
            /// LDC by a register.
            LoadBank(ty: LaneTy) = of_cell!(ty, memory::load_bank), Kind::Foreign,
                [
                    index: Read(A), d: Write(Span(D, Y)), offset: Long(X), words: Word(Y), bank: Word(Z),
                    bits: Word(C)
                ], {};
            /// An access to 16 bytes, two rows for each operand.
            Wide(access: WideAccess) = atomic::wide(access), Kind::Stop, [
                rest: Any, address: Read(A), old: Write(List(2)), value: Read(List(2 after 2)),
                other: Read(List(2 after 2, 2)), offset: Long(X), space: Word(Z[0..4]),
                strength: Word(B)
            ], {};
            /// `atom` and `red`.
            Atomic(update: Update) = update_function(update), update.kind(),
                [
                    address: Read(A), b: Read(B), c: Read(C), d: Write(D), offset: Long(X),
                    space: Word(Z[0..4]), strength: Word(Y)
                ], {};
            /// The same of vectors, element by element.
            AtomicVector(update: Update) = update_vector_function(update), Kind::Stop, [
                rest: Any, address: Read(A), d: Write(List(Z[4..32])),
                b: Read(List(Z[4..32] after Z[4..32])), offset: Long(X), space: Word(Z[0..4]),
                count: Word(Also(Z[4..32])), strength: Word(C)
            ], {};
            /// `cp.async` of `bytes` to shared memory.
            CopyAsync = load_store::copy_async, Kind::Foreign, [
                to: Read(A), from: Read(B), size: Read(C), to_offset: Long(X), from_offset: Word(D),
                bytes: Word(Y), space: Word(Z[0..4])
            ], {};
            /// The ends of groups of such copies, and waits for them.
            CommitCopies = load_store::commit_copies, Kind::Nothing, [], {};
            AwaitCopies = load_store::await_copies, Kind::Nothing, [pending: Word(Y)], {};
            /// Barriers in shared memory, and copies that report to them.
            MbarrierOperate = mbarrier::operate, Kind::Stop, [
                rest: Any, address: Read(A), number: Read(B), d: Write(D), offset: Long(X),
                space: Word(Z[0..4]), what: Word(Y)
            ], {};
            MbarrierTest = mbarrier::test, Kind::Stop, [
                rest: Any, address: Read(A), phase: Read(B), p: Set(D), offset: Long(X),
                space: Word(Z[0..4]), parity: Word(Y)
            ], {};
            MbarrierPending = mbarrier::pending, Kind::Stop, [rest: Any, state: Read(A), d: Write(D)], {};
            BulkCopy = bulk::copy, Kind::Stop, [
                rest: Any, to: Read(A), from: Read(B), size: Read(C), blocks: Read(D),
                barrier: Read(X) if |i| i.fields.y != OUTWARD, direction: Word(Y)
            ], {};
            /// `element` and `operand` are where the operation of an element finds these two.
            BulkReduce = bulk::reduce, Kind::Stop, [
                rest: Any, to: Read(A), from: Read(B), size: Read(C), barrier: Read(X[16..48]),
                element: Write(D), operand: Write(Z), reduction: Word(Y), space: Word(X[0..4]),
                bytes: Word(X[4..12])
            ], {};
            /// `setmaxnreg`: `more` is 1 where the count grows.
            SetRegisters = warp_sync::set_registers, Kind::Stop, [count: Word(Y), more: Word(Z)], {};
            CommitBulk = bulk::commit, Kind::Stop, [], {};
            AwaitBulk = bulk::wait, Kind::Stop, [pending: Word(Y), read: Word(Z)], {};
            TensorTile = tensor::tile, Kind::Stop, [
                rest: Any, map: Read(A), shared: Read(B), barrier: Read(C), coordinates: Read(List(9)),
                element: Write(D), operand: Write(Z), what: Word(X[0..4]), image: Word(X[4..5]),
                reduction: Word(X[32..64])
            ], {};
            /// A field of a tensor map, for `axis`, gets a value.
            TensorMapReplace = changes::replace, Kind::Stop, [
                rest: Any, address: Read(A), value: Read(B), offset: Long(X), space: Word(Z[0..4]),
                field: Word(Y), axis: Word(Z[4..8])
            ], {};
            TensorMapCopy = changes::copy, Kind::Stop, [rest: Any, to: Read(A), from: Read(B)], {};
            /// A texture or surface access.
            Texture = texture::access, Kind::Stop, [
                object: Read(A), coordinates: Read(List(Z[8..16] after Z[0..8])),
                values: Read(List(Z[16..32] after Z[0..8], Z[8..16])),
                results: Write(List(Z[0..8])), text: Word(X)
            ], { whole: Whole::Call, narrow: |_| true };

            // Control.

            /// A jump to an instruction.
            Branch = control::branch, Kind::Branch, [target: Word(X)], {};
            /// A jump by a table.
            BranchTable = control::branch_table, Kind::Stop, [index: Read(A), table: Word(Y)],
                { then: Then::Table };
            /// A jump of the lanes that are at different places.
            BranchIfApart = jumps::branch_if_apart, Kind::Stop,
                [members: Read(A), which: Test(C), target: Word(X), unless: Word(Y)], { then: Then::Jump };
            JumpAddress = jumps::jump_address, Kind::Stop, [rest: Any, address: Read(A), offset: Long(X)],
                { then: Then::Elsewhere };
            CallAddress = jumps::call_address, Kind::Stop,
                [rest: Any, address: Read(A), offset: Long(X), arguments: Read(D)], {};
            /// A call by a call site; `function` has its address where the site does not name it.
            Call = call::call, Kind::Stop, [
                function: Read(A), arguments: Read(Homes(call_arguments)), returns: Write(Homes(call_returns)),
                site: Word(X)
            ], {};
            /// The end of a function.
            Return = call::ret, Kind::Stop,
                [address: Read(Fixed(0)), returns: Read(Homes(own_returns)), function: Word(Y)],
                { then: Then::Elsewhere };
            Exit = control::exit, Kind::Stop, [], { then: Then::End };
            Trap = control::trap, Kind::Stop, [], { then: Then::End };
            /// `nanosleep`, NANOSLEEP, YIELD.
            GiveWay = control::give_way, Kind::Stop, [], {};
            Sleep = convergence::sleep, Kind::Stop, [], {};
            Yield = convergence::give_way, Kind::Stop, [], {};

            /// `griddepcontrol`, PREEXIT, ACQBULK.
            GridTrigger = grid_dependence::trigger, Kind::Stop, [], {};
            GridWait = grid_dependence::wait, Kind::Stop, [], {};

            // What lanes and warps do together.

            /// `membar` and `fence`; `scope` is for those who observe (`control::fence`).
            Fence = control::fence, Kind::Stop, [scope: Word(Y)], { whole: Whole::Fence };
            /// CCTL.IVALL, which only those who observe have to know of.
            InvalidateCaches = control::invalidate_caches, Kind::Nothing, [], {};
            /// NOP, in the place of a `bar.warp.sync` for lanes that are together.
            LanesMeet = warp_sync::lanes_meet, Kind::Nothing, [], {};
            /// `bar.warp.sync`, which joins lanes at different places of the code.
            WarpBarrier = warp_sync::warp_barrier, Kind::Stop, [members: Read(A)], { whole: Whole::Nothing };
            /// `shfl`.
            Shuffle = warp_sync::shuffle, Kind::Stop, [
                value: Read(A), lane: Read(B), clamp: Read(C), members: Read(X), d: Write(D), inside: Set(Z),
                mode: Word(Y)
            ], { whole: Whole::Shuffle, narrow: |_| true };
            /// `vote`; mode 3 is the ballot.
            Vote = warp_sync::vote, Kind::Stop, [
                truth: Test(A), members: Read(B), d: Write(D) if |i| i.fields.y == 3, p: Set(D) if |i| i.fields.y != 3,
                mode: Word(Y)
            ], { whole: Whole::Vote, narrow: |_| true };
            ActiveMask = warp_sync::active_mask, Kind::Stop, [d: Write(D)],
                { whole: Whole::Everybody, narrow: |_| true };
            Elect = warp_sync::elect, Kind::Stop, [members: Read(A), d: Write(D), p: Set(Z)],
                { whole: Whole::Call, narrow: |_| true };
            /// `match`; `all` is 1 for `match.all`.
            Match = warp_sync::match_values, Kind::Stop,
                [value: Read(A), members: Read(B), d: Write(D), same: Set(Z) if |i| i.fields.y == 1, all: Word(Y)],
                { whole: Whole::Call, narrow: |_| true };
            /// `redux`.
            Reduce = warp_sync::reduce, Kind::Stop,
                [value: Read(A), members: Read(B), d: Write(D), function: Word(Y)],
                { whole: Whole::Call, narrow: |_| true };
            /// `bar`.
            Barrier = warp_sync::barrier, Kind::Stop, [
                number: Read(A), threads: Read(B), truth: Test(C) if |i| i.fields.y >= BARRIER_POPC,
                d: Write(D) if |i| i.fields.y == BARRIER_POPC, p: Set(D) if |i| i.fields.y > BARRIER_POPC,
                what: Word(Y)
            ], { whole: Whole::Interpreted, narrow: |_| true };
            ClusterArrive = warp_sync::cluster_arrive, Kind::Stop, [relaxed: Word(Y)], {};
            ClusterWait = warp_sync::cluster_wait, Kind::Stop, [], {};
            /// BSSY, and moves to and from its barriers.
            Begin = convergence::begin, Kind::Stop, [d: Write(D)], { whole: Whole::Everybody, narrow: |_| true };
            SetBarrier = convergence::set, Kind::Stop, [a: Read(A), d: Write(D)], { whole: Whole::Interpreted };
            GetBarrier = convergence::get, Kind::Stop,
                [
                    rest: Any, barrier: Read(A), cleared: Write(Also(A)) if |i| i.fields.y == 1, d: Write(D),
                    clear: Word(Y)
                ], {};
            /// BSYNC.
            Meet = convergence::meet, Kind::Stop, [members: Read(A)], { whole: Whole::Nothing };
            /// BREAK.
            Leave = convergence::leave, Kind::Stop, [members: Read(D), kept: Write(Also(D))],
                { whole: Whole::Interpreted };
            /// `mma` and its like.
            Multiply = matrix::multiply, Kind::Stop, [
                c: Read(List(Z[6..12] after Z[0..6])),
                a: Read(List(Z[12..18] after Z[0..6], Z[6..12])),
                b: Read(List(Z[18..24] after Z[0..6], Z[6..12], Z[12..18])),
                d: Write(List(Z[0..6])), form: Long(X), opaque: Word(Z[31..32])
            ], { whole: Whole::Call, narrow: |i| i.fields.x >> 12 & 7 != matrix::Element::F64 as u64 };
            /// How many rows each has says `form`; the first is `slots` of the program.
            MultiplySparse = multiply_sparse, Kind::Stop, [rest: Any, slots: Word(Y), form: Long(X)], {};
            /// `wgmma`: how many rows each has says `form`; the first is `slots` of the program.
            MultiplyGroup = group_product::multiply, Kind::Stop,
                [rest: Any, keep: Test(C), slots: Word(Y), form: Long(X)], {};
            FenceProducts = group_product::fence, Kind::Nothing, [], {};
            CommitProducts = group_product::commit, Kind::Stop, [], {};
            AwaitProducts = group_product::wait, Kind::Stop, [pending: Word(Y)], {};
            MultiplyNarrow = multiply_narrow, Kind::Stop, [rest: Any, slots: Word(Y), form: Long(X)],
                { whole: Whole::Interpreted };
            /// `ldmatrix` and `stmatrix`.
            MatrixRows = matrix::rows, Kind::Stop, [
                address: Read(A), from: Read(List(Z[4..8])) if |i| i.fields.x == 1,
                into: Write(List(Z[4..8])) if |i| i.fields.x != 1,
                offset: Word(D), store: Word(X), transposed: Word(Z[30..31])
            ], { whole: Whole::Call, narrow: |_| true };
            /// `wmma.load` and `wmma.store`.
            Transfer = fragment::transfer, Kind::Stop, [
                address: Read(A), stride: Read(B),
                from: Read(List(Z[8..14])) if |i| i.fields.z >> 30 & 1 != 0,
                into: Write(List(Z[8..14])) if |i| i.fields.z >> 30 & 1 == 0,
                offset: Word(D), space: Word(Z[0..4]), store: Word(Z[30..31]),
                form: Long(X)
            ], { whole: Whole::Call };
            /// `movmatrix`.
            Transpose = matrix::transpose, Kind::Stop, [a: Read(A), d: Write(D)],
                { whole: Whole::Call, narrow: |_| true };
        }
    };
}

pub(crate) use for_each_operation;
