//! Whether an address still lies where it lay: tickets for places that were looked up once.
//!
//! Owns the numbers of live allocations and a stamp for each. A ticket costs one comparison to check, where a lookup searches two
//! tables. What makes a stamp stale is told by [`super::Allocations`], which knows the lives.

/// Number of a live allocation. Used again when it is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Number(u32);

/// A place that was looked up once: as long as [`Stamps::holds`] says so, the same addresses give the same answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    number: Number,
    stamp: u64,
}

/// The stamps of all live allocations.
#[derive(Debug, Default)]
pub struct Stamps {
    stamps: Vec<u64>,
    free: Vec<Number>,
    last: u64,
}

impl Stamps {
    /// A life begins.
    pub fn begin(&mut self) -> Number {
        let number = self.free.pop().unwrap_or_else(|| {
            self.stamps.push(0);
            Number(self.stamps.len() as u32 - 1)
        });
        self.renew(number);
        number
    }

    /// A life is over.
    pub fn end(&mut self, number: Number) {
        self.stamps[number.0 as usize] = 0;
        self.free.push(number);
    }

    /// What lies where in this allocation has changed: tickets for it are void.
    pub fn renew(&mut self, number: Number) {
        self.last += 1;
        self.stamps[number.0 as usize] = self.last;
    }

    /// A ticket for a place in this allocation.
    pub fn ticket(&self, number: Number) -> Ticket {
        Ticket { number, stamp: self.stamps[number.0 as usize] }
    }

    /// Whether nothing has changed for the place of a ticket.
    #[inline]
    pub fn holds(&self, ticket: Ticket) -> bool {
        self.stamps.get(ticket.number.0 as usize) == Some(&ticket.stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_holds_until_its_allocation_changes_or_goes_and_not_for_the_next_one() {
        let mut stamps = Stamps::default();
        let (a, b) = (stamps.begin(), stamps.begin());
        let (of_a, of_b) = (stamps.ticket(a), stamps.ticket(b));
        assert!(stamps.holds(of_a) && stamps.holds(of_b) && of_a != of_b);
        stamps.renew(b);
        assert!(stamps.holds(of_a) && !stamps.holds(of_b) && stamps.holds(stamps.ticket(b)));
        stamps.end(a);
        assert!(!stamps.holds(of_a));
        let c = stamps.begin();
        assert!(c == a && !stamps.holds(of_a), "a number that is used again is no old ticket");
    }
}
