//! One module per command.

pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod console;
pub(crate) mod cost;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod import;
pub(crate) mod listen;
pub(crate) mod local;
pub(crate) mod messages;
pub(crate) mod mqtt;
pub(crate) mod queues;
pub(crate) mod registrations;
pub(crate) mod sensors;
pub(crate) mod shadow;
pub(crate) mod token;
