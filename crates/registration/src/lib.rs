//! Registrations: rules that send changes of items to targets.
//!
//! Pure: no I/O, no clock; the environment is an argument. In reading order:
//!
//! - [`Registration`]: the content of one file: conditions, message form and [`Target`]
//! - [`Registrations`]: all of them, loaded and compiled, or every [`Problem`] of every file
//! - [`Change`]: the change of one item
//! - [`plan`](plan()): the registrations that match a change
//! - [`explain`](explain()): for each registration, the first condition that does not hold; [`trace`](trace()): for one,
//!   also those that hold
//! - [`KeySet`]: keys of items, to tell which registrations can match some of them
//! - [`Arn`] and [`Queue`]: names of AWS resources
//! - [`rules`]: the topics of MQTT requests, to which no registration may publish
//! - [`limits`]: all limits

mod arn;
mod change;
mod decimal;
mod explain;
mod form;
mod glob;
mod key;
mod leaf;
pub mod limits;
mod pattern;
mod plan;
mod problem;
mod read;
mod registration;
mod registrations;
pub mod rules;
pub mod target;
mod template;

pub use antumbra_shadow::State;
pub use arn::{Arn, Queue};
pub use change::{Change, DiffCell, KeyAttributes, LazyDiff, Operation, ShadowRef};
pub use explain::{Evaluated, Explanation, Trace, explain, trace};
pub use form::Form;
pub use key::{KeyExpression, KeyPart, KeySet};
pub use leaf::{Leaf, LeafChange, MatchedLeaf};
pub use pattern::Pattern;
pub use plan::{KeyMatches, Scratch, plan, plan_found};
pub use problem::{LoadErrors, Problem};
pub use registration::{Changes, On, Operations, Parts, Registration};
pub use registrations::{RegistrationId, Registrations};
pub use target::{MessageOptions, OWN_ATTRIBUTES, Target, TargetKind};
pub use template::{TopicError, TopicTemplate};
