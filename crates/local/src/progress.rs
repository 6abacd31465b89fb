//! Progress of long operations on standard error: a bar on a terminal, lines of JSON elsewhere. Quick operations show
//! none.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time after which a bar appears and is drawn again.
const REDRAW: Duration = Duration::from_millis(200);
/// Time after which a line of JSON is written.
const LINE: Duration = Duration::from_secs(1);
/// Width of a terminal that does not tell it.
const WIDTH: usize = 80;
/// Most and fewest characters of the bar itself.
const BAR: std::ops::RangeInclusive<usize> = 10..=40;

/// Progress that is shown while it is alive.
#[derive(Debug)]
pub struct Progress(Mutex<Meter>);

impl Progress {
    /// Starts at 0 of the unit, a plural such as "deliveries queued"; the number of all is not known.
    pub fn new(unit: &'static str) -> Progress {
        Progress::start(unit, None)
    }

    /// Starts at 0 of this number.
    pub fn of(total: usize, unit: &'static str) -> Progress {
        Progress::start(unit, Some(total))
    }

    fn start(unit: &'static str, total: Option<usize>) -> Progress {
        let form = match std::io::stderr().is_terminal() {
            true => Form::Bar(width()),
            false => Form::Lines,
        };
        Progress(Mutex::new(Meter::new(form, unit, total, Instant::now())))
    }

    pub fn add(&self, count: usize) {
        let text = self.meter().add(count, Instant::now());
        write(text);
    }

    /// Removes the bar, so that other lines can be printed. It appears again with the next step.
    pub fn clear(&self) {
        let text = self.meter().clear();
        write(text);
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let text = self.meter().end(Instant::now());
        write(text);
    }
}

fn write(text: Option<String>) {
    if let Some(text) = text {
        // Ignore the error: standard error is closed.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Columns of the terminal.
pub fn width() -> usize {
    let size = terminal_size::terminal_size();
    size.map_or(WIDTH, |(width, _)| usize::from(width.0))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A bar on a terminal of this width.
    Bar(usize),
    /// Lines of JSON.
    Lines,
}

/// The lines to show and their times, without a clock and a terminal.
#[derive(Debug)]
struct Meter {
    form: Form,
    unit: &'static str,
    total: Option<usize>,
    done: usize,
    started: Instant,
    shown: Instant,
    /// A bar is on the terminal, or lines were written.
    is_visible: bool,
}

impl Meter {
    fn new(form: Form, unit: &'static str, total: Option<usize>, now: Instant) -> Meter {
        Meter {
            form,
            unit,
            total,
            done: 0,
            started: now,
            shown: now,
            is_visible: false,
        }
    }

    fn add(&mut self, count: usize, now: Instant) -> Option<String> {
        self.done += count;
        let interval = match self.form {
            Form::Bar(_) => REDRAW,
            Form::Lines => LINE,
        };
        if now.duration_since(self.shown) < interval {
            return None;
        }
        self.shown = now;
        self.is_visible = true;
        Some(self.text(now))
    }

    fn clear(&mut self) -> Option<String> {
        let has_bar = self.form != Form::Lines && self.is_visible;
        has_bar.then(|| {
            self.is_visible = false;
            "\r\x1b[K".to_owned()
        })
    }

    /// The last line, if there were others; or the end of the bar.
    fn end(&mut self, now: Instant) -> Option<String> {
        match self.form {
            Form::Bar(_) => self.clear(),
            Form::Lines => self.is_visible.then(|| self.text(now)),
        }
    }

    fn text(&self, now: Instant) -> String {
        let elapsed = now.duration_since(self.started);
        match self.form {
            Form::Bar(width) => format!("\r{}\x1b[K", self.bar(elapsed, width)),
            Form::Lines => {
                let seconds = elapsed.as_millis() as f64 / 1000.0;
                let mut line = serde_json::json!({
                    "progress": self.unit, "done": self.done, "seconds": seconds,
                });
                if let Some(total) = self.total {
                    line["total"] = total.into();
                }
                format!("{line}\n")
            }
        }
    }

    /// One line that fits the terminal.
    fn bar(&self, elapsed: Duration, width: usize) -> String {
        let seconds = elapsed.as_secs_f64().max(0.001);
        let rate = self.done as f64 / seconds;
        let Some(total) = self.total.filter(|total| *total >= self.done && *total > 0) else {
            let text = format!("{} {}, {rate:.0} a second", self.done, self.unit);
            return text.chars().take(width).collect();
        };
        let mut text = format!(" {} of {total} {}", self.done, self.unit);
        if self.done > 0 {
            let left = (total - self.done) as f64 / rate;
            let _ = write!(text, ", {left:.0} s left");
        }
        // Two brackets, and the last column, which makes some terminals go to the next line.
        let room = width.saturating_sub(text.chars().count() + 3);
        if room < *BAR.start() {
            return text.trim_start().chars().take(width).collect();
        }
        let room = room.min(*BAR.end());
        let filled = self.done * room / total;
        format!(
            "[{}{}]{text}",
            "#".repeat(filled),
            ".".repeat(room - filled)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_terminal_shows_a_bar_that_disappears() {
        let start = Instant::now();
        let mut meter = Meter::new(Form::Bar(80), "lines imported", Some(1000), start);
        assert_eq!(
            meter.add(100, after(start, 10)),
            None,
            "quick operations show none"
        );
        let bar = meter.add(150, after(start, 1000)).unwrap();
        let expected =
            "[##########..............................] 250 of 1000 lines imported, 3 s left";
        assert_eq!(bar, format!("\r{expected}\x1b[K"));
        assert!(expected.chars().count() < 80);
        assert_eq!(
            meter.add(1, after(start, 1100)),
            None,
            "not more often than needed"
        );
        assert_eq!(meter.end(after(start, 1100)).unwrap(), "\r\x1b[K");
        let mut unknown = Meter::new(Form::Bar(80), "deliveries queued", None, start);
        let bar = unknown.add(500, after(start, 2000)).unwrap();
        assert_eq!(bar, "\r500 deliveries queued, 250 a second\x1b[K");
    }

    #[test]
    fn a_bar_fits_every_terminal() {
        let start = Instant::now();
        for width in 0..200 {
            let mut meter = Meter::new(Form::Bar(width), "lines imported", Some(3), start);
            let bar = meter.add(3, after(start, 1000)).unwrap();
            let bar = bar.trim_start_matches('\r').trim_end_matches("\x1b[K");
            assert!(bar.chars().count() <= width.max(1), "{width}: {bar}");
        }
    }

    #[test]
    fn elsewhere_there_are_lines_of_json() {
        let start = Instant::now();
        let mut meter = Meter::new(Form::Lines, "messages moved", Some(30), start);
        assert_eq!(meter.add(1, after(start, 900)), None);
        let line = meter.add(9, after(start, 1500)).unwrap();
        let expected = r#"{"done":10,"progress":"messages moved","seconds":1.5,"total":30}"#;
        assert_eq!(line, format!("{expected}\n"));
        assert_eq!(meter.clear(), None);
        meter.add(20, after(start, 1600));
        let last = meter.end(after(start, 2000)).unwrap();
        assert!(last.contains(r#""done":30"#), "{last}");
        let mut quick = Meter::new(Form::Lines, "messages moved", Some(30), start);
        quick.add(30, after(start, 100));
        assert_eq!(quick.end(after(start, 200)), None);
    }
}
