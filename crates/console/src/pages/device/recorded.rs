//! The recorded changes in the span of the time bar: all of them briefly, for histogram and chart, and those around the
//! time that is shown with their values, for the timeline.

use antumbra_service::history::{ChangeQuery, RecordedChange, StoredChange};
use antumbra_service::shadows::{Shadow, ShadowId};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Document, State, Timestamp};

use super::plot::{self, SERIES};
use super::timeline;
use crate::chart::{Points, Span};
use crate::matches::MatchesByTime;
use crate::view::View;

/// Changes of the timeline, before similar ones fold.
const SHOWN: usize = 40;
/// Changes above the one that is shown.
const LATER: usize = 3;
/// Changes of a page that are searched for a path, and such pages.
const SEARCHED: usize = 1000;
const SEARCHES: usize = 10;

/// The recorded changes in the span of the time bar.
pub(super) struct Recorded {
    /// Changes around the time that is shown, newest first.
    pub(super) shown: Vec<RecordedChange>,
    /// There are older changes in the span than those.
    pub(super) has_older: bool,
    /// All changes of the span, newest first.
    pub(super) all: Vec<(Timestamp, Brief)>,
    /// Time before which changes of the span were not read; `None` if all were read.
    pub(super) stopped: Option<Timestamp>,
    /// Numbers that can be charted, and those that are.
    pub(super) choices: Vec<String>,
    pub(super) fields: Vec<String>,
    /// Registrations that match the changes that are shown.
    pub(super) matches: MatchesByTime,
}

/// A change, by what histogram and chart show of it.
pub(super) struct Brief {
    /// It changed nothing but desired.
    pub(super) is_desired: bool,
    samples: Vec<Sample>,
}

/// A number before and after a change.
struct Sample {
    line: usize,
    old: Option<f64>,
    new: Option<f64>,
}

/// A line of the chart.
struct Line<'a> {
    state: State,
    field: &'a str,
}

/// Reads the changes. `at` is the time that the page shows, if it is not now, and `shadow` the state then.
pub(super) async fn load(
    view: &View,
    id: &ShadowId,
    span: Span,
    at: Option<Timestamp>,
    shadow: Option<&Shadow>,
) -> Result<Option<Recorded>, StoreError> {
    let Some(history) = &view.console.services.history else {
        return Ok(None);
    };
    let path = timeline::shown_path(view);
    let query = ChangeQuery {
        shadow: id.clone(),
        from: Some(span.from),
        to: Some(at.unwrap_or(span.to)),
        path: path.map(str::to_owned),
    };
    let (mut shown, has_older) = newest(view, &query).await?;
    let choices = shadow.map(plot::choices).unwrap_or_default();
    let mut fields: Vec<String> = view
        .get_all("chart")
        .take(SERIES)
        .map(str::to_owned)
        .collect();
    if fields.is_empty() {
        fields.extend(plot::most_changed(&shown, &choices));
    }
    let lines = lines(&fields);
    let limit = view.console.device_changes;
    let scan = history.scan(id, [span.from, span.to], limit, view.now, |change| {
        brief(&change, &lines)
    });
    let scan = scan.await?;
    // Where the scan stopped before it, the next changes are not known.
    if let Some(at) = at.filter(|at| scan.stopped.is_none_or(|stopped| stopped <= *at)) {
        let times = scan.rows.iter().rev().map(|(time, _)| *time);
        let later: Vec<Timestamp> = times.filter(|time| *time > at).take(LATER).collect();
        if let Some(to) = later.last() {
            let query = ChangeQuery {
                from: later.first().copied(),
                to: Some(*to),
                ..query
            };
            let (mut later, _) = newest(view, &query).await?;
            later.append(&mut shown);
            shown = later;
        }
    }
    Ok(Some(Recorded {
        matches: matches(view, id, at, &shown).await,
        shown,
        has_older,
        all: scan.rows,
        stopped: scan.stopped,
        choices,
        fields,
    }))
}

/// The newest changes with their values, and whether there are older ones.
async fn newest(
    view: &View,
    query: &ChangeQuery,
) -> Result<(Vec<RecordedChange>, bool), StoreError> {
    let Some(history) = &view.console.services.history else {
        return Ok((Vec::new(), false));
    };
    // With a path, most of the changes that are read may be left out.
    let (limit, pages) = match query.path {
        Some(_) => (SEARCHED, SEARCHES),
        None => (SHOWN, 2),
    };
    let (mut rows, mut next) = (Vec::new(), None);
    for _ in 0..pages {
        let page = history
            .changes(query, limit, next.as_ref(), view.now)
            .await?;
        rows.extend(page.rows);
        next = page.next;
        if next.is_none() || rows.len() >= SHOWN {
            break;
        }
    }
    let has_older = next.is_some() || rows.len() > SHOWN;
    rows.truncate(SHOWN);
    Ok((rows, has_older))
}

/// Registrations that match. On AWS only for the change that is selected.
async fn matches(
    view: &View,
    id: &ShadowId,
    at: Option<Timestamp>,
    shown: &[RecordedChange],
) -> MatchesByTime {
    let mut times = shown.iter().map(|change| change.time);
    let range = match view.console.place.registrations {
        None => times
            .next()
            .map(|newest| [times.next_back().unwrap_or(newest), newest]),
        Some(_) => at
            .and_then(|at| times.find(|time| *time <= at))
            .map(|time| [time, time]),
    };
    let Some(range) = range else {
        return MatchesByTime::new();
    };
    let matcher = &view.console.matcher;
    matcher.recorded(view, id, range, SHOWN).await
}

/// The lines of a chart: the fields as they are reported, and the first one as it is desired.
fn lines(fields: &[String]) -> Vec<Line<'_>> {
    let reported = fields.iter().map(|field| Line {
        state: State::Reported,
        field,
    });
    let desired = fields.first().map(|field| Line {
        state: State::Desired,
        field,
    });
    reported.chain(desired).collect()
}

fn brief(change: &StoredChange, lines: &[Line<'_>]) -> Brief {
    let mut samples = Vec::new();
    for document in &change.documents {
        let of_state = lines.iter().enumerate();
        let of_state = of_state.filter(|(_, line)| line.state == document.state);
        for (line, Line { field, .. }) in of_state {
            match (&document.diff, &document.document) {
                (Some(diff), _) => {
                    for (pointer, old, new) in diff.replaced() {
                        if let Some(rest) = plot::inside(pointer, field) {
                            let number = |json: Option<&str>| number_at(json?, rest);
                            let (old, new) = (number(old), number(new));
                            samples.push(Sample { line, old, new });
                        }
                    }
                }
                (None, Some(new)) => {
                    let new = plot::number_of(new, field);
                    samples.extend(new.map(|_| Sample {
                        line,
                        old: None,
                        new,
                    }));
                }
                (None, None) => {}
            }
        }
    }
    let mut documents = change.documents.iter();
    Brief {
        is_desired: documents.all(|document| document.state == State::Desired),
        samples,
    }
}

fn number_at(json: &str, rest: &str) -> Option<f64> {
    if rest.is_empty() {
        return json.parse().ok();
    }
    let document = Document::parse(&format!("{{\"v\":{json}}}")).ok()?;
    plot::number_of(&document, &format!("/v{rest}"))
}

impl Recorded {
    /// The values of a line of the chart over the span, oldest first. `held` is its value in the state that is shown.
    pub(super) fn points(&self, line: usize, span: Span, held: Option<f64>) -> Points {
        let mut points = Points::new();
        let mut before = None;
        for (time, brief) in &self.all {
            for sample in brief.samples.iter().filter(|sample| sample.line == line) {
                points.extend(sample.new.map(|value| (*time, value)));
                before = sample.old;
            }
        }
        points.reverse();
        // A value that did not change in the span had it all along.
        if points.is_empty() && before.is_none() {
            before = held;
        }
        if let Some(value) = before {
            let from = self.stopped.unwrap_or(span.from);
            points.insert(0, (from, value));
        }
        points
    }

    /// The times of the changes before and after a time; without one, before the newest change.
    pub(super) fn neighbours(&self, at: Option<Timestamp>) -> [Option<Timestamp>; 2] {
        let mut times = self.all.iter().map(|(time, _)| *time);
        match at {
            Some(at) => {
                let mut shown = self.shown.iter().map(|change| change.time);
                let previous = times.clone().find(|time| *time < at);
                let previous = shown.find(|time| *time < at).max(previous);
                let is_read = self.stopped.is_none_or(|stopped| stopped <= at);
                [previous, times.rfind(|time| *time > at && is_read)]
            }
            // The newest change made the state that is shown.
            None => {
                let newest = times.next();
                [times.find(|time| Some(*time) != newest).or(newest), None]
            }
        }
    }
}
