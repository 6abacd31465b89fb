//! Serves one request to one shadow and builds its response.

use antumbra_service::shadows::{
    ClientToken, DesiredMode, DocumentSet, ShadowError, ShadowId, ShadowStore, Shadows, StoreError,
    StoredDocument, Update, UpdateResult, Version,
};
use antumbra_shadow::{Change, Document, Mode, Model, Timestamp, Verdict};
use antumbra_wire::limits::REQUEST_BYTES;
use antumbra_wire::shadow_mqtt::{
    Accepted, Part, Rejection, Request, Sent, ShadowDocument, ShadowDocuments, UpdateRequest,
    accepted_delete, accepted_get, accepted_update,
};

use crate::config::{Config, Order};

pub(crate) struct RequestContext<'a> {
    pub(crate) shadow: &'a ShadowId,
    /// The shadow's name in responses.
    pub(crate) name: &'a str,
    pub(crate) client_token: Option<&'a str>,
    /// A response is published if the request is accepted.
    pub(crate) responds: bool,
    pub(crate) seconds: i64,
    /// The rule's time, if requests are ordered by it.
    pub(crate) received: Option<Timestamp>,
    /// The sender's time, beside the payload.
    pub(crate) sent: Option<Timestamp>,
    pub(crate) deadline: Timestamp,
}

/// Serves a request. Returns the response, unless none is to be published.
pub(crate) async fn serve<P: ShadowStore>(
    shadows: &Shadows<P>,
    config: &Config,
    request: Request,
    context: &RequestContext<'_>,
) -> Result<Option<String>, Rejection> {
    match request {
        Request::Get => get(shadows, &config.model, context).await.map(Some),
        Request::Update(request) => update(shadows, config, request, context).await,
        Request::Delete { version } => delete(shadows, version, context).await.map(Some),
    }
}

async fn get<P: ShadowStore>(
    shadows: &Shadows<P>,
    model: &Model,
    context: &RequestContext<'_>,
) -> Result<String, Rejection> {
    let read = shadows.read(context.shadow, DocumentSet::Both).await;
    let shadow = read.map_err(|error| rejection(&error, false, context))?;
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
    config: &Config,
    request: UpdateRequest,
    context: &RequestContext<'_>,
) -> Result<Option<String>, Rejection> {
    let updated = shadows.update(to_update(&request, config, context)?).await;
    let updated = updated.map_err(|error| rejection(&error, request.version.is_some(), context))?;
    if !context.responds {
        return Ok(None);
    }
    let reported = updated.reported.as_ref().map(section);
    let desired = updated.desired.as_ref().map(section);
    fn sent<'a>(part: &'a Option<Part>, now: &'a Option<ShadowDocument>) -> Option<Sent<'a>> {
        let (part, now) = (part.as_ref()?, now.as_ref()?);
        Some(Sent { part, now })
    }
    Ok(Some(accepted_update(
        sent(&request.reported, &reported),
        sent(&request.desired, &desired),
        request.verbose.then(|| verdicts(&updated)),
        &config.model,
        context.accepted(updated.shadow_version.0),
    )))
}

/// Builds the update of either document or both.
fn to_update(
    request: &UpdateRequest,
    config: &Config,
    context: &RequestContext<'_>,
) -> Result<Update, Rejection> {
    let document = |part: &Part| match part {
        Part::Clear => (Document::default(), Mode::ClientIsMaster),
        Part::Patch(document) => (document.clone(), Mode::Patch),
    };
    let shadow = context.shadow.clone();
    let (reported, desired) = (
        request.reported.as_ref().map(document),
        request.desired.as_ref().map(document),
    );
    let mut update = match (reported, desired) {
        (Some((reported, mode)), None) => Update::report(shadow, reported).mode(mode),
        (None, Some((desired, mode))) => Update::desire(shadow, desired).mode(mode),
        (Some((reported, mode)), Some((desired, desired_mode))) => Update::report(shadow, reported)
            .mode(mode)
            .and_desire(desired)
            .mode(desired_mode),
        (None, None) => return Err(Rejection::new(400, "Missing required node: state")),
    };
    update = update.deadline(context.deadline);
    if context.responds {
        // The response has the version of the shadow.
        update = update.read_both();
    }
    if !request.acknowledge.unwrap_or(config.acknowledge) {
        // Desired values stay after they are reported, as in AWS IoT.
        update = update.desired_mode(DesiredMode::IgnoreDesiredState);
    }
    let own_time = request.timestamp.or(context.sent);
    if let Some(time) = own_time.or(context.received) {
        update = update.time(time);
    }
    if config.order == Order::Changes {
        update = update.changes_only();
    }
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

async fn delete<P: ShadowStore>(
    shadows: &Shadows<P>,
    version: Option<i64>,
    context: &RequestContext<'_>,
) -> Result<String, Rejection> {
    let (shadow, time) = (context.shadow, context.sent.or(context.received));
    let deadline = Some(context.deadline);
    let deleted = shadows.delete_shadow(shadow, version.map(Version), time, deadline);
    match deleted.await {
        Ok(deleted) => Ok(accepted_delete(context.accepted(deleted.0))),
        Err(error) => Err(rejection(&error, version.is_some(), context)),
    }
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

/// Uses the messages of AWS IoT Device Shadow where it has them. A request without a version cannot be in conflict: it
/// only was not made in time.
fn rejection(error: &ShadowError, has_version: bool, context: &RequestContext<'_>) -> Rejection {
    let ShadowError::Store { error, .. } = error else {
        return Rejection::new(400, error.to_string());
    };
    match error {
        StoreError::NotFound => {
            let name = context.name;
            Rejection::new(404, format!("No shadow exists with name: '{name}'"))
        }
        StoreError::Conflict { .. } if has_version => Rejection::new(409, "Version conflict"),
        StoreError::Conflict { .. } => Rejection::new(500, "Internal service failure"),
        StoreError::Invalid(reason) => Rejection::new(400, reason.clone()),
        StoreError::TooLarge { .. } => Rejection::too_large(),
        StoreError::Throttled => Rejection::new(429, "Too many requests, try again"),
        StoreError::Unavailable(reason) => {
            tracing::error!(reason, "store unavailable");
            Rejection::new(500, "Internal service failure")
        }
    }
}

/// Verdicts of all values in the request, without those of documents for which they are too large.
fn verdicts(updated: &UpdateResult) -> String {
    let changes = [
        ("desired", &updated.desired_changes),
        ("reported", &updated.reported_changes),
    ];
    let mut json = String::from("{");
    for (name, changes) in changes {
        let sent = |change: &Change<'_>| change.verdict != Verdict::Unsent || change.note.is_some();
        let changes = changes.as_ref();
        if let Some(changes) = changes.and_then(|changes| changes.to_json(REQUEST_BYTES, sent)) {
            json.push_str(if json.len() > 1 { ",\"" } else { "\"" });
            json.push_str(&format!("{name}\":{changes}"));
        }
    }
    json.push('}');
    json
}
