//! The Python package: what it says of engines, the pytest plugin, the wheel.

mod external;
mod pytest_expectations;
mod pytest_inside;
pub mod pytest_plugin;
mod restart;
mod wheel;
