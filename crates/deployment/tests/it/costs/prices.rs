//! AWS prices in dollars per million, without free tiers and discounts, in us-east-1 on 2026-11-16. Lambda's duration is
//! not included; see docs/costs.md.

/// Unit that AWS bills.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Read,
    Write,
    Sqs,
    SqsFifo,
    Lambda,
    IotMessage,
    IotRule,
    Api,
    ShadowOperation,
}

/// Names and prices, in the order of the units.
pub(super) const UNITS: [(&str, f64); 9] = [
    // DynamoDB on demand, a consistent read of up to 4 KB; an eventually consistent read costs half.
    ("read unit", 0.125),
    // DynamoDB on demand, a write of up to 1 KB.
    ("write unit", 0.625),
    // A request with up to 64 KB, for any number of messages.
    ("SQS call", 0.40),
    ("SQS FIFO call", 0.50),
    // An invocation, without its duration.
    ("Lambda call", 0.20),
    // A message of up to 5 KB to or from AWS IoT.
    ("IoT message", 1.00),
    // A rule with one action, 0.15 each.
    ("IoT rule", 0.30),
    // A request to an HTTP API of API Gateway.
    ("API request", 1.00),
    // An operation of AWS IoT Device Shadow with up to 1 KB.
    ("shadow operation", 1.25),
];
