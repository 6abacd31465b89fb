//! From a sensor's state to its clients' endpoints, over the wire all the way: the state is written, the
//! table's stream calls the listener, the queues call webhook deliver, and that POSTs to a real server.

pub(crate) mod endpoint;
mod failures;
mod home;
mod roads;
