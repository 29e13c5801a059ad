//! What is printed and written: reports, the gate, pages, tables.

mod causes;
mod fleet;
mod fleet_dataset;
mod forbid;
mod gate;
mod pages;
mod places;
mod reports;
mod widths;
