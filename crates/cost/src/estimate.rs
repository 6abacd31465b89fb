//! The monthly bill of a fleet.

use crate::bill::Bill;
use crate::counts::{Batched, Counts, Profile};
use crate::prices::{Service, Unit};

const MINUTES_PER_MONTH: f64 = 43_800.0;
const SECONDS_PER_MONTH: f64 = 60.0 * MINUTES_PER_MONTH;
const DAYS_PER_MONTH: f64 = MINUTES_PER_MONTH / (24.0 * 60.0);

/// Receives a month of an idle queue: Lambda's five pollers wait 20 seconds each.
const IDLE_RECEIVES: f64 = 5.0 * SECONDS_PER_MONTH / 20.0;
/// Lambda's pollers of a queue, and the shards of a new table on demand: between them the messages are divided.
const QUEUE_POLLERS: f64 = 5.0;
const STREAM_SHARDS: f64 = 4.0;
/// Seconds for which Lambda collects a batch.
const BATCHING_SECONDS: f64 = 1.0;
const LARGEST_QUEUE_BATCH: f64 = 10.0;
const LARGEST_STREAM_BATCH: f64 = 100.0;
const LARGEST_HISTORY_BATCH: f64 = 1000.0;
/// Memory of a function, in GB.
const FUNCTION_GIGABYTES: f64 = 0.25;
/// Most invocations whose metrics are in one line of logs, and the seconds after which a process logs a line.
const INVOCATIONS_PER_LINE: f64 = 100.0;
const SECONDS_PER_LINE: f64 = 50.0;
/// Share of invocations that X-Ray records by its default rule.
const TRACED_SHARE: f64 = 0.05;

/// A fleet and the work that it causes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fleet {
    pub devices: f64,
    /// Of each device, as the other rates.
    pub reports_per_minute: f64,
    pub transport: Transport,
    /// Each report gets a response, which the device receives.
    pub accepted: bool,
    /// The registration that publishes deltas is switched on. Reports make no delta.
    pub delta: bool,
    /// Notifications to queues for each report.
    pub notifications_per_report: f64,
    /// Subscribers of each device's `documents`; none if the registration is switched off.
    pub documents_subscribers: Option<f64>,
    /// Changes are recorded in the history and in the change feed.
    pub history: bool,
    /// Readers of the change feed that read every change, once.
    pub feed_readers: f64,
    /// Inbox messages that a device gets and reads.
    pub messages_per_day: f64,
    pub sensors: f64,
    pub signals_per_minute: f64,
    pub webhooks_per_day: f64,
    pub profile: Profile,
    /// Billed duration of an invocation.
    pub invocation_milliseconds: f64,
}

/// Transport of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Mqtt,
    /// Publishing to `$aws/rules/…`, which AWS does not bill as a message.
    BasicIngest,
    Http,
}

/// A figure that is negative or not finite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} must be a number of at least 0")]
pub struct InvalidFleet(pub &'static str);

/// The monthly bill of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    pub services: Vec<ServiceCost>,
    pub total_dollars: f64,
    /// Dollars without any device, sensor or message.
    pub idle_dollars: f64,
    /// AWS IoT Device Shadow for the same reports, responses, notifications and `documents`; it has no sensors and no
    /// inbox.
    pub device_shadow_dollars: f64,
    /// Antumbra for what AWS IoT Device Shadow does too, without history, sensors, inbox and idle costs.
    pub shadow_dollars: f64,
    /// The history and the change feed of these shadows.
    pub history_dollars: f64,
}

/// One line of the bill.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceCost {
    pub service: Service,
    pub dollars: f64,
    /// Billed units of a month, by name.
    pub units: Vec<(&'static str, f64)>,
}

impl Fleet {
    pub(crate) fn check(&self) -> Result<(), InvalidFleet> {
        let figures = [
            ("devices", self.devices),
            ("reports per minute", self.reports_per_minute),
            ("notifications per report", self.notifications_per_report),
            (
                "subscribers of documents",
                self.documents_subscribers.unwrap_or(0.0),
            ),
            ("readers of the feed", self.feed_readers),
            ("messages per day", self.messages_per_day),
            ("sensors", self.sensors),
            ("signals per minute", self.signals_per_minute),
            ("webhooks per day", self.webhooks_per_day),
            ("milliseconds", self.invocation_milliseconds),
        ];
        let wrong = |figure: &f64| !figure.is_finite() || *figure < 0.0;
        match figures.into_iter().find(|(_, figure)| wrong(figure)) {
            Some((name, _)) => Err(InvalidFleet(name)),
            None => Ok(()),
        }
    }

    /// The bill of a month.
    ///
    /// # Errors
    /// If a figure is negative or not finite.
    pub fn estimate(&self, counts: &Counts) -> Result<Estimate, InvalidFleet> {
        self.check()?;
        let idle = self.complete(self.idle(counts), counts);
        let shadows = self.shadows(counts).plus(listener(counts, self.reports()));
        let shadows = self.complete(shadows, counts);
        let history = self.complete(self.history(counts), counts);
        let rest = self.complete(self.inbox(counts).plus(self.sensors(counts)), counts);
        let bill = idle.plus(shadows).plus(history).plus(rest);
        let all = [
            Service::DynamoDb,
            Service::Sqs,
            Service::Lambda,
            Service::Iot,
            Service::ApiGateway,
            Service::CloudWatch,
            Service::XRay,
        ];
        let line = |service| ServiceCost {
            service,
            dollars: bill.dollars_of(service),
            units: bill.units_of(service).collect(),
        };
        let services = all.into_iter().map(line);
        Ok(Estimate {
            services: services.filter(|line| !line.units.is_empty()).collect(),
            total_dollars: bill.dollars(),
            idle_dollars: idle.dollars(),
            device_shadow_dollars: self.device_shadow().dollars(),
            shadow_dollars: shadows.dollars(),
            history_dollars: history.dollars(),
        })
    }

    fn reports(&self) -> f64 {
        self.devices * self.reports_per_minute * MINUTES_PER_MONTH
    }

    fn connections(&self) -> Bill {
        let minutes = match self.transport {
            Transport::Http => 0.0,
            Transport::Mqtt | Transport::BasicIngest => self.devices * MINUTES_PER_MONTH,
        };
        Bill::default().and(Unit::IotConnectionMinute, minutes)
    }

    /// One report with its response.
    pub(crate) fn report(&self, counts: &Counts) -> Bill {
        let over_mqtt = match self.accepted {
            true => counts.report_over_mqtt,
            false => counts.report_without_response,
        };
        match self.transport {
            Transport::Mqtt => over_mqtt,
            Transport::BasicIngest => over_mqtt.and(Unit::IotMessage, -1.0),
            Transport::Http => counts.report_over_http,
        }
    }

    /// Reports with their responses and notifications, without the invocations of the listener.
    fn shadows(&self, counts: &Counts) -> Bill {
        let (reports, report) = (self.reports(), self.report(counts));
        let notifications = counts.notification_to_queue.message;
        let notifications = notifications.times(self.notifications_per_report * reports);
        let mut bill = self
            .connections()
            .plus(report.times(reports))
            .plus(notifications);
        if let Some(subscribers) = self.documents_subscribers {
            // One message is published, one is delivered to each subscriber; one of them was counted.
            let documents = counts.documents.message;
            let documents = documents.and(Unit::IotMessage, subscribers - 1.0);
            bill = bill.plus(documents.times(reports));
        } else if self.delta {
            // Where both are published, one read serves both.
            bill = bill.plus(counts.delta.message.times(reports));
        }
        bill
    }

    /// Recording every report in the history and the change feed, and reading the feed.
    fn history(&self, counts: &Counts) -> Bill {
        if !self.history {
            return Bill::default();
        }
        let changes = self.reports();
        let batch = changes / SECONDS_PER_MONTH * BATCHING_SECONDS / STREAM_SHARDS;
        let recorded = counts
            .recorded_change
            .at(batch.clamp(1.0, LARGEST_HISTORY_BATCH));
        let followed = counts.followed_change.times(self.feed_readers);
        recorded.plus(followed).times(changes)
    }

    /// Storing messages, and reading them.
    fn inbox(&self, counts: &Counts) -> Bill {
        let messages = self.devices * self.messages_per_day * DAYS_PER_MONTH;
        let read = counts.inbox_read_over_mqtt.times(messages);
        read.plus(from_queue(&counts.inbox_message, messages))
    }

    fn sensors(&self, counts: &Counts) -> Bill {
        let signals = self.sensors * self.signals_per_minute * MINUTES_PER_MONTH;
        let deliveries = self.sensors * self.webhooks_per_day * DAYS_PER_MONTH;
        from_queue(&counts.signal, signals)
            .plus(listener(counts, signals))
            .plus(counts.delivery.times(deliveries))
    }

    fn idle(&self, counts: &Counts) -> Bill {
        let idle = counts.idle(self.profile);
        let sweeps = f64::from(idle.sweeps_per_hour) * MINUTES_PER_MONTH / 60.0;
        counts
            .sweep
            .times(sweeps)
            .and(Unit::Sqs, f64::from(idle.polled_queues) * IDLE_RECEIVES)
            .and(
                Unit::SqsFifo,
                f64::from(idle.polled_fifo_queues) * IDLE_RECEIVES,
            )
            .and(Unit::AlarmMetric, f64::from(idle.alarm_metrics))
            .and(Unit::CustomMetric, f64::from(idle.custom_metrics))
            .and(Unit::Dashboard, f64::from(idle.dashboards))
    }

    /// Adds what every invocation costs: duration, traces and logs.
    fn complete(&self, bill: Bill, counts: &Counts) -> Bill {
        let idle = counts.idle(self.profile);
        let invocations = bill.count(Unit::Lambda);
        let seconds = invocations * self.invocation_milliseconds / 1_000.0;
        let traced = match idle.traced {
            true => TRACED_SHARE,
            false => 0.0,
        };
        let processes = (seconds / SECONDS_PER_MONTH).ceil();
        let lines =
            invocations / INVOCATIONS_PER_LINE + processes * SECONDS_PER_MONTH / SECONDS_PER_LINE;
        let logged = lines.min(invocations) * f64::from(idle.log_bytes) / 1e9;
        bill.and(Unit::LambdaGbSecond, seconds * FUNCTION_GIGABYTES)
            .and(Unit::LogGigabyte, logged)
            .and(Unit::Trace, invocations * traced)
    }

    fn device_shadow(&self) -> Bill {
        let subscribers = self.documents_subscribers.unwrap_or(0.0);
        let notifications = self.notifications_per_report;
        let messages = match self.transport {
            Transport::Mqtt | Transport::BasicIngest => 1.0 + f64::from(u8::from(self.accepted)),
            Transport::Http => 0.0,
        };
        let report = Bill::default()
            .and(Unit::ShadowOperation, 1.0)
            .and(Unit::IotMessage, messages + subscribers)
            .and(Unit::IotRule, notifications)
            .and(Unit::Sqs, notifications);
        self.connections().plus(report.times(self.reports()))
    }
}

/// Messages of a month from a queue, with the call that sent each.
fn from_queue(counts: &Batched, messages: f64) -> Bill {
    let batch = messages / SECONDS_PER_MONTH * BATCHING_SECONDS / QUEUE_POLLERS;
    let each = counts.at(batch.clamp(1.0, LARGEST_QUEUE_BATCH));
    each.and(Unit::Sqs, 1.0).times(messages)
}

/// Invocations of the stream listener for the changes of a month, whether or not a registration matches them.
fn listener(counts: &Counts, changes: f64) -> Bill {
    let batch = changes / SECONDS_PER_MONTH * BATCHING_SECONDS / STREAM_SHARDS;
    let batch = batch.clamp(1.0, LARGEST_STREAM_BATCH);
    counts
        .notification_to_queue
        .invocation
        .times(changes / batch)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn fleet() -> Fleet {
        Fleet {
            devices: 0.0,
            reports_per_minute: 1.0,
            transport: Transport::Mqtt,
            accepted: true,
            delta: true,
            notifications_per_report: 0.0,
            documents_subscribers: None,
            history: false,
            feed_readers: 0.0,
            messages_per_day: 0.0,
            sensors: 0.0,
            signals_per_minute: 1.0,
            webhooks_per_day: 0.0,
            profile: Profile::Dev,
            invocation_milliseconds: 20.0,
        }
    }

    fn bill(fleet: Fleet) -> Estimate {
        let counts = Counts::of_this_version().unwrap();
        fleet.estimate(&counts).unwrap()
    }

    fn dollars(estimate: &Estimate, service: Service) -> f64 {
        let line = estimate.services.iter().find(|of| of.service == service);
        line.map_or(0.0, |line| line.dollars)
    }

    #[test]
    fn device_shadow_costs_operations_messages_and_connections() {
        let devices = Fleet {
            devices: 10_000.0,
            ..fleet()
        };
        // 438 million operations at 1.25 and two messages each, and connections of 35.04.
        let found = bill(devices).device_shadow_dollars;
        assert!((found - (547.5 + 876.0 + 35.04)).abs() < 0.01, "{found}");
    }

    #[test]
    fn the_bill_is_the_sum_of_its_services_and_grows_with_the_fleet() {
        let small = bill(Fleet {
            devices: 100.0,
            sensors: 100.0,
            ..fleet()
        });
        let large = bill(Fleet {
            devices: 100_000.0,
            sensors: 100_000.0,
            ..fleet()
        });
        for estimate in [&small, &large] {
            let sum: f64 = estimate.services.iter().map(|line| line.dollars).sum();
            assert!((sum - estimate.total_dollars).abs() < 1e-6);
        }
        // Tiers and fuller batches make it grow by less than a thousand times.
        let growth = large.total_dollars / small.total_dollars;
        assert!(growth > 100.0 && growth < 1_000.0, "{growth}");
    }

    #[test]
    fn basic_ingest_saves_the_message_of_the_device() {
        let mqtt = Fleet {
            devices: 1_000.0,
            ..fleet()
        };
        let ingest = Fleet {
            transport: Transport::BasicIngest,
            ..mqtt
        };
        let saved = dollars(&bill(mqtt), Service::Iot) - dollars(&bill(ingest), Service::Iot);
        // 43.8 million messages.
        assert!((saved - 43.8).abs() < 0.01, "{saved}");
    }

    #[test]
    fn an_idle_deployment_costs_nothing_per_message() {
        let idle = bill(fleet());
        assert_eq!(idle.total_dollars, idle.idle_dollars);
        assert_eq!(idle.device_shadow_dollars, 0.0);
        assert_eq!(dollars(&idle, Service::Iot), 0.0);
    }

    #[test]
    fn metrics_of_many_invocations_share_a_line_of_logs() {
        let reports = Fleet {
            devices: 1_000.0,
            ..fleet()
        };
        let logs = |fleet: Fleet| {
            let services = bill(fleet).services.into_iter();
            let units = services.flat_map(|line| line.units);
            let mut logs = units.filter(|(name, _)| *name == "log gigabyte");
            logs.next().map_or(0.0, |(_, count)| count)
        };
        assert_eq!(logs(reports), 0.0);
        let prod = Fleet {
            profile: Profile::Prod,
            ..reports
        };
        // 43.8 million reports with lines of some two kilobytes.
        let gigabytes = logs(prod);
        assert!(gigabytes > 0.5 && gigabytes < 2.0, "{gigabytes}");
    }

    /// 10,000 devices with a report a minute, against the managed service without responses.
    #[test]
    fn shadows_cost_no_more_than_those_of_aws_iot() {
        let cheapest = Fleet {
            devices: 10_000.0,
            transport: Transport::BasicIngest,
            accepted: false,
            ..fleet()
        };
        for profile in [Profile::Dev, Profile::Prod] {
            let estimate = bill(Fleet {
                profile,
                ..cheapest
            });
            let ratio = estimate.shadow_dollars / estimate.device_shadow_dollars;
            assert!(ratio <= 0.7, "{ratio}");
        }
        let managed = bill(cheapest).device_shadow_dollars;
        assert!(
            (managed - (547.5 + 438.0 + 35.04)).abs() < 0.01,
            "{managed}"
        );
    }

    /// The same with everything recorded, and the feed read once.
    #[test]
    fn shadows_with_their_history_cost_at_most_1_4_times_those_of_aws_iot() {
        for (profile, feed_readers) in [
            (Profile::Dev, 0.0),
            (Profile::Prod, 0.0),
            (Profile::Prod, 1.0),
        ] {
            let plain = Fleet {
                devices: 10_000.0,
                transport: Transport::BasicIngest,
                accepted: false,
                profile,
                ..fleet()
            };
            let recorded = Fleet {
                history: true,
                feed_readers,
                ..plain
            };
            let (plain, recorded) = (bill(plain), bill(recorded));
            let managed = recorded.device_shadow_dollars;
            assert_eq!(recorded.shadow_dollars, plain.shadow_dollars);
            assert_eq!(plain.history_dollars, 0.0);
            let added = recorded.total_dollars - plain.total_dollars;
            // Prices of tiers apply to the sum.
            assert!((added - recorded.history_dollars).abs() < 1.0, "{added}");
            let [without, with] = [plain.total_dollars, recorded.total_dollars];
            println!(
                "{profile:?}, {feed_readers} readers: {:.2} and {:.2} of {managed:.0} dollars",
                without / managed,
                with / managed
            );
            assert!(without <= 1.0 * managed, "{without}");
            assert!(with <= 1.4 * managed, "{with}");
        }
    }

    #[test]
    fn sensors_over_queues_cost_less_than_950_dollars() {
        let sensors = bill(Fleet {
            sensors: 10_000.0,
            webhooks_per_day: 2.0,
            profile: Profile::Prod,
            ..fleet()
        });
        assert!(sensors.total_dollars <= 950.0, "{}", sensors.total_dollars);
    }

    #[test]
    fn impossible_figures_are_rejected() {
        let counts = Counts::of_this_version().unwrap();
        for devices in [-1.0, f64::NAN, f64::INFINITY] {
            let fleet = Fleet { devices, ..fleet() };
            let error = fleet.estimate(&counts).unwrap_err();
            assert_eq!(error.to_string(), "devices must be a number of at least 0");
        }
    }
}
