//! The console over HTTP, against an embedded DynamoDB.
#![allow(clippy::unwrap_used)]
#![allow(dead_code)]

<<<<<<< HEAD
=======
>>>>>>> 1cf0a4d0 (Update open pages of the console as changes are written)
mod deliveries;
mod device;
mod fleet;
mod hostile;
mod inbox;
mod live;
mod queues;
mod registrations;
mod security;
mod sensors;
mod sqs;
mod support;
