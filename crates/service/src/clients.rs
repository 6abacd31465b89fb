//! Clients: receivers of sensor events, each with a webhook endpoint.
//!
//! A client has one URL, a secret that signs its deliveries, and links to sensors. [`Clients`] has the use
//! cases of the command line and the HTTP API; [`ClientStore`] and [`LinkStore`] are its ports; [`UrlPolicy`]
//! decides which URLs may be called.
//!
//! Deliveries are sent by [`crate::deliveries`].

mod client;
mod id;
mod ports;
mod secret;
mod service;

pub use client::{
    Circuit, Client, ClientPatch, ClientState, Created, Link, LinkedClient, Mode, NAME_CHARACTERS,
    NewClient, REASON_CHARACTERS, Rotated, URL_BYTES,
};
pub use id::ClientId;
pub use ports::{
    ClientError, ClientStore, LinkStore, LinkedClients, Rotation, UrlPolicy, UrlRejection,
};
pub use secret::{InvalidSecret, RequestKey, Secret, Secrets};
pub use service::{Clients, KEEP_PREVIOUS};
