//! AWS prices in dollars per million, without free tiers and discounts, in us-east-1 on 2026-11-16. Lambda's duration is
//! not included; see docs/costs.md.

/// DynamoDB on demand, a write of up to 1 KB.
pub(super) const WRITE_UNIT: f64 = 0.625;
/// DynamoDB on demand, a consistent read of up to 4 KB; an eventually consistent read costs half.
pub(super) const READ_UNIT: f64 = 0.125;
/// An SQS request with up to 64 KB, for any number of messages.
pub(super) const SQS_REQUEST: f64 = 0.40;
/// The same for a FIFO queue.
pub(super) const SQS_FIFO_REQUEST: f64 = 0.50;
/// An invocation of a function, without its duration.
pub(super) const LAMBDA_REQUEST: f64 = 0.20;
/// A message of up to 5 KB to or from AWS IoT.
pub(super) const IOT_MESSAGE: f64 = 1.00;
/// An AWS IoT rule with one action, 0.15 each.
pub(super) const IOT_RULE: f64 = 0.30;
/// A request to an API Gateway HTTP API.
pub(super) const API_REQUEST: f64 = 1.00;
/// An operation of AWS IoT Device Shadow with up to 1 KB.
pub(super) const SHADOW_OPERATION: f64 = 1.25;
