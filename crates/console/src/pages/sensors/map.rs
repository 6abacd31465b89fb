//! Floors and rooms of a building, or cities and buildings, with what is lost.

use std::collections::BTreeMap;

use antumbra_service::sensors::{Connection, LocationPrefix, SensorWithState};
use maud::{Markup, html};

use super::{LEVELS, PATH, count, here};
use crate::components::{cut, cut_at, number};
use crate::view::View;

/// Rooms of one floor that are drawn.
const ROOMS: usize = 120;

pub(super) fn crumbs(view: &View, place: Option<&LocationPrefix>) -> Markup {
    let parts: Vec<&str> = place
        .into_iter()
        .flat_map(|place| {
            let below = place.below().iter().map(|part| part.as_str());
            std::iter::once(place.city().as_str()).chain(below)
        })
        .collect();
    html! {
        ol.crumbs {
            @if parts.is_empty() { li aria-current="location" { b { "All cities" } } }
            @else { li { a href=(view.href(PATH, &[])) { "All cities" } } }
            @for (at, part) in parts.iter().enumerate() {
                @if at + 1 == parts.len() { li aria-current="location" { b { bdi { (cut(part)) } } } }
                @else {
                    @let upper: Vec<(&str, &str)> = LEVELS.into_iter().zip(parts.iter().copied()).take(at + 1).collect();
                    li { a href=(view.href(PATH, &upper)) { bdi { (cut(part)) } } }
                }
            }
        }
    }
}

/// The cities, or the buildings of a city, as a choice.
pub(super) fn siblings(
    view: &View,
    place: Option<&LocationPrefix>,
    sensors: &[&SensorWithState],
) -> Markup {
    let is_city = place.is_some_and(|place| place.below().is_empty());
    if !is_city {
        return html! {};
    }
    let buildings: BTreeMap<&str, ()> = sensors
        .iter()
        .filter_map(|sensor| Some((sensor.sensor.location.as_ref()?.building.as_str(), ())))
        .collect();
    html! {
        @if buildings.len() > 1 {
            nav class="seg push" aria-label="Building" {
                @for building in buildings.keys().take(12) { a href=(here(view, &[("building", building)])) { bdi { (cut_at(building, 30)) } } }
            }
        }
    }
}

/// A level of the map: a name, the parameters of its link, and its sensors.
type Cells<'a> = BTreeMap<Vec<&'a str>, Vec<&'a SensorWithState>>;

/// Floors as rows and rooms as cells in a building; cities as rows and buildings as cells above it.
pub(super) fn map(
    view: &View,
    place: Option<&LocationPrefix>,
    sensors: &[&SensorWithState],
) -> Markup {
    let is_above_building = place.is_none_or(|place| place.below().is_empty());
    let mut cells: Cells<'_> = BTreeMap::new();
    let mut placeless = Vec::new();
    for sensor in sensors {
        let Some(location) = &sensor.sensor.location else {
            placeless.push(*sensor);
            continue;
        };
        let parts = [
            &location.city,
            &location.building,
            &location.floor,
            &location.room,
        ]
        .map(|part| part.as_str());
        let level = if is_above_building { 2 } else { 4 };
        cells
            .entry(parts[..level].to_vec())
            .or_default()
            .push(sensor);
    }
    let mut rows: BTreeMap<Vec<&str>, Vec<(&str, &Vec<&SensorWithState>)>> = BTreeMap::new();
    for (parts, sensors) in &cells {
        let (row, cell) = parts.split_at(parts.len() - 1);
        rows.entry(row.to_vec())
            .or_default()
            .push((cell[0], sensors));
    }
    // The highest floor on top.
    let mut rows: Vec<_> = rows.into_iter().collect();
    let floor = |row: &Vec<&str>| row.last().and_then(|floor| floor.parse::<i64>().ok());
    if !is_above_building {
        rows.sort_by(|(a, _), (b, _)| floor(b).cmp(&floor(a)).then(a.cmp(b)));
    }
    html! {
        @if rows.is_empty() && placeless.is_empty() { p.mute { "No sensor here matches." } }
        ol.floors {
            @for (row, cells) in &rows {
                @let parameters: Vec<(&str, &str)> = LEVELS.into_iter().zip(row.iter().copied()).collect();
                li {
                    a.soft href=(view.href(PATH, &parameters)) {
                        @if !is_above_building { "Floor " }
                        bdi { (cut_at(row.last().copied().unwrap_or_default(), 24)) }
                    }
                    ul.rooms {
                        @for (name, sensors) in cells.iter().take(ROOMS) {
                            @let mut parameters = parameters.clone();
                            @let () = parameters.push((LEVELS[row.len()], name));
                            li { (cell(view, name, sensors, &parameters, is_above_building)) }
                        }
                        @if cells.len() > ROOMS { li.mute { "and " (number((cells.len() - ROOMS) as i64)) " more" } }
                    }
                }
            }
            @if !placeless.is_empty() {
                li { span.soft { "No place" }
                    ul.rooms {
                        @for sensor in placeless.iter().take(ROOMS) {
                            @let id = sensor.sensor.id.as_str();
                            li { (cell(view, id, &vec![*sensor], &[("id", id)], false)) }
                        }
                        @if placeless.len() > ROOMS { li.mute { "and " (number((placeless.len() - ROOMS) as i64)) " more" } }
                    }
                }
            }
        }
    }
}

/// A room or a building: its name, and its value, or how many sensors are lost.
fn cell(
    view: &View,
    name: &str,
    sensors: &Vec<&SensorWithState>,
    parameters: &[(&str, &str)],
    is_building: bool,
) -> Markup {
    let (lost, never) = (
        count(sensors, Connection::Lost),
        count(sensors, Connection::Never),
    );
    let single = sensors
        .first()
        .filter(|_| sensors.len() == 1 && !is_building);
    let mut parameters = parameters.to_vec();
    if let Some(sensor) = single {
        parameters.push(("id", sensor.sensor.id.as_str()));
        parameters.dedup();
    }
    let is_selected =
        single.is_some_and(|sensor| view.get("id") == Some(sensor.sensor.id.as_str()));
    let value = single.and_then(|sensor| sensor.state.as_ref()?.value.as_ref());
    let class = match (lost, never) {
        (1.., _) => "room lost",
        (0, never) if never > 0 && never == sensors.len() => "room never",
        _ => "room",
    };
    html! {
        a class=(class) href=(view.href(PATH, &parameters)) aria-current=[is_selected.then_some("true")] title=(cut(name)) {
            bdi { (cut_at(name, 18)) } " "
            span.val {
                @if lost > 0 { @if sensors.len() > 1 { (lost) " " } "lost" }
                @else if never > 0 && never == sensors.len() { "never" }
                @else if let Some(value) = value { bdi { (cut_at(&value.to_string(), 10)) } }
                @else { (number(sensors.len() as i64)) }
            }
        }
    }
}
