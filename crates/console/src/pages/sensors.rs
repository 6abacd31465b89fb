//! `/sensors`: sensors by city, building, floor and room. Those that are lost come first.
//!
//! A sensor's events are recorded as deliveries to its clients, from which its occurrences are shown.

mod chart;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clients::Link;
use antumbra_service::deliveries::{DeliveryRecord, HistoryQuery, Status, Subject};
use antumbra_service::paging::Cursor;
use antumbra_service::sensors::{
    Connection, EventType, LocationPrefix, Reading, RegisteredSensor, SensorId, SensorQuery,
    SensorWithState, State,
};
use antumbra_shadow::Timestamp;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use futures_util::future;
use maud::{Markup, html};

use super::deliveries::event;
use crate::components::{
    Tone, badge, cmd, command, cut, cut_at, empty, error_note, number, quoted,
};
use crate::state::Console;
use crate::time;
use crate::view::{Nav, View};
use chart::Chart;

const PATH: &str = "/sensors";
/// Sensors that one page reads.
const READ: usize = 1000;
/// Rows of the table.
const ROWS: usize = 100;
/// Rooms of one floor that are drawn.
const ROOMS: usize = 120;
/// Readings of a chart, read in pages of the largest size.
const READINGS: usize = 5000;
/// Readings of the table.
const TABLE_READINGS: usize = 200;
/// Deliveries from which occurrences are shown, and links.
const DELIVERIES: usize = 100;
const LINKS: usize = 20;
const OCCURRENCES: usize = 12;
/// Time that the chart shows.
const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new().route(PATH, get(show))
}

/// A place by its parts: city, building, floor, room.
const LEVELS: [&str; 4] = ["city", "building", "floor", "room"];

struct Model {
    place: Option<LocationPrefix>,
    sensors: Result<Listed, String>,
    selected: Option<Result<Selected, String>>,
}

struct Listed {
    rows: Vec<SensorWithState>,
    next: Option<Cursor>,
}

/// A sensor with everything about it.
struct Selected {
    sensor: RegisteredSensor,
    state: State,
    /// Oldest first.
    readings: Vec<Reading>,
    has_more_readings: bool,
    links: Vec<Link>,
    deliveries: Vec<DeliveryRecord>,
}

async fn show(view: View) -> Response {
    let model = model(&view).await;
    view.page(Nav::Sensors, "Sensors", &render(&view, &model))
}

fn place(view: &View) -> Result<Option<LocationPrefix>, String> {
    let [city, building, floor, room] = LEVELS.map(|level| view.get(level));
    let Some(city) = city else {
        return Ok(None);
    };
    let place = LocationPrefix::new(city, building, floor, room);
    place.map(Some).map_err(|fault| fault.to_string())
}

async fn model(view: &View) -> Model {
    let listed = async {
        match place(view) {
            Ok(place) => (place.clone(), list(view, place).await),
            Err(fault) => (None, Err(fault)),
        }
    };
    let selected = async {
        match view.get("id") {
            None => None,
            Some(id) => Some(selected(view, id).await),
        }
    };
    let ((place, sensors), selected) = future::join(listed, selected).await;
    Model {
        place,
        sensors,
        selected,
    }
}

async fn list(view: &View, place: Option<LocationPrefix>) -> Result<Listed, String> {
    let connection = match view.get("show") {
        Some("lost") => Some(Connection::Lost),
        Some("never") => Some(Connection::Never),
        _ => None,
    };
    let query = SensorQuery {
        place,
        connection,
        ..SensorQuery::default()
    };
    let cursor = view.get("cursor").map(|cursor| Cursor(cursor.to_owned()));
    let page = view
        .console
        .services
        .sensors
        .list(&query, READ, cursor.as_ref())
        .await;
    let page = page.map_err(|error| error.to_string())?;
    Ok(Listed {
        rows: page.rows,
        next: page.next,
    })
}

async fn selected(view: &View, id: &str) -> Result<Selected, String> {
    let services = &view.console.services;
    let id = SensorId::new(id).map_err(|fault| fault.to_string())?;
    let query = HistoryQuery {
        limit: DELIVERIES,
        ..HistoryQuery::of(Subject::Sensor(id.clone()))
    };
    let (state, readings, links, deliveries) = future::join4(
        services.sensors.state(&id),
        readings_of_day(view, &id),
        services.clients.links_of_sensor(&id, LINKS, None),
        services.deliveries.list(&query, None),
    )
    .await;
    let (sensor, readings, has_more_readings) = readings?;
    Ok(Selected {
        sensor,
        state: state.map_err(|error| error.to_string())?,
        readings,
        has_more_readings,
        links: links.map_err(|error| error.to_string())?.rows,
        deliveries: deliveries.map_err(|error| error.to_string())?.rows,
    })
}

/// The sensor, its readings of the last 24 hours, and whether there are more.
async fn readings_of_day(
    view: &View,
    id: &SensorId,
) -> Result<(RegisteredSensor, Vec<Reading>, bool), String> {
    let from = Timestamp::from_nanoseconds(view.now.nanoseconds() - DAY.as_nanos() as i128);
    // Clocks of sensors may be ahead.
    let to = view.now.after(Duration::from_secs(60));
    let sensors = &view.console.services.sensors;
    let (mut readings, mut cursor) = (Vec::new(), None);
    loop {
        let page = sensors.between(id, from, to, 1000, cursor.as_ref()).await;
        let (sensor, page) = page.map_err(|error| error.to_string())?;
        readings.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() || readings.len() >= READINGS {
            return Ok((sensor, readings, cursor.is_some()));
        }
    }
}

/// A link within the page: to a place, or to a sensor in the place that is shown.
fn here(view: &View, parameters: &[(&str, &str)]) -> String {
    let own: Vec<(&str, &str)> = ["city", "building", "floor", "room", "show", "cursor"]
        .into_iter()
        .filter_map(|name| Some((name, view.get(name)?)))
        .filter(|(name, _)| !parameters.iter().any(|(key, _)| key == name))
        .collect();
    view.href(PATH, &[&own[..], parameters].concat())
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
    let arguments = match view.get("id") {
        Some(id) => format!("sensors show {}", quoted(id)),
        None => "sensors list".to_owned(),
    };
    html! {
        div.head {
            h1 { "Sensors" }
            form class="filter push" method="get" role="search" action=(PATH) {
                @for name in ["city", "building", "floor", "room", "show", "tz", "time"] {
                    @if let Some(value) = view.get(name) { input type="hidden" name=(name) value=(value); }
                }
                label { "Sensor id "
                    input class="field mono" name="id" size="18" placeholder="door-213" spellcheck="false" autocomplete="off"
                        aria-keyshortcuts="/" value=(view.get("id").unwrap_or_default());
                }
                button.btn { "Open" }
            }
        }
        div class={ "cols" @if has_aside { " cols-inspect" } } {
            div.stack {
                @match &model.sensors {
                    Err(error) => (error_note("The sensors cannot be listed.", error, view)),
                    Ok(listed) => (listing(view, model.place.as_ref(), listed)),
                }
                (cmd(&command(view, &arguments)))
            }
            @if let Some(selected) = &model.selected { (inspector(view, selected)) }
        }
    }
}

fn listing(view: &View, place: Option<&LocationPrefix>, listed: &Listed) -> Markup {
    let is_filtered = place.is_some() || view.get("show").is_some() || view.get("cursor").is_some();
    if listed.rows.is_empty() && listed.next.is_none() && !is_filtered {
        return html! {
            section.panel {
                (empty("No sensors yet", &html! {
                    p { "A sensor is registered before its first signal." }
                    (cmd(&command(view, "sensors register door-213 Poznań A 2 213 --type lock")))
                }))
            }
        };
    }
    let sensors: Vec<&SensorWithState> = listed.rows.iter().collect();
    html! {
        section.panel {
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
        (table(view, listed, &sensors))
    }
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

fn crumbs(view: &View, place: Option<&LocationPrefix>) -> Markup {
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
fn siblings(view: &View, place: Option<&LocationPrefix>, sensors: &[&SensorWithState]) -> Markup {
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
fn map(view: &View, place: Option<&LocationPrefix>, sensors: &[&SensorWithState]) -> Markup {
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

fn table(view: &View, listed: &Listed, sensors: &[&SensorWithState]) -> Markup {
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
        section.panel {
            table.fixed {
                colgroup {
                    col;
                    @if !is_narrow { col class="w6 p1"; col class="w4 p1"; }
                    col class="w6"; col class="w6"; col class="w11 p1";
                }
                thead { tr {
                    th { "Sensor" } @if !is_narrow { th class="p1" { "Place" } th class="p1" { "Type" } } th { "State" } th { "Last seen" }
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
        tr aria-current=[(view.get("id") == Some(id)).then_some("true")] {
            td { a.mono href=(here(view, &[("id", id)])) { bdi { (cut(id)) } } span.sub.only-narrow { bdi { (cut(&place)) } } }
            @if view.get("id").is_none() {
                td class="p1 soft" title=(cut(&place)) { bdi { (cut(&place)) } }
                td class="p1 soft" { bdi { (cut(sensor.sensor.sensor_type.as_str())) } }
            }
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
fn silence(view: &View, state: &State) -> Markup {
    let allowed = i128::from(state.silence_after.as_seconds());
    match (state.connection, state.last_seen) {
        (Connection::Lost, _) => {
            let since = state.lost_at.unwrap_or(state.deadline);
            badge(Tone::Bad, format!("lost {}", time::age(view.now, since)))
        }
        (_, None) => badge(
            Tone::Warn,
            format!("registered {}", time::age(view.now, state.registered_at)),
        ),
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
                meter min="0" max=(allowed) low=(allowed * 2 / 3) high=((allowed - 1).max(1)) optimum="0" value=(silent)
                    aria-label={ "Silent for " (text) } {}
                " " (text)
            }
        }
    }
}

fn inspector(view: &View, selected: &Result<Selected, String>) -> Markup {
    let id = view.get("id").unwrap_or_default();
    let close = here(view, &[("id", "")]);
    let close =
        html! { span.push { a class="btn small quiet" href=(close) data-close { "Close" } } };
    let selected = match selected {
        Ok(selected) => selected,
        Err(error) => {
            return html! {
                aside.panel aria-label="Sensor" {
                    header { h2.mono { bdi { (cut(id)) } } (close) }
                    div.body { (error_note("The sensor cannot be shown.", error, view)) }
                }
            };
        }
    };
    let (state, sensor) = (&selected.state, &selected.sensor.sensor);
    let tone = match state.connection {
        Connection::Lost => Tone::Bad,
        Connection::Online => Tone::Ok,
        Connection::Never => Tone::Warn,
    };
    html! {
        aside.panel aria-label={ "Sensor " (cut(id)) } {
            header { h2.mono { bdi { (cut(id)) } } (badge(tone, state.connection)) (close) }
            div.body { dl.kv {
                dt { "Place" }
                dd {
                    @match &sensor.location { Some(location) => bdi { (cut_at(&location.to_string(), 400)) }, None => { "none" } }
                    @if !sensor.address.as_str().is_empty() { ", " bdi { (cut(sensor.address.as_str())) } }
                }
                dt { "Type" } dd { bdi { (cut(sensor.sensor_type.as_str())) } }
                dt { "Last state" }
                dd {
                    @match &state.value { Some(value) => bdi.val { (cut(&value.to_string())) }, None => { "none" } }
                    @if let Some(since) = state.since { " since " (view.at(since)) }
                }
                dt { "Last seen" }
                dd { @match state.last_seen { Some(seen) => { (view.at(seen)) ", " (time::age(view.now, seen)) } None => { "never" } } }
                dt { "Silence" } dd { (silence(view, state)) }
                @if let Some(lost) = state.lost_at {
                    @let late = (lost.nanoseconds() - state.deadline.nanoseconds()).max(0);
                    dt { "Lost at" }
                    dd { (view.at(lost)) ", after " (number(state.silence_after.as_seconds())) " s of silence, found " (time::duration(late)) " later" }
                }
                dt { "Clients" }
                dd {
                    @for (at, link) in selected.links.iter().enumerate() {
                        @if at > 0 { ", " }
                        a href=(view.href("/deliveries", &[("client", link.client.as_str()), ("sensor", id)])) { (link.client) }
                    }
                    @if selected.links.is_empty() { "none linked" }
                }
            } }
            (readings(view, selected))
            (occurrences(view, selected))
        }
    }
}

fn readings(view: &View, selected: &Selected) -> Markup {
    let as_table = view.get("view") == Some("table");
    let id = selected.sensor.sensor.id.as_str();
    let silence = i128::from(selected.state.silence_after.as_seconds()) * 1_000_000_000;
    let chart = Chart {
        sensor: id,
        readings: &selected.readings,
        from: Timestamp::from_nanoseconds(view.now.nanoseconds() - DAY.as_nanos() as i128),
        to: view.now,
        silence,
    };
    html! {
        figure class="body stack" {
            div.line {
                h3 { "Readings, 24 h" }
                span.when {
                    @if as_table { a href=(here(view, &[("id", id)])) { "as chart" } }
                    @else { a href=(here(view, &[("id", id), ("view", "table")])) { "as table" } }
                }
            }
            @if as_table {
                table {
                    thead { tr { th { "Time" } th { "Value" } th { "Unit" } } }
                    tbody {
                        @for reading in selected.readings.iter().rev().take(TABLE_READINGS) {
                            tr {
                                td.soft { (view.at(reading.moment.time())) }
                                td.val { bdi { (cut(&reading.value.to_string())) } }
                                td.soft { @if let Some(unit) = &reading.unit { bdi { (cut(unit.as_str())) } } }
                            }
                        }
                    }
                }
                @if selected.readings.len() > TABLE_READINGS { p.mute { "The newest " (TABLE_READINGS) " of " (number(selected.readings.len() as i64)) "." } }
            } @else { (chart.render(view)) }
            @if selected.has_more_readings { p.mute { "Only the first " (number(selected.readings.len() as i64)) " readings were read." } }
        }
    }
}

/// An event of a sensor, and its deliveries.
struct Occurrence<'m> {
    record: &'m DeliveryRecord,
    delivered: usize,
    of: usize,
}

/// The events of a sensor, newest first, from the deliveries about it.
fn occurrences_of(deliveries: &[DeliveryRecord]) -> Vec<Occurrence<'_>> {
    let mut all: Vec<Occurrence<'_>> = Vec::new();
    for record in deliveries {
        let event = |record: &DeliveryRecord| {
            let generation = record
                .delivery
                .sensor
                .as_ref()
                .map(|sensor| sensor.generation.clone());
            (generation, record.delivery.sequence)
        };
        let delivered = usize::from(record.status == Status::Delivered);
        match all
            .iter_mut()
            .find(|one| event(one.record) == event(record))
        {
            Some(one) => {
                one.delivered += delivered;
                one.of += 1;
            }
            None => all.push(Occurrence {
                record,
                delivered,
                of: 1,
            }),
        }
    }
    all
}

fn occurrences(view: &View, selected: &Selected) -> Markup {
    let id = selected.sensor.sensor.id.as_str();
    let all = occurrences_of(&selected.deliveries);
    if all.is_empty() {
        return html! {
            div.body { p.mute {
                "No occurrences. "
                @if selected.links.is_empty() { "Events are recorded for linked clients: " code { (command(view, &format!("clients link CLIENT {}", quoted(id)))) } }
            } }
        };
    }
    html! {
        table {
            caption.sr { "Occurrences" }
            thead { tr { th.num { "Seq" } th { "Event" } th { "Time" } th { "Delivered" } } }
            tbody {
                @for one in all.iter().take(OCCURRENCES) {
                    @let delivery = &one.record.delivery;
                    tr {
                        td.num.mute { (number(delivery.sequence)) }
                        td class={ "mono " (tone(delivery.event_type)) } { (event(delivery.event_type, &delivery.data)) }
                        td.soft { (view.at(delivery.occurred_at)) }
                        td { a href=(view.href("/deliveries", &[("sensor", id)])) { (one.delivered) " of " (one.of) } }
                    }
                }
            }
        }
    }
}

fn tone(event: EventType) -> &'static str {
    match event {
        EventType::ConnectionLost | EventType::ConnectionNeverSeen => "bad",
        EventType::ConnectionRestored => "ok",
        EventType::StateChanged | EventType::ClientTest => "",
    }
}
