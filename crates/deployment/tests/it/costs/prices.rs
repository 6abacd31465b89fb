//! AWS's prices in dollars per million, without free tiers and discounts: region us-east-1, as known on
//! 2026-11-16. Lambda's time is not among them; see docs/costs.md.

/// DynamoDB on demand, a write of up to 1 KB.
pub(super) const WRITE_UNIT: f64 = 0.625;
/// DynamoDB on demand, a consistent read of up to 4 KB; one that may be old is half of it.
pub(super) const READ_UNIT: f64 = 0.125;
/// A call of SQS with up to 64 KB, however many messages it is about.
pub(super) const SQS_REQUEST: f64 = 0.40;
/// The same of a FIFO queue.
pub(super) const SQS_FIFO_REQUEST: f64 = 0.50;
/// A call of a function, without the time it runs.
pub(super) const LAMBDA_REQUEST: f64 = 0.20;
/// A message of up to 5 KB that AWS IoT takes or hands out.
pub(super) const IOT_MESSAGE: f64 = 1.00;
/// A rule of AWS IoT that is triggered with one action, 0.15 each.
pub(super) const IOT_RULE: f64 = 0.30;
/// A request to an HTTP API of API Gateway.
pub(super) const API_REQUEST: f64 = 1.00;
/// An operation of AWS IoT Device Shadow on up to 1 KB.
pub(super) const SHADOW_OPERATION: f64 = 1.25;
