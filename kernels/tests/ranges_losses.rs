//! Why an access is not exact: the value that is lost, what it decides, and the parameter it was
//! loaded through. An access that is exact has no loss.

use crate::support::cuda;
use kernels::{AccessKind, CodeImage, Loss, LossRole, Reason};

fn of(code: &CodeImage, kernel: &str) -> Option<Loss> {
    let summary = code.summary(kernel).expect("summary");
    let at = summary.instructions().find(|(kind, ..)| *kind == AccessKind::Write).expect("a write").1;
    let first = summary.params()[0].offset;
    let loss = summary.loss(AccessKind::Write, Some(first), at);
    // What is loaded is loaded by an instruction of the kernel.
    if let Some(Loss { reason: Reason::Loaded, at, .. }) = loss {
        assert!(summary.instructions().any(|(kind, place, _)| kind == AccessKind::Read && place == at), "{kernel}");
    }
    loss
}

#[test]
fn what_is_lost_is_named_with_its_parameter() {
    cuda::deep(|| {
        for (arch, form) in [("sm_80", "-cubin"), ("sm_90", "-cubin"), ("sm_120", "-cubin"), ("sm_80", "-ptx")] {
            let code = cuda::image("losses.cu", arch, form);
            let named = |kernel: &str| of(&code, kernel).map(|loss| (loss.role, loss.reason, loss.param));
            let loaded = |role| Some((role, Reason::Loaded, Some(8)));
            assert_eq!(named("scatter"), loaded(LossRole::Address), "{arch} {form}");
            assert_eq!(named("masked"), loaded(LossRole::Condition), "{arch} {form}");
            let ragged = named("ragged").expect("a loss");
            assert!(
                matches!(ragged.0, LossRole::Iterations | LossRole::Condition | LossRole::Address)
                    && (ragged.1, ragged.2) == (Reason::Loaded, Some(8)),
                "{arch} {form}: {ragged:?}"
            );
            assert_eq!(named("plain"), None, "{arch} {form}");
        }
    });
}
