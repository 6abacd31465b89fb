//! The local stack through its public doors: real SDKs and real MQTT clients
//! over loopback, and event sources with functions that fail to order.

mod dynamodb;
mod mqtt;
mod queue_pump;
mod queues;
mod stream;
mod support;
mod topics;
