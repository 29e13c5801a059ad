//! Tables of finished launches: read, emptied and handed out again.
//!
//! Owns when that happens, and how long the program is held back for it. The content of a table is
//! read in [`super::device_table`]; which tables are free is kept in [`super::table_pool`].

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cuda_sys::CUcontext;
use trace::exact_flags;

use super::device_table::{self, DeviceTable, TouchedBytes};
use super::state::{DRAINING, Exact, PATIENCE, PENDING, log_exact, note, running};
use super::table_pool::{self, HostStage, TableNeed, within};
use crate::handles::captures;
use crate::log::core::Core;
use crate::log::start::core;

/// Reads the tables of launches that have finished. Called by hooks that have nothing left to do;
/// free of cost when nothing is pending.
#[inline]
pub fn drain() {
    if PENDING.load(Ordering::Relaxed) != 0 {
        drain_slow();
    }
}

#[cold]
fn drain_slow() {
    // While a stream is captured most calls of ours would break the capture.
    if captures::any() {
        return;
    }
    if let (Some(exact), Some(core)) = (running(), core()) {
        exact.drain(core);
    }
}

impl Exact {
    /// Reads what has finished. True when a table came free.
    pub(super) fn drain(&self, core: &Core) -> bool {
        if DRAINING.replace(true) {
            return false;
        }
        let any = self.drain_once(core);
        DRAINING.set(false);
        any
    }

    fn drain_once(&self, core: &Core) -> bool {
        let Ok(mut pool) = self.pool.lock() else { return false };
        let waiting = std::mem::take(&mut pool.pending);
        drop(pool);
        let (mut later, mut any) = (Vec::new(), false);
        for table in waiting {
            match table.is_finished() {
                Ok(false) => later.push(table),
                Ok(true) => {
                    any |= self.read(core, table);
                    PENDING.fetch_sub(1, Ordering::Relaxed);
                }
                Err(_) => {
                    log_lost(core, &table);
                    PENDING.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
        if let Ok(mut pool) = self.pool.lock() {
            later.append(&mut pool.pending);
            pool.pending = later;
        }
        if any {
            self.stuck.store(false, Ordering::Relaxed);
        }
        any
    }

    fn read(&self, core: &Core, mut table: DeviceTable) -> bool {
        let context = table.context;
        // What our stream was given before the fetch has been done when the fetch is over.
        let behind = self.pool.lock().map_or_else(|_| Vec::new(), |mut pool| pool.take_cleaning(context));
        let fetched = within(context, || {
            let stream = table_pool::stream(&self.pool, &self.api, context).ok_or(0_u32)?;
            let kept = self.pool.lock().ok().and_then(|mut pool| pool.take_stage(context));
            let mut stage = kept.or_else(|| HostStage::new(&self.api, context)).ok_or(0_u32)?;
            let touched = table.fetch(&self.api, stream, stage.words());
            if let Ok(mut pool) = self.pool.lock() {
                pool.give_stage(context, stage);
            }
            touched
        });
        match fetched {
            Some(Ok(touched)) => {
                log_touched(core, &table, touched);
                table.nodes.clear();
                if let Ok(mut pool) = self.pool.lock() {
                    behind.into_iter().for_each(|table| pool.give_back(table));
                    pool.clean(table);
                }
                true
            }
            failed => {
                log_lost(core, &table);
                let answer = failed.and_then(Result::err).unwrap_or(0);
                note(&format!("exact ranges that could not be read ({answer})"), 1);
                if let Ok(mut pool) = self.pool.lock() {
                    pool.give_up(context);
                    behind.into_iter().for_each(|table| pool.clean(table));
                }
                false
            }
        }
    }

    /// Waits until the tables that are being emptied are free; when that is unknown they are
    /// given up.
    fn cleaned(&self, context: CUcontext) {
        let Ok(mut pool) = self.pool.lock() else { return };
        let cleaning = pool.take_cleaning(context);
        drop(pool);
        let done = within(context, || {
            table_pool::stream(&self.pool, &self.api, context)
                .is_some_and(|s| device_table::finish(&self.api, s).is_ok())
        });
        let Ok(mut pool) = self.pool.lock() else { return };
        for table in cleaning {
            if done == Some(true) {
                pool.give_back(table);
            } else {
                pool.give_up(context);
            }
        }
    }

    /// Holds the program back until a table of this context is free, but not forever.
    pub(super) fn wait_for_table(&self, core: &Core, context: CUcontext) {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(5);
        while self.is_short(context) && !self.stuck.load(Ordering::Relaxed) {
            if self.drain(core) {
                continue;
            }
            if begun.elapsed() > PATIENCE {
                self.stuck.store(true, Ordering::Relaxed);
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    /// Whether the next launch would find no table. Makes one, while there are few.
    fn is_short(&self, context: CUcontext) -> bool {
        let need = self.pool.lock().map_or(TableNeed::Nothing, |mut pool| pool.need(context));
        if need != TableNeed::Table && need != TableNeed::Cleaning {
            return need == TableNeed::Patience;
        }
        let before = DRAINING.replace(true);
        if need == TableNeed::Cleaning {
            self.cleaned(context);
            DRAINING.set(before);
            return false;
        }
        let made = within(context, || {
            table_pool::stream(&self.pool, &self.api, context)
                .and_then(|stream| DeviceTable::new(&self.api, context, stream))
        });
        DRAINING.set(before);
        if let Ok(mut pool) = self.pool.lock() {
            pool.provide(context, made.flatten());
        }
        false
    }
}

/// Logs what a launch, or each measured node of a graph's launch, has touched.
fn log_touched(core: &Core, table: &DeviceTable, mut touched: TouchedBytes) {
    if table.nodes.is_empty() {
        return log_exact(core, table.epoch, 0, 0, &touched.of(0));
    }
    // Bytes without a known node may be any node's.
    if touched.strays(&table.nodes) {
        note("exact ranges of graphs that could not be told apart", 1);
        return log_lost(core, table);
    }
    for (number, node) in table.nodes.iter().filter(|(_, node)| *node != 0) {
        log_exact(core, table.epoch, *node, 0, &touched.of(*number));
    }
}

/// Logs that it is unknown what a launch has touched.
#[cold]
pub(super) fn log_lost(core: &Core, table: &DeviceTable) {
    if table.nodes.is_empty() {
        log_exact(core, table.epoch, 0, exact_flags::LOST, &[]);
    }
    for (_, node) in table.nodes.iter().filter(|(_, node)| *node != 0) {
        log_exact(core, table.epoch, *node, exact_flags::LOST, &[]);
    }
}
