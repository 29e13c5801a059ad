//! The Python package: the pytest plugin and the wheel.

mod pytest_plugin;
mod wheel;
