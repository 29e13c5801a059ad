//! Lanes that wait at a BSYNC of machine code, and when they go on without those they wait for.
//! `convergence` executes BSYNC itself.

use crate::exec::per_lane::each;
use crate::warp::{Wait, Warp};

impl Warp<'_> {
    /// The lanes that a group at a BSYNC is to meet, itself among them. None: it waits elsewhere,
    /// or not at all.
    pub(crate) fn team_at_meeting(&mut self, at: usize) -> Option<u32> {
        let group = self.groups[at];
        if !matches!(group.wait, Wait::Lanes(_)) {
            return None;
        }
        let barrier = self.env.program.code[group.pc as usize].meeting()?;
        // The running lanes may be in another frame.
        let row = self.absolute(group.rbase + barrier.0);
        let mut team = 0;
        each(group.mask, |lane| team |= row.0[lane] as u32);
        Some(team)
    }

    /// Lets a group that waits at a BSYNC go on. The rest of its `team` does not wait for it any
    /// more.
    pub(crate) fn let_go(&mut self, at: usize, team: u32) {
        let group = self.groups[at];
        let Some(barrier) = self.env.program.code[group.pc as usize].meeting() else { return };
        let others = team & self.alive & !group.mask;
        let row = self.absolute(group.rbase + barrier.0);
        each(others, |lane| row.0[lane] &= !u64::from(group.mask));
        self.groups[at].wait = Wait::None;
        self.groups[at].pc += 1;
    }

    /// For a warp of which all lanes wait: lets a group go on that waits at a BSYNC for lanes which
    /// have left its region without BREAK and wait for it at a WARPSYNC. The assembler writes such
    /// code for a way out of a loop to a `bar.warp.sync`, and it ends on hardware (measured: seed
    /// 60063 of `native_fuzz` for sm_90, on an H200).
    #[cold]
    pub(crate) fn let_waiting_go(&mut self) {
        let waits = |wait| matches!(wait, Wait::Lanes(_));
        let waiting = self.groups.iter().filter(|group| waits(group.wait)).fold(0, |all, group| all | group.mask);
        for at in 0..self.groups.len() {
            if let Some(team) = self.team_at_meeting(at)
                && team & self.alive & !waiting == 0
            {
                self.let_go(at, team);
                return;
            }
        }
    }
}
