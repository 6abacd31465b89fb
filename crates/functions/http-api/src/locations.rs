//! `/v1/locations`: the sensors of a city, a building, a floor or a room.

use antumbra_service::paging::Page;
use antumbra_service::sensors::{LocationPrefix, SensorWithState};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::Answer;
use crate::api::Api;
use crate::problem::{Code, Problem};
use crate::request::{Paging, PathParts, Queried};
use crate::sensors::{LocationShape, StateAnswer};

/// A city.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct City {
    /// The city, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "Poznań")]
    city: String,
}

/// A building of a city.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Building {
    /// The city, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "Poznań")]
    city: String,
    /// The building, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "A")]
    building: String,
}

/// A floor of a building.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Floor {
    /// The city, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "Poznań")]
    city: String,
    /// The building, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "A")]
    building: String,
    /// The floor, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "2")]
    floor: String,
}

/// A room of a floor.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Room {
    /// The city, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "Poznań")]
    city: String,
    /// The building, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "A")]
    building: String,
    /// The floor, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "2")]
    floor: String,
    /// The room, percent-encoded.
    #[param(min_length = 1, max_length = 100, example = "13")]
    room: String,
}

/// Lists the sensors of a city. One that was registered or moved a moment ago may not be listed yet.
#[utoipa::path(
    get, path = "/v1/locations/{city}/sensors", tag = "sensors", operation_id = "list_sensors_of_city",
    params(City, Paging),
    responses((status = 200, description = "A page of sensors, with their states.", body = RowPage)),
)]
pub(crate) async fn of_city(
    State(api): State<Api>,
    PathParts(City { city }): PathParts<City>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    list(&api, [&city, "", "", ""], 1, &paging).await
}

/// Lists the sensors of a building. One that was registered or moved a moment ago may not be listed yet.
#[utoipa::path(
    get, path = "/v1/locations/{city}/{building}/sensors", tag = "sensors", operation_id = "list_sensors_of_building",
    params(Building, Paging),
    responses((status = 200, description = "A page of sensors, with their states.", body = RowPage)),
)]
pub(crate) async fn of_building(
    State(api): State<Api>,
    PathParts(Building { city, building }): PathParts<Building>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    list(&api, [&city, &building, "", ""], 2, &paging).await
}

/// Lists the sensors of a floor. One that was registered or moved a moment ago may not be listed yet.
#[utoipa::path(
    get, path = "/v1/locations/{city}/{building}/{floor}/sensors", tag = "sensors", operation_id = "list_sensors_of_floor",
    params(Floor, Paging),
    responses((status = 200, description = "A page of sensors, with their states.", body = RowPage)),
)]
pub(crate) async fn of_floor(
    State(api): State<Api>,
    PathParts(Floor {
        city,
        building,
        floor,
    }): PathParts<Floor>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    list(&api, [&city, &building, &floor, ""], 3, &paging).await
}

/// Lists the sensors of a room. One that was registered or moved a moment ago may not be listed yet.
#[utoipa::path(
    get, path = "/v1/locations/{city}/{building}/{floor}/{room}/sensors", tag = "sensors", operation_id = "list_sensors_of_room",
    params(Room, Paging),
    responses((status = 200, description = "A page of sensors, with their states.", body = RowPage)),
)]
pub(crate) async fn of_room(
    State(api): State<Api>,
    PathParts(Room {
        city,
        building,
        floor,
        room,
    }): PathParts<Room>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    list(&api, [&city, &building, &floor, &room], 4, &paging).await
}

async fn list(
    api: &Api,
    parts: [&str; 4],
    levels: usize,
    paging: &Paging,
) -> Result<Answer, Problem> {
    let part = |level: usize| (level < levels).then(|| parts[level]);
    let place = LocationPrefix::new(parts[0], part(1), part(2), part(3))
        .map_err(|fault| Problem::new(Code::InvalidPath, fault.to_string()))?;
    let cursor = paging.cursor();
    let page = api
        .sensors()
        .in_place(&place, paging.limit()?, cursor.as_ref())
        .await?;
    Answer::ok(&RowPage::from(page))
}

/// A page of sensors.
#[derive(Serialize, ToSchema)]
#[schema(as = LocatedSensors)]
pub(crate) struct RowPage {
    /// The sensors: of a place in order of building, floor, room and id, all of them by id.
    sensors: Vec<RowAnswer>,
    /// Where the next page starts; not there on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A sensor, where it is, and its latest state.
#[derive(Serialize, ToSchema)]
#[schema(as = LocatedSensor)]
struct RowAnswer {
    /// Its id.
    #[schema(example = "xa7v9Dfadr7H")]
    id: String,
    /// Where it is.
    location: LocationShape,
    /// Its latest state; not there if it was unregistered meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    state: Option<StateAnswer>,
}

impl From<Page<SensorWithState>> for RowPage {
    fn from(page: Page<SensorWithState>) -> RowPage {
        RowPage {
            sensors: page.rows.iter().map(RowAnswer::from).collect(),
            next: page.next.map(|cursor| cursor.0),
        }
    }
}

impl From<&SensorWithState> for RowAnswer {
    fn from(row: &SensorWithState) -> RowAnswer {
        RowAnswer {
            id: row.sensor.id.to_string(),
            location: (&row.sensor.location).into(),
            state: row.state.as_ref().map(StateAnswer::from),
        }
    }
}
