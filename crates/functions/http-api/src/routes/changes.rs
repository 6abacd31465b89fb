//! `/v1/changes`: the change feed, as pages or as a stream of server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::Feed;
use antumbra_service::access::Resource;
use antumbra_service::api::{ChangePage, FeedEntry};
use antumbra_service::history::feed::{FeedChange, FeedFilter, FeedPage, FeedStart, Pattern};
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use super::history::reader;
use crate::access::CallerGrants;
use crate::extract::{Query, limit};
use crate::problem::{Code, Problem};
use crate::respond::{Either, Json};
use crate::services::{Api, Services};

/// Longest wait for a change. API Gateway ends a request after 30 seconds.
const WAIT_SECONDS: u64 = 20;
/// Time after which a stream without changes sends its cursor.
const STREAM_WAIT: Duration = Duration::from_secs(15);
const EVENTS: &str = "text/event-stream";

/// Selection of changes.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangesQuery {
    /// `cursor` of the page before, `now` for changes from now on, or `oldest` for all that are kept; `now` by default.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
    /// Maximum number of changes. A page can be shorter, also if `hasMore` is true.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Seconds to wait for a change if there is none.
    #[param(minimum = 0, maximum = 20, default = 0)]
    wait: Option<u64>,
    /// Start of the device id; all devices by default.
    #[param(max_length = 1024, example = "lamp-")]
    prefix: Option<String>,
    /// Pattern of changes, as in registrations. `old` and `new` hold the changed values only.
    #[param(max_length = 8192, example = r#"{"new":{"led":["on"]}}"#)]
    pattern: Option<String>,
}

/// The request for a stream, with the cursor after which it continues.
pub(crate) struct StreamRequest(Option<Option<String>>);

impl FromRequestParts<Arc<Services>> for StreamRequest {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &Arc<Services>,
    ) -> Result<StreamRequest, Infallible> {
        let header = |name: &str| parts.headers.get(name)?.to_str().ok();
        let accepts = header(ACCEPT.as_str()).is_some_and(|accept| accept.contains(EVENTS));
        let last = header("last-event-id").map(str::to_owned);
        Ok(StreamRequest((accepts && api.streams).then_some(last)))
    }
}

/// Changes as server-sent events, without an end.
pub(crate) struct EventStream {
    feed: Feed,
    /// The page to send next, or the position of the one to read.
    next: Result<FeedPage, FeedStart>,
    limit: usize,
    filter: FeedFilter,
}

pub(crate) async fn list(
    State(api): Api,
    grants: CallerGrants,
    StreamRequest(stream): StreamRequest,
    Query(query): Query<ChangesQuery>,
) -> Result<Either<Json<ChangePage>, EventStream>, Problem> {
    reader(&api)?;
    let off = "this deployment has no change feed; FeedDays is 0";
    let feed = api.feed.as_ref();
    let feed = feed.ok_or_else(|| Problem::new(Code::FeedOff, off))?;
    let (limit, wait) = (limit(query.limit)?, query.wait.unwrap_or(0));
    if wait > WAIT_SECONDS {
        let detail = format!("wait must be 0 to {WAIT_SECONDS}, not {wait}");
        return Err(Problem::new(Code::InvalidQuery, detail));
    }
    let pattern = query.pattern.as_deref().map(Pattern::of_change).transpose();
    let invalid =
        |error: &dyn std::fmt::Display| Problem::new(Code::InvalidQuery, error.to_string());
    let filter = FeedFilter {
        ids: grants
            .readable(Resource::Changes)
            .below(query.prefix.as_deref().unwrap_or_default()),
        name: None,
        pattern: pattern.map_err(|error| invalid(&error))?,
    };
    let last_event = stream.clone().flatten();
    let cursor = last_event.or(query.cursor);
    let start = FeedStart::parse(cursor.as_deref().unwrap_or("now"));
    let wait = Duration::from_secs(if stream.is_some() { 0 } else { wait });
    let page = feed.read(&start, limit, wait, &filter).await?;
    Ok(match stream {
        None => Either::A(Json(page.into())),
        Some(_) => Either::B(EventStream {
            feed: feed.clone(),
            next: Ok(page),
            limit,
            filter,
        }),
    })
}

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        let pages = stream::unfold(self, |mut stream| async {
            let page = match stream.next {
                Ok(page) => page,
                Err(start) => {
                    let read = stream
                        .feed
                        .read(&start, stream.limit, STREAM_WAIT, &stream.filter);
                    // The connection breaks, and the client connects again with its last cursor.
                    read.await.map_err(Problem::from).ok()?
                }
            };
            stream.next = Err(FeedStart::parse(&page.cursor.0));
            Some((Ok::<_, Infallible>(events(page)), stream))
        });
        ([(CONTENT_TYPE, EVENTS)], Body::from_stream(pages)).into_response()
    }
}

/// The events of a page. Its cursor comes last, in an event without data, which clients keep and do not report.
fn events(page: FeedPage) -> String {
    let event = |change: FeedChange| {
        // A change always has a JSON form.
        let json = serde_json::to_string(&FeedEntry::from(change)).unwrap_or_default();
        format!("data: {json}\n\n")
    };
    let changes: String = page.changes.into_iter().map(event).collect();
    format!("{changes}id: {}\n\n", page.cursor.0)
}
