//! `/sensors`: sensors by city, building, floor and room. Those that are lost come first.
//!
//! A sensor's events are recorded as deliveries to its clients, from which its occurrences are shown.

mod chart;
mod inspector;
mod map;
mod model;
mod table;

use std::sync::Arc;

use antumbra_service::sensors::{Connection, LocationPrefix, SensorWithState};
use antumbra_wire::items::ItemKind;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use crate::components::{cmd, command, empty, error_note, live_state, number, quoted};
use crate::live::{ChangedItem, Parts, live_text};
use crate::state::Console;
use crate::view::{Nav, View};
use inspector::inspector;
use map::{crumbs, map, siblings};
use model::{Listed, Model, READ, model};
use table::table;

pub(crate) const PATH: &str = "/sensors";

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new().route(PATH, get(show))
}

/// A place by its parts: city, building, floor, room.
const LEVELS: [&str; 4] = ["city", "building", "floor", "room"];

async fn show(view: View) -> Response {
    let model = model(&view).await;
    view.page(Nav::Sensors, "Sensors", &render(&view, &model))
}

/// The parts of the page that change.
pub(crate) async fn parts(view: &View) -> Parts {
    parts_of(view, &model(view).await)
}

fn parts_of(view: &View, model: &Model) -> Parts {
    let mut parts = match &model.sensors {
        Err(error) => {
            let error = error_note("The sensors cannot be listed.", error, view);
            vec![("places", html! { div #places data-part { (error) } })]
        }
        Ok(listed) => listing(view, model.place.as_ref(), listed),
    };
    if let Some(selected) = &model.selected {
        parts.push(("sensor", inspector(view, selected)));
    }
    parts
}

/// Returns whether a change of an item may change the page.
pub(crate) fn shows(view: &View, item: &ChangedItem) -> bool {
    let selected = view.get("id");
    match item.kind {
        ItemKind::SensorState | ItemKind::SensorInfo => true,
        ItemKind::Reading | ItemKind::Link => selected == Some(&*item.owner),
        // The key of a delivery does not name its sensor.
        ItemKind::Delivery => selected.is_some(),
        _ => false,
    }
}

/// A link within the page: to a place, or to a sensor in the place that is shown.
fn here(view: &View, parameters: &[(&str, &str)]) -> String {
    let own: Vec<(&str, &str)> = ["city", "building", "floor", "room", "show", "cursor"]
        .into_iter()
        .filter_map(|name| Some((name, view.get(name)?)))
        .collect();
    view.href_with(PATH, &own, parameters)
}

fn connection(sensor: &SensorWithState) -> Option<Connection> {
    sensor.state.as_ref().map(|state| state.connection)
}

fn count(sensors: &[&SensorWithState], of: Connection) -> usize {
    let with = sensors
        .iter()
        .filter(|sensor| connection(sensor) == Some(of));
    with.count()
}

fn render(view: &View, model: &Model) -> Markup {
    let has_aside = model.selected.is_some();
    let parts = parts_of(view, model);
    let arguments = match view.get("id") {
        Some(id) => format!("sensors show {}", quoted(id)),
        None => "sensors list".to_owned(),
    };
    html! {
        div.head {
            h1 { "Sensors" }
            span.soft { (live_state(live_text(view))) }
            form class="filter push" method="get" role="search" action=(PATH) {
                (view.kept(&["city", "building", "floor", "room", "show", "tz", "time"]))
                label { "Sensor id "
                    input class="field mono" name="id" size="18" placeholder="door-213" spellcheck="false" autocomplete="off"
                        aria-keyshortcuts="/" value=(view.get("id").unwrap_or_default());
                }
                button.btn { "Open" }
            }
        }
        div class={ "cols" @if has_aside { " cols-inspect" } } {
            div.stack data-events=[view.events(PATH, &[])] {
                @for (_, part) in parts.iter().filter(|(id, _)| *id != "sensor") { (part) }
                (cmd(&command(view, &arguments)))
            }
            @for (_, part) in parts.iter().filter(|(id, _)| *id == "sensor") { (part) }
        }
    }
}

fn listing(view: &View, place: Option<&LocationPrefix>, listed: &Listed) -> Parts {
    let is_filtered = place.is_some() || view.get("show").is_some() || view.get("cursor").is_some();
    if listed.rows.is_empty() && listed.next.is_none() && !is_filtered {
        let none = html! {
            section.panel #places data-part {
                (empty("No sensors yet", &html! {
                    p { "A sensor is registered before its first signal." }
                    (cmd(&command(view, "sensors register door-213 Poznań A 2 213 --type lock")))
                }))
            }
        };
        return vec![("places", none)];
    }
    let sensors: Vec<&SensorWithState> = listed.rows.iter().collect();
    let places = html! {
        section.panel #places data-part {
            header { (crumbs(view, place)) (siblings(view, place, &sensors)) }
            div.body.stack { (map(view, place, &sensors)) }
            footer {
                span { (totals(&sensors)) @if listed.next.is_some() { " among the first " (number(READ as i64)) " that were read" } }
                nav class="seg push" aria-label="Show" {
                    @for (value, word) in [("", "All"), ("lost", "Lost"), ("never", "Never seen")] {
                        a href=(here(view, &[("show", value), ("cursor", "")])) aria-current=[(view.get("show").unwrap_or_default() == value).then_some("true")] { (word) }
                    }
                }
            }
        }
    };
    vec![
        ("places", places),
        ("sensors", table(view, listed, &sensors)),
    ]
}

fn totals(sensors: &[&SensorWithState]) -> Markup {
    let (lost, never) = (
        count(sensors, Connection::Lost),
        count(sensors, Connection::Never),
    );
    html! {
        (number(sensors.len() as i64)) " sensors: "
        @if lost > 0 { b.bad { (number(lost as i64)) " lost" } } @else { "none lost" }
        ", " (number(never as i64)) " never seen, " (number(count(sensors, Connection::Online) as i64)) " online"
    }
}
