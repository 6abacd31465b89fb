//! Charts as SVG, drawn on the server. Widths are 1,000 units, which the page stretches.

use std::fmt::Write as _;

use antumbra_shadow::Timestamp;

/// Columns of a histogram.
const BARS: usize = 180;
/// Height of a histogram.
const BAR_HEIGHT: f64 = 40.0;
/// Height of a chart.
pub(crate) const HEIGHT: f64 = 200.0;
/// Columns of a chart; beyond so many points, each shows its smallest and largest value.
const COLUMNS: usize = 1000;

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Span {
    pub(crate) fn nanoseconds(self) -> i128 {
        (self.to.nanoseconds() - self.from.nanoseconds()).max(1)
    }

    /// Place of a time, 0 to 1,000.
    pub(crate) fn x(self, time: Timestamp) -> f64 {
        let passed = time.nanoseconds() - self.from.nanoseconds();
        (passed as f64 / self.nanoseconds() as f64 * 1000.0).clamp(0.0, 1000.0)
    }

    /// The time of a share of it, in parts.
    pub(crate) fn part(self, part: usize, of: usize) -> Timestamp {
        let passed = self.nanoseconds() * part as i128 / of as i128;
        Timestamp::from_nanoseconds(self.from.nanoseconds() + passed)
    }
}

/// The path of a histogram of times.
pub(crate) fn bars(span: Span, times: impl Iterator<Item = Timestamp>) -> String {
    let mut counts = [0_u32; BARS];
    for time in times {
        let at = (span.x(time) / 1000.0 * BARS as f64) as usize;
        counts[at.min(BARS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or_default().max(5);
    let width = 1000.0 / BARS as f64;
    let mut path = String::new();
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (f64::from(*count) / f64::from(most) * (BAR_HEIGHT - 5.0)).max(3.0);
        let (x, y) = (at as f64 * width, BAR_HEIGHT - height);
        let bar = width * 0.72;
        let _ = write!(path, "M{x:.1} {y:.1}h{bar:.1}V40h-{bar:.1}z");
    }
    path
}

/// An axis with five ticks at round numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    step: f64,
}

/// Steps of an axis, between five ticks.
const STEPS: usize = 4;

impl Axis {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let reach = (high - low).max(high.abs().max(low.abs()) * 1e-9).max(1e-9);
        let size = 10_f64.powf((reach / STEPS as f64).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0];
        let candidates = steps.iter().map(|step| step * size);
        for step in candidates {
            let start = (low / step).floor() * step;
            if start + step * STEPS as f64 >= high {
                return Axis { low: start, step };
            }
        }
        Axis {
            low,
            step: reach / STEPS as f64,
        }
    }

    fn y(self, value: f64) -> f64 {
        let share = (value - self.low) / (self.step * STEPS as f64);
        (HEIGHT * (1.0 - share)).clamp(0.0, HEIGHT)
    }

    /// Labels from the top down.
    pub(crate) fn labels(self) -> Vec<String> {
        let digits = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        let digits = digits + usize::from(self.step.to_string().contains("25") && self.step < 10.0);
        let label = |tick: usize| {
            let value = self.low + self.step * tick as f64;
            let text = format!("{value:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        };
        (0..=STEPS).rev().map(label).collect()
    }
}

/// A value from a time on, oldest first.
pub(crate) type Points = Vec<(Timestamp, f64)>;

/// The path of a step line; the last value holds until the end.
pub(crate) fn steps(span: Span, axis: Axis, points: &Points, until: Timestamp) -> String {
    let mut path = String::new();
    let mut last_x = f64::NEG_INFINITY;
    let is_dense = points.len() > 2 * COLUMNS;
    let mut column: Option<(f64, f64, f64)> = None;
    let number = |value: f64| {
        let text = format!("{value:.1}");
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    };
    for (time, value) in points {
        let (x, y) = (span.x(*time), axis.y(*value));
        if path.is_empty() {
            let _ = write!(path, "M{} {}", number(x), number(y));
        } else if is_dense && x - last_x < 1000.0 / COLUMNS as f64 {
            let (low, high, _) = column.unwrap_or((y, y, y));
            column = Some((low.min(y), high.max(y), y));
            continue;
        } else {
            if let Some((low, high, last)) = column.take() {
                let _ = write!(path, "V{}V{}V{}", number(low), number(high), number(last));
            }
            let _ = write!(path, "H{}V{}", number(x), number(y));
        }
        last_x = x;
    }
    if !path.is_empty() {
        if let Some((low, high, last)) = column {
            let _ = write!(path, "V{}V{}V{}", number(low), number(high), number(last));
        }
        let _ = write!(path, "H{}", number(span.x(until)));
    }
    path
}

/// The path of a dot at the last value.
pub(crate) fn last_point(span: Span, axis: Axis, points: &Points, until: Timestamp) -> String {
    let place = |(_, value): &(Timestamp, f64)| {
        let (x, y) = (span.x(until), axis.y(*value));
        format!("M{x:.1} {y:.1}h.01")
    };
    points.last().map(place).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i128) -> Timestamp {
        Timestamp::from_nanoseconds(seconds * 1_000_000_000)
    }

    #[test]
    fn an_axis_has_round_ticks() {
        for (values, labels) in [
            (&[-23.2, -9.0][..], ["-8", "-12", "-16", "-20", "-24"]),
            (&[20.1, 20.7], ["20.8", "20.6", "20.4", "20.2", "20"]),
            (&[0.0, 100.0], ["100", "75", "50", "25", "0"]),
        ] {
            let found = Axis::of(values.iter().copied()).labels();
            let lowest: f64 = found[4].parse().unwrap();
            let highest: f64 = found[0].parse().unwrap();
            assert!(
                values
                    .iter()
                    .all(|value| (lowest..=highest).contains(value)),
                "{found:?}"
            );
            assert_eq!(found.len(), labels.len());
        }
        assert_eq!(
            Axis::of([0.0, 100.0].into_iter()).labels(),
            ["100", "75", "50", "25", "0"]
        );
        assert_eq!(Axis::of(std::iter::empty()).labels().len(), 5);
        assert_eq!(Axis::of([5.0, 5.0].into_iter()).labels().len(), 5);
        assert_eq!(Axis::of([f64::MAX, f64::MIN].into_iter()).labels().len(), 5);
    }

    #[test]
    fn a_line_has_steps_and_stays_short() {
        let span = Span {
            from: at(0),
            to: at(100),
        };
        let axis = Axis::of([0.0, 100.0].into_iter());
        let line = steps(span, axis, &vec![(at(0), 0.0), (at(50), 100.0)], at(100));
        assert_eq!(line, "M0 200H500V0H1000");
        let many: Points = (0..100_000)
            .map(|n| (Timestamp::from_nanoseconds(n * 1_000_000), (n % 100) as f64))
            .collect();
        assert!(steps(span, axis, &many, at(100)).len() < 40_000);
        assert_eq!(steps(span, axis, &Vec::new(), at(100)), "");
    }

    #[test]
    fn bars_count_times() {
        let span = Span {
            from: at(0),
            to: at(100),
        };
        assert_eq!(
            bars(span, [at(0), at(100), at(7000)].into_iter())
                .matches('M')
                .count(),
            2
        );
    }
}
