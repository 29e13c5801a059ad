//! A kernel launch on the slow path: what its code predicts, what was measured, and which of the
//! two counts.
//!
//! Owns that choice, and the short cut for launches that can be replayed
//! ([`detect::launch_memory::replay`]). Measured bytes replace predicted ones except for
//! instructions that the measurement does not see ([`detect::exact::measured`]). Learned bytes
//! stand in for measured ones when the prediction is not exact. Does not evaluate kernels
//! ([`detect::launch_memory::evaluator`]) and does not compare accesses ([`detect::accesses`]).

use crate::process::early_values::heard;
use crate::process::facts::ProcessFacts;
use crate::process::op_context::OpContext;
use crate::process::state::{FlagWait, ProcessState};
use detect::accesses::Work;
use detect::exact::learned::Shape;
use detect::exact::pending::MeasuredLaunch;
use detect::exact::{atomics, compare, fences, locks, measured, measuring, scopes, settle};
use detect::hints::{CodeSpot, DoubtfulLaunch};
use detect::launch_memory::evaluator::LaunchEvaluator;
use detect::launch_memory::launch_key::LaunchKey;
use detect::launch_memory::replay::ReplayLog;
use detect::launches::dependence::Dependence;
use detect::launches::effects::{Effect, EffectBase, Evaluated, Knowledge, Launch, candidate_pointers};
use detect::memory::{self, AccessKind, Cause, Site};
use detect::state::graphs::Graph;
use detect::state::names::Names;
use detect::state::polls::Poll;
use detect::state::signal_pads::{PadUse, SignalPads};
use kernels::Reason;
use order::{Opens, Overlap, has_programmatic_launches};
use std::num::NonZeroU32;
use trace::launch_flags::PROGRAMMATIC_SERIALIZATION;
use trace::ring::back_channel::LaunchClass;
use trace::{KernelId, MemoryKind, Op, StreamId};

/// Bytes of a signal in a pad of PyTorch, and most signals of one instruction.
const SIGNAL: u64 = 4;
const MAX_SIGNALS: usize = 1024;

/// Applies a launch: looks up what it accesses, and compares that.
pub(super) fn launch(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    stream: StreamId,
    kernel: KernelId,
    l: &Launch<'_>,
    context: OpContext,
    node: Option<(&Graph, u32)>,
) {
    let number = node.map_or(0, |(_, index)| index + 1);
    let mut key = facts.code.key(kernel, l);
    let class = LaunchClass::of(kernel, l.shape.grid, l.shape.block);
    let dependence = match node {
        Some((graph, node)) => graph.dependence(node),
        None if l.shape.flags & PROGRAMMATIC_SERIALIZATION != 0 => {
            let arch = facts.arch(&state.streams, stream);
            let mut of = || facts.code.dependence(kernel, facts.names.kernel(kernel), arch);
            if has_programmatic_launches(arch) { of() } else { Dependence::ORDERED }
        }
        None => Dependence::ORDERED,
    };
    let overlap = if dependence.waits { memory::Overlap::No } else { memory::Overlap::NeverWaits };
    let overlap_in_doubt = match node {
        Some((graph, node)) => graph.begins_in_doubt(node),
        None => state.overlaps_in_doubt.contains(&stream),
    };
    let context = OpContext { overlap, overlap_in_doubt, ..context };
    let triggers_by_launch = node.is_none() && note_triggers(state, facts, stream, kernel, l);
    // What is made before the wait has another order than the rest, which no replay knows.
    let begins_early = dependence.accesses_early && state.ordering.view_before_wait(context.epoch, node).is_some();
    let plain = !begins_early
        && !triggers_by_launch
        && !overlap_in_doubt
        && state.is_plain()
        && state.exact.measuring.as_ref().is_none_or(|measuring| measuring.settle.has(class));
    if plain && launch_repeated(state, facts, stream, &key, l, &context, node) {
        return;
    }
    let def = facts.names.kernel(kernel);
    let arch = facts.arch(&state.streams, stream);
    let predicted = facts.code.evaluate(&mut key, def, arch, l, &state.memory.tensor_maps);
    let polled = facts.code.polls((kernel, def, arch), &predicted);
    for &at in &polled {
        state.polls.note(Poll { epoch: context.epoch, kernel, at });
    }
    let scope = scope(state, (&facts.names, &mut facts.code), stream, (kernel, &predicted));
    let mut doubtful = Vec::new();
    if state.shares {
        let unseen = facts.code.waits_unseen((kernel, def, arch), &state.memory, &predicted);
        let waits = if unseen { Some(FlagWait::Anywhere) } else { (!polled.is_empty()).then_some(FlagWait::Known) };
        state.waits = state.waits.max(waits);
        let weak = facts.code.weak_flags((kernel, def, arch), &predicted, &state.memory);
        doubtful.extend(weak.into_iter().map(CodeSpot::Flag));
    }
    doubtful.extend(facts.code.unfenced_copies(kernel).iter().copied().map(CodeSpot::Copy));
    let stack = context.origin.stack;
    state.doubtful.extend(doubtful.into_iter().map(|spot| DoubtfulLaunch { stack, stream, kernel, spot }));
    let mut mute = facts.code.is_mute((kernel, def, arch), &predicted);
    let image = def.map_or(trace::ImageId::NONE, |d| d.image);
    let mut touched = state.exact.pending.touched(context.origin.epoch, number);
    let simulated = touched.as_ref().is_some_and(MeasuredLaunch::is_simulated);
    // The bytes of a launch may be decided, and its order not.
    let bytes_decided = settle::is_decided(&predicted);
    let signals = !mute && facts.code.signals(kernel, def, arch);
    let is_ordered = (simulated || state.exact.measuring.is_some()) && fences::matters(&predicted, signals);
    let decided = bytes_decided && !is_ordered;
    if let Some(settle) = state.exact.settle() {
        settle.judge(class, decided && !context.is_conditional);
    }
    // The API reports the whole size of a copy that reads less and fills the rest with zeros
    // (CUDA 13.0), and so does the simulated GPU.
    if let Some(touched) = &mut touched
        && facts.code.copies_in_part(kernel, def, arch)
    {
        measured::bound_reads(&mut touched.runs);
    }
    // Code that runs as it was before the patch reports no access: such an answer is not
    // evidence.
    let may_be_unpatched = state.exact.confirm.is_some() && measured::claims(&predicted);
    let nothing = |of: &MeasuredLaunch| may_be_unpatched && of.runs.is_empty() && !of.is_simulated();
    let has_run = touched.as_ref().is_none_or(MeasuredLaunch::has_run);
    let mut touched = if touched.as_ref().is_some_and(nothing) {
        *state.coverage.unobserved.entry("exact ranges that came back empty".to_string()).or_default() += 1;
        None
    } else {
        touched
    };
    // Of a body of a conditional node: what was measured has run, or else touches nothing.
    let context = OpContext { is_conditional: context.is_conditional && touched.is_none(), ..context };
    let order = touched.as_mut().and_then(MeasuredLaunch::take_order);
    let (mut touched, mut recalled) = (touched.map(|touched| touched.runs), false);
    if let Some(lessons) = state.exact.learned.as_mut().filter(|_| !predicted.exact)
        && let Some(code) = facts.code.identity(kernel, def, arch)
    {
        let shape = Shape::of(code, def.map_or("", |d| &d.name), l, &predicted.effects, &state.memory);
        match &touched {
            // Code that runs as it was before the patch reports no access.
            Some(runs) if runs.is_empty() && measured::claims(&predicted) => {}
            Some(runs) => lessons.fresh.learn(&shape, runs, &state.memory),
            None => {
                touched = lessons.known.recall(&shape, &state.memory);
                recalled = touched.is_some();
            }
        }
    }
    if let Some(runs) = touched.as_ref().filter(|_| !mute && !recalled && has_run) {
        mute = facts.code.was_mute((kernel, def, arch), runs, simulated, order.as_ref());
    }
    if mute {
        state.touches.tells_nobody(context.epoch, number);
    }
    if let Some(runs) = touched.as_ref().filter(|_| state.options.compare && !recalled && has_run) {
        let c = compare::compare(&predicted, image, &mut state.memory, runs);
        let loss = |effect: &Effect| {
            let param = match effect.base {
                EffectBase::Param(offset, _) | EffectBase::Maybe(offset, _) => Some(offset),
                _ => None,
            };
            facts.code.loss(kernel, effect.kind, param, effect.at)
        };
        state.exact.oracle.add(def.map_or("(unknown)", |d| &d.name), l, &predicted, runs, &c, loss);
    }
    // Nobody asked for measurements of what the code decides: they only check the prediction,
    // which knows the parameter and the instruction of each access besides.
    let checks = bytes_decided && !recalled && has_run;
    if let (Some(measuring), Some(runs), true) = (&mut state.exact.measuring, &touched, checks) {
        let compared = measuring.compares(class).then(|| compare::compare(&predicted, image, &mut state.memory, runs));
        let name = || def.map_or_else(|| "(unknown)".to_string(), |d| facts.stacks.demangle(&d.name));
        match compared.and_then(|c| measuring::mistake(name, &c)) {
            Some(line) => measuring::tell(&mut state.coverage.mispredicted, line),
            None if decided => touched = None,
            None => {}
        }
    }
    for effect in &predicted.effects {
        if let EffectBase::Tensor(param, _) = effect.base {
            let map = l.params.get(param as usize..).unwrap_or_default();
            state.memory.tensor_maps.note_copy(kernel, param, map);
        }
    }
    let site = Site { kernel, node: number, ..context.site(Cause::Kernel, stream) };
    let view = state.ordering.view(context.epoch, node);
    let before_wait = state.ordering.view_before_wait(context.epoch, node).filter(|_| begins_early);
    let measured = touched.map(|mut runs| {
        atomics::settle(&predicted, image, &mut state.memory, &mut runs);
        let nowhere = |name: &str| state.memory.address_of(image, name).is_none();
        let unseen = measured::unseen(&predicted, simulated, nowhere);
        let mut known = measured::effects(&runs);
        measured::attribute(&mut known, &predicted, &state.memory);
        let order = order.filter(|_| !recalled);
        if order.is_some()
            && signals
            && !mute
            && node.is_none()
            && let Some(heard) = heard(&known.effects)
        {
            state.early_values.note(context.epoch, heard);
        }
        locks::mark(&predicted, order.is_some(), image, &mut state.memory, &mut known.effects);
        scopes::mark(&predicted, image, &state.memory, &mut known.effects);
        if let Some(order) = order {
            order.apply(signals && !mute, image, &mut state.memory, &mut known.effects);
        }
        (known, unseen)
    });
    let supposed = state.exact.supposed();
    let mut work =
        Work::new(&mut state.memory, view, site, &mut state.races, state.options.judging.pedantic).suppose(supposed);
    work = work.overlapping(before_wait).with_scope(scope);
    let known = match &measured {
        Some((known, unseen)) => {
            work.predicted(|work| match predicted.knowledge {
                Knowledge::Unknown => work.pointers(candidate_pointers(l.params, def)),
                _ => work.effects(&predicted, image),
            });
            work.effects(unseen, image);
            if begins_early {
                work.effects(&measured::before_wait(&predicted, known), image);
            }
            work.site.measured = true;
            work.effects(known, image);
            known
        }
        None if predicted.knowledge == Knowledge::Unknown => {
            work.pointers(candidate_pointers(l.params, def));
            &predicted
        }
        None => {
            // A replay would not tell that the kernel polls, nor on which device it runs.
            if plain && polled.is_empty() && scope.is_none() {
                work.record();
            }
            work.effects(&predicted, image);
            let replay = ReplayLog::of(&mut work, &predicted, |tally| facts.code.tally(tally));
            facts.code.store_replay(&key, l, replay.map(|replay| replay.mute(mute)));
            &predicted
        }
    };
    let is_known = measured.is_some() && !recalled && node.is_none();
    let mut pads: Vec<(u64, u64)> = Vec::new();
    if let Some(def) = def
        && SignalPads::is_user(def)
    {
        let updates = || known.effects.iter().filter(|e| e.kind == AccessKind::Atomic);
        if state.shares {
            let words =
                updates().map(|e| e.units(SIGNAL, MAX_SIGNALS).filter(|_| is_known)).collect::<Option<Vec<_>>>();
            // One that is known to update none sends none.
            match words.map(|words| words.concat()) {
                Some(words) if is_known && words.is_empty() => {}
                words => state.pad_words = Some(words.unwrap_or_default()),
            }
        }
        pads.extend(updates().filter_map(Effect::bounds));
    }
    let (several, work_unfollowed) = (work.several(), work.unfollowed());
    let known = if work.maps_lost() { known.outline() } else { known.outline_with_maps() };
    let indirect = known.indirect || work_unfollowed;
    let c = &mut state.coverage;
    c.launched(1, &known, indirect, work.unplaced);
    c.launches_measured += u64::from(measured.is_some() && !recalled);
    c.launches_learned += u64::from(recalled);
    c.launches_in_part +=
        u64::from(!recalled && measured.as_ref().is_some_and(|(_, unseen)| measured::is_inexact(unseen)));
    c.launches_unmeasured += u64::from(state.exact.measuring.is_some() && measured.is_none() && !bytes_decided);
    if known.knowledge == Knowledge::Unknown {
        let launches = known.gap.filter(|gap| gap.reason == Reason::Launches).map(|_| "it launches kernels itself");
        let why = launches.or_else(|| facts.code.reason(kernel)).unwrap_or("the code could not be analysed");
        c.launch_unknown(why);
    }
    state.kernels.entry(kernel).or_default().count(1, &known, several, indirect);
    if !pads.is_empty() {
        note_pads(state, &pads, PadUse { epoch: context.epoch, stack: context.origin.stack, stream }, node);
    }
}

/// Of a launch with atomic accesses, where other devices may reach its memory: its device, and
/// whether none of its stores has a scope beyond that.
fn scope(
    state: &ProcessState,
    (names, code): (&Names, &mut LaunchEvaluator),
    stream: StreamId,
    (kernel, known): (KernelId, &Evaluated),
) -> Option<(NonZeroU32, bool)> {
    let context = state.streams.get(stream)?.context;
    // Another device may come later, and find in memory of the host what this one has done there.
    let is_alone = !state.shares && names.device_of(context).is_none();
    let is_of_all = |address| {
        use MemoryKind::{Managed, PinnedHost, RegisteredHost};
        matches!(state.ordering.memory_kind(address), Some(Managed | PinnedHost | RegisteredHost))
    };
    let matters =
        |e: &Effect| e.kind.is_atomic() && (!is_alone || e.bounds().is_some_and(|(first, _)| is_of_all(first)));
    if !known.effects.iter().any(matters) {
        return None;
    }
    let device = names.device_number(context)?;
    let id = (kernel, names.kernel(kernel), names.arch(context));
    Some((device, code.stores_within_device(id, known)))
}

/// A launch updates words of signal pads.
#[cold]
fn note_pads(state: &mut ProcessState, words: &[(u64, u64)], by: PadUse, node: Option<(&Graph, u32)>) {
    let view = state.ordering.view(by.epoch, node);
    let is_before = |epoch| view.clock().covers(epoch);
    let found: Vec<PadUse> = words.iter().filter_map(|words| state.pads.used(*words, by, is_before)).collect();
    state.pad_uses.extend(found.first().map(|other| [*other, by]));
}

/// A kernel behind the wait for an event that another kernel fires: if it waits itself, then for
/// all of that kernel.
#[inline]
pub(crate) fn wait_for_fired(state: &mut ProcessState, facts: &mut ProcessFacts, op: &Op<'_>) {
    if let Op::Launch { stream, kernel, .. } = *op
        && state.ordering.is_behind_fired(stream)
    {
        let arch = facts.arch(&state.streams, stream);
        let waits = facts.code.dependence(kernel, facts.names.kernel(kernel), arch).waits;
        state.ordering.launch_behind_fired(stream, waits);
    }
}

/// How a launch with the attribute for it may overlap its predecessor, on a device with
/// programmatic dependent launch. `None`: any other op.
#[inline]
pub(crate) fn overlap(state: &mut ProcessState, facts: &mut ProcessFacts, op: &Op<'_>) -> Option<Overlap> {
    match *op {
        Op::Launch { stream, kernel, shape, .. } if shape.flags & PROGRAMMATIC_SERIALIZATION != 0 => {
            let arch = facts.arch(&state.streams, stream);
            state.coverage.count_overlap(arch);
            if !has_programmatic_launches(arch) {
                return None;
            }
            let before = state.ordering.kernel_before(stream);
            let mut of = |kernel| facts.code.dependence(kernel, facts.names.kernel(kernel), arch);
            let waits = of(kernel).waits;
            let Some(before) = before else {
                state.overlaps_in_doubt.remove(&stream);
                return Some(Overlap { before: Opens::AtOnce, waits });
            };
            let known = state.triggers.get(&stream).filter(|(kernel, _)| *kernel == before);
            let known = known.map_or_else(|| of(before), |(_, known)| *known);
            // What began beside others may hand that on to what begins beside it.
            let is_open =
                !known.opens_surely || known.opens != Opens::Never && state.overlaps_in_doubt.contains(&stream);
            match is_open {
                true => state.overlaps_in_doubt.insert(stream),
                false => state.overlaps_in_doubt.remove(&stream),
            };
            Some(Overlap { before: known.opens, waits })
        }
        Op::Launch { stream, .. } => {
            state.overlaps_in_doubt.remove(&stream);
            None
        }
        _ => None,
    }
}

/// Notes what a launch does about dependent ones, if that is decided by the launch. False: the code
/// decides it.
fn note_triggers(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    stream: StreamId,
    kernel: KernelId,
    l: &Launch<'_>,
) -> bool {
    let arch = facts.arch(&state.streams, stream);
    if !has_programmatic_launches(arch) {
        return false;
    }
    let def = facts.names.kernel(kernel);
    if !facts.code.triggers_by_launch(kernel, def, arch) {
        return false;
    }
    let does = facts.code.dependence_in((kernel, def, arch), l);
    state.triggers.insert(stream, (kernel, does));
    true
}

/// Replays a launch that was made before and finds its memory where it was. False: it is a new
/// launch.
fn launch_repeated(
    state: &mut ProcessState,
    facts: &mut ProcessFacts,
    stream: StreamId,
    key: &LaunchKey,
    l: &Launch<'_>,
    context: &OpContext,
    node: Option<(&Graph, u32)>,
) -> bool {
    let Some(replay) = facts.code.replay_log(key, l).filter(|replay| replay.holds(&state.memory)) else {
        return false;
    };
    let kernel = key.kernel();
    let site = Site { kernel, node: node.map_or(0, |(_, i)| i + 1), ..context.site(Cause::Kernel, stream) };
    replay.replay(&mut state.memory, (&state.ordering, context.epoch, node), &site, &mut state.races);
    if replay.is_mute() {
        state.touches.tells_nobody(context.epoch, site.node);
    }
    let tally = replay.tally();
    facts.code.count(tally);
    true
}
