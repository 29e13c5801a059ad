//! The program `streamsan`: its commands, recorded traces, explanations, hunts.

mod ahead;
mod architectures;
mod command_line;
mod commands;
mod cut_traces;
mod doctor;
mod edges;
mod explain;
mod foreign;
mod hunt;
mod hunt_callers;
mod hunt_ctest;
mod hunt_inside;
mod hunt_twice;
mod hunt_unread;
mod init;
mod offline;
mod output_files;
mod recordings;
mod segments;
mod traces;
