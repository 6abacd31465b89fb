//! Registrations: which change of which item goes to which target.
//!
//! Pure: no I/O, no clock, no environment of its own. In reading order:
//!
//! - [`Registration`]: what one file says: which changes, what of them, and [`Target`], where to
//! - [`Registrations`]: all of them, loaded and compiled, or every [`Problem`] of every file
//! - [`Change`]: what happened to one item
//! - [`plan`](plan()): the registrations a change goes to
//! - [`explain`](explain()): for each registration, why
//! - [`schema`]: the JSON Schema of the files
//! - [`limits`]: every bound, in one place

mod change;
mod decimal;
mod explain;
mod form;
mod glob;
mod key;
pub mod limits;
mod pattern;
mod plan;
mod problem;
mod read;
mod registration;
mod registrations;
mod target;
mod template;

pub use antumbra_shadow::State;
pub use change::{Change, DiffCell, KeyAttributes, LazyDiff, Operation, ShadowRef};
pub use explain::{Explanation, Unmet, explain};
pub use form::Form;
pub use pattern::{Miss, Pattern};
pub use plan::{Scratch, plan, wants};
pub use problem::{LoadErrors, Problem};
pub use registration::{Changes, On, Operations, Parts, Registration, schema};
pub use registrations::{RegistrationId, Registrations};
pub use target::{
    Clients, EventBridge, Mqtt, OWN_ATTRIBUTES, QualityOfService, Queue, Sns, Sqs, Target,
};
pub use template::{TopicError, TopicTemplate};
