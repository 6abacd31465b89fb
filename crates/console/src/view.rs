//! One request to a page: its session, its time, its links, and the frame around its content.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use antumbra_service::paging::Cursor;
use antumbra_service::shadows::ShadowId;
use antumbra_shadow::Timestamp;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse, Redirect, Response};
use futures_util::StreamExt as _;
use futures_util::stream;
use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets;
use crate::components::toast;
use crate::compress::InParts;
use crate::security::Session;
use crate::state::Console;
use crate::time;

/// The pages of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nav {
    Fleet,
    Live,
    Registrations,
    Sensors,
    Deliveries,
    Inbox,
    Queues,
}

impl Nav {
    const ALL: [(Nav, &'static str, &'static str, &'static str); 7] = [
        (Nav::Fleet, "/", "Fleet", "i-fleet"),
        (Nav::Live, "/live", "Live", "i-live"),
        (
            Nav::Registrations,
            "/registrations",
            "Registrations",
            "i-registrations",
        ),
        (Nav::Sensors, "/sensors", "Sensors", "i-sensors"),
        (Nav::Deliveries, "/deliveries", "Deliveries", "i-deliveries"),
        (Nav::Inbox, "/inbox", "Inbox", "i-inbox"),
        (Nav::Queues, "/queues", "Queues", "i-queues"),
    ];
}

/// Icons of the navigation, defined once per page and used by reference.
const ICONS: PreEscaped<&str> = PreEscaped(include_str!("../assets/icons.svg"));

const MARK: PreEscaped<&str> = PreEscaped(
    r#"<svg viewBox="0 0 20 20" aria-hidden="true"><circle class="disc" cx="10" cy="10" r="10"/><circle class="ring" cx="10" cy="10" r="6.5"/></svg>"#,
);

/// The reason why a part of a page cannot be shown.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Parameters of a URL, in order.
type Parameters = Vec<(String, String)>;

/// A request to a page.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) console: Arc<Console>,
    session: Session,
    pub(crate) now: Timestamp,
    pub(crate) zone: TimeZone,
    /// Show exact times instead of ages.
    exact: bool,
    path: String,
    query: Parameters,
}

impl FromRequestParts<Arc<Console>> for View {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<Console>,
    ) -> Result<View, Response> {
        let session = parts.extensions.get::<Session>().cloned();
        let session = session.ok_or_else(logged_out)?;
        let query = parts.uri.query().unwrap_or_default();
        let query = form_urlencoded::parse(query.as_bytes());
        let query: Parameters = query.into_owned().collect();
        let get = |name: &str| query.iter().find(|(key, _)| key == name);
        let is = |name: &str, value: &str| get(name).is_some_and(|(_, given)| given == value);
        let (exact, utc) = (is("time", "exact"), is("tz", "utc"));
        let zone = match utc {
            true => TimeZone::UTC,
            false => console.zone.clone(),
        };
        Ok(View {
            console: Arc::clone(console),
            session,
            now: console.now(),
            zone,
            exact,
            path: parts.uri.path().to_owned(),
            query,
        })
    }
}

impl View {
    /// Makes links as another page has them, for fragments of that page.
    pub(crate) fn show_as(&mut self, path: &str) {
        self.path = path.to_owned();
        self.query.retain(|(key, _)| key != "page");
    }

    /// The event stream of this page with other values of some parameters; none for a page that answers a form.
    pub(crate) fn events(&self, path: &str, parameters: &[(&str, &str)]) -> Option<String> {
        let page = path.trim_start_matches('/');
        let parameters = [&[("page", page)], parameters].concat();
        let shown = View {
            path: crate::live::PATH.to_owned(),
            ..self.clone()
        };
        (self.path == path).then(|| shown.with(&parameters))
    }

    /// A text that is the same for requests of one session to one URL.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.session.csrf, self.with(&[]))
    }

    /// A parameter of the URL, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut query = self.query.iter();
        let (_, value) = query.find(|(key, _)| key == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Hidden fields of a form that keep parameters of the URL.
    pub(crate) fn kept(&self, names: &[&str]) -> Markup {
        html! {
            @for name in names {
                @if let Some(value) = self.get(name) { input type="hidden" name=(name) value=(value); }
            }
        }
    }

    /// All values of a parameter that can be repeated.
    pub(crate) fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let query = self.query.iter().filter(move |(key, _)| key == name);
        query
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// A link to a page. The way in which times are shown goes along.
    pub(crate) fn href(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let kept = ["tz", "time"].into_iter();
        let kept = kept.filter_map(|name| Some((name, self.get(name)?)));
        let all = parameters
            .iter()
            .copied()
            .filter(|(_, value)| !value.is_empty());
        url(path, all.chain(kept))
    }

    /// The same with parameters of the page before them, unless they have other values.
    pub(crate) fn href_with(
        &self,
        path: &str,
        own: &[(&str, &str)],
        new: &[(&str, &str)],
    ) -> String {
        let is_new = |name: &str| new.iter().any(|(key, _)| *key == name);
        let kept = own.iter().copied().filter(|(name, _)| !is_new(name));
        let all: Vec<(&str, &str)> = kept.chain(new.iter().copied()).collect();
        self.href(path, &all)
    }

    /// A link to the same page with other values of some parameters; an empty value removes one.
    pub(crate) fn with(&self, parameters: &[(&str, &str)]) -> String {
        let replaced = |name: &str| parameters.iter().any(|(key, _)| *key == name);
        let kept = self.query.iter().filter(|(key, _)| !replaced(key));
        let kept = kept.map(|(key, value)| (key.as_str(), value.as_str()));
        let new = parameters
            .iter()
            .copied()
            .filter(|(_, value)| !value.is_empty());
        url(&self.path, kept.chain(new))
    }

    pub(crate) fn device(&self, shadow: &ShadowId) -> String {
        let name = match shadow.name() {
            antumbra_service::shadows::id::DEFAULT_NAME => "",
            name => name,
        };
        self.href("/device", &[("id", shadow.id()), ("name", name)])
    }

    /// Token for the forms of this session; [`crate::components::csrf`] renders it.
    pub(crate) fn csrf(&self) -> &str {
        &self.session.csrf
    }

    pub(crate) fn writes(&self) -> bool {
        self.console.write
    }

    /// Shows a message on the next page, and opens that page. For the result of a write.
    pub(crate) fn redirect(&self, href: &str, message: Markup) -> Response {
        self.session.set_toast(message);
        Redirect::to(href).into_response()
    }

    /// A time as an age, with the exact time on hover.
    pub(crate) fn ago(&self, then: Timestamp) -> Markup {
        let text = match self.exact {
            true => self.exact_text(then),
            false => time::age(self.now, then),
        };
        self.time(then, &text)
    }

    /// An exact time, where order matters.
    pub(crate) fn at(&self, then: Timestamp) -> Markup {
        self.time(then, &self.exact_text(then))
    }

    /// A time under a text of one's own.
    pub(crate) fn time(&self, then: Timestamp, text: &str) -> Markup {
        let Some(zoned) = time::zoned(then, &self.zone) else {
            return html! { time { (text) } };
        };
        let utc = zoned.with_time_zone(TimeZone::UTC);
        let exact = zoned.strftime("%Y-%m-%d %H:%M:%S%.3f %Z");
        let title = format!("{exact}, {}", utc.strftime("%H:%M:%S%.3fZ"));
        html! { time datetime=(then) title=(title) { (text) } }
    }

    /// `16:51:07` today, `11-15 16:51:07` in this year, else with the year.
    pub(crate) fn exact_text(&self, then: Timestamp) -> String {
        let (Some(then), Some(now)) = (
            time::zoned(then, &self.zone),
            time::zoned(self.now, &self.zone),
        ) else {
            return then.to_string();
        };
        let format = match () {
            () if then.date() == now.date() => "%H:%M:%S",
            () if then.year() == now.year() => "%m-%d %H:%M:%S",
            () => "%Y-%m-%d %H:%M:%S",
        };
        then.strftime(format).to_string()
    }

    /// A whole page: navigation and content. The content begins with its `.head`.
    pub(crate) fn page(&self, nav: Nav, title: &str, content: &Markup) -> Response {
        self.page_with(StatusCode::OK, nav, title, content)
    }

    pub(crate) fn page_with(
        &self,
        status: StatusCode,
        nav: Nav,
        title: &str,
        content: &Markup,
    ) -> Response {
        (status, self.whole(nav, title, content)).into_response()
    }

    /// Begins a page whose content takes time. The part up to the end of `head` is sent at once.
    pub(crate) fn start_page(&self, nav: Nav, title: &str, head: &Markup) -> StartedPage {
        // Escaped text contains no such comment.
        const REST: &str = "<!--rest-->";
        let page = self.whole(nav, title, &html! { (head) (PreEscaped(REST)) });
        let (start, end) = page.0.split_once(REST).unwrap_or((&page.0, ""));
        StartedPage {
            start: start.to_owned(),
            end: end.to_owned(),
        }
    }

    fn whole(&self, nav: Nav, title: &str, content: &Markup) -> Html<String> {
        let toast = self.session.take_toast();
        let body = html! {
            (ICONS)
            a.skip.btn href="#main" { "Skip to content" }
            div.shell {
                (self.side(nav))
                main.main #main { (content) }
            }
            @if let Some(message) = toast { (self::toast(&message)) }
        };
        document(title, &body)
    }

    fn side(&self, nav: Nav) -> Markup {
        let attention = &self.console.attention;
        let number = |page: Nav| match page {
            Nav::Deliveries => {
                let count = attention.open_circuits.load(Ordering::Relaxed);
                Some((count, "warn", "clients with an open circuit"))
            }
            Nav::Queues => {
                let count = attention.failed_messages.load(Ordering::Relaxed);
                Some((count, "bad", "messages that need attention"))
            }
            _ => None,
        };
        let place = &self.console.place;
        let local = time::zoned(self.now, &self.console.zone);
        let is_elsewhere = local.is_some_and(|now| now.strftime("%Z").to_string() != "UTC");
        let abbreviation = time::zoned(self.now, &self.zone);
        let abbreviation = abbreviation.map(|now| now.strftime("%Z").to_string());
        html! {
            header.side { div {
                a.brand href=(self.href("/", &[])) {
                    (MARK) "Antumbra" span.badge.edge.push { (place.name) }
                }
                nav aria-label="Pages" { ul {
                    @for (page, path, name, icon) in Nav::ALL {
                        li { a href=(self.href(path, &[])) aria-current=[(page == nav).then_some("page")] {
                            (PreEscaped(format!("<svg aria-hidden=\"true\"><use href=\"#{icon}\"/></svg>")))
                            (name)
                            @if let Some((count, tone, what)) = number(page) && count > 0 {
                                span class={ "push badge " (tone) } title={ (count) " " (what) } {
                                    span.sr { (what) ": " } (count)
                                }
                            }
                        } }
                    }
                } }
                dl.where {
                    @if let Some(account) = &place.account { dt { "Account" } dd { (account) } }
                    dt { "Table" } dd { code { (place.table) } }
                    dt { "Access" }
                    dd {
                        @if self.writes() { "read and write" }
                        @else { "read-only, " span.mute { "start with --write to change" } }
                    }
                    dt { "Times" }
                    dd {
                        (abbreviation.unwrap_or_default())
                        @if self.get("tz") == Some("utc") {
                            @if is_elsewhere { ", " a href=(self.with(&[("tz", "")])) { "show local" } }
                        } @else if is_elsewhere { ", " a href=(self.with(&[("tz", "utc")])) { "show UTC" } }
                        ", "
                        @if self.exact { a #times href=(self.with(&[("time", "")])) aria-keyshortcuts="t" { "ages" } }
                        @else { a #times href=(self.with(&[("time", "exact")])) aria-keyshortcuts="t" { "exact" } }
                    }
                    dd { kbd { "?" } " shortcuts" }
                }
            } }
        }
    }
}

/// A page whose head is known.
pub(crate) struct StartedPage {
    start: String,
    end: String,
}

impl StartedPage {
    /// Sends the head, then the content when it is there.
    pub(crate) fn finish(
        self,
        status: StatusCode,
        content: impl Future<Output = Markup> + Send + 'static,
    ) -> Response {
        let StartedPage { start, end } = self;
        let rest = async move { content.await.into_string() + &end };
        let parts = stream::once(async { start }).chain(stream::once(rest));
        let body = Body::from_stream(parts.map(Ok::<_, Infallible>));
        let mut response = (status, Html(body)).into_response();
        response.extensions_mut().insert(InParts);
        response
    }
}

/// The cursor of a page of a list; none for the first page.
pub(crate) fn cursor(text: &str) -> Option<Cursor> {
    Some(Cursor(text.to_owned())).filter(|cursor| !cursor.0.is_empty())
}

fn url<'a>(path: &str, parameters: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

fn document(title: &str, body: &Markup) -> Html<String> {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Antumbra" }
                link rel="stylesheet" href=(assets::CSS);
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                script src=(assets::SCRIPT) defer {}
            }
            body { (body) }
        }
    };
    Html(document.into_string())
}

/// A page without navigation, for requests that are refused.
pub(crate) fn refused(status: StatusCode, reason: &str) -> Response {
    let body = html! {
        main.main #main { div.empty {
            h2 { "Refused" }
            p { (reason) }
        } }
    };
    (status, document("Refused", &body)).into_response()
}

/// The page for requests without a session.
pub(crate) fn logged_out() -> Response {
    let body = html! {
        main.main #main { div.empty {
            h2 { "Open the console from your terminal" }
            p { "This browser is not logged in, or the console was started again. Press Enter in the terminal that runs "
                code { "antumbra local" } " or " code { "antumbra console" }
                ", and open the URL that it prints. Each URL opens the console once, within ten minutes." }
        } }
    };
    (StatusCode::UNAUTHORIZED, document("Log in", &body)).into_response()
}

/// The page for a handler that panicked.
pub(crate) fn panicked(reason: Box<dyn std::any::Any + Send>) -> Response {
    let text = reason.downcast_ref::<&str>().copied();
    let text = text.or(reason.downcast_ref::<String>().map(String::as_str));
    tracing::error!(reason = text, "a page of the console panicked");
    refused(
        StatusCode::INTERNAL_SERVER_ERROR,
        "The page failed because of a defect. The log of the console has the reason.",
    )
}
