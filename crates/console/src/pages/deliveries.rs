//! `/deliveries`: webhook clients with the state of their circuits, deliveries with every attempt, redelivery.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use antumbra_service::access::IdRanges;
use antumbra_service::clients::{Client, ClientId, ClientState};
use antumbra_service::deliveries::{
    Attempt, DeliveryId, DeliveryRecord, HistoryQuery, RedeliverError, Status, Subject, Waiting,
    body,
};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::sensors::{EventType, SensorId};
use antumbra_shadow::Timestamp;
use axum::Router;
use axum::extract::Form;
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{
    Tone, badge, cmd, command, csrf, cut, cut_at, empty, error_note, note, number, quoted,
    write_button,
};
use crate::json;
use crate::state::Console;
use crate::time;
use crate::view::{Nav, View};

const PATH: &str = "/deliveries";
const REDELIVER: &str = "/deliveries/redeliver";
const REDELIVER_SINCE: &str = "/deliveries/redeliver-since";
const ENABLE: &str = "/deliveries/enable";
const TEST: &str = "/deliveries/test";

/// Clients of a page.
const CLIENTS: usize = 25;
/// Deliveries of a page.
const PAGE: usize = 50;
/// Attempts in the bars of a client, and the deliveries that are read for them: the newest may have none yet.
const BARS: usize = 20;
const BARS_DELIVERIES: usize = 100;
/// Clients whose attempts are read at once.
const AT_ONCE: usize = 8;
/// Deliveries that a dry run counts at most.
const PLANNED: usize = 1000;
/// Time after which a redelivery of many ends.
const REDELIVER_TIME: Duration = Duration::from_secs(20);

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(REDELIVER, post(redeliver))
        .route(REDELIVER_SINCE, post(redeliver_since))
        .route(ENABLE, post(enable))
        .route(TEST, post(test))
}

/// The state of the page, from its URL or from a form.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Asked {
    client: String,
    sensor: String,
    status: String,
    delivery: String,
    cursor: String,
    /// Show what a redelivery since this time would queue.
    since: String,
    /// Ask before the client is enabled.
    enable: String,
    clients_cursor: String,
}

impl Asked {
    fn read(view: &View) -> Asked {
        let get = |name: &str| view.get(name).unwrap_or_default().to_owned();
        Asked {
            client: get("client"),
            sensor: get("sensor"),
            status: get("status"),
            delivery: get("delivery"),
            cursor: get("cursor"),
            since: get("since"),
            enable: get("enable"),
            clients_cursor: get("clients"),
        }
    }

    /// A link to this page with other values; those that narrow the list stay.
    fn href(&self, view: &View, parameters: &[(&str, &str)]) -> String {
        let own = [
            ("clients", self.clients_cursor.as_str()),
            ("client", &self.client),
            ("sensor", &self.sensor),
            ("status", &self.status),
            ("cursor", &self.cursor),
        ];
        let is_replaced = |name: &str| parameters.iter().any(|(key, _)| *key == name);
        let kept = own.into_iter().filter(|(name, _)| !is_replaced(name));
        let all: Vec<(&str, &str)> = kept.chain(parameters.iter().copied()).collect();
        view.href(PATH, &all)
    }
}

/// A client and its last attempts, oldest first.
struct ClientRow {
    client: Client,
    attempts: Vec<Attempt>,
    last_success: Option<Timestamp>,
}

struct Model {
    asked: Asked,
    clients: Vec<ClientRow>,
    next_clients: Option<Cursor>,
    list: Result<Page<DeliveryRecord>, String>,
    /// The delivery that is shown, with the body of its request.
    selected: Option<Result<(DeliveryRecord, Option<String>), String>>,
    /// Dry run of a redelivery since a time.
    plan: Option<Result<Plan, String>>,
    /// Deliveries that are held for the client to be enabled.
    held: Option<usize>,
}

/// Dry run of a redelivery since a time.
struct Plan {
    since: Timestamp,
    by_status: Vec<(Status, usize)>,
    has_more: bool,
}

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    respond(&view, asked, None).await
}

async fn respond(view: &View, asked: Asked, failure: Option<Markup>) -> Response {
    let content = match model(view, asked).await {
        Ok(model) => render(view, &model, failure.as_ref()),
        Err(error) => html! {
            (head())
            (error_note("The clients cannot be listed.", &error, view))
        },
    };
    view.page(Nav::Deliveries, "Deliveries", &content)
}

async fn model(view: &View, mut asked: Asked) -> Result<Model, String> {
    let services = &view.console.services;
    let cursor = Some(Cursor(asked.clients_cursor.clone())).filter(|cursor| !cursor.0.is_empty());
    let page = services
        .clients
        .list(&IdRanges::all(), CLIENTS, cursor.as_ref())
        .await;
    let page = page.map_err(|error| error.to_string())?;
    if cursor.is_none() {
        let is_open = |client: &&Client| circuit(client, view.now).is_bad;
        let open = page.rows.iter().filter(is_open).count();
        view.console
            .attention
            .open_circuits
            .store(open, Ordering::Relaxed);
    }
    let rows = stream::iter(page.rows).map(|client| read_attempts(view, client));
    let clients: Vec<ClientRow> = rows.buffered(AT_ONCE).collect().await;
    if asked.client.is_empty() && asked.sensor.is_empty() {
        // The client that needs attention, or the first.
        let bad = clients
            .iter()
            .find(|row| circuit(&row.client, view.now).is_bad);
        let chosen = bad.or(clients.first());
        asked.client = chosen.map_or(String::new(), |row| row.client.id.to_string());
    }
    let selected = async {
        match asked.delivery.as_str() {
            "" => None,
            id => Some(selected(view, id).await),
        }
    };
    let plan = async {
        match asked.since.as_str() {
            "" => None,
            since => Some(plan(view, &asked.client, since).await),
        }
    };
    let held = async {
        match asked.enable.as_str() {
            "" => None,
            _ => Some(count_held(view, &asked.client).await),
        }
    };
    let (list, selected, plan, held) =
        future::join4(list(view, &asked), selected, plan, held).await;
    Ok(Model {
        asked,
        clients,
        next_clients: page.next,
        list,
        selected,
        plan,
        held,
    })
}

async fn read_attempts(view: &View, client: Client) -> ClientRow {
    let query = HistoryQuery {
        limit: BARS_DELIVERIES,
        ..HistoryQuery::of(Subject::Client(client.id.clone()))
    };
    let found = view.console.services.deliveries.list(&query, None).await;
    let rows = found.map(|page| page.rows).unwrap_or_default();
    let mut attempts: Vec<Attempt> = rows.into_iter().flat_map(|row| row.attempts).collect();
    attempts.sort_by_key(|attempt| attempt.at);
    let success = attempts.iter().rev().find(|attempt| succeeded(attempt));
    let last_success = success.map(|attempt| attempt.at);
    let first = attempts.len().saturating_sub(BARS);
    ClientRow {
        client,
        attempts: attempts.split_off(first),
        last_success,
    }
}

async fn list(view: &View, asked: &Asked) -> Result<Page<DeliveryRecord>, String> {
    let none = Page {
        rows: Vec::new(),
        next: None,
    };
    let subject = match (asked.client.as_str(), asked.sensor.as_str()) {
        ("", "") => return Ok(none),
        ("", sensor) => Subject::Sensor(SensorId::new(sensor).map_err(|fault| fault.to_string())?),
        (client, _) => Subject::Client(ClientId::new(client).map_err(|fault| fault.to_string())?),
    };
    let query = HistoryQuery {
        status: asked.status.parse().ok(),
        limit: PAGE,
        ..HistoryQuery::of(subject)
    };
    let cursor = Some(Cursor(asked.cursor.clone())).filter(|cursor| !cursor.0.is_empty());
    let deliveries = &view.console.services.deliveries;
    let page = deliveries.list(&query, cursor.as_ref()).await;
    let mut page = page.map_err(|error| error.to_string())?;
    if !asked.client.is_empty() && !asked.sensor.is_empty() {
        let is_of_sensor = |record: &DeliveryRecord| {
            let sensor = record.delivery.sensor.as_ref();
            sensor.is_some_and(|sensor| sensor.id.as_str() == asked.sensor)
        };
        page.rows.retain(is_of_sensor);
    }
    Ok(page)
}

async fn selected(view: &View, id: &str) -> Result<(DeliveryRecord, Option<String>), String> {
    let services = &view.console.services;
    let id: DeliveryId = id
        .parse()
        .map_err(|_| "This is not the id of a delivery.".to_owned())?;
    let record = services
        .deliveries
        .get(&id)
        .await
        .map_err(|error| error.to_string())?;
    let client = services.clients.get(id.client()).await.ok();
    let body = client.map(|client| body(&record.delivery, &client));
    Ok((record, body))
}

async fn plan(view: &View, client: &str, since: &str) -> Result<Plan, String> {
    let client = ClientId::new(client).map_err(|fault| fault.to_string())?;
    let since = time::parse(since, view.now, &view.zone);
    let since = since.ok_or("Write the time as 16:00, -10m, or a date and time.")?;
    let query = HistoryQuery {
        from: Some(since),
        oldest_first: true,
        limit: PLANNED,
        ..HistoryQuery::of(Subject::Client(client))
    };
    let page = view.console.services.deliveries.list(&query, None).await;
    let page = page.map_err(|error| error.to_string())?;
    let of = |status: Status| page.rows.iter().filter(|row| row.status == status).count();
    let by_status = Status::ALL.iter().map(|status| (*status, of(*status)));
    Ok(Plan {
        since,
        by_status: by_status.filter(|(_, count)| *count > 0).collect(),
        has_more: page.next.is_some(),
    })
}

async fn count_held(view: &View, client: &str) -> usize {
    let Ok(client) = ClientId::new(client) else {
        return 0;
    };
    let query = HistoryQuery {
        status: Some(Status::Held),
        limit: PLANNED,
        ..HistoryQuery::of(Subject::Client(client))
    };
    let page = view.console.services.deliveries.list(&query, None).await;
    page.map_or(0, |page| page.rows.len())
}

/// The client of a form, or a page that says what is wrong with it.
async fn client_of(view: &View, asked: &Asked) -> Result<ClientId, Response> {
    match ClientId::new(asked.client.clone()) {
        Ok(client) => Ok(client),
        Err(fault) => {
            let failure = error_note("There is no such client.", &fault, view);
            Err(respond(view, asked.clone(), Some(failure)).await)
        }
    }
}

async fn failed(view: &View, asked: Asked, what: &str, error: &RedeliverError) -> Response {
    let failure = error_note(what, error, view);
    respond(view, asked, Some(failure)).await
}

async fn redeliver(view: View, Form(asked): Form<Asked>) -> Response {
    let Ok(id) = asked.delivery.parse::<DeliveryId>() else {
        let failure = note(
            Tone::Bad,
            "Nothing was queued.",
            &html! { "This is not the id of a delivery." },
            &html! {},
        );
        return respond(&view, asked, Some(failure)).await;
    };
    match view.console.services.deliveries.redeliver(&id).await {
        Ok(()) => {
            let message = html! { span { b.ok { "Queued:" } " another round of this delivery" } };
            let client = id.client().to_string();
            let href = view.href(PATH, &[("client", &client), ("delivery", &asked.delivery)]);
            view.redirect(&href, message)
        }
        Err(error) => failed(&view, asked, "The delivery was not queued.", &error).await,
    }
}

async fn test(view: View, Form(asked): Form<Asked>) -> Response {
    let client = match client_of(&view, &asked).await {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    match view.console.services.deliveries.test(&client).await {
        Ok(id) => {
            let message =
                html! { span { b.ok { "Queued:" } " test delivery to " code { (client) } } };
            let href = view.href(
                PATH,
                &[("client", client.as_str()), ("delivery", &id.to_string())],
            );
            view.redirect(&href, message)
        }
        Err(error) => failed(&view, asked, "The test was not queued.", &error).await,
    }
}

async fn enable(view: View, Form(asked): Form<Asked>) -> Response {
    let client = match client_of(&view, &asked).await {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    match view.console.services.deliveries.enable(&client).await {
        Ok(release) => {
            let message = html! { span {
                b.ok { "Enabled:" } " " code { (client) } ", " (number(release.queued as i64)) " held deliveries queued"
                @if !release.finished { "; the rest follows" }
            } };
            view.redirect(&view.href(PATH, &[("client", client.as_str())]), message)
        }
        Err(error) => failed(&view, asked, "The client was not enabled.", &error).await,
    }
}

async fn redeliver_since(view: View, Form(asked): Form<Asked>) -> Response {
    let client = match client_of(&view, &asked).await {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    let Some(since) = Timestamp::parse(&asked.since) else {
        let failure = note(
            Tone::Bad,
            "Nothing was queued.",
            &html! { "The time is missing." },
            &html! {},
        );
        return respond(&view, asked, Some(failure)).await;
    };
    let deliveries = &view.console.services.deliveries;
    let until = view.now.after(REDELIVER_TIME);
    let (mut queued, mut cursor) = (0, None);
    loop {
        let part = deliveries
            .redeliver_since(&client, since, false, cursor.as_ref())
            .await;
        match part {
            Ok(part) => {
                queued += part.queued;
                cursor = part.next;
            }
            Err(error) => {
                let what = format!("The redelivery stopped after {queued} deliveries.");
                return failed(&view, asked, &what, &error).await;
            }
        }
        let is_late = view.console.now() > until;
        if cursor.is_none() || is_late {
            let message = html! { span {
                b.ok { "Queued:" } " " (number(queued as i64)) " deliveries to " code { (client) }
                @if cursor.is_some() { ". There are more: redeliver again" }
            } };
            return view.redirect(&view.href(PATH, &[("client", client.as_str())]), message);
        }
    }
}

/// The circuit of a client in words.
struct CircuitState {
    is_bad: bool,
    html: Markup,
}

fn circuit(client: &Client, now: Timestamp) -> CircuitState {
    let failures = client.circuit.failures;
    let html = |html| CircuitState {
        is_bad: false,
        html,
    };
    if let ClientState::Disabled { reason, .. } = &client.state {
        return CircuitState {
            is_bad: true,
            html: html! { (badge(Tone::Bad, "disabled")) " " span.soft { bdi { (cut(reason)) } } },
        };
    }
    match client.circuit.open_until {
        Some(until) if until > now => {
            let wait = time::duration(until.nanoseconds() - now.nanoseconds());
            CircuitState {
                is_bad: true,
                html: html! { span.dot.bad { "open" } " " span.soft { "probe in " (wait) } },
            }
        }
        Some(_) => {
            html(html! { span.dot.warn { "probing" } " " span.soft { (failures) " failures" } })
        }
        None if failures > 0 => {
            html(html! { span.dot.ok { "closed" } " " span.soft { (failures) " failures" } })
        }
        None => html(html! { span.dot.ok { "closed" } }),
    }
}

fn head() -> Markup {
    html! {
        div.head {
            h1 { "Deliveries" }
            span.mute { "Webhooks to the clients of sensors" }
        }
    }
}

fn render(view: &View, model: &Model, failure: Option<&Markup>) -> Markup {
    let asked = &model.asked;
    if model.clients.is_empty() && asked.clients_cursor.is_empty() {
        return html! {
            (head())
            div.stack {
                @if let Some(failure) = failure { (failure) }
                section.panel {
                    (empty("No clients yet", &html! {
                        p { "A client is a webhook that receives the events of the sensors it is linked to." }
                        (cmd(&command(view, "clients create 'Night watch' https://hooks.example.com/antumbra")))
                    }))
                }
            }
        };
    }
    let has_aside = model.selected.is_some() || model.plan.is_some();
    let arguments = match asked.client.as_str() {
        "" => "clients list".to_owned(),
        client => format!("clients deliveries {}", quoted(client)),
    };
    html! {
        (head())
        div.stack {
            @if let Some(failure) = failure { (failure) }
            @if let Some(held) = model.held { (ask_enable(view, asked, held)) }
            (clients(view, model))
            (filter(view, model))
            div class={ "cols" @if has_aside { " cols-inspect" } } {
                (deliveries(view, model))
                @if let Some(plan) = &model.plan { (dry_run(view, asked, plan)) }
                @else if let Some(selected) = &model.selected { (inspector(view, asked, selected)) }
            }
            (cmd(&command(view, &arguments)))
        }
    }
}

fn ask_enable(view: &View, asked: &Asked, held: usize) -> Markup {
    let actions = html! {
        form.line method="post" action=(ENABLE) {
            (csrf(view))
            input type="hidden" name="client" value=(asked.client);
            (write_button(view, "primary small", &format!("Enable, release {}", number(held as i64))))
            a.btn.small href=(asked.href(view, &[])) { "Cancel" }
        }
    };
    let detail = html! {
        (number(held as i64)) @if held >= PLANNED { " or more" }
        " held deliveries would be queued, oldest first. Nothing has been changed yet."
    };
    note(
        Tone::Info,
        &format!("Enable {}?", asked.client),
        &detail,
        &actions,
    )
}

fn clients(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    html! {
        section.panel {
            header { h2 { "Clients" } span.mute { (model.clients.len()) @if model.next_clients.is_some() { " of more" } } }
            table.fixed {
                colgroup {
                    col; col class="w11 p2"; col class="w4 p1"; col class="w8"; col class="wc"; col class="w6 p1"; col class="w8 p1";
                }
                thead { tr {
                    th { "Client" } th class="p2" { "URL" } th class="p1" { "Mode" } th { "Last 20 attempts" }
                    th { "Circuit" } th class="p1" { "Last success" } th class="p1" { span.sr { "Actions" } }
                } }
                tbody {
                    @for row in &model.clients {
                        @let client = &row.client;
                        @let id = client.id.as_str();
                        tr aria-current=[(asked.client == id).then_some("true")] {
                            td title=(cut(&client.name)) {
                                a href=(view.href(PATH, &[("clients", &asked.clients_cursor), ("client", id)])) { bdi { (cut(&client.name)) } }
                                " " span class="mute mono p1" { bdi { (cut(id)) } }
                            }
                            td class="p2 mono soft" title=(cut_at(&client.url, 500)) { bdi { (cut(&client.url)) } }
                            td class="p1 soft" { (client.mode) }
                            td { (bars(&row.attempts)) }
                            td { (circuit(client, view.now).html) }
                            td class="p1 soft" { @match row.last_success { Some(time) => (view.ago(time)), None => span.mute { "none" } } }
                            td class="p1 right" { (client_action(view, asked, client)) }
                        }
                    }
                }
            }
            @if let Some(next) = &model.next_clients {
                footer { a class="btn small push" href=(view.href(PATH, &[("clients", &next.0)])) { "Next clients" } }
            }
        }
    }
}

fn client_action(view: &View, asked: &Asked, client: &Client) -> Markup {
    let id = client.id.as_str();
    match client.state {
        ClientState::Disabled { .. } => {
            let href = view.href(
                PATH,
                &[
                    ("clients", &asked.clients_cursor),
                    ("client", id),
                    ("enable", "1"),
                ],
            );
            html! { a.btn.small href=(href) { "Enable…" } }
        }
        ClientState::Enabled => html! {
            form method="post" action=(TEST) {
                (csrf(view))
                input type="hidden" name="client" value=(id);
                (write_button(view, "small quiet", "Send test"))
            }
        },
    }
}

/// Returns whether the endpoint accepted a delivery.
fn succeeded(attempt: &Attempt) -> bool {
    attempt.error.is_none() && matches!(attempt.status, Some(200..300))
}

/// The last attempts of a client, oldest first: half-height bars for successes, full ones for failures.
fn bars(attempts: &[Attempt]) -> Markup {
    if attempts.is_empty() {
        return html! { span.mute { "none" } };
    }
    let failed = attempts
        .iter()
        .filter(|attempt| !succeeded(attempt))
        .count();
    let label = format!(
        "Last {} attempts, oldest first: {} succeeded, {failed} failed",
        attempts.len(),
        attempts.len() - failed
    );
    html! {
        svg.ticks viewBox="0 0 100 14" role="img" aria-label=(label) {
            @for (at, attempt) in attempts.iter().enumerate() {
                @if !succeeded(attempt) { rect.n x=(5 * at) y="0" width="3" height="14" {} }
                @else { rect.y x=(5 * at) y="7" width="3" height="7" {} }
            }
        }
    }
}

fn filter(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let known = model
        .clients
        .iter()
        .any(|row| row.client.id.as_str() == asked.client);
    let statuses = [
        ("", "All"),
        ("delivered", "Delivered"),
        ("failed", "Failed"),
        ("dead", "Dead"),
        ("held", "Held"),
    ];
    html! {
        form.filter method="get" action=(PATH) {
            @for name in ["tz", "time", "clients", "status"] {
                @if let Some(value) = view.get(name) { input type="hidden" name=(name) value=(value); }
            }
            label { "Client "
                select.field name="client" {
                    option value="" selected[asked.client.is_empty()] { "of the sensor" }
                    @if !known && !asked.client.is_empty() { option value=(asked.client) selected { (cut(&asked.client)) } }
                    @for row in &model.clients {
                        @let id = row.client.id.as_str();
                        option value=(id) selected[asked.client == id] { (id) }
                    }
                }
            }
            label { "Sensor "
                input class="field mono" name="sensor" size="12" placeholder="any" spellcheck="false" autocomplete="off"
                    value=(asked.sensor) aria-keyshortcuts="/";
            }
            nav.seg aria-label="Status" {
                @for (value, word) in statuses {
                    a href=(asked.href(view, &[("status", value), ("cursor", "")])) aria-current=[(asked.status == value).then_some("true")] { (word) }
                }
            }
            button.btn { "Filter" }
            @if !asked.client.is_empty() {
                span.push { a.btn href=(asked.href(view, &[("since", "-1h"), ("cursor", "")])) { "Redeliver all since…" } }
            }
        }
    }
}

/// An event with its values, such as `state.changed 0 to 1`.
pub(super) fn event(kind: EventType, data: &serde_json::value::RawValue) -> Markup {
    let data: serde_json::Value = serde_json::from_str(data.get()).unwrap_or_default();
    html! {
        (kind)
        @if kind == EventType::StateChanged {
            " " bdi { (cut_at(&data["previous"].to_string(), 40)) } " to " bdi { (cut_at(&data["current"].to_string(), 40)) }
        }
    }
}

pub(super) fn status_badge(record: &DeliveryRecord) -> Markup {
    let begun = record.progress.begun;
    match record.status {
        Status::Delivered => badge(Tone::Ok, "delivered"),
        Status::Failed => badge(Tone::Warn, format!("failed, {begun}")),
        Status::Dead => badge(Tone::Bad, format!("dead, {begun}")),
        Status::Held => badge(Tone::Warn, "held"),
        status => badge(Tone::Plain, status),
    }
}

/// The result of the last attempt, or the reason why no attempt was made.
fn last_attempt(record: &DeliveryRecord) -> String {
    match (record.attempts.last(), record.status) {
        (_, Status::Skipped) => "client or link was removed".to_owned(),
        (_, Status::Superseded) => "a newer event replaced it".to_owned(),
        (Some(attempt), _) => match (attempt.status, &attempt.error) {
            (Some(status), _) => format!("{status} in {}", latency(attempt.latency_ms)),
            (None, Some(error)) => cut_at(error, 100).into_owned(),
            (None, None) => latency(attempt.latency_ms),
        },
        (None, Status::Held) => "the client is disabled".to_owned(),
        (None, _) => "none yet".to_owned(),
    }
}

fn latency(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1000.0),
    }
}

fn deliveries(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let page = match &model.list {
        Ok(page) => page,
        Err(error) => return error_note("The deliveries cannot be listed.", error, view),
    };
    html! {
        section.panel {
            header {
                h2 {
                    @match (asked.client.as_str(), asked.sensor.as_str()) {
                        ("", sensor) => { "Deliveries about " bdi { (cut(sensor)) } }
                        (client, _) => { "Deliveries to " bdi { (cut(client)) } }
                    }
                }
                @if !asked.status.is_empty() { span.mute { (cut(&asked.status)) } }
            }
            @if page.rows.is_empty() {
                (empty("No deliveries", &html! {
                    p {
                        @if page.next.is_some() { "None of those that were read; there are older ones." }
                        @else if asked.status.is_empty() && asked.sensor.is_empty() { "An event of a sensor that the client is linked to becomes a delivery. " "Send a test to try the endpoint." }
                        @else { "None matches the filter." }
                    }
                    @if !asked.status.is_empty() || !asked.sensor.is_empty() {
                        p { a class="btn quiet" href=(view.href(PATH, &[("client", &asked.client)])) { "Clear filter" } }
                    }
                }))
            } @else {
                table.fixed {
                    colgroup { col class="w6"; col; col class="w6 p1"; col class="w6"; col class="w8 p1"; }
                    thead { tr { th { "Occurred" } th { "Event" } th class="p1" { "Sensor" } th { "Status" } th class="p1" { "Last attempt" } } }
                    tbody {
                        @for record in &page.rows {
                            @let id = record.delivery.id.to_string();
                            @let sensor = record.delivery.sensor.as_ref().map_or("", |sensor| sensor.id.as_str());
                            @let last = last_attempt(record);
                            tr aria-current=[(asked.delivery == id).then_some("true")] {
                                td.soft { a href=(asked.href(view, &[("delivery", &id)])) { (view.at(record.delivery.occurred_at)) } }
                                td.mono {
                                    (event(record.delivery.event_type, &record.delivery.data))
                                    span.sub.only-narrow { bdi { (cut(sensor)) } @if !sensor.is_empty() { ", " } bdi { (last) } }
                                }
                                td class="p1 mono soft" { bdi { (cut(sensor)) } }
                                td { (status_badge(record)) }
                                td class="p1 soft" title=(last) { bdi { (last) } }
                            }
                        }
                    }
                }
            }
            footer {
                span { "Kept for 30 days" }
                @if let Some(next) = &page.next { a class="btn small push" href=(asked.href(view, &[("cursor", &next.0)])) { "Older" } }
            }
        }
    }
}

fn next_attempt(view: &View, record: &DeliveryRecord) -> Markup {
    let progress = &record.progress;
    html! {
        @match (record.status, progress.waiting) {
            (Status::Delivered | Status::Dead | Status::Skipped | Status::Superseded, _) => { "none" }
            (_, Some(Waiting::Held)) => { "when the client is enabled" }
            (_, Some(Waiting::Behind)) => { "after the earlier deliveries of this sensor" }
            _ => {
                @match progress.not_before {
                    Some(time) if time > view.now => { b { (view.at(time)) } ", " (time::age(view.now, time)) }
                    _ => { "as soon as the queue is read" }
                }
            }
        }
    }
}

fn inspector(
    view: &View,
    asked: &Asked,
    selected: &Result<(DeliveryRecord, Option<String>), String>,
) -> Markup {
    let (record, body) = match selected {
        Ok(selected) => selected,
        Err(error) => {
            return html! {
                aside.panel aria-label="Delivery" {
                    header { h2 { "Delivery" } span.push { a class="btn small quiet" href=(asked.href(view, &[])) data-close { "Close" } } }
                    div.body { (error_note("The delivery cannot be shown.", error, view)) }
                }
            };
        }
    };
    let delivery = &record.delivery;
    let sensor = delivery.sensor.as_ref().map(|sensor| sensor.id.as_str());
    html! {
        aside.panel aria-label="Delivery" {
            header {
                h2 { (event(delivery.event_type, &delivery.data)) @if let Some(sensor) = sensor { ", " bdi { (cut(sensor)) } } }
                span.push { (status_badge(record)) " " a class="btn small quiet" href=(asked.href(view, &[])) data-close { "Close" } }
            }
            div.body.stack {
                dl.kv {
                    dt { "Id" } dd.mono { (delivery.id) }
                    dt { "Client" } dd.mono { (delivery.id.client()) }
                    dt { "Occurred" } dd { (view.at(delivery.occurred_at)) @if delivery.sequence > 0 { ", sequence " (number(delivery.sequence)) } }
                    dt { "Next attempt" } dd { (next_attempt(view, record)) }
                }
                form.line method="post" action=(REDELIVER) {
                    (csrf(view))
                    input type="hidden" name="client" value=(delivery.id.client());
                    input type="hidden" name="delivery" value=(delivery.id);
                    (write_button(view, "primary", "Redeliver now"))
                    @if let Some(sensor) = sensor { " " a.btn href=(view.href("/sensors", &[("id", sensor)])) { "Open sensor" } }
                }
            }
            @if record.attempts.is_empty() { div.body { p.mute { "No attempt was made yet." } } }
            @else {
                table {
                    caption.sr { "Attempts" }
                    thead { tr { th.num { "#" } th { "Attempt" } th { "Result" } th.num { "Took" } } }
                    tbody {
                        @for attempt in record.attempts.iter().rev().take(100) {
                            tr {
                                td.num.mute { @if record.progress.round > 0 { (attempt.round + 1) "." } (attempt.number) }
                                td.soft { (view.at(attempt.at)) }
                                (attempt_result(attempt))
                                td.num.soft { (latency(attempt.latency_ms)) }
                            }
                        }
                    }
                }
            }
            details.body open { summary { "Request body" }
                @match body { Some(body) => (json::pretty(body)), None => (json::pretty(delivery.data.get())) }
            }
        }
    }
}

fn attempt_result(attempt: &Attempt) -> Markup {
    let class = match succeeded(attempt) {
        true => "ok",
        false => "bad",
    };
    let status = attempt.status.map(|status| status.to_string());
    let status = status.unwrap_or_default();
    let error = attempt.error.as_deref().unwrap_or_default();
    html! {
        td class=(class) {
            @if error.is_empty() || !error.contains(&status) { (status) @if !error.is_empty() { ", " } }
            @if !error.is_empty() { bdi { (cut(error)) } }
        }
    }
}

fn dry_run(view: &View, asked: &Asked, plan: &Result<Plan, String>) -> Markup {
    let typed = html! {
        form.filter method="get" action=(PATH) {
            input type="hidden" name="client" value=(asked.client);
            label { "Since " input class="field mono" name="since" size="16" value=(asked.since) spellcheck="false" autocomplete="off"; }
            button.btn { "Plan" }
        }
    };
    html! {
        aside.panel aria-label="Redeliver since" {
            header {
                h2 { "Redeliver to " bdi { (cut(&asked.client)) } } (badge(Tone::Info, "dry run"))
                span.push { a class="btn small quiet" href=(asked.href(view, &[])) data-close { "Close" } }
            }
            div.body.stack {
                (typed)
                @match plan {
                    Err(error) => (note(Tone::Bad, "The time cannot be used.", &html! { bdi { (cut(error)) } }, &html! {})),
                    Ok(plan) => {
                        @let queued: usize = plan.by_status.iter().filter(|(status, _)| *status != Status::Delivered).map(|(_, count)| count).sum();
                        p.soft { "Nothing has been queued yet. Of the events since " (view.at(plan.since)) ":" }
                        table {
                            thead { tr { th.num { "Count" } th { "Outcome" } } }
                            tbody {
                                @for (status, count) in &plan.by_status {
                                    tr {
                                        td.num { (number(*count as i64)) }
                                        @if *status == Status::Delivered { td.soft { "left: delivered" } }
                                        @else { td { (status) ", queued again" } }
                                    }
                                }
                                @if plan.by_status.is_empty() { tr { td.num { "0" } td.soft { "no events since then" } } }
                            }
                        }
                        @if plan.has_more { p.soft { "There are more than " (number(PLANNED as i64)) "; all of them would be queued." } }
                        form.line method="post" action=(REDELIVER_SINCE) {
                            (csrf(view))
                            input type="hidden" name="client" value=(asked.client);
                            input type="hidden" name="since" value=(plan.since);
                            @if queued == 0 { button.btn disabled { "Nothing to redeliver" } }
                            @else { (write_button(view, "primary", &format!("Redeliver {}", number(queued as i64)))) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_is_no_success_is_a_failure() {
        let attempt = |status: Option<u16>, error: Option<&str>| Attempt {
            at: Timestamp::from_nanoseconds(0),
            round: 0,
            number: 1,
            status,
            latency_ms: 7,
            error: error.map(str::to_owned),
        };
        let attempts = [
            attempt(Some(204), None),
            attempt(Some(503), None),
            attempt(None, Some("connection refused")),
        ];
        let html = bars(&attempts).into_string();
        assert!(html.contains("1 succeeded, 2 failed"), "{html}");
        let result = |attempt: &Attempt| attempt_result(attempt).into_string();
        assert_eq!(result(&attempts[0]), "<td class=\"ok\">204</td>");
        assert_eq!(result(&attempts[1]), "<td class=\"bad\">503</td>");
        assert_eq!(
            result(&attempts[2]),
            "<td class=\"bad\"><bdi>connection refused</bdi></td>"
        );
    }
}
