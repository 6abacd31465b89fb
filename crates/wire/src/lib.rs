//! Data formats at the system's boundaries: Lambda events and MQTT requests in, notifications and MQTT
//! responses out.
//!
//! Pure: no clock, no I/O, no AWS SDK. In reading order:
//!
//! - [`stream`]: decodes DynamoDB stream events into records and images
//! - [`items`]: item kinds and keys of both tables, and the change of an item in a stream record
//! - [`history`]: the entries of a shadow's past
//! - [`notification`]: the message that targets receive for a change
//! - [`events`]: the other Lambda events: SQS, RabbitMQ, AWS IoT rules
//! - [`rules`]: the table of MQTT operations and the AWS IoT rules that follow from it, of the crate `registration`
//! - [`inbox_request`], [`inbox_response`]: requests to the inbox over MQTT and the responses to them
//! - [`shadow_mqtt`]: shadows over MQTT, in the format of AWS IoT Device Shadow
//! - [`topic_prefix`]: the prefix of all MQTT topics of a deployment
//! - [`limits`]: all limits of this crate

pub mod events;
pub mod history;
pub mod inbox_request;
pub mod inbox_response;
pub mod items;
pub mod limits;
pub mod notification;
pub mod shadow_mqtt;
pub mod stream;
pub mod topic_prefix;

pub use antumbra_registration::rules;
