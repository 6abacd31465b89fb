//! Serves one request to one shadow and builds its response.

use antumbra_service::shadows::{
    ClientToken, Delete, DesiredMode, DocumentSet, ExpectedVersion, Shadow, ShadowError, ShadowId,
    ShadowStore, Shadows, StoreError, StoredDocument, Update, UpdateResult, Version,
};
use antumbra_shadow::{Changes, Document, Mode, Model, Verdict};
use antumbra_wire::shadow_mqtt::{
    Accepted, Part, Rejection, Request, Sent, ShadowDocument, ShadowDocuments, UpdateRequest,
    accepted_delete, accepted_get, accepted_update,
};
use serde::Serialize;

/// Maximum attempts of a delete without a version, if other writes come in between.
const DELETE_ATTEMPTS: u32 = 5;

/// The request around the operation.
pub(crate) struct RequestContext<'a> {
    pub(crate) shadow: &'a ShadowId,
    /// The shadow's name in responses.
    pub(crate) name: &'a str,
    pub(crate) client_token: Option<&'a str>,
    pub(crate) seconds: i64,
}

pub(crate) async fn serve<P: ShadowStore>(
    shadows: &Shadows<P>,
    model: &Model,
    request: Request,
    context: &RequestContext<'_>,
) -> Result<String, Rejection> {
    match request {
        Request::Get => get(shadows, model, context).await,
        Request::Update(request) => update(shadows, model, request, context).await,
        Request::Delete { version } => delete(shadows, version, context).await,
    }
}

async fn get<P: ShadowStore>(
    shadows: &Shadows<P>,
    model: &Model,
    context: &RequestContext<'_>,
) -> Result<String, Rejection> {
    let shadow = read(shadows, context).await?;
    let version = shadow.version.0;
    let sections = ShadowDocuments {
        reported: shadow.reported.as_ref().map(section),
        desired: shadow.desired.as_ref().map(section),
        version,
    };
    accepted_get(&sections, model, context.accepted(version))
}

async fn update<P: ShadowStore>(
    shadows: &Shadows<P>,
    model: &Model,
    request: UpdateRequest,
    context: &RequestContext<'_>,
) -> Result<String, Rejection> {
    let update = to_update(&request, context)?.model(model.clone());
    let updated = shadows.update(update).await;
    let updated = updated.map_err(|error| rejection(&error, context))?;
    let (reported, desired) = (
        updated.reported.as_ref().map(section),
        updated.desired.as_ref().map(section),
    );
    let sent = |part: &'_ Option<Part>,
                now: &'_ Option<ShadowDocument>|
     -> Option<(Part, ShadowDocument)> { Some((part.clone()?, now.clone()?)) };
    let reported = sent(&request.reported, &reported);
    let desired = sent(&request.desired, &desired);
    let verdicts = request.verbose.then(|| verdicts(&updated));
    Ok(accepted_update(
        reported.as_ref().map(|(part, now)| Sent { part, now }),
        desired.as_ref().map(|(part, now)| Sent { part, now }),
        verdicts,
        model,
        context.accepted(updated.shadow_version.0),
    ))
}

/// Builds the update of either document or both. Desired values stay after they are reported, as in AWS IoT.
fn to_update(request: &UpdateRequest, context: &RequestContext<'_>) -> Result<Update, Rejection> {
    let document = |part: &Part| match part {
        Part::Clear => (Document::default(), Mode::ClientIsMaster),
        Part::Patch(document) => (document.clone(), Mode::Patch),
    };
    let shadow = context.shadow.clone();
    let update = match (&request.reported, &request.desired) {
        (Some(reported), desired) => {
            let (document_sent, mode) = document(reported);
            let update = Update::report(shadow, document_sent).mode(mode);
            match desired {
                Some(desired) => {
                    let (document, mode) = document(desired);
                    update.and_desire(document).mode(mode)
                }
                None => update,
            }
        }
        (None, Some(desired)) => {
            let (document, mode) = document(desired);
            Update::desire(shadow, document).mode(mode)
        }
        (None, None) => return Err(Rejection::new(400, "Missing required node: state")),
    };
    let mut update = update
        .desired_mode(DesiredMode::IgnoreDesiredState)
        .read_both();
    if let Some(version) = request.version {
        update = update.expected_shadow_version(Version(version));
    }
    if let Some(token) = context.client_token {
        let token = ClientToken::new(token);
        let token = token.map_err(|_| Rejection::new(400, "Invalid clientToken"))?;
        update = update.client_token(token);
    }
    Ok(update)
}

/// Deletes exactly the versions that were read, so that the response names the deleted version.
async fn delete<P: ShadowStore>(
    shadows: &Shadows<P>,
    version: Option<i64>,
    context: &RequestContext<'_>,
) -> Result<String, Rejection> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let shadow = read(shadows, context).await?;
        if version.is_some_and(|version| version != shadow.version.0) {
            return Err(conflict());
        }
        let part = |held: &Option<StoredDocument>| {
            held.as_ref()
                .map(|held| ExpectedVersion::Version(held.version))
        };
        let delete = Delete {
            shadow: context.shadow.clone(),
            reported: part(&shadow.reported),
            desired: part(&shadow.desired),
        };
        match shadows.delete(delete).await {
            Ok(()) => return Ok(accepted_delete(context.accepted(shadow.version.0))),
            Err(error)
                if (error.is_conflict() || error.is_not_found())
                    && version.is_none()
                    && attempts < DELETE_ATTEMPTS => {}
            Err(error) => return Err(rejection(&error, context)),
        }
    }
}

async fn read<P: ShadowStore>(
    shadows: &Shadows<P>,
    context: &RequestContext<'_>,
) -> Result<Shadow, Rejection> {
    let read = shadows.read(context.shadow, DocumentSet::Both).await;
    read.map_err(|error| rejection(&error, context))
}

impl<'a> RequestContext<'a> {
    fn accepted(&self, version: i64) -> Accepted<'a> {
        Accepted {
            version,
            seconds: self.seconds,
            client_token: self.client_token,
        }
    }
}

fn section(held: &StoredDocument) -> ShadowDocument {
    ShadowDocument {
        document: held.document.clone(),
        times: held.leaf_times(),
    }
}

fn conflict() -> Rejection {
    Rejection::new(409, "Version conflict")
}

/// Uses the messages of AWS IoT Device Shadow where it has them.
fn rejection(error: &ShadowError, context: &RequestContext<'_>) -> Rejection {
    let ShadowError::Store { error, .. } = error else {
        return Rejection::new(400, error.to_string());
    };
    match error {
        StoreError::NotFound => {
            let name = context.name;
            Rejection::new(404, format!("No shadow exists with name: '{name}'"))
        }
        StoreError::Conflict { .. } => conflict(),
        StoreError::Invalid(reason) => Rejection::new(400, reason.clone()),
        StoreError::TooLarge { .. } => Rejection::too_large(),
        StoreError::Throttled => Rejection::new(429, "Too many requests, try again"),
        StoreError::Unavailable(reason) => {
            tracing::error!(reason, "store unavailable");
            Rejection::new(500, "Internal service failure")
        }
    }
}

/// Verdicts of all values in the request.
#[derive(Serialize)]
struct Verdicts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    desired: Option<Vec<antumbra_shadow::Change<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<Vec<antumbra_shadow::Change<'a>>>,
}

fn verdicts(updated: &UpdateResult) -> String {
    fn sent(changes: &Option<Changes>) -> Option<Vec<antumbra_shadow::Change<'_>>> {
        let changes = changes.as_ref()?.iter();
        let unsent = |change: &antumbra_shadow::Change<'_>| {
            change.verdict == Verdict::Unsent && change.note.is_none()
        };
        Some(changes.filter(|change| !unsent(change)).collect())
    }
    let verdicts = Verdicts {
        desired: sent(&updated.desired_changes),
        reported: sent(&updated.reported_changes),
    };
    serde_json::to_string(&verdicts).unwrap_or_else(|_| "{}".to_owned())
}
