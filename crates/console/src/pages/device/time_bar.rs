//! The time bar: changes over time, and the time that the page shows.

use antumbra_shadow::Timestamp;
use maud::{Markup, html};

use super::recorded::Recorded;
use super::{Device, RANGES};
use crate::chart::{Span, bars};
use crate::components::{counted, live_state};
use crate::time;
use crate::view::View;

/// Ticks below the bar.
const TICKS: usize = 6;
/// Steps of the slider.
const SLIDER: usize = 1000;

pub(super) fn panel(view: &View, device: &Device, recorded: &Recorded) -> Markup {
    let at = device.at();
    let [previous, next] = recorded.neighbours(at);
    let span = device.span;
    let shown = at.map_or("now".to_owned(), |at| view.exact_text(at));
    let times = recorded.all.iter().map(|(time, _)| *time);
    let wanted = recorded.all.iter();
    let wanted = wanted.filter(|(_, brief)| brief.is_desired);
    let wanted = wanted.map(|(time, _)| *time);
    let text = format!(
        "{} from {} to {}",
        counted(recorded.all.len(), "change", "changes"),
        view.exact_text(recorded.stopped.unwrap_or(span.from)),
        view.exact_text(span.to)
    );
    let thumb = (span.x(at.unwrap_or(span.to)) * SLIDER as f64 / 1000.0).round() as usize;
    html! {
        section.panel.timebar #timebar aria-label="Time" {
            form.filter method="get" action="/device" {
                (view.kept(&["id", "name", "range", "tz", "time", "chart", "fields"]))
                span {
                    (step(view, previous, "prev", "[", "‹ Previous")) " "
                    (step(view, next, "next", "]", "Next ›"))
                }
                label { "State at "
                    input.field.mono name="at" value=(shown) size="11" title="A time (14:05), an age (-10m) or a date and time"; }
                button.btn { "Show" }
                @if at.is_some() { a.btn.primary href=(view.with(&[("at", "")])) aria-keyshortcuts="n" { "Back to now" } }
                @else {
                    span.soft { (live_state("Now, live")) }
                    button.btn.quiet type="button" data-pause aria-keyshortcuts="p" aria-pressed="false" hidden { "Pause" }
                }
                @if let Some(stopped) = recorded.stopped {
                    span.warn { "read back to " (view.at(stopped)) }
                }
                span.legend.push.p2 {
                    span { (swatch("bars")) "changes" }
                    span { (swatch("bars-want")) "of desired" }
                }
                nav.seg aria-label="Range" {
                    @for range in RANGES {
                        a href=(view.with(&[("range", range.name)])) aria-current=[(range.name == device.range.name).then_some("true")] { (range.title) }
                    }
                }
            }
            div.plot {
                svg viewBox="0 0 1000 40" preserveAspectRatio="none" role="img" aria-label=(text) {
                    path.bars d=(bars(span, times)) {}
                    path.bars-want d=(bars(span, wanted)) {}
                }
                input.scrub type="range" min="0" max=(SLIDER) step="1" value=(thumb) aria-label="State at"
                    aria-valuetext=(shown) data-slider=(view.with(&[("at", "")]))
                    data-from=(milliseconds(span.from)) data-to=(milliseconds(span.to));
                ol.x aria-hidden="true" { @for tick in ticks(view, span) { li { (tick) } } }
            }
        }
    }
}

fn milliseconds(time: Timestamp) -> i128 {
    time.nanoseconds().div_euclid(1_000_000)
}

fn step(view: &View, to: Option<Timestamp>, rel: &str, key: &str, text: &str) -> Markup {
    html! {
        @match to {
            Some(to) => a.btn rel=(rel) href=(view.with(&[("at", &to.to_string())])) aria-keyshortcuts=(key) { (text) span.sr { " change" } },
            None => button.btn type="button" disabled { (text) span.sr { " change" } },
        }
    }
}

fn swatch(class: &str) -> Markup {
    html! { svg.sw viewBox="0 0 4 8" aria-hidden="true" { path class=(class) d="M0 0h4v8h-4z" {} } }
}

/// Labels at equal distances.
pub(super) fn ticks(view: &View, span: Span) -> Vec<String> {
    let hours = span.nanoseconds() / 3_600_000_000_000;
    let format = if hours > 48 { "%m-%d" } else { "%H:%M" };
    let label = |tick| {
        let zoned = time::zoned(span.part(tick, TICKS), &view.zone);
        zoned.map_or(String::new(), |zoned| zoned.strftime(format).to_string())
    };
    (0..=TICKS).map(label).collect()
}
