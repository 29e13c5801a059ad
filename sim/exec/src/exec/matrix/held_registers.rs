//! What registers of products of warp groups hold, for those who look for races. Owns the state of
//! a warp and what is known of a program; `group_registers` says what instructions do to it.

/// A copy between rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copied {
    /// The slot that is read, a constant's too.
    pub(crate) source: u32,
    /// Its row; None: it is a constant.
    pub(crate) from: Option<u32>,
    pub(crate) into: u32,
}

/// The rows that an instruction touches and products may use.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) reads: Vec<u32>,
    pub(crate) writes: Vec<u32>,
    pub(crate) copies: Vec<Copied>,
}

/// What each instruction of a program does to the rows of products.
#[derive(Debug)]
pub(crate) struct ProductRows {
    pub(crate) by_instruction: Vec<Option<Box<Touched>>>,
}

/// Where a value was written that no product has made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) site: u32,
    pub(crate) lane: u32,
    /// Fences before the last product that was issued before.
    pub(crate) fences: u64,
}

/// A product that may still use a register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) site: u32,
    pub(crate) group: u64,
    /// It is one of its sums.
    pub(crate) sum: bool,
}

/// What a row holds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    pub(crate) written: Option<Written>,
    pub(crate) used: Option<Used>,
}

/// Of a warp.
#[derive(Debug, Default)]
pub(crate) struct GroupRegisters {
    pub(crate) held: Vec<Held>,
    pub(crate) fences: u64,
    /// Fences before the last product.
    pub(crate) before_last: u64,
    /// The group that is open.
    pub(crate) group: u64,
}

impl GroupRegisters {
    pub(crate) fn at(&mut self, row: u32) -> &mut Held {
        if self.held.len() <= row as usize {
            self.held.resize(row as usize + 1, Held::default());
        }
        &mut self.held[row as usize]
    }

    /// `wgmma.fence`
    pub(crate) fn fence(&mut self) {
        self.fences += 1;
    }

    /// `wgmma.commit_group`
    pub(crate) fn commit(&mut self) {
        self.group += 1;
    }

    /// `wgmma.wait_group`
    pub(crate) fn wait(&mut self, pending: u32) {
        let done = self.group.saturating_sub(u64::from(pending));
        for held in &mut self.held {
            held.used = held.used.filter(|used| used.group >= done);
        }
    }
}
