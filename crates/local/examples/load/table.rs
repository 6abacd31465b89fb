//! Formats the result of a run: as text for the terminal, and as Markdown for docs/performance.md.

use crate::growth::Row;
use crate::measure::{Second, Spread};
use crate::plan::Plan;
use crate::run::Outcome;

/// Measurements of all seconds together: spreads, mean use of the processor, highest use of memory.
struct Figures {
    reports: Spread,
    notifications: Spread,
    deliveries: Spread,
    cores: f64,
    megabytes: usize,
}

impl Figures {
    fn of(seconds: &[Second]) -> Figures {
        let count = seconds.len().max(1) as f64;
        Figures {
            reports: Spread::all(seconds.iter().map(|second| &second.reports)),
            notifications: Spread::all(seconds.iter().map(|second| &second.notifications)),
            deliveries: Spread::all(seconds.iter().map(|second| &second.deliveries)),
            cores: seconds.iter().map(|second| second.cores).sum::<f64>() / count,
            megabytes: seconds
                .iter()
                .map(|second| second.megabytes)
                .max()
                .unwrap_or(0),
        }
    }
}

pub(crate) fn sentences(outcome: &Outcome) -> String {
    let figures = Figures::of(&outcome.seconds);
    let spread = |what: &str, spread: &Spread| {
        let (median, percentile_99, longest) = (spread.at(0.5), spread.at(0.99), spread.at(1.0));
        format!(
            "{what} {median:.1} ms (median), {percentile_99:.1} ms (99 %), {longest:.1} ms (longest)"
        )
    };
    let reports_per_second = outcome.reports as f64 / outcome.reported.as_secs_f64();
    let lines = [
        format!(
            "{} reports in {:.1} s ({reports_per_second:.0} a second) and {} signals; all notifications after {:.1} s",
            outcome.reports,
            outcome.reported.as_secs_f64(),
            outcome.signals,
            outcome.settled.as_secs_f64(),
        ),
        format!(
            "{} notifications, {} deliveries, {} duplicates, {} faults",
            outcome.notifications,
            outcome.deliveries,
            outcome.duplicates,
            outcome.faults.len()
        ),
        spread("a report took", &figures.reports),
        spread("a notification arrived after", &figures.notifications),
        spread("a delivery arrived after", &figures.deliveries),
        format!(
            "{:.2} cores busy and {} MB resident at most, including senders and receivers",
            figures.cores, figures.megabytes
        ),
    ];
    lines.join("\n")
}

/// `grown` are the measurements with more devices in the table, if there are any.
pub(crate) fn markdown(plan: &Plan, outcome: &Outcome, grown: &[Row]) -> String {
    let figures = Figures::of(&outcome.seconds);
    let mut out = format!(
        "{} s of {} reports and {} sensor signals per second. {}.\n\n",
        plan.seconds,
        plan.reports_per_second,
        plan.signals_per_second,
        match outcome.faults.len() {
            0 => format!(
                "All {} notifications and {} deliveries arrived in order and without a gap ({} duplicates, under the \
                 same id), and every signal was stored as a reading",
                outcome.notifications, outcome.deliveries, outcome.duplicates
            ),
            faults => format!("**{faults} faults**"),
        }
    );
    out.push_str("| | count | median | 99 % | longest |\n|---|---|---|---|---|\n");
    for (what, spread) in [
        ("report, response", &figures.reports),
        (
            "notification, accepted by its queue",
            &figures.notifications,
        ),
        ("delivery, received by its endpoint", &figures.deliveries),
    ] {
        out.push_str(&format!(
            "| {what} | {} | {:.1} ms | {:.0} ms | {:.0} ms |\n",
            spread.count(),
            spread.at(0.5),
            spread.at(0.99),
            spread.at(1.0)
        ));
    }
    out.push_str(&format!(
        "\n{:.2} of {} cores busy and {} MB resident at most, including senders and receivers.\n",
        figures.cores,
        std::thread::available_parallelism().map_or(0, usize::from),
        figures.megabytes
    ));
    if grown.is_empty() {
        return out;
    }
    let rate = plan.reports_per_second;
    out.push_str(&format!(
        "\nThe same {rate} reports per second, with more devices in the table:\n\n\
         | devices | report, median | 99 % | notification, 99 % | cores | resident | on disk | start |\n\
         |---|---|---|---|---|---|---|---|\n"
    ));
    for row in grown {
        out.push_str(&format!(
            "| {} | {:.1} ms | {:.0} ms | {:.0} ms | {:.2} | {} MB | {} MB | {:.1} s |\n",
            row.devices,
            row.reports.at(0.5),
            row.reports.at(0.99),
            row.notifications.at(0.99),
            row.cores,
            row.megabytes,
            row.on_disk,
            row.start_seconds,
        ));
    }
    out
}
