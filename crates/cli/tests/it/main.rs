//! The command as users meet it, and the shape of the house.
#![allow(clippy::unwrap_used)]

mod command;
mod credentials;
mod demo;
mod docs;
mod edges;
mod failed_history;
mod import;
mod iot_stand_in;
mod json;
mod kill;
mod kill_queues;
mod local;
mod messages;
mod process;
mod queues;
mod sensors;
mod settings;
mod stacks;
mod watch;
mod wrong_usages;
