//! From a sensor's state to its clients' endpoints: the table's stream invokes the listener, the queues invoke
//! webhook-deliver, which POSTs to a server.

mod attempts;
mod deliveries;
pub(crate) mod endpoint;
mod failures;
mod home;
