//! Numbers over time as a picture in the terminal, with dots of Braille characters: two a column and four a line.

use antumbra_service::sensors::{Reading, Value};
use antumbra_shadow::Timestamp;

use crate::output::{FAINT, GOOD, styled};

/// Lines of the picture.
const LINES: usize = 10;
/// Fewest columns of the picture, in a narrow terminal.
const COLUMNS: usize = 10;
/// The first Braille character; its bits are the dots.
const BRAILLE: u32 = 0x2800;
/// Bits of the dots, by column and line.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Draws readings of any order in this many columns; `None` if none of them has a number.
pub(crate) fn plot(readings: &[Reading], width: usize) -> Option<String> {
    draw(readings.iter().filter_map(point).collect(), width)
}

/// Draws values by their time in nanoseconds, in any order; `None` if there are none.
pub(crate) fn draw(mut points: Vec<(i128, f64)>, width: usize) -> Option<String> {
    points.sort_by_key(|(time, _)| *time);
    let ((start, _), (end, _)) = (*points.first()?, *points.last()?);
    let values = points.iter().map(|(_, value)| *value);
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let labels = [high, (low + high) / 2.0, low].map(label);
    let margin = labels.iter().map(|label| label.chars().count()).max()?;
    let columns = width.saturating_sub(margin + 2).max(COLUMNS);

    let mut picture = Picture::new(columns);
    let x = |time: i128| scaled((time - start) as f64, (end - start) as f64, columns * 2);
    let y = |value: f64| scaled(value - low, high - low, LINES * 4);
    let mut before: Option<(usize, usize)> = None;
    for (time, value) in &points {
        let (x, y) = (x(*time), y(*value));
        // A value holds until the next reading.
        if let Some((x0, y0)) = before {
            (x0..=x).for_each(|x| picture.set(x, y0));
            (y0.min(y)..=y0.max(y)).for_each(|y| picture.set(x, y));
        }
        picture.set(x, y);
        before = Some((x, y));
    }

    let mut text = String::new();
    for (at, line) in picture.lines().into_iter().enumerate() {
        let (label, tick) = match at {
            0 => (labels[0].as_str(), '┤'),
            at if at == LINES / 2 && low < high => (labels[1].as_str(), '┤'),
            at if at == LINES - 1 => (labels[2].as_str(), '┤'),
            _ => ("", '│'),
        };
        let axis = styled(FAINT, &format!("{label:>margin$} {tick}"));
        text.push_str(&format!(
            "{axis}{}\n",
            styled(GOOD, line.trim_end_matches('\u{2800}'))
        ));
    }
    let indent = " ".repeat(margin + 1);
    text.push_str(&styled(FAINT, &format!("{indent}└{}", "─".repeat(columns))));
    let [start, end] = [start, end].map(|time| Timestamp::from_nanoseconds(time).to_string());
    let gap = columns.saturating_sub(start.chars().count() + end.chars().count());
    let times = match gap {
        0 => format!("{start} to {end}"),
        gap => format!("{start}{}{end}", " ".repeat(gap)),
    };
    text.push_str(&format!("\n{indent} {}", styled(FAINT, &times)));
    Some(text)
}

/// Time in nanoseconds and value of a reading that has a number.
fn point(reading: &Reading) -> Option<(i128, f64)> {
    let value = match &reading.value {
        Value::Number(text) => text.parse().ok()?,
        Value::Boolean(value) => f64::from(u8::from(*value)),
        Value::Text(_) => return None,
    };
    Some((reading.moment.time().nanoseconds(), value))
}

/// The dot of a distance among this many dots; the middle one if there is no distance.
fn scaled(distance: f64, whole: f64, dots: usize) -> usize {
    let last = dots - 1;
    match whole > 0.0 {
        true => ((distance / whole * last as f64).round() as usize).min(last),
        false => last / 2,
    }
}

/// A number that fits the margin.
fn label(value: f64) -> String {
    let plain = format!("{value:.2}");
    let plain = plain.trim_end_matches('0').trim_end_matches('.');
    match plain.len() <= 10 && (value == 0.0 || value.abs() >= 0.01) {
        true => plain.to_owned(),
        false => format!("{value:.2e}"),
    }
}

struct Picture {
    columns: usize,
    dots: Vec<u32>,
}

impl Picture {
    fn new(columns: usize) -> Picture {
        Picture {
            columns,
            dots: vec![0; columns * LINES],
        }
    }

    /// Sets a dot; line 0 is at the bottom.
    fn set(&mut self, x: usize, y: usize) {
        let down = LINES * 4 - 1 - y;
        self.dots[down / 4 * self.columns + x / 2] |= DOTS[x % 2][down % 4];
    }

    fn lines(&self) -> Vec<String> {
        let character = |dots: &u32| char::from_u32(BRAILLE + dots).unwrap_or(' ');
        let lines = self.dots.chunks(self.columns);
        lines
            .map(|line| line.iter().map(character).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(minute: usize, value: Value) -> Reading {
        let time = Timestamp::parse(&format!("2026-01-31T12:{minute:02}:00Z"));
        Reading::new(value, None, time.unwrap(), None).unwrap()
    }

    fn number(minute: usize, text: &str) -> Reading {
        reading(minute, Value::number(text).unwrap())
    }

    /// The picture without colours, as it is in a file.
    fn drawn(readings: &[Reading], width: usize) -> String {
        let picture = plot(readings, width).unwrap();
        anstream::adapter::strip_str(&picture).to_string()
    }

    #[test]
    fn numbers_are_drawn_by_time() {
        let values = ["-18", "-17.5", "-12", "-3.25", "-9", "-18", "-18"];
        let mut readings: Vec<Reading> = values
            .iter()
            .enumerate()
            .map(|(at, text)| number(at * 5, text))
            .collect();
        // Pages of the newest readings are in descending order.
        readings.reverse();
        readings.push(reading(3, Value::text("starting").unwrap()));
        assert_eq!(
            drawn(&readings, 60),
            include_str!("../testdata/plot-numbers.txt").trim_end()
        );
    }

    #[test]
    fn booleans_are_drawn_as_0_and_1() {
        let values = [false, true, true, false, true];
        let readings: Vec<Reading> = values
            .iter()
            .enumerate()
            .map(|(at, value)| reading(at, Value::Boolean(*value)))
            .collect();
        assert_eq!(
            drawn(&readings, 60),
            include_str!("../testdata/plot-booleans.txt").trim_end()
        );
    }

    #[test]
    fn pictures_fit_the_terminal_and_show_one_value_too() {
        for width in [40, 80, 200] {
            let picture = drawn(&[number(1, "1e30"), number(2, "-0.001")], width);
            let longest = picture.lines().map(|line| line.chars().count()).max();
            assert!(
                longest <= Some(width + 40) && longest >= Some(width.min(40)),
                "{picture}"
            );
        }
        let one = drawn(&[number(1, "7")], 40);
        assert_eq!(one.lines().count(), LINES + 2, "{one}");
        assert!(one.contains("7 ┤") && one.chars().any(|c| c > '\u{2800}' && c <= '\u{28ff}'));
        assert_eq!(plot(&[reading(1, Value::text("open").unwrap())], 40), None);
        assert_eq!(plot(&[], 40), None);
    }
}
