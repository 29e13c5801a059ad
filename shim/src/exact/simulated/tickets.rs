//! Launches whose bytes the simulator will tell: each has a number, a place in the log as soon as
//! it is logged, and ranges as soon as it has ended.
//!
//! Owns bringing the two together, in either order. Does not log.

use std::collections::HashMap;

use trace::{Epoch, ExactRun};

use super::inside::InsideGrid;

/// Where a launch is in the log: its epoch, and the node of its graph, counted from 1 (0: none).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LaunchPlace {
    /// Of the launch, or of the graph's.
    pub epoch: Epoch,
    /// The node.
    pub node: u32,
}

/// What is wanted of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Wish {
    /// Its bytes.
    pub bytes: bool,
    /// The races of its threads.
    pub inside: bool,
}

/// The bytes of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LaunchBytes {
    /// `trace::exact_flags`.
    pub flags: u32,
    /// The bytes.
    pub runs: Vec<ExactRun>,
    /// Its grids, if its threads were checked.
    pub inside: Vec<InsideGrid>,
}

enum Ticket {
    Fresh,
    Logged(LaunchPlace),
    Ended(LaunchBytes),
    /// The launch will never be in the log.
    Unlogged,
}

/// All launches under way.
#[derive(Default)]
pub(super) struct Tickets {
    last: u64,
    open: HashMap<u64, Ticket>,
    /// What is wanted of launches that have not ended.
    wishes: HashMap<u64, Wish>,
    /// Grids that were checked, of launches that have not ended.
    grids: HashMap<u64, Vec<InsideGrid>>,
}

impl Tickets {
    /// The number of a new launch.
    pub(super) fn open(&mut self, wish: Wish) -> u64 {
        self.last += 1;
        self.open.insert(self.last, Ticket::Fresh);
        self.wishes.insert(self.last, wish);
        self.last
    }

    /// What is wanted of a launch.
    pub(super) fn wish(&self, number: u64) -> Wish {
        self.wishes.get(&number).copied().unwrap_or_default()
    }

    /// A grid of a launch was checked.
    pub(super) fn checked(&mut self, number: u64, grid: InsideGrid) {
        self.grids.entry(number).or_default().push(grid);
    }

    /// The launch is in the log: its bytes, if they are known.
    pub(super) fn logged(&mut self, number: u64, place: LaunchPlace) -> Option<LaunchBytes> {
        match self.open.remove(&number)? {
            Ticket::Ended(touched) => Some(touched),
            _ => {
                self.open.insert(number, Ticket::Logged(place));
                None
            }
        }
    }

    /// The launch will not be in the log.
    pub(super) fn unlogged(&mut self, number: u64) {
        if let Some(Ticket::Fresh | Ticket::Logged(_)) = self.open.remove(&number) {
            self.open.insert(number, Ticket::Unlogged);
        }
    }

    /// The launch has ended: its place with its bytes, if it is known.
    pub(super) fn ended(&mut self, number: u64, mut touched: LaunchBytes) -> Option<(LaunchPlace, LaunchBytes)> {
        self.wishes.remove(&number);
        touched.inside = self.grids.remove(&number).unwrap_or_default();
        match self.open.remove(&number)? {
            Ticket::Logged(place) => Some((place, touched)),
            Ticket::Fresh => {
                self.open.insert(number, Ticket::Ended(touched));
                None
            }
            Ticket::Ended(_) | Ticket::Unlogged => None,
        }
    }

    /// Whether some launch in the log has not ended.
    pub(super) fn any_logged(&self) -> bool {
        self.open.values().any(|ticket| matches!(ticket, Ticket::Logged(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::TimelineId;

    const BYTES: Wish = Wish { bytes: true, inside: false };

    fn touched(flags: u32) -> LaunchBytes {
        LaunchBytes { flags, runs: Vec::new(), inside: Vec::new() }
    }

    fn place(time: u64) -> LaunchPlace {
        LaunchPlace { epoch: Epoch { timeline: TimelineId(1), time }, node: 0 }
    }

    #[test]
    fn either_end_may_come_first() {
        let mut tickets = Tickets::default();
        let (one, two) = (tickets.open(BYTES), tickets.open(BYTES));
        assert!(tickets.logged(one, place(1)).is_none() && tickets.any_logged());
        assert!(tickets.ended(two, touched(4)).is_none());
        assert_eq!(tickets.ended(one, touched(2)), Some((place(1), touched(2))));
        assert_eq!(tickets.logged(two, place(2)), Some(touched(4)));
        assert!(tickets.open.is_empty());
    }

    #[test]
    fn grids_come_with_the_launch_that_they_are_of() {
        let mut tickets = Tickets::default();
        let both = Wish { bytes: true, inside: true };
        let (one, two) = (tickets.open(both), tickets.open(BYTES));
        assert_eq!((tickets.wish(one), tickets.wish(two), tickets.wish(9)), (both, BYTES, Wish::default()));
        tickets.logged(one, place(1));
        tickets.logged(two, place(2));
        (0..2).for_each(|_| tickets.checked(one, InsideGrid::default()));
        assert_eq!(tickets.ended(two, touched(0)).map(|(_, ended)| ended.inside.len()), Some(0));
        assert_eq!(tickets.ended(one, touched(0)).map(|(_, ended)| ended.inside.len()), Some(2));
        assert!(tickets.wishes.is_empty() && tickets.grids.is_empty());
    }

    #[test]
    fn what_is_not_logged_is_forgotten_when_it_has_ended() {
        let mut tickets = Tickets::default();
        let (one, two) = (tickets.open(BYTES), tickets.open(BYTES));
        tickets.unlogged(one);
        assert!(tickets.ended(one, touched(0)).is_none());
        assert!(tickets.ended(two, touched(0)).is_none());
        tickets.unlogged(two);
        assert!(tickets.open.is_empty() && !tickets.any_logged());
        assert!(tickets.ended(two, touched(0)).is_none(), "told twice");
    }
}
