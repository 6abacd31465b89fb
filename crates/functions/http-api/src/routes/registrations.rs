//! `/v1/registrations`: the rules that send changes to targets, as they are deployed.

use antumbra_service::api::{Registration, RegistrationPage, RegistrationSummary};
use antumbra_service::paging::{InvalidCursor, Page, open_cursor, seal_cursor};
use axum::extract::State;

use crate::extract::{FromPath, Paging, Path, PathParameter, Query};
use crate::problem::{Code, Problem};
use crate::respond::Json;
use crate::services::{Api, Services};

/// Kind of the cursors.
const CURSOR: &str = "registrations";

pub(crate) struct RegistrationName(String);

impl FromPath for RegistrationName {
    const PARAMETERS: &'static [PathParameter] = &[PathParameter {
        name: "name",
        description: "Name of the registration.",
        max_length: 64,
        pattern: Some("^[A-Za-z0-9_.-]+$"),
        example: Some("shadow-delta"),
    }];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<RegistrationName, String> {
        Ok(RegistrationName(get("name").unwrap_or_default().to_owned()))
    }
}

/// Reads all registrations, ordered by name.
async fn read_all(api: &Services) -> Result<Vec<Registration>, Problem> {
    let files = api.registrations.read().map_err(Problem::internal)?;
    let read = |(file, text): &(String, String)| {
        let read = Registration::parse(file, text);
        read.map_err(|error| Problem::internal(format!("{file}: {error}")))
    };
    let mut all = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    all.sort_by(|a, b| a.summary.name.cmp(&b.summary.name));
    Ok(all)
}

pub(crate) async fn list(
    State(api): Api,
    Query(paging): Query<Paging>,
) -> Result<Json<RegistrationPage>, Problem> {
    let limit = paging.limit()?;
    let after = match paging.cursor() {
        None => String::new(),
        Some(cursor) => match open_cursor(&cursor).unwrap_or_default().as_slice() {
            [kind, name] if kind == CURSOR => name.clone(),
            _ => return Err(Problem::new(Code::Invalid, InvalidCursor.to_string())),
        },
    };
    let all = read_all(&api).await?;
    let mut left = all.into_iter().map(|one| one.summary);
    let mut left = left.by_ref().filter(|one| one.name > after).peekable();
    let rows: Vec<RegistrationSummary> = left.by_ref().take(limit).collect();
    let last = rows.last().filter(|_| left.peek().is_some());
    let next = last.map(|last| seal_cursor(&[CURSOR, &last.name]));
    Ok(Json(Page { rows, next }.into()))
}

pub(crate) async fn get(
    State(api): Api,
    Path(RegistrationName(name)): Path<RegistrationName>,
) -> Result<Json<Registration>, Problem> {
    let mut all = read_all(&api).await?.into_iter();
    let found = all.find(|one| one.summary.name == name);
    let found = found.ok_or_else(|| Problem::new(Code::NotFound, "no such registration"))?;
    Ok(Json(found))
}
