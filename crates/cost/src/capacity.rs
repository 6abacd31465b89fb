//! Load and limit of each resource for a fleet: which one a growing fleet reaches first, and what raises it.
//!
//! The loads follow from the counted calls. The limits are the quotas of a new account in a large region, and what the
//! product can do within them at the figures below. Estimates, to be confirmed by a load test before they are relied on.

use crate::counts::Counts;
use crate::estimate::{Fleet, InvalidFleet, Transport};
use crate::prices::Unit;

/// Constants of the product that limit it. A test compares them with the code and the templates.
pub mod product {
    /// Shards of the index of sensors to check.
    pub const LIVE_SHARDS: f64 = 64.0;
    /// Shards of the sources of the inbox.
    pub const SOURCE_SHARDS: f64 = 16.0;
    /// MQTT messages that an invocation of the listener publishes at once.
    pub const PUBLISHED_AT_ONCE: f64 = 32.0;
    /// Concurrent invocations for each of two queues of deliveries by default, and deliveries of an invocation in mode
    /// `latest`.
    pub const DELIVERIES_AT_ONCE: f64 = 32.0;
    pub const DELIVERY_BATCH: f64 = 10.0;
    /// Writes of a sweep in flight, and memory in MB, by default.
    pub const SWEEP_MEMORY: f64 = 256.0;
    /// Seconds of a sweep's time that are left for checks.
    pub const SWEEP_SECONDS: f64 = 38.0;
}

/// Write units a second of one partition of a table or an index.
const PARTITION_WRITES: f64 = 1_000.0;
/// Units a second that a new table on demand takes at once, and its quota.
const NEW_TABLE_WRITES: f64 = 4_000.0;
const NEW_TABLE_READS: f64 = 12_000.0;
const TABLE_UNITS: f64 = 40_000.0;
/// Concurrent invocations of an account.
const CONCURRENCY: f64 = 1_000.0;
/// Publishes, deliveries and rule evaluations a second of an account, and connections.
const IOT_REQUESTS: f64 = 20_000.0;
const IOT_CONNECTIONS: f64 = 500_000.0;
/// Messages of a queue in flight.
const SQS_IN_FLIGHT: f64 = 120_000.0;
/// Seconds of a publication to AWS IoT, of a request to a webhook with the calls around it, and of processor time of a call
/// with an SDK.
const PUBLISH_SECONDS: f64 = 0.015;
const WEBHOOK_SECONDS: f64 = 0.2;
const CALL_PROCESSOR_SECONDS: f64 = 0.000_2;
/// Memory in MB with which a function has one processor.
const PROCESSOR_MEMORY: f64 = 1_769.0;
/// Seconds of silence after which a sensor is lost, by default, and between sweeps.
const SILENCE_SECONDS: f64 = 3_600.0;
const SWEEP_PERIOD_SECONDS: f64 = 60.0;
const DAY_SECONDS: f64 = 86_400.0;

/// A resource that a fleet uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resource {
    pub name: &'static str,
    pub load: f64,
    pub limit: f64,
    /// Unit of load and limit.
    pub unit: &'static str,
    /// Parameter or quota that raises the limit.
    pub raise: &'static str,
}

impl Resource {
    /// Share of the limit that is used.
    pub fn used(&self) -> f64 {
        self.load / self.limit
    }
}

impl Fleet {
    /// Load and limit of each resource that the fleet uses, the most used first.
    ///
    /// # Errors
    /// If a figure is negative or not finite.
    pub fn capacity(&self, counts: &Counts) -> Result<Vec<Resource>, InvalidFleet> {
        self.check()?;
        let reports = self.devices * self.reports_per_minute / 60.0;
        let signals = self.sensors * self.signals_per_minute / 60.0;
        let messages = self.devices * self.messages_per_day / DAY_SECONDS;
        let webhooks = self.sensors * self.webhooks_per_day / DAY_SECONDS;
        let over_mqtt = self.transport != Transport::Http;
        let mqtt_reports = if over_mqtt { reports } else { 0.0 };
        let report = self.report(counts);
        let documents = if self.documents_subscribers.is_some() {
            1.0
        } else {
            0.0
        };
        let compared = match (self.documents_subscribers.is_some(), self.delta) {
            (true, _) => counts.documents.message.count(Unit::Read),
            (false, true) => counts.delta.message.count(Unit::Read),
            (false, false) => 0.0,
        };
        let accepted = if self.accepted && over_mqtt { 1.0 } else { 0.0 };
        let writes = reports * report.count(Unit::Write)
            + signals * counts.signal.message.count(Unit::Write)
            + webhooks * counts.delivery.count(Unit::Write);
        let reads = reports * (report.count(Unit::Read) + compared)
            + webhooks * counts.delivery.count(Unit::Read);
        let rearmed = self.sensors / SILENCE_SECONDS;
        let seconds = self.invocation_milliseconds / 1_000.0;
        let changes = reports + signals;
        // A shard of the stream for each partition of the table, and one invocation each.
        let shards = (writes / PARTITION_WRITES).max(4.0).ceil();
        let deliveries = webhooks * WEBHOOK_SECONDS;
        let concurrency = reports * seconds
            + (signals + messages) / 10.0 * seconds
            + messages * seconds
            + shards.min(changes)
            + deliveries;
        let resource = |name, load, limit, unit, raise| Resource {
            name,
            load,
            limit,
            unit,
            raise,
        };
        let warm = "WarmWriteUnits and WarmReadUnits of the data stack";
        let table = "quota: table-level throughput of DynamoDB";
        let resources = [
            resource(
                "writes, new table",
                writes,
                NEW_TABLE_WRITES,
                "units/s",
                warm,
            ),
            resource("writes, table", writes, TABLE_UNITS, "units/s", table),
            resource("reads, new table", reads, NEW_TABLE_READS, "units/s", warm),
            resource("reads, table", reads, TABLE_UNITS, "units/s", table),
            resource(
                "writes, a shard of index Live",
                2.0 * rearmed / product::LIVE_SHARDS,
                PARTITION_WRITES,
                "units/s",
                "SensorShards",
            ),
            resource(
                "writes, a shard of inbox sources",
                messages / product::SOURCE_SHARDS,
                PARTITION_WRITES,
                "units/s",
                "not adjustable",
            ),
            resource(
                "MQTT messages of the listener",
                reports * documents,
                shards * product::PUBLISHED_AT_ONCE / PUBLISH_SECONDS,
                "messages/s",
                "StreamParallelization, with Combined",
            ),
            resource(
                "publishes to AWS IoT",
                mqtt_reports * (1.0 + accepted) + reports * documents + messages * 2.0,
                IOT_REQUESTS,
                "messages/s",
                "quota: inbound publish requests per second",
            ),
            resource(
                "deliveries of AWS IoT",
                mqtt_reports * accepted
                    + reports * self.documents_subscribers.unwrap_or(0.0)
                    + messages,
                IOT_REQUESTS,
                "messages/s",
                "quota: outbound publish requests per second",
            ),
            resource(
                "rules of AWS IoT",
                mqtt_reports + messages,
                IOT_REQUESTS,
                "messages/s",
                "quota: rule evaluations per second",
            ),
            resource(
                "connections to AWS IoT",
                if over_mqtt { self.devices } else { 0.0 },
                IOT_CONNECTIONS,
                "connections",
                "quota: concurrent client connections",
            ),
            resource(
                "invocations at once, all functions",
                concurrency,
                CONCURRENCY,
                "invocations",
                "quota: concurrent executions of Lambda",
            ),
            resource(
                "webhook-deliver",
                deliveries,
                product::DELIVERIES_AT_ONCE * product::DELIVERY_BATCH,
                "requests",
                "DeliveryConcurrency",
            ),
            resource(
                "signals in flight",
                signals * seconds,
                SQS_IN_FLIGHT,
                "messages",
                "quota: in-flight messages of SQS",
            ),
            resource(
                "sensors due in a sweep",
                rearmed * SWEEP_PERIOD_SECONDS,
                product::SWEEP_MEMORY / PROCESSOR_MEMORY / CALL_PROCESSOR_SECONDS
                    * product::SWEEP_SECONDS,
                "sensors",
                "SweepGroups and SweepMemory",
            ),
        ];
        let mut used: Vec<Resource> = resources.into_iter().filter(|of| of.load > 0.0).collect();
        used.sort_by(|one, other| other.used().total_cmp(&one.used()));
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Profile;

    fn fleet(devices: f64, sensors: f64) -> Fleet {
        Fleet {
            devices,
            reports_per_minute: 0.6,
            transport: Transport::BasicIngest,
            accepted: false,
            sensors,
            profile: Profile::Prod,
            ..crate::estimate::tests::fleet()
        }
    }

    fn used(fleet: Fleet, name: &str) -> f64 {
        let resources = fleet.capacity(&Counts::of_this_version().unwrap()).unwrap();
        let found = resources.iter().find(|resource| resource.name == name);
        found.unwrap_or_else(|| panic!("{name}")).used()
    }

    #[test]
    fn a_million_devices_need_warm_tables_and_connections_and_no_change_of_the_product() {
        let resources = fleet(1e6, 0.0).capacity(&Counts::of_this_version().unwrap());
        let resources = resources.unwrap();
        let over: Vec<&str> = resources
            .iter()
            .filter(|resource| resource.used() > 1.0)
            .map(|resource| resource.raise)
            .collect();
        assert!(
            over.iter().all(|raise| {
                raise.starts_with("quota:") || raise.starts_with("WarmWriteUnits")
            })
        );
        assert!(over.len() < resources.len());
    }

    #[test]
    fn loads_follow_from_the_counted_calls() {
        // 10,000 reports a second with one write unit each.
        assert!((used(fleet(1e6, 0.0), "writes, table") - 0.25).abs() < 1e-9);
        assert!((used(fleet(1e6, 0.0), "rules of AWS IoT") - 0.5).abs() < 1e-9);
        assert!((used(fleet(1e6, 0.0), "connections to AWS IoT") - 2.0).abs() < 1e-9);
        // 100,000 sensors are due 28 times a second and written twice, in 64 shards.
        let live = used(fleet(0.0, 1e5), "writes, a shard of index Live");
        assert!((live - 2.0 * 1e5 / 3600.0 / 64.0 / 1000.0).abs() < 1e-9);
    }

    #[test]
    fn nobody_uses_nothing() {
        let counts = Counts::of_this_version().unwrap();
        assert_eq!(fleet(0.0, 0.0).capacity(&counts), Ok(Vec::new()));
    }
}
