//! The HTTP API: one router over all of the product, for API Gateway and for the local stack.
//!
//! In reading order:
//!
//! - [`router`](fn@router): every route, and what stands before all of them; [`document`]: its description
//! - [`AuthMode`]: who may come in
//! - [`Api`]: what the routes are served from
//! - [`Problem`]: what is told when a request comes to nothing
//! - [`gateway`]: the request as the caller sent it, out of what API Gateway makes of it
//!
//! Then one module per noun. A handler reads the request, calls one use case and encodes what came of it;
//! nothing is decided here that a use case decides.

mod answer;
mod api;
mod auth;
mod clients;
mod config;
mod deliveries;
pub mod gateway;
mod health;
mod idempotency;
mod links;
mod locations;
mod messages;
mod openapi;
mod problem;
mod readings;
mod request;
mod router;
mod sensors;
mod shadows;

pub use api::{
    Api, ClientService, DeliveryService, MessageService, SensorService, Services, ShadowService,
};
pub use auth::{AuthMode, Token, UnknownAuthMode};
pub use config::Config;
pub use problem::{Code, Problem};
pub use router::{document, router};

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "http-api";
