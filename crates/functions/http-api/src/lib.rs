//! The HTTP API: one router for shadows, messages, sensors, clients, deliveries, registrations and failed messages, behind
//! API Gateway and on the local stack.
//!
//! In reading order:
//!
//! - [`build`] wires the function; [`router`] puts the API on given [`Services`]
//! - [`routes`]: the table of all routes, with one module of handlers per noun
//! - [`AuthMode`]: authentication of callers; [`Access`]: the grants that a route needs
//! - [`Problem`]: error responses; [`Code`]: their table
//! - [`gateway`]: the request as the caller sent it, from the event that API Gateway makes of it
//! - [`document`]: the OpenAPI document
//!
//! A handler parses the request, calls one use case and returns a JSON type of [`antumbra_service::api`].
//! Business rules are in the use cases.

mod access;
mod auth;
mod conditions;
mod config;
mod extract;
mod failed_messages;
pub mod gateway;
mod idempotency;
mod openapi;
mod outbound_messages;
mod problem;
mod respond;
pub mod routes;
mod services;

pub use access::{Access, Coverage, Ids, ReadIds, Requirement};
pub use auth::{AuthMode, GatewayGrants, IamGrants, InvalidIamGrants, Token, TokenGrants};
pub use config::Config;
pub use failed_messages::{FailedMessageQueues, QueueName, QueueUrls, RedriveRequest};
pub use openapi::document;
pub use outbound_messages::OutboundMessages;
pub use problem::{Code, Problem};
pub use routes::router;
pub use services::{RegistrationFiles, Services, build, services};

pub const NAME: &str = "http-api";
