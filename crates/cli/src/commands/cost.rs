//! `antumbra cost`: the monthly bill of a fleet, from counted calls.

use antumbra_cost::{
    Counts, Estimate, Fleet, PRICES_OF, PRICES_REGION, Profile, Resource, Transport,
};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Number;

use crate::error::CliError;
use crate::output::{FAINT, STRONG, json, styled, table};

#[derive(Debug, Args)]
pub(crate) struct CostArguments {
    /// Devices with a shadow.
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    devices: f64,
    /// Reports of each device.
    #[arg(long, default_value_t = 1.0, value_name = "RATE")]
    reports_per_minute: f64,
    /// Transport of reports. AWS bills no message for a report over Basic Ingest.
    #[arg(long, value_enum, default_value_t = TransportName::Mqtt)]
    transport: TransportName,
    /// Reports get no response unless they request one: `ACCEPTED` is `requested`. Compared with devices of AWS IoT Device Shadow
    /// that do not subscribe to theirs.
    #[arg(long)]
    no_accepted: bool,
    /// The registration that publishes `delta` is switched off.
    #[arg(long)]
    no_delta: bool,
    /// Notifications to queues for each report.
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    notifications_per_report: f64,
    /// Subscribers of the `documents` of each device.
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    documents_subscribers: f64,
    /// The registration that publishes `documents` is switched off.
    #[arg(long, conflicts_with = "documents_subscribers")]
    no_documents: bool,
    /// The history is switched off: `HistoryDays` is 0.
    #[arg(long)]
    no_history: bool,
    /// Readers of the change feed that read every change.
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "COUNT",
        conflicts_with = "no_history"
    )]
    feed_readers: f64,
    /// Inbox messages that each device gets and reads.
    #[arg(long, default_value_t = 0.0, value_name = "RATE")]
    messages_per_day: f64,
    /// Sensors of the registry.
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    sensors: f64,
    /// Signals of each sensor.
    #[arg(long, default_value_t = 1.0, value_name = "RATE")]
    signals_per_minute: f64,
    /// Webhook deliveries for each sensor.
    #[arg(long, default_value_t = 0.0, value_name = "RATE")]
    webhooks_per_day: f64,
    /// The deployment has the profile prod: alarms, metrics, a dashboard, traces and a sweep every minute.
    #[arg(long)]
    prod: bool,
    /// Billed duration of an invocation.
    #[arg(long, default_value_t = 20.0, value_name = "MILLISECONDS")]
    invocation_milliseconds: f64,
    /// Prints also the load and the limit of each resource, and what raises the limit.
    #[arg(long)]
    capacity: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TransportName {
    Mqtt,
    BasicIngest,
    Http,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    prices_of: &'static str,
    region: &'static str,
    services: Vec<ServiceOutput>,
    total_dollars: Number,
    idle_dollars: Number,
    shadow_dollars: Number,
    history_dollars: Number,
    device_shadow_dollars: Number,
    capacity: Vec<ResourceOutput>,
}

#[derive(Serialize)]
struct ResourceOutput {
    resource: &'static str,
    load: Number,
    limit: Number,
    unit: &'static str,
    raise: &'static str,
}

#[derive(Serialize)]
struct ServiceOutput {
    service: &'static str,
    dollars: Number,
    units: Vec<UnitOutput>,
}

#[derive(Serialize)]
struct UnitOutput {
    unit: &'static str,
    count: Number,
}

pub(crate) fn run(arguments: &CostArguments, as_json: bool) -> Result<String, CliError> {
    let counts = Counts::of_this_version().map_err(CliError::failed)?;
    let fleet = arguments.fleet();
    let estimate = fleet.estimate(&counts).map_err(CliError::invalid)?;
    let capacity = fleet.capacity(&counts).map_err(CliError::invalid)?;
    Ok(match as_json {
        true => json(&Output::new(&estimate, &capacity)),
        false => match capacity.is_empty() || !arguments.capacity {
            true => text(&estimate),
            false => format!("{}\n\n{}", text(&estimate), capacity_text(&capacity)),
        },
    })
}

impl CostArguments {
    fn fleet(&self) -> Fleet {
        Fleet {
            devices: self.devices,
            reports_per_minute: self.reports_per_minute,
            transport: match self.transport {
                TransportName::Mqtt => Transport::Mqtt,
                TransportName::BasicIngest => Transport::BasicIngest,
                TransportName::Http => Transport::Http,
            },
            accepted: !self.no_accepted,
            delta: !self.no_delta,
            notifications_per_report: self.notifications_per_report,
            documents_subscribers: (!self.no_documents).then_some(self.documents_subscribers),
            history: !self.no_history,
            feed_readers: self.feed_readers,
            messages_per_day: self.messages_per_day,
            sensors: self.sensors,
            signals_per_minute: self.signals_per_minute,
            webhooks_per_day: self.webhooks_per_day,
            profile: match self.prod {
                false => Profile::Dev,
                true => Profile::Prod,
            },
            invocation_milliseconds: self.invocation_milliseconds,
        }
    }
}

/// Rounds to cents.
fn cents(dollars: f64) -> Number {
    let rounded = (dollars * 100.0).round() / 100.0;
    Number::from_f64(rounded).unwrap_or_else(|| 0.into())
}

impl Output {
    fn new(estimate: &Estimate, capacity: &[Resource]) -> Output {
        let capacity = capacity.iter().map(|resource| ResourceOutput {
            resource: resource.name,
            load: cents(resource.load),
            limit: cents(resource.limit),
            unit: resource.unit,
            raise: resource.raise,
        });
        let services = estimate.services.iter().map(|line| ServiceOutput {
            service: line.service.name(),
            dollars: cents(line.dollars),
            units: line
                .units
                .iter()
                .map(|(unit, count)| UnitOutput {
                    unit,
                    count: cents(*count),
                })
                .collect(),
        });
        Output {
            prices_of: PRICES_OF,
            region: PRICES_REGION,
            services: services.collect(),
            total_dollars: cents(estimate.total_dollars),
            idle_dollars: cents(estimate.idle_dollars),
            shadow_dollars: cents(estimate.shadow_dollars),
            history_dollars: cents(estimate.history_dollars),
            device_shadow_dollars: cents(estimate.device_shadow_dollars),
            capacity: capacity.collect(),
        }
    }
}

/// Formats a number of units: millions with two decimals, less as it is.
fn amount((unit, count): &(&'static str, f64)) -> String {
    if *count >= 100_000.0 {
        format!("{:.2} M {unit}s", count / 1e6)
    } else {
        let count = format!("{count:.2}");
        let count = count.trim_end_matches('0').trim_end_matches('.');
        format!("{count} {unit}{}", if count == "1" { "" } else { "s" })
    }
}

fn text(estimate: &Estimate) -> String {
    let dollars = |amount: f64| format!("${amount:.2}");
    let mut rows = Vec::new();
    for line in &estimate.services {
        let units: Vec<String> = line.units.iter().map(amount).collect();
        rows.push(vec![
            line.service.name().to_owned(),
            dollars(line.dollars),
            styled(FAINT, &units.join(", ")),
        ]);
    }
    rows.push(vec![
        styled(STRONG, "total a month"),
        styled(STRONG, &dollars(estimate.total_dollars)),
        styled(
            FAINT,
            &format!(
                "of it {} without any message",
                dollars(estimate.idle_dollars)
            ),
        ),
    ]);
    if estimate.history_dollars > 0.0 {
        rows.push(vec![
            "history".to_owned(),
            dollars(estimate.history_dollars),
            styled(
                FAINT,
                "of the total, for recorded changes and the change feed",
            ),
        ]);
    }
    if estimate.device_shadow_dollars > 0.0 {
        rows.push(vec![
            "shadows".to_owned(),
            dollars(estimate.shadow_dollars),
            styled(FAINT, "of the total, for reports and their notifications"),
        ]);
        rows.push(vec![
            "AWS IoT Device Shadow".to_owned(),
            dollars(estimate.device_shadow_dollars),
            styled(FAINT, "for the same"),
        ]);
    }
    let note = format!(
        "Prices of {PRICES_REGION} on {PRICES_OF}, without free tiers, storage and data transfer."
    );
    format!("{}\n{}", table(&rows), styled(FAINT, &note))
}

fn capacity_text(capacity: &[Resource]) -> String {
    let rounded = |number: f64| match number {
        small if small < 10.0 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    };
    let row = |resource: &Resource| {
        vec![
            resource.name.to_owned(),
            format!("{:.0} %", resource.used() * 100.0),
            format!(
                "{} of {} {}",
                rounded(resource.load),
                rounded(resource.limit),
                resource.unit
            ),
            styled(FAINT, resource.raise),
        ]
    };
    let rows: Vec<Vec<String>> = capacity.iter().map(row).collect();
    let note = "Limits of a new account and of the template's defaults, and what raises them.";
    format!("{}\n{}", table(&rows), styled(FAINT, note))
}
