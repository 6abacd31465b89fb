//! The console: web pages for the fleet, served on loopback by `antumbra local` and `antumbra console`.
//!
//! In reading order:
//!
//! - [`Console`]: the state behind all pages: use cases, logins, live updates
//! - [`console()`]: the router
//! - `security`: who may open a page, and from where
//! - `view`: one request: time zone, links, the frame around a page
//! - `components`: parts that pages share; `json`: JSON texts as lines
//! - `pages`: one module per page: a model, a function from it to HTML, and handlers
//! - `subject`: a change as registrations see it; `matches`: the registrations that match it
//! - `live`: changes as they happen, as fragments of pages
//!
//! A handler reads with the use cases of the HTTP API, builds a model and renders it. All text is escaped by `maud`; pages
//! contain neither script nor style, which the Content-Security-Policy forbids.

mod assets;
mod chart;
mod components;
mod compress;
mod json;
mod live;
mod matches;
mod pages;
pub mod security;
mod state;
mod subject;
mod time;
mod tree;
mod view;

pub use live::{ChangedItem, Changes, Follow, FollowedChange, ShadowChange, follow_feed};
pub use pages::console;
pub use state::{Console, DEVICE_CHANGES, Options, Place, system_zone};
