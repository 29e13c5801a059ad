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
//!   `Set` of predicates. `Any` reads every register, as far as is known. A condition says in which
//!   instructions the operand is there.
//! - The keys, all optional:
//!   - `whole`: what native code of whole warps does with an operation that stops other native code
//!     (`Whole`; default: it stops there as well);
//!   - `then`: where control goes (`Then`; default: on);
//!   - `narrow`: whether a row that it writes has 32 bits at most (default: no);
//!   - `pure`: the result depends on the operands alone (default: no; asked of `Kind::Foreign`).
//!
//! `program` makes the enumeration `Operation` from the table. The folder's `mod.rs` makes the
//! functions that answer from it.

macro_rules! for_each_operation {
    ($row:ident) => {
        $row! {
            /// A function of one lane's values, applied to each lane.
            Lane(op: LaneOp) = op.run, Kind::Lane(op), [
                a: Read(A), b: Read(B) if |i| i.arity() > 1, c: Read(C) if |i| i.arity() > 2,
                combined: Test(C) if |i| i.outcome() != ResultUse::Value && i.y != COMBINE_NONE,
                d: Write(D) if |i| i.outcome() != ResultUse::Predicate,
                p: Set(D) if |i| i.outcome() == ResultUse::Predicate,
                q: Set(Z) if |i| i.outcome() == ResultUse::Predicate
            ], {};

            // Moves and predicates.

            /// Does nothing.
            Nothing = control::nothing, Kind::Nothing, [], {};
            /// One of two rows by a predicate.
            Select = control::select, Kind::Select,
                [a: Read(A), b: Read(B), which: Test(C), d: Write(D)], {};
            /// A function of two predicates; `y` says which.
            Predicate = control::predicate, Kind::Predicate,
                [a: Test(A), b: Test(B), d: Set(D)], {};
            /// Bits of rows in rows of another width: `z` rows of `b` bits from `x` rows of `a`.
            Repack = control::repack, Kind::Repack, [
                from: Read(List(|i| list(i.y + i.z, i.x as u32))), into: Write(List(|i| list(i.y, i.z)))
            ], {};
            /// The special register `y`.
            Special = control::special, Kind::Special, [d: Write(D)], {};
            /// R2P: predicates from the bits of a row. Those that the mask leaves out are kept.
            FromRegister = predicates::from_register, Kind::Foreign, [
                a: Read(A), mask: Read(B), kept: Test(Span(|i| (i.z, 7))), into: Set(Span(|i| (i.z, 7)))
            ], { pure: true };
            /// P2R.
            ToRegister = predicates::to_register, Kind::Foreign,
                [a: Read(A), mask: Read(B), from: Test(Span(|i| (i.z, 7))), d: Write(D)], { pure: true };
            /// ISETP.
            IntCompare = predicates::compare, Kind::IntCompare, [
                a: Read(A), b: Read(B), combined: Test(C), low: Test(X) if |i| i.y & EXTENDED != 0,
                p: Set(D), q: Set(Z)
            ], {};
            /// PLOP3: a truth table of three predicates.
            Table = predicates::logic, Kind::Table,
                [a: Test(A), b: Test(B), c: Test(C), p: Set(D), q: Set(Z)], {};
            /// Whether a row is not zero.
            NotZero = predicates::not_zero, Kind::NotZero, [a: Read(A), combined: Test(C), p: Set(D)], {};
            /// Whether lanes differ in a row.
            Differs = predicates::differs, Kind::Stop, [a: Read(A), p: Set(D)], {};

            // Arithmetic that is no function of rows alone, or of none that is inlined.

            /// IADD3, with carries in predicates.
            Add3 = integer::add3, Kind::Add3, [
                a: Read(A), b: Read(B), c: Read(C), carry: Test(Packed(|i| i.x)),
                carry2: Test(Packed(|i| i.x >> 16)), d: Write(D), over: Set(Packed(|i| i.x >> 32)),
                over2: Set(Packed(|i| i.x >> 48))
            ], {};
            /// The upper half of IMAD.WIDE, with carries in predicates.
            AddWide = integer::add_wide, Kind::AddWide, [
                a: Read(A), b: Read(B), carry: Test(Packed(|i| i.x)), d: Write(D),
                over: Set(Packed(|i| i.x >> 32))
            ], {};
            /// PTX's `add.cc` and its like; the flag is row `x`.
            WithCarry = with_carry, Kind::WithCarry, [
                a: Read(A), b: Read(B), c: Read(C) if |i| i.y >> 3 & 1 != 0,
                carry: Read(X) if |i| i.y & 1 != 0, d: Write(D), over: Write(X) if |i| i.y >> 1 & 1 != 0
            ], {};
            /// FSETP.
            FloatCompare = floats::compare, Kind::FloatCompare { double: false },
                [a: Read(A), b: Read(B), combined: Test(C), p: Set(D), q: Set(Z)], {};
            /// DSETP.
            DoubleCompare = floats::compare_doubles, Kind::FloatCompare { double: true },
                [a: Read(A), b: Read(B), combined: Test(C), p: Set(D), q: Set(Z)], {};
            /// DSETP with an outcome that hangs on no comparison.
            ChooseDouble = floats::choose_double, Kind::Foreign,
                [a: Read(A), b: Read(B), combined: Test(C), p: Set(D), q: Set(Z)], { pure: true };
            /// FCHK.
            CheckQuotient = floats::check_quotient, Kind::Foreign,
                [a: Read(A), b: Read(B), p: Set(D)], { pure: true };
            /// Conversions between numbers; `y` and `z` are the formats or widths.
            FloatToFloat = convert::float_to_float, Kind::Foreign, [a: Read(A), d: Write(D)],
                { pure: true, narrow: |i| i.z != convert::FLOAT64 };
            FloatToInt = convert::float_to_int, Kind::Foreign, [a: Read(A), d: Write(D)],
                { pure: true, narrow: |i| i.z <= 32 };
            IntToFloat = convert::int_to_float, Kind::Foreign, [a: Read(A), d: Write(D)],
                { pure: true, narrow: |i| i.z != convert::FLOAT64 };
            IntToInt = convert::int_to_int, Kind::Foreign, [a: Read(A), d: Write(D)],
                { pure: true, narrow: |i| i.x >> 32 == 0 };
            /// Two numbers in one word.
            PackPair = convert::pack_pair, Kind::Foreign, [high: Read(A), low: Read(B), d: Write(D)],
                { pure: true, narrow: |_| true };
            /// HADD2, HMUL2, HFMA2, HMNMX2; of binary16 or bfloat16, with a pair or a single.
            Halves(bf16: bool, single: bool) = match (bf16, single) {
                (false, false) => halves::run::<Half, false>,
                (false, true) => halves::run::<Half, true>,
                (true, false) => halves::run::<Brain, false>,
                (true, true) => halves::run::<Brain, true>,
            }, Kind::Foreign, [a: Read(A), b: Read(B), c: Read(C), d: Write(D)],
                { pure: true, narrow: |_| true };
            /// HSET2.
            HalfSet(bf16: bool) = if bf16 { halves::set::<Brain> } else { halves::set::<Half> }, Kind::Foreign,
                [a: Read(A), b: Read(B), combined: Test(C), d: Write(D)], { pure: true, narrow: |_| true };
            /// HSETP2.
            HalfSetPreds(bf16: bool) = if bf16 { halves::set_preds::<Brain> } else { halves::set_preds::<Half> },
                Kind::Foreign, [a: Read(A), b: Read(B), combined: Test(C), p: Set(D), q: Set(Z)], { pure: true };
            /// MUFU of a half.
            HalfSpecial = halves::special, Kind::Foreign, [a: Read(A), d: Write(D)],
                { pure: true, narrow: |_| true };

            // Addresses and memory. `x` is added to the address. `z` has the space and, from bit 4
            // on, the number of elements. Several elements are in the slots from `y` on.

            /// The address of a parameter, of a variable of the frame, of dynamic shared memory.
            ParamAddress = load_store::param_address, Kind::ParamAddress, [d: Write(D)], {};
            FrameAddress = load_store::frame_address, Kind::FrameAddress, [d: Write(D)], {};
            DynamicShared = load_store::dynamic_shared_address, Kind::DynamicShared, [d: Write(D)], {};
            /// `cvta`.
            ConvertAddress = load_store::convert_address, Kind::ConvertAddress, [a: Read(A), d: Write(D)], {};
            /// `isspacep`.
            IsSpace = load_store::is_space, Kind::Foreign, [address: Read(A), p: Set(D)], {};
            /// QSPC.
            IsInSpace = memory::is_in_space, Kind::Foreign, [address: Read(A), p: Set(D)], {};
            /// `mapa` and `getctarank`.
            MapToBlock = cluster_memory::map_to_block, Kind::Stop, [rest: Any], {};
            RankOf = cluster_memory::rank_of, Kind::Stop, [rest: Any], {};
            /// A load; `b` marks those that are volatile or atomic.
            Load(ty: LaneTy) = of_cell!(ty, load_store::load),
                Kind::Load { size: ty.size(), signed: ty.is_signed() }, [
                    address: Read(A), d: Write(D) if |i| i.z >> 4 == 1,
                    all: Write(List(|i| list(i.y, i.z >> 4))) if |i| i.z >> 4 != 1
                ], {};
            /// A load of a kernel's parameter at an offset that is known.
            LoadParam(ty: LaneTy) = of_cell!(ty, load_store::load_param),
                Kind::LoadParam { size: ty.size(), signed: ty.is_signed() }, [
                    d: Write(D) if |i| i.z >> 4 == 1,
                    all: Write(List(|i| list(i.y, i.z >> 4))) if |i| i.z >> 4 != 1
                ], {};
            /// A store; `d` marks those that are volatile or atomic.
            Store(ty: LaneTy) = of_cell!(ty, load_store::store), Kind::Store { size: ty.size() }, [
                    address: Read(A), value: Read(B) if |i| i.z >> 4 == 1,
                    all: Read(List(|i| list(i.y, i.z >> 4))) if |i| i.z >> 4 != 1
                ], {};
            /// LDC by a register: `y` words to the rows from `d` on.
            LoadBank(ty: LaneTy) = of_cell!(ty, memory::load_bank), Kind::Foreign,
                [offset: Read(A), d: Write(Span(|i| (i.d.0, i.y)))], {};
            /// An access to 16 bytes; its rows are in the slots from `y` on.
            WideLoad = atomic::wide::<WIDE_LOAD>(), Kind::Stop, [rest: Any], {};
            WideStore = atomic::wide::<WIDE_STORE>(), Kind::Stop, [rest: Any], {};
            WideExchange = atomic::wide::<WIDE_EXCHANGE>(), Kind::Stop, [rest: Any], {};
            WideCompareAndSwap = atomic::wide::<WIDE_COMPARE_AND_SWAP>(), Kind::Stop, [rest: Any], {};
            /// `atom` and `red`.
            Atomic(update: Update) = update_function(update), update.kind(),
                [address: Read(A), b: Read(B), c: Read(C), d: Write(D)], {};
            /// The same of vectors, element by element.
            AtomicVector(update: Update) = update_vector_function(update), Kind::Stop, [rest: Any], {};
            /// `cp.async`.
            CopyAsync = load_store::copy_async, Kind::Foreign, [to: Read(A), from: Read(B), size: Read(C)], {};
            /// Barriers in shared memory, and copies that report to them.
            MbarrierOperate = mbarrier::operate, Kind::Stop, [rest: Any], {};
            MbarrierTest = mbarrier::test, Kind::Stop, [rest: Any], {};
            MbarrierPending = mbarrier::pending, Kind::Stop, [rest: Any], {};
            BulkCopy = mbarrier::bulk_copy, Kind::Stop, [rest: Any], {};
            BulkReduce = mbarrier::bulk_reduce, Kind::Stop, [rest: Any], {};
            TensorTile = tensor::tile, Kind::Stop, [rest: Any], {};
            /// A texture or surface access: `z` has the numbers of results, coordinates and values.
            Texture = texture::access, Kind::Stop, [
                object: Read(A),
                from: Read(List(|i| list(i.y + (i.z & 0xff), (i.z >> 8 & 0xff) + (i.z >> 16)))),
                into: Write(List(|i| list(i.y, i.z & 0xff)))
            ], { whole: Whole::Call, narrow: |_| true };

            // Control.

            /// A jump to instruction `x`.
            Branch = control::branch, Kind::Branch, [], {};
            /// A jump by table `y`.
            BranchTable = control::branch_table, Kind::Stop, [index: Read(A)], { then: Then::Table };
            /// A jump of the lanes that are at different places.
            BranchIfApart = jumps::branch_if_apart, Kind::Stop, [members: Read(A), which: Test(C)],
                { then: Then::Jump };
            JumpAddress = jumps::jump_address, Kind::Stop, [rest: Any], { then: Then::Elsewhere };
            CallAddress = jumps::call_address, Kind::Stop, [rest: Any], {};
            /// A call by call site `x`; `a` is the function where that does not name it.
            Call = call::call, Kind::Stop, [
                function: Read(A), arguments: Read(Homes(call_arguments)), returns: Write(Homes(call_returns))
            ], {};
            /// The end of function `y`.
            Return = call::ret, Kind::Stop,
                [address: Read(Span(|_| (0, 1))), returns: Read(Homes(own_returns))], { then: Then::Elsewhere };
            Exit = control::exit, Kind::Stop, [], { then: Then::End };
            Trap = control::trap, Kind::Stop, [], { then: Then::End };
            /// `nanosleep`, NANOSLEEP, YIELD.
            GiveWay = control::give_way, Kind::Stop, [], {};
            Sleep = convergence::sleep, Kind::Stop, [], {};
            Yield = convergence::give_way, Kind::Stop, [], {};

            // What lanes and warps do together.

            Fence = control::fence, Kind::Stop, [], { whole: Whole::Fence };
            /// `bar.warp.sync`, which joins lanes at different places of the code.
            WarpBarrier = warp_sync::warp_barrier, Kind::Stop, [members: Read(A)], { whole: Whole::Nothing };
            /// `shfl`; `y` is the mode.
            Shuffle = warp_sync::shuffle, Kind::Stop, [
                value: Read(A), lane: Read(B), clamp: Read(C), members: Read(X), d: Write(D), inside: Set(Z)
            ], { whole: Whole::Shuffle, narrow: |_| true };
            /// `vote`; `y` is the mode, 3 the ballot.
            Vote = warp_sync::vote, Kind::Stop, [
                truth: Test(A), members: Read(B), d: Write(D) if |i| i.y == 3, p: Set(D) if |i| i.y != 3
            ], { whole: Whole::Vote, narrow: |_| true };
            ActiveMask = warp_sync::active_mask, Kind::Stop, [d: Write(D)],
                { whole: Whole::Everybody, narrow: |_| true };
            Elect = warp_sync::elect, Kind::Stop, [members: Read(A), d: Write(D), p: Set(Z)],
                { whole: Whole::Call, narrow: |_| true };
            /// `match`; `y` is 1 for `match.all`.
            Match = warp_sync::match_values, Kind::Stop,
                [value: Read(A), members: Read(B), d: Write(D), same: Set(Z) if |i| i.y == 1],
                { whole: Whole::Call, narrow: |_| true };
            /// `redux`.
            Reduce = warp_sync::reduce, Kind::Stop, [value: Read(A), members: Read(B), d: Write(D)],
                { whole: Whole::Call, narrow: |_| true };
            /// `bar`; `y` says which.
            Barrier = warp_sync::barrier, Kind::Stop, [
                number: Read(A), threads: Read(B), truth: Test(C) if |i| i.y >= BARRIER_POPC,
                d: Write(D) if |i| i.y == BARRIER_POPC, p: Set(D) if |i| i.y > BARRIER_POPC
            ], { whole: Whole::Interpreted, narrow: |_| true };
            ClusterArrive = warp_sync::cluster_arrive, Kind::Stop, [], {};
            ClusterWait = warp_sync::cluster_wait, Kind::Stop, [], {};
            /// BSSY, and moves to and from its barriers.
            Begin = convergence::begin, Kind::Stop, [d: Write(D)], { whole: Whole::Everybody, narrow: |_| true };
            SetBarrier = convergence::set, Kind::Stop, [a: Read(A), d: Write(D)], { whole: Whole::Interpreted };
            GetBarrier = convergence::get, Kind::Stop, [rest: Any], {};
            /// BSYNC, whose `a` is the row with the lanes that are to meet.
            Meet = convergence::meet, Kind::Stop, [members: Read(A)], { whole: Whole::Nothing };
            /// BREAK.
            Leave = convergence::leave, Kind::Stop, [members: Read(D), kept: Write(D)],
                { whole: Whole::Interpreted };
            /// `mma` and its like: `z` has how many rows result, a, b and c have.
            Multiply = matrix::multiply, Kind::Stop, [
                from: Read(List(|i| list(i.y + (i.z & 63), (i.z >> 6 & 63) + (i.z >> 12 & 63) + (i.z >> 18 & 63)))),
                into: Write(List(|i| list(i.y, i.z & 63)))
            ], { whole: Whole::Call, narrow: |i| i.x >> 12 & 7 != matrix::Element::F64 as u64 };
            MultiplySparse = multiply_sparse, Kind::Stop, [rest: Any], {};
            MultiplyNarrow = multiply_narrow, Kind::Stop, [rest: Any], { whole: Whole::Interpreted };
            /// `ldmatrix` and `stmatrix` (`x` is 1).
            MatrixRows = matrix::rows, Kind::Stop, [
                address: Read(A), from: Read(List(|i| list(i.y, i.z >> 4 & 15))) if |i| i.x == 1,
                into: Write(List(|i| list(i.y, i.z >> 4 & 15))) if |i| i.x != 1
            ], { whole: Whole::Call, narrow: |_| true };
            /// `wmma.load` and `wmma.store` (bit 30 of `z`).
            Transfer = fragment::transfer, Kind::Stop, [
                address: Read(A), stride: Read(B),
                from: Read(List(|i| list(i.y, i.z >> 8 & 63))) if |i| i.z >> 30 & 1 != 0,
                into: Write(List(|i| list(i.y, i.z >> 8 & 63))) if |i| i.z >> 30 & 1 == 0
            ], { whole: Whole::Call };
            /// `movmatrix`.
            Transpose = matrix::transpose, Kind::Stop, [a: Read(A), d: Write(D)],
                { whole: Whole::Call, narrow: |_| true };
        }
    };
}

pub(crate) use for_each_operation;
