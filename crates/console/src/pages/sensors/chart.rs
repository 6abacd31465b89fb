//! The readings of a sensor as a step line, drawn on the server.

use antumbra_service::sensors::{Reading, Value};
use antumbra_shadow::Timestamp;
use maud::{Markup, html};

use crate::components::{cut, number};
use crate::time;
use crate::view::View;

/// Columns of the chart; beyond two points for each, a column shows its smallest and its largest value.
const COLUMNS: usize = 1000;
/// Places at which a time is written.
const TICKS: i128 = 4;

/// A point: position in time from 0 to 1000, and value.
type Point = (f64, f64);

/// Content of the chart.
pub(super) struct Chart<'a> {
    pub(super) sensor: &'a str,
    /// Readings, oldest first.
    pub(super) readings: &'a [Reading],
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// Silence after which a sensor is lost, in nanoseconds.
    pub(super) silence: i128,
}

/// The value of a reading as a number: a switch is 0 or 1.
fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
        Value::Boolean(yes) => Some(f64::from(u8::from(*yes))),
        Value::Text(_) => None,
    }
}

impl Chart<'_> {
    fn x(&self, at: Timestamp) -> f64 {
        let (from, to) = (self.from.nanoseconds(), self.to.nanoseconds());
        let share = (at.nanoseconds() - from) as f64 / (to - from).max(1) as f64;
        (share * COLUMNS as f64).clamp(0.0, COLUMNS as f64)
    }

    /// The times without readings for longer than the silence that is allowed.
    fn gaps(&self) -> Vec<(f64, f64)> {
        let times = self.readings.iter().map(|reading| reading.moment.time());
        let mut gaps = Vec::new();
        let mut before: Option<Timestamp> = None;
        for time in times.chain([self.to]) {
            if let Some(before) = before
                && time.nanoseconds() - before.nanoseconds() > self.silence
            {
                gaps.push((self.x(before), self.x(time)));
            }
            before = Some(time);
        }
        gaps
    }

    /// Points in numbers; none if a reading is not one.
    fn points(&self) -> Vec<Point> {
        let points = self.readings.iter();
        let points = points.filter_map(|reading| {
            Some((self.x(reading.moment.time()), as_number(&reading.value)?))
        });
        thin(points.collect())
    }

    pub(super) fn render(&self, view: &View) -> Markup {
        let points = self.points();
        let Some((low, high)) = bounds(&points) else {
            let what = match self.readings.is_empty() {
                true => "No readings in the last 24 hours.",
                false => "The readings are texts; see them as a table.",
            };
            return html! { p.mute { (what) } };
        };
        let gaps = self.gaps();
        let y = |value: f64| 100.0 - (value - low) / (high - low).max(f64::MIN_POSITIVE) * 100.0;
        let ticks = (0..=TICKS).map(|at| {
            let (from, to) = (self.from.nanoseconds(), self.to.nanoseconds());
            let time = Timestamp::from_nanoseconds(from + (to - from) * at / TICKS);
            let zoned = time::zoned(time, &view.zone);
            zoned.map_or(String::new(), |zoned| zoned.strftime("%H:%M").to_string())
        });
        let ticks: Vec<String> = ticks.collect();
        let path = step_path(&points, &gaps, y);
        html! {
            div class="plot short" {
                ol.y aria-hidden="true" { li { (short(high)) } @if high > low { li { (short(low)) } } }
                svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label=(self.sentence(low, high, gaps.len())) {
                    @for (start, end) in &gaps { path.gap d={ "M" (round(*start)) " -8H" (round(*end)) "V108H" (round(*start)) "z" } {} }
                    path.grid d="M0 0H1000M0 100H1000" {}
                    path.series d=(path) {}
                }
                ol.x aria-hidden="true" { @for tick in &ticks { li { (tick) } } }
            }
            @if !gaps.is_empty() {
                figcaption.legend { span {
                    svg viewBox="0 0 20 8" aria-hidden="true" { path.gap d="M0 0h20v8h-20z" {} }
                    "no readings"
                } }
            }
        }
    }

    /// The chart in words.
    fn sentence(&self, low: f64, high: f64, gaps: usize) -> String {
        let count = number(self.readings.len() as i64);
        let sensor = cut(self.sensor);
        let range = match high > low {
            true => format!("from {} to {}", short(low), short(high)),
            false => format!("all {}", short(low)),
        };
        let gaps = match gaps {
            0 => String::new(),
            1 => ", one time without readings".to_owned(),
            gaps => format!(", {gaps} times without readings"),
        };
        format!("{sensor}, last 24 hours: {count} readings {range}{gaps}")
    }
}

fn bounds(points: &[Point]) -> Option<(f64, f64)> {
    let values = points.iter().map(|(_, value)| *value);
    let low = values.clone().reduce(f64::min)?;
    Some((low, values.reduce(f64::max)?))
}

/// At most two points for each column: its smallest and its largest value, in their order.
fn thin(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= 2 * COLUMNS {
        return points;
    }
    let mut thinned: Vec<Point> = Vec::new();
    for column in points.chunk_by(|a, b| a.0 as usize == b.0 as usize) {
        let by_value = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
        let (low, high) = (
            column.iter().min_by(by_value),
            column.iter().max_by(by_value),
        );
        let mut pair: Vec<Point> = low.into_iter().chain(high).copied().collect();
        pair.sort_by(|a, b| a.0.total_cmp(&b.0));
        pair.dedup();
        thinned.extend(pair);
    }
    thinned
}

/// A line that keeps each value until the next one, and is broken at gaps.
fn step_path(points: &[Point], gaps: &[(f64, f64)], y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut is_drawn = false;
    for (at, (x, value)) in points.iter().enumerate() {
        let step = match is_drawn {
            true => format!("H{}V{}", round(*x), round(y(*value))),
            false => format!("M{} {}", round(*x), round(y(*value))),
        };
        path.push_str(&step);
        is_drawn = true;
        let next = points.get(at + 1).map_or(COLUMNS as f64, |next| next.0);
        let gap = gaps.iter().find(|(start, end)| {
            *start >= *x - 0.05 && *start <= next && *end <= next + 0.05 && *end > *x
        });
        if gap.is_some() {
            is_drawn = false;
        } else if at + 1 == points.len() {
            path.push_str("H1000");
        }
    }
    path
}

fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// A number for an axis.
fn short(number: f64) -> String {
    let rounded = (number * 100.0).round() / 100.0;
    match number.abs() {
        0.0 => "0".to_owned(),
        0.01..1e7 => format!("{rounded}"),
        _ => format!("{number:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_line_keeps_values_and_breaks_at_gaps() {
        let points = [(0.0, 0.0), (10.0, 1.0), (500.0, 0.0)];
        let y = |value: f64| 100.0 - 100.0 * value;
        assert_eq!(step_path(&points, &[], y), "M0 100H10V0H500V100H1000");
        let gaps = [(10.0, 500.0), (500.0, 1000.0)];
        assert_eq!(step_path(&points, &gaps, y), "M0 100H10V0M500 100");
    }

    #[test]
    fn many_points_keep_their_extremes() {
        let points: Vec<Point> = (0..30_000)
            .map(|n| {
                (
                    f64::from(n) / 30.0,
                    if n == 12_345 { 99.0 } else { f64::from(n % 7) },
                )
            })
            .collect();
        let thinned = thin(points);
        assert!(thinned.len() <= 2 * COLUMNS, "{}", thinned.len());
        assert_eq!(bounds(&thinned), Some((0.0, 99.0)));
    }

    #[test]
    fn axis_numbers_are_short() {
        for (number, expected) in [
            (0.0, "0"),
            (-19.83333, "-19.83"),
            (1.0, "1"),
            (1e300, "1e300"),
            (0.001, "1e-3"),
        ] {
            assert_eq!(short(number), expected);
        }
    }
}
