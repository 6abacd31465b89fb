//! The targets. Each is a function of bytes that panics where something is wrong.
//!
//! Inputs of several parts have them on lines of their own, so that the corpus can be read.

mod cursors;
mod document_pairs;
mod documents;
mod names;
mod patterns;
mod queue_events;
mod queue_messages;
mod registrations;
mod requests;
mod stream_events;
mod timestamps;
mod webhook_urls;

/// A parser of bytes from outside, and what must be so whatever they are.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// As its corpus is called.
    pub name: &'static str,
    /// Panics where something is wrong.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:literal => $module:ident,)*) => {
        /// All of them.
        pub const TARGETS: &[Target] = &[$(Target { name: $name, run: $module::run }),*];
    };
}

targets! {
    "cursors" => cursors,
    "document-pairs" => document_pairs,
    "documents" => documents,
    "names" => names,
    "patterns" => patterns,
    "queue-events" => queue_events,
    "queue-messages" => queue_messages,
    "registrations" => registrations,
    "requests" => requests,
    "stream-events" => stream_events,
    "timestamps" => timestamps,
    "webhook-urls" => webhook_urls,
}

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
