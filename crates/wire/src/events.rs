//! Lambda events outside the measured hot path: SQS, RabbitMQ and AWS IoT rules.

pub mod rabbitmq;
pub mod rule;
pub mod sqs;
