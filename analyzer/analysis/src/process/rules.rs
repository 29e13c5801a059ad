//! The hook for rules that the program must not break: each op before it takes effect.
//!
//! Owns what of the analysis a rule gets to see. The rules are [`crate::rules`].

use super::Analysis;
use crate::rules::watch::RuleContext;
use trace::{Op, Origin};

impl Analysis {
    /// Looks at an op.
    #[cold]
    pub(super) fn observe_rules(&mut self, op: &Op<'_>, origin: &Origin) {
        let Some(rules) = self.rules.as_mut() else { return };
        let ordering = &self.ordering;
        rules.observe(
            op,
            origin,
            &mut RuleContext {
                call: self.names.call(origin.call),
                memory: &|address| ordering.memory_kind(address),
                regions: &self.submissions.regions,
                stacks: &mut *self.stacks,
                paused: self.paused,
            },
        );
    }
}
