//! AWS prices in US dollars, without free tiers and discounts. When they change, change them here and the date with them.

/// Date of the prices.
pub const PRICES_OF: &str = "2026-11-16";
/// Region of the prices.
pub const PRICES_REGION: &str = "us-east-1";

/// Service of a unit, as a line of the bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    DynamoDb,
    Sqs,
    Lambda,
    Iot,
    ApiGateway,
    CloudWatch,
    XRay,
}

/// Price of a unit.
pub(crate) struct Price {
    pub(crate) unit: Unit,
    pub(crate) service: Service,
    pub(crate) name: &'static str,
    /// Dollars per million units, from this number of units a month.
    pub(crate) tiers: &'static [(f64, f64)],
}

const MILLION: f64 = 1_000_000.0;
const BILLION: f64 = 1_000.0 * MILLION;

macro_rules! units {
    ($($(#[$meta:meta])* $unit:ident: $service:ident, $name:literal, [$($tier:expr),+];)+) => {
        /// Unit that AWS bills.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Unit {
            $($(#[$meta])* $unit,)+
        }

        /// All prices, in the order of the units.
        pub(crate) const PRICES: &[Price] = &[$(Price {
            unit: Unit::$unit,
            service: Service::$service,
            name: $name,
            tiers: &[$($tier),+],
        }),+];
    };
}

units! {
    /// On demand, a consistent read of up to 4 KB; an eventually consistent read costs half.
    Read: DynamoDb, "read unit", [(0.0, 0.125)];
    /// On demand, a write of up to 1 KB.
    Write: DynamoDb, "write unit", [(0.0, 0.625)];
    /// A request with up to 64 KB, for any number of messages.
    Sqs: Sqs, "SQS call", [(0.0, 0.40)];
    SqsFifo: Sqs, "SQS FIFO call", [(0.0, 0.50)];
    Lambda: Lambda, "Lambda call", [(0.0, 0.20)];
    /// On arm64.
    LambdaGbSecond: Lambda, "Lambda GB-second", [(0.0, 13.3334)];
    /// A message of up to 5 KB to or from AWS IoT.
    IotMessage: Iot, "IoT message", [(0.0, 1.00), (BILLION, 0.80), (5.0 * BILLION, 0.70)];
    /// A rule with one action, 0.15 each.
    IotRule: Iot, "IoT rule", [(0.0, 0.30)];
    IotConnectionMinute: Iot, "IoT connection minute", [(0.0, 0.08)];
    /// A request to an HTTP API.
    Api: ApiGateway, "API request", [(0.0, 1.00), (300.0 * MILLION, 0.90)];
    /// An operation of AWS IoT Device Shadow with up to 1 KB.
    ShadowOperation: Iot, "shadow operation", [(0.0, 1.25)];
    /// Ingestion into CloudWatch Logs.
    LogGigabyte: CloudWatch, "log gigabyte", [(0.0, 0.50 * MILLION)];
    AlarmMetric: CloudWatch, "alarm metric", [(0.0, 0.10 * MILLION)];
    CustomMetric: CloudWatch, "custom metric", [(0.0, 0.30 * MILLION)];
    Dashboard: CloudWatch, "dashboard", [(0.0, 3.00 * MILLION)];
    Trace: XRay, "trace", [(0.0, 5.00)];
}

impl Price {
    /// Dollars for a number of units in one month.
    pub(crate) fn dollars(&self, count: f64) -> f64 {
        let ends = self.tiers.iter().skip(1).map(|(from, _)| *from);
        let ends = ends.chain([f64::INFINITY]);
        let tiers = self.tiers.iter().zip(ends);
        let parts = tiers.map(|((from, dollars), to)| {
            let units = (count.min(to) - from).max(0.0);
            units / MILLION * dollars
        });
        parts.sum()
    }
}

impl Service {
    pub fn name(self) -> &'static str {
        match self {
            Service::DynamoDb => "DynamoDB",
            Service::Sqs => "SQS",
            Service::Lambda => "Lambda",
            Service::Iot => "AWS IoT",
            Service::ApiGateway => "API Gateway",
            Service::CloudWatch => "CloudWatch",
            Service::XRay => "X-Ray",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_apply_to_the_units_above_them() {
        let messages = &PRICES[Unit::IotMessage as usize];
        assert_eq!(messages.dollars(2.0 * MILLION), 2.0);
        assert_eq!(messages.dollars(6.0 * BILLION), 1_000.0 + 3_200.0 + 700.0);
    }
}
