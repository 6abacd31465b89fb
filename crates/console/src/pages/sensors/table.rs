//! The table of sensors. Those that are lost come first.

use antumbra_service::sensors::{Connection, SensorWithState, State};
use maud::{Markup, html};

use super::model::{Listed, READ};
use super::{connection, here};
use crate::components::{Tone, badge, cut, cut_at, number};
use crate::time;
use crate::view::View;

/// Rows of the table.
const ROWS: usize = 100;

pub(super) fn table(view: &View, listed: &Listed, sensors: &[&SensorWithState]) -> Markup {
    let of = |wanted: Connection| -> Vec<&SensorWithState> {
        let with = sensors
            .iter()
            .filter(|sensor| connection(sensor) == Some(wanted));
        let mut with: Vec<&SensorWithState> = with.copied().collect();
        with.sort_by_key(|sensor| sensor.state.as_ref().and_then(|state| state.last_seen));
        with
    };
    let groups = [
        ("Lost", of(Connection::Lost)),
        ("Never seen", of(Connection::Never)),
        ("Online", of(Connection::Online)),
    ];
    // Beside a sensor there is less room.
    let is_narrow = view.get("id").is_some();
    let mut left = ROWS;
    html! {
        section.panel #sensors data-part="sensors" {
            table.fixed {
                colgroup {
                    col;
                    col class=(if is_narrow { "w6 p1" } else { "w11 p1" });
                    @if !is_narrow { col class="w4 p1"; }
                    col class="w6"; col class="w6"; col class="w11 p1";
                }
                thead { tr {
                    th { "Sensor" } th class="p1" { "Place" } @if !is_narrow { th class="p1" { "Type" } } th { "State" } th { "Last seen" }
                    th class="p1" { "Silence" }
                } }
                @for (title, rows) in &groups {
                    @let shown = rows.len().min(left);
                    @let () = left -= shown;
                    @if shown > 0 {
                        tbody {
                            tr.group { th colspan="3" scope="rowgroup" { (title) " " span.mute { (number(rows.len() as i64)) } } }
                            @for sensor in rows.iter().take(shown) { (row(view, sensor)) }
                        }
                    }
                }
            }
            footer {
                span {
                    @if sensors.len() > ROWS { (ROWS) " of " (number(sensors.len() as i64)) " shown; choose a floor or a room" }
                    @else { "Lost first, then by last contact" }
                }
                @if let Some(next) = &listed.next { a class="btn small push" href=(here(view, &[("cursor", &next.0)])) { "Read the next " (number(READ as i64)) } }
            }
        }
    }
}

fn row(view: &View, sensor: &SensorWithState) -> Markup {
    let id = sensor.sensor.id.as_str();
    let state = sensor.state.as_ref();
    let is_lost = connection(sensor) == Some(Connection::Lost);
    let place = sensor.sensor.location.as_ref();
    let is_in_building = view.get("building").is_some();
    let place = place.map_or(String::new(), |place| match is_in_building {
        true => format!("{} / {}", place.floor, place.room),
        false => format!("{} / {} / {}", place.building, place.floor, place.room),
    });
    html! {
        tr id={ "s-" (id) } data-row aria-current=[(view.get("id") == Some(id)).then_some("true")] {
            td { a.mono href=(here(view, &[("id", id)])) { bdi { (cut(id)) } } span.sub.only-narrow { bdi { (cut(&place)) } } }
            td class="p1 soft" title=(cut(&place)) { bdi { (cut(&place)) } }
            @if view.get("id").is_none() { td class="p1 soft" { bdi { (cut(sensor.sensor.sensor_type.as_str())) } } }
            @match state.and_then(|state| state.value.as_ref()) {
                Some(value) => td class={ "val" @if is_lost { " mute" } } { bdi { (cut_at(&value.to_string(), 40)) } },
                None => td.mute { "none" },
            }
            td class=(if is_lost { "bad" } else { "soft" }) {
                @match state.and_then(|state| state.last_seen) { Some(seen) => (view.ago(seen)), None => span.mute { "never" } }
            }
            td class="p1 mute" { @if let Some(state) = state { (silence(view, state)) } }
        }
    }
}

/// Time for which a sensor has been silent, of the time that it may be.
pub(super) fn silence(view: &View, state: &State) -> Markup {
    let allowed = i128::from(state.silence_after.as_seconds());
    match (state.connection, state.last_seen) {
        (Connection::Lost, _) => {
            let since = state.lost_at.unwrap_or(state.deadline);
            let text = format!("lost {}", time::age(view.now, since));
            html! { span data-aging { (badge(Tone::Bad, text)) } }
        }
        (_, None) => {
            let text = format!("registered {}", time::age(view.now, state.registered_at));
            html! { span data-aging { (badge(Tone::Warn, text)) } }
        }
        (_, Some(seen)) => {
            let silent = (view.now.nanoseconds() - seen.nanoseconds()).max(0) / 1_000_000_000;
            let (unit, word) = match allowed {
                ..120 => (1, "s"),
                120..7200 => (60, "min"),
                7200..172_800 => (3600, "h"),
                _ => (86_400, "d"),
            };
            let text = format!("{} of {} {word}", silent / unit, allowed / unit);
            html! {
                span data-aging { meter min="0" max=(allowed) low=(allowed * 2 / 3) high=((allowed - 1).max(1)) optimum="0" value=(silent)
                    aria-label={ "Silent for " (text) } {}
                " " (text) }
            }
        }
    }
}
