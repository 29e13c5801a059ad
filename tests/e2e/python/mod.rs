//! The Python package: the pytest plugin and the wheel.

pub mod pytest_plugin;
mod restart;
mod wheel;
