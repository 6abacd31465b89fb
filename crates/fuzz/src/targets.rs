//! The targets. Each is a function of bytes that panics on a violation.
//!
//! Inputs of several parts have one part per line, so that the corpus is readable.

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

/// A parser of untrusted bytes with the checks of its results.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of its folder in `corpus/`.
    pub name: &'static str,
    /// Panics on a violation.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:literal => $module:ident,)*) => {
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

pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
