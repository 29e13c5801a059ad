//! The second run of a program whose findings rest on bytes that are not certain.
//!
//! Owns which findings those are, the words that measure their kernels, and what the second run
//! does to the first one's report. Does not start the program: that is [`super::one`].
//!
//! The second run is `streamsan run --confirm --exact=KERNELS`: the kernels of these findings are
//! measured from their first launch on. A finding that it proves takes the place of the first one.
//! Pairs that the first run sets aside, because loaded indices select both sides, are measured too:
//! one that is proven is a finding, and of the others nothing is told.
//! A finding that it refutes is withdrawn, but only if the program has ended as in the first run:
//! otherwise what was not seen may still meet. Everything else stays, and is told.

use detect::memory::Precision;
use report::words::{Established, FindingKind};
use std::collections::BTreeSet;
use std::ffi::OsString;

use detect::confidence::{Confidence, Weakness};
use report::doubt::IRREGULAR;
use report::fingerprint::text_of;
use report::model::{Finding, GateStatus, Report, Side};
use report::program::SecondRun;

/// Findings to settle.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct InDoubt {
    /// Their places.
    pub(crate) places: BTreeSet<u64>,
    /// How many they are.
    pub(crate) findings: u64,
    /// Their kernels, by the names that their code has.
    kernels: BTreeSet<String>,
}

/// What the second run has shown.
pub(crate) struct SecondReport {
    /// Its report.
    pub(crate) report: Report,
    /// Why it says nothing about what it did not see; empty when it ended as the first one did.
    pub(crate) why: String,
}

/// The findings of a judged report that a measurement may settle. Pairs that are set aside because
/// both sides are selected by loaded indices count: only a run shows whether they meet.
pub(crate) fn in_doubt(judged: &Report) -> InDoubt {
    let mut all = InDoubt::default();
    let by_data = judged.findings.iter().filter(|finding| is_set_aside(judged, finding));
    for finding in judged.shown().chain(by_data).filter(|finding| is_open(finding)) {
        all.findings += 1;
        all.places.insert(finding.identity.places);
        let sides = [&finding.access, &finding.previous].into_iter();
        all.kernels.extend(sides.map(|side| side.symbol.clone()).filter(|symbol| !symbol.is_empty()));
    }
    all
}

/// Whether a finding is not shown because data selects the bytes of both sides.
fn is_set_aside(judged: &Report, finding: &Finding) -> bool {
    !judged.pedantic
        && finding.standing == GateStatus::New
        && finding.confidence == Confidence::Possible
        && finding.weakness == Some(Weakness::Indices)
}

/// Whether the bytes of a finding are not certain because those of a kernel are not.
fn is_open(finding: &Finding) -> bool {
    let open = |side: &Side| !side.symbol.is_empty() && side.precision != Precision::Exact;
    let irregular = || finding.doubts.iter().any(|doubt| doubt.reason == IRREGULAR);
    let sides = [&finding.access, &finding.previous];
    finding.confidence < Confidence::Certain
        && !finding.latent
        && finding.kind == FindingKind::Race
        && finding.established == Established::Code
        && (sides.into_iter().any(open) || irregular())
}

/// The words of the second run: those of the first, with these kernels measured.
pub(crate) fn words(first: &[OsString], doubt: &InDoubt) -> Vec<OsString> {
    let decided = |word: &&OsString| {
        let word = word.to_string_lossy();
        !word.starts_with("--exact=") && !word.starts_with("--confirm=")
    };
    let mut words: Vec<OsString> = first.iter().filter(decided).cloned().collect();
    words.push("--confirm=yes".into());
    words.push(format!("--exact={}", patterns(&doubt.kernels)).into());
    words
}

/// The kernels as patterns. The first comma keeps a single name from being taken for a word such
/// as `all`. Too many names for an environment variable are all kernels.
fn patterns(kernels: &BTreeSet<String>) -> String {
    const LONGEST: usize = 60_000;
    // What separates options and patterns may stand in no name.
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.$".contains(c) { c } else { '*' };
    let list: String = kernels.iter().map(|name| format!(",{}", name.chars().map(plain).collect::<String>())).collect();
    if list.len() > LONGEST { ",*".into() } else { list }
}

/// Settles the findings in doubt by what the second run has shown. The program's own numbers
/// (launches, coverage) stay those of the first run.
pub(crate) fn settle(first: &mut Report, doubt: &InDoubt, shown: SecondReport) -> SecondRun {
    let SecondReport { report: mut second, why } = shown;
    let mut told = SecondRun {
        launches: second.coverage.launches,
        measured: second.coverage.launches_measured,
        made: true,
        ..SecondRun::default()
    };
    let mut reasons: BTreeSet<String> = BTreeSet::new();
    let places: BTreeSet<u64> = second.findings.iter().filter(|f| !f.latent).map(|f| f.identity.places).collect();
    let is_proof = |f: &Finding| !f.latent && f.confidence == Confidence::Certain;
    let proven: BTreeSet<u64> = second.findings.iter().filter(|f| is_proof(f)).map(|f| f.identity.places).collect();
    let refuted: BTreeSet<u64> = second.withdrawn().map(|f| f.identity.places).collect();
    let mut kept = Vec::new();
    let mut settled = Vec::new();
    for finding in std::mem::take(&mut first.findings) {
        let at = finding.identity.places;
        if !(doubt.places.contains(&at) && is_open(&finding)) {
            kept.push(finding);
        } else if proven.contains(&at) {
            told.confirmed += 1;
            settled.push(finding);
        } else if is_set_aside(first, &finding) {
            // Nobody has seen it: there is nothing to withdraw.
            kept.push(finding);
        } else if refuted.contains(&at) && !places.contains(&at) && why.is_empty() {
            told.withdrawn += 1;
            first.withdrawn.push(finding);
        } else {
            told.stay += 1;
            let raced = |f: &Finding| is_proof(f) && same_site(&f.access, &finding.access);
            reasons.insert(if !why.is_empty() {
                why.clone()
            } else if places.contains(&at) || refuted.contains(&at) {
                "their bytes could not be measured".into()
            } else if second.findings.iter().any(raced) {
                "the later operation races with another one, which refutes nothing".into()
            } else {
                "the two did not come unordered again".into()
            });
            kept.push(finding);
        }
    }
    told.why = reasons.into_iter().collect::<Vec<_>>().join("; ");
    first.findings = kept;
    let offset = first.processes.len() as u32;
    let least = if first.pedantic { Confidence::Possible } else { Confidence::Likely };
    let mut any = false;
    for mut finding in std::mem::take(&mut second.findings) {
        let same = |f: &Finding| f.identity == finding.identity && f.latent == finding.latent;
        let known = first.findings.iter().position(same);
        let hidden = finding.confidence < least || (finding.internal && !first.pedantic);
        if hidden || known.is_some_and(|at| first.findings[at].confidence >= finding.confidence) {
            continue;
        }
        if !settled.iter().any(|f: &Finding| f.identity.places == finding.identity.places) {
            told.fresh += 1;
        }
        let known = known.map(|at| first.findings.remove(at));
        let before = known.as_ref().or_else(|| settled.iter().find(|f| same(f)));
        finding.fingerprint = match before {
            Some(before) => before.fingerprint.clone(),
            None => free_fingerprint(&first.findings, &finding),
        };
        finding.processes.iter_mut().for_each(|index| *index += offset);
        any = true;
        first.findings.push(finding);
    }
    if any {
        first.processes.append(&mut second.processes);
        // How many processes have not met a rule is compared with the number of processes.
        for (rule, processes) in std::mem::take(&mut second.coverage.rules_unmet) {
            *first.coverage.rules_unmet.entry(rule).or_default() += processes;
        }
    }
    if any || told.withdrawn > 0 {
        retry(first, second, told.stay);
    }
    told
}

/// Whether two sides, of two runs, are one place of the program.
fn same_site(a: &Side, b: &Side) -> bool {
    let lines = |side: &Side| -> Vec<_> {
        side.stack.iter().map(|frame| (frame.function.clone(), frame.file.clone(), frame.line)).collect()
    };
    (&a.call, &a.symbol) == (&b.call, &b.symbol) && lines(a) == lines(b)
}

/// The waits that were tried were tried on other findings than there are now: the second run's
/// trial holds, if all was settled, and otherwise none does.
fn retry(first: &mut Report, second: Report, stay: u64) {
    first.causes.iter_mut().for_each(|cause| cause.tried = false);
    let mut causes = second.causes;
    if stay == 0 {
        first.mended = second.mended;
    } else {
        first.mended = None;
        causes.iter_mut().for_each(|cause| cause.tried = false);
    }
    causes.append(&mut first.causes);
    first.take_causes(causes);
    first.sort();
    first.settle_causes();
}

/// A fingerprint that no other finding has: its own, or the next number behind it.
fn free_fingerprint(taken: &[Finding], finding: &Finding) -> String {
    let is_free = |text: &String| !taken.iter().any(|f| f.fingerprint == *text && f.latent == finding.latent);
    let numbered = (0..=taken.len() as u32).map(|nth| text_of(finding.identity.lasting, nth));
    std::iter::once(finding.fingerprint.clone()).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_become_patterns_that_no_word_and_no_separator_spoils() {
        let of = |names: &[&str]| patterns(&names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(of(&["all"]), ",all");
        assert_eq!(of(&["_Z1kPf", "b:c,d"]), ",_Z1kPf,b*c*d");
        let many: Vec<String> = (0..3000).map(|i| format!("a_kernel_of_a_long_name_{i}")).collect();
        assert_eq!(patterns(&many.into_iter().collect()), ",*");
    }

    #[test]
    fn the_words_of_the_first_run_decide_nothing_about_measuring() {
        let first: Vec<OsString> =
            ["--sim=yes", "--exact=no", "--confirm=no", "--exact-patch=/p"].map(Into::into).into();
        let doubt = InDoubt { kernels: ["k".to_owned()].into(), ..InDoubt::default() };
        let words: Vec<OsString> =
            ["--sim=yes", "--exact-patch=/p", "--confirm=yes", "--exact=,k"].map(Into::into).into();
        assert_eq!(super::words(&first, &doubt), words);
    }
}
