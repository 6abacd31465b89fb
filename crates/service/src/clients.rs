//! Clients: who is told of a sensor's changes, and at which address.
//!
//! A client has one URL, a secret its deliveries are signed with, and links to the sensors it wants to
//! hear of. [`Clients`] is what the command line and the HTTP API call; [`ClientStore`] and [`LinkStore`]
//! are the ports it needs, [`UrlPolicy`] says which URLs are fit to be called at all.
//!
//! Nothing here sends anything: see [`crate::deliveries`].

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
