//! `/registrations`: the rules, and a test bench: which of them match a change, and which line decides.
//!
//! The change is a recorded one of a shadow, or typed. A draft of a pattern is tried on the same change, and on the changes
//! of the shadow in the last 24 hours. Nothing is saved: registrations are files.

mod code;
mod subject;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use antumbra_registration::{Registrations, Trace, explain, trace};
use antumbra_service::history::{ChangeQuery, RecordedChange};
use antumbra_service::shadows::{ShadowId, ShadowStore as _, State};
use antumbra_shadow::{Document, Timestamp};
use axum::Router;
use axum::extract::RawForm;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde_json::value::RawValue;

use crate::components::{Tone, cmd, command, csrf, cut, cut_at, empty, error_note, note, number};
use crate::json::{self, Json};
use crate::state::Console;
use crate::view::{Nav, View};
use subject::Subject;

const PATH: &str = "/registrations";
const TRY: &str = "/registrations/try";
/// Registrations that are listed, in the table and in each part of the result.
const ROWS: usize = 200;
/// Recorded changes to choose from.
const CHANGES: usize = 25;
/// Time over which a draft is tried.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Changes on which a draft is tried at most, and their bytes.
const DAY_CHANGES: usize = 1000;
const DAY_BYTES: usize = 16 * 1024 * 1024;
/// Texts up to this size are in the URL.
const URL_BYTES: usize = 6 * 1024;

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(TRY, post(show_long))
}

async fn show(view: View) -> Response {
    let asked = Asked::read(|name| view.get(name).map(str::to_owned));
    respond(&view, asked).await
}

/// The same for texts that are too long for a URL.
async fn show_long(view: View, RawForm(form): RawForm) -> Response {
    let fields: Vec<(String, String)> = form_urlencoded::parse(&form).into_owned().collect();
    let field = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    };
    let asked = Asked::read(|name| field(name).filter(|value| !value.is_empty()));
    respond(&view, asked).await
}

/// The state of the page, from its URL.
#[derive(Debug, Clone, Default)]
struct Asked {
    /// Name of the selected registration.
    name: Option<String>,
    shadow: Option<String>,
    shadow_name: Option<String>,
    /// A recorded change: `reported@TIME`.
    change: Option<String>,
    /// State of a typed change.
    state: Option<String>,
    /// Key of an item that is not a shadow.
    key: Option<String>,
    old: Option<String>,
    new: Option<String>,
    draft: Option<String>,
}

impl Asked {
    fn read(get: impl Fn(&str) -> Option<String>) -> Asked {
        // A link from another page to a recorded change of a shadow.
        if let (Some(id), Some(at)) = (get("id"), get("at")) {
            let state = get("state").unwrap_or_else(|| State::Reported.to_string());
            return Asked {
                shadow: Some(id),
                shadow_name: get("name"),
                change: Some(format!("{state}@{at}")),
                ..Asked::default()
            };
        }
        Asked {
            name: get("name"),
            shadow: get("shadow"),
            shadow_name: get("sname"),
            change: get("change"),
            state: get("state"),
            key: get("key"),
            old: get("old"),
            new: get("new"),
            draft: get("draft"),
        }
    }

    fn is_typed(&self) -> bool {
        self.old.is_some() || self.new.is_some()
    }

    /// The parameters that name the change.
    fn change_parameters(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("shadow", &self.shadow),
            ("sname", &self.shadow_name),
            ("change", &self.change),
            ("state", &self.state),
            ("key", &self.key),
            ("old", &self.old),
            ("new", &self.new),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect()
    }

    /// Returns whether the change is too long for a URL.
    fn is_long(&self) -> bool {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        bytes(&self.old) + bytes(&self.new) > URL_BYTES
    }

    fn shadow(&self) -> Result<Option<ShadowId>, String> {
        let Some(id) = &self.shadow else {
            return Ok(None);
        };
        let shadow = match &self.shadow_name {
            Some(name) => ShadowId::named(id.clone(), name.clone()),
            None => ShadowId::new(id.clone()),
        };
        shadow.map(Some).map_err(|fault| fault.to_string())
    }
}

/// A file with a registration.
struct File {
    file: String,
    text: String,
    summary: Summary,
}

/// Everything that the page shows.
struct Model<'a> {
    asked: &'a Asked,
    files: Vec<File>,
    /// The registrations, or the problems of their files.
    loaded: Result<Registrations, Vec<String>>,
    /// Recorded changes of the shadow.
    recorded: Vec<(State, RecordedChange)>,
    subject: Option<Subject>,
    /// Reason why there is no change to explain.
    problem: Option<Markup>,
    result: Option<Explained>,
    draft: Option<Draft>,
}

/// The verdicts on the change.
struct Explained {
    verdicts: Vec<Verdict>,
    /// The conditions of the selected registration.
    trace: Option<Trace>,
}

struct Verdict {
    name: String,
    unmet: Option<String>,
    target: String,
}

struct Draft {
    /// The reason why the draft does not match, or its problems.
    result: Result<Option<String>, Vec<String>>,
    day: Option<DayCheck>,
}

/// A draft tried on the changes of a day.
struct DayCheck {
    matches: usize,
    of: usize,
    has_more: bool,
}

async fn respond(view: &View, asked: Asked) -> Response {
    let content = match view.console.services.registrations.read() {
        Ok(files) => {
            let mut files: Vec<File> = files
                .iter()
                .map(|(file, text)| File {
                    summary: summary(file, text),
                    file: file.clone(),
                    text: text.clone(),
                })
                .collect();
            files.sort_by(|a, b| a.summary.name.cmp(&b.summary.name));
            render(view, &model(view, &asked, files).await)
        }
        Err(error) => html! {
            (head(view, 0))
            (error_note("The registrations cannot be read.", &error, view))
        },
    };
    view.page(Nav::Registrations, "Registrations", &content)
}

async fn model<'a>(view: &View, asked: &'a Asked, files: Vec<File>) -> Model<'a> {
    let texts = files
        .iter()
        .map(|file| (&file.file, without_environment(&file.text)));
    let loaded = Registrations::load(texts, &|_| None);
    let loaded = loaded.map_err(|errors| errors.to_string().lines().map(str::to_owned).collect());
    let mut model = Model {
        asked,
        files,
        loaded,
        recorded: Vec::new(),
        subject: None,
        problem: None,
        result: None,
        draft: None,
    };
    match asked.shadow() {
        Err(fault) => model.problem = Some(html! { "The shadow is invalid: " (fault) }),
        Ok(shadow) => {
            if let Some(shadow) = &shadow {
                read_recorded(view, shadow, &mut model).await;
            }
            if asked.is_typed() {
                match typed(view, asked, shadow.as_ref()) {
                    Ok(subject) => model.subject = Some(subject),
                    Err(fault) => model.problem = Some(fault),
                }
            }
        }
    }
    let shadows = &view.console.services.shadows;
    if let (Ok(registrations), Some(subject)) = (&model.loaded, &model.subject) {
        let shadow_model = shadows.model();
        let target = |own: &Summary| format!("{} {}", own.target, own.sends_to);
        let summaries = model.files.iter().map(|file| &file.summary);
        let targets: HashMap<&str, String> = summaries
            .map(|own| (own.name.as_str(), target(own)))
            .collect();
        let result = subject.with(shadow_model, |change| {
            let verdicts = explain(registrations, change).into_iter();
            let verdicts = verdicts.map(|one| {
                let name = registrations[one.id].name.to_string();
                Verdict {
                    target: targets.get(name.as_str()).cloned().unwrap_or_default(),
                    name,
                    unmet: one.unmet,
                }
            });
            let selected = registrations.iter();
            let selected = selected
                .filter(|(_, one)| asked.name.as_deref() == Some(&*one.name))
                .map(|(id, _)| trace(registrations, id, change));
            Explained {
                verdicts: verdicts.collect(),
                trace: { selected }.next(),
            }
        });
        model.result = Some(result);
    }
    if let (Some(file), Some(draft)) = (selected(&model), &asked.draft) {
        model.draft = Some(try_draft(view, file, draft, &model).await);
    }
    model
}

/// Reads the recorded changes of a shadow, and the one that is asked for or the newest.
async fn read_recorded(view: &View, shadow: &ShadowId, model: &mut Model<'_>) {
    let Some(history) = &view.console.services.history else {
        model.problem = Some(html! { "This deployment keeps no history. Type a change." });
        return;
    };
    let query = ChangeQuery {
        shadow: shadow.clone(),
        from: None,
        to: None,
        path: None,
    };
    let found = history.changes(&query, CHANGES, None, view.now).await;
    let rows = match found {
        Ok(page) => page.rows,
        Err(error) => {
            let what = "The recorded changes cannot be read.";
            model.problem = Some(error_note(what, &error, view));
            return;
        }
    };
    let by_state = |change: RecordedChange| {
        let states: Vec<State> = change
            .documents
            .iter()
            .map(|document| document.state)
            .collect();
        states.into_iter().map(move |state| (state, change.clone()))
    };
    model.recorded = rows.into_iter().flat_map(by_state).collect();
    if model.asked.is_typed() {
        return;
    }
    let newest = model.recorded.first();
    let newest = newest.map(|(state, change)| (*state, change.time));
    let chosen = match &model.asked.change {
        Some(change) => parse_change(change),
        None => newest,
    };
    let Some((state, time)) = chosen else {
        model.problem = Some(match &model.asked.change {
            Some(_) => html! { "The change is not written as " code { "reported@TIME" } "." },
            None => html! { "No change of this shadow is recorded." },
        });
        return;
    };
    let mut found = None;
    let replay = history.replay(shadow, [time, time], CHANGES, view.now, |change| {
        if change.state == state {
            found = Some(change);
        }
        true
    });
    match (replay.await, found) {
        (Err(error), _) => {
            let what = "The recorded change cannot be read.";
            model.problem = Some(error_note(what, &error, view));
        }
        (Ok(_), None) => {
            model.problem = Some(html! {
                "The documents before and after this change are not recorded. Type the change, or pick another one."
            });
        }
        (Ok(_), Some(change)) => model.subject = Some(Subject::recorded(shadow, change)),
    }
}

/// `reported@2026-01-31T12:00:00Z`.
fn parse_change(text: &str) -> Option<(State, Timestamp)> {
    let (state, time) = text.split_once('@')?;
    Some((state.parse().ok()?, Timestamp::parse(time)?))
}

fn typed(view: &View, asked: &Asked, shadow: Option<&ShadowId>) -> Result<Subject, Markup> {
    let document = |what: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => Document::parse(text).map(Some).map_err(
            |fault| html! { (what) " is not a document: " bdi { (cut(&fault.to_string())) } },
        ),
    };
    let (old, new) = (document("Old", &asked.old)?, document("New", &asked.new)?);
    let state = asked.state.as_deref().and_then(|state| state.parse().ok());
    let state = state.unwrap_or(State::Reported);
    let layout = view.console.services.shadows.store().layout();
    let (key, shadow) = match (&asked.key, shadow) {
        (Some(key), _) => (key.clone(), None),
        (None, Some(shadow)) => (
            subject::item_key(shadow, state, layout),
            Some((shadow.clone(), state)),
        ),
        (None, None) => {
            return Err(html! { "Give the id of a shadow, or the key of another item." });
        }
    };
    Ok(Subject {
        operation: subject::operation(old.as_ref(), new.as_ref()),
        key,
        shadow,
        version: None,
        client_token: None,
        time: view.now,
        old,
        new,
    })
}

/// The text of a registration whose target does not depend on the environment, which only the stream listener knows.
/// Matching does not depend on the target.
fn without_environment(text: &str) -> String {
    let raw: Option<&RawValue> = serde_json::from_str(text).ok();
    let json = raw.map_or(Json::Scalar, Json::of);
    match json.member("to") {
        Some(to) if to.get().contains("${env:") => {
            let replaced = replaced(&json, "to", r#"{"sqs":{"queue":"from-the-environment"}}"#);
            replaced.unwrap_or_else(|| text.to_owned())
        }
        _ => text.to_owned(),
    }
}

/// An object with another value of a member.
fn replaced(of: &Json<'_>, name: &str, value: &str) -> Option<String> {
    let Json::Object(members) = of else {
        return None;
    };
    let kept = members.iter().filter(|(key, _)| key != name);
    let kept = kept.map(|(key, raw)| (key.as_str(), raw.get()));
    Some(json::object(kept.chain([(name, value)])))
}

/// The file of the selected registration.
fn selected<'m>(model: &'m Model<'_>) -> Option<&'m File> {
    let name = model.asked.name.as_deref()?;
    let mut files = model.files.iter();
    files.find(|file| file.summary.name == name)
}

/// Tries the selected registration with another pattern.
async fn try_draft(view: &View, file: &File, draft: &str, model: &Model<'_>) -> Draft {
    let failed = |problems| Draft {
        result: Err(problems),
        day: None,
    };
    let Some(text) = with_pattern(&file.text, draft) else {
        return failed(vec!["The draft is not JSON.".to_owned()]);
    };
    let text = without_environment(&text);
    let registrations = match Registrations::load([(&file.file, text)], &|_| None) {
        Ok(registrations) => registrations,
        Err(errors) => return failed(errors.to_string().lines().map(str::to_owned).collect()),
    };
    let services = &view.console.services;
    let shadow_model = services.shadows.model();
    let unmet = model.subject.as_ref().and_then(|subject| {
        let mut explained = subject.with(shadow_model, |change| explain(&registrations, change));
        explained.pop().and_then(|one| one.unmet)
    });
    let shadow = model.asked.shadow().ok().flatten();
    let mut day = DayCheck {
        matches: 0,
        of: 0,
        has_more: false,
    };
    let day = match (&services.history, &shadow) {
        (Some(history), Some(shadow)) => {
            let from = view.now.nanoseconds() - DAY.as_nanos() as i128;
            let times = [Timestamp::from_nanoseconds(from), view.now];
            let mut bytes = 0;
            let replay = history.replay(shadow, times, DAY_CHANGES, view.now, |change| {
                let subject = Subject::recorded(shadow, change);
                bytes += subject.bytes();
                day.of += 1;
                day.matches += usize::from(subject.matches_first(&registrations, shadow_model));
                bytes < DAY_BYTES
            });
            let replayed = replay.await;
            replayed.ok().map(|has_more| DayCheck { has_more, ..day })
        }
        _ => None,
    };
    Draft {
        result: Ok(unmet),
        day,
    }
}

/// The text of a registration with another pattern.
fn with_pattern(text: &str, pattern: &str) -> Option<String> {
    let pattern: &RawValue = serde_json::from_str(pattern.trim()).ok()?;
    let registration: &RawValue = serde_json::from_str(text).ok()?;
    let registration = Json::of(registration);
    let on = registration.member("on").map(RawValue::get).unwrap_or("{}");
    let on: &RawValue = serde_json::from_str(on).ok()?;
    let on = replaced(&Json::of(on), "pattern", pattern.get())?;
    replaced(&registration, "on", &on)
}

/// Row of a registration, from its text.
struct Summary {
    name: String,
    description: Option<String>,
    key: Option<String>,
    conditions: String,
    target: String,
    sends_to: String,
    enabled: bool,
    pattern: Option<String>,
}

fn summary(file: &str, registration: &str) -> Summary {
    let parsed: Option<&RawValue> = serde_json::from_str(registration).ok();
    let json = parsed.map_or(Json::Scalar, Json::of);
    let text =
        |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let on = json.member("on").map_or(Json::Scalar, Json::of);
    let list = |name: &str| {
        let list = on.member(name).map(RawValue::get).unwrap_or_default();
        let list: Vec<String> = serde_json::from_str(list).unwrap_or_default();
        Some(list.join(", ")).filter(|list| !list.is_empty())
    };
    let pattern = on.member("pattern");
    let roots = pattern.map(Json::of).map(|pattern| match pattern {
        Json::Object(members) => {
            let names: Vec<String> = members.into_iter().map(|(name, _)| name).collect();
            format!("pattern on {}", names.join(", "))
        }
        _ => "pattern".to_owned(),
    });
    let leaf = on.member("leaf").map(Json::of);
    let leaf = leaf.and_then(|leaf| text(leaf.member("path")));
    let conditions = [
        text(on.member("state")),
        list("operations"),
        text(on.member("changes")),
        roots,
        leaf.map(|path| format!("leaf {path}")),
    ];
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    let to = json.member("to").map_or(Json::Scalar, Json::of);
    let (target, inner) = match &to {
        Json::Object(members) => match members.first() {
            Some((kind, raw)) => (kind.clone(), Json::of(raw)),
            None => (String::new(), Json::Scalar),
        },
        _ => (String::new(), Json::Scalar),
    };
    let address = ["queue", "topic", "bus"].into_iter();
    let mut address = address.filter_map(|name| text(inner.member(name)));
    let sends_to = match target.as_str() {
        "clients" => "linked webhook clients".to_owned(),
        _ => address.next().unwrap_or_default(),
    };
    Summary {
        name: text(json.member("name")).unwrap_or_else(|| file.to_owned()),
        description: text(json.member("description")),
        key: text(on.member("key")),
        conditions: match conditions.is_empty() {
            true => "any".to_owned(),
            false => conditions.join("; "),
        },
        target,
        sends_to,
        enabled: json
            .member("enabled")
            .is_none_or(|raw| raw.get() != "false"),
        pattern: pattern.map(|raw| raw.get().to_owned()),
    }
}

fn head(view: &View, count: usize) -> Markup {
    let files = match count {
        1 => "1 file".to_owned(),
        count => format!("{} files", number(count as i64)),
    };
    html! {
        div.head {
            h1 { "Registrations" }
            span.mute {
                @match &view.console.place.registrations {
                    Some(directory) => { (files) " in " code { (directory) } "; the deployed ones may differ" }
                    None => { (files) ", as the stream listener uses them" }
                }
            }
        }
    }
}

fn render(view: &View, model: &Model<'_>) -> Markup {
    html! {
        (head(view, model.files.len()))
        div.stack {
            @if let Err(problems) = &model.loaded {
                (note(Tone::Bad, "The registrations have problems and match nothing.", &html! {
                    @for problem in problems.iter().take(20) { bdi { (cut_at(problem, 600)) } br; }
                }, &html! {}))
            }
            section.panel {
                @if model.files.is_empty() {
                    (empty("No registrations", &html! {
                        p { "A registration is a file that says which changes are sent where. Put one into the directory "
                            code { "registrations" } "; " code { "antumbra registrations schema" } " prints its schema." }
                    }))
                } @else {
                    (table(view, model))
                    @if model.files.len() > ROWS {
                        footer { span { "The first " (ROWS) " by name." } }
                    }
                }
            }
            (bench(view, model))
            (cmd(&command(view, "registrations explain change.json")))
        }
    }
}

fn table(view: &View, model: &Model<'_>) -> Markup {
    let asked = model.asked;
    let is_selected = |file: &File| asked.name.as_deref() == Some(file.summary.name.as_str());
    let shown = model.files.iter().enumerate();
    let shown = shown.filter(|(at, file)| *at < ROWS || is_selected(file));
    let shown = shown.map(|(_, file)| file);
    let link = |name: &str| {
        let mut parameters = vec![("name", name)];
        if !asked.is_long() {
            parameters.extend(asked.change_parameters());
        }
        format!("{}#bench", view.href(PATH, &parameters))
    };
    html! {
        table.fixed {
            colgroup { col; col class="wk p1"; col class="p2"; col class="w6"; col class="p1"; col class="w4"; }
            thead { tr {
                th { "Name" } th class="p1" { "Key" } th class="p2" { "Conditions" } th { "Target" }
                th class="p1" { "Sends to" } th { "State" }
            } }
            tbody {
                @for file in shown {
                    @let one = &file.summary;
                    tr aria-current=[is_selected(file).then_some("true")] {
                        td { a href=(link(&one.name)) title=[one.description.as_deref()] { bdi { (cut(&one.name)) } } }
                        td class="p1 mono soft" title=[one.key.as_deref()] {
                            @match &one.key { Some(key) => bdi { (cut(key)) } None => { "every shadow" } }
                        }
                        td class="p2 soft" title=(one.conditions) { bdi { (cut(&one.conditions)) } }
                        td { bdi { (cut(&one.target)) } }
                        td class="p1 mono soft" title=(one.sends_to) { bdi { (cut(&one.sends_to)) } }
                        td {
                            @if one.enabled { span.dot.ok { "on" } }
                            @else { span class="dot hollow mute" { "off" } }
                        }
                    }
                }
            }
        }
    }
}

fn bench(view: &View, model: &Model<'_>) -> Markup {
    html! {
        section.panel #bench aria-label="Test bench" {
            header { h2 { "Test bench" } span.mute { "Which registrations match a change, and which line decides" } }
            div class="cols cols-bench" {
                (change_column(view, model))
                (result_column(view, model))
                (selected_column(view, model))
            }
            footer { span { "✓ holds, ✕ decided, · not evaluated. Registrations are files: a draft is not saved here." } }
        }
    }
}

/// The times of this view and the selected registration, in forms that are sent with GET.
fn kept(view: &View, fields: &[(&str, Option<&str>)]) -> Markup {
    let times = ["tz", "time"].map(|name| (name, view.get(name)));
    let all = fields.iter().copied().chain(times);
    html! {
        @for (name, value) in all {
            @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
        }
    }
}

fn change_column(view: &View, model: &Model<'_>) -> Markup {
    let asked = model.asked;
    let text = |asked: &Option<String>, document: Option<&Document>| match (asked, document) {
        (Some(text), _) => text.clone(),
        (None, Some(document)) => json::editable(document.as_str()),
        (None, None) => String::new(),
    };
    let subject = model.subject.as_ref();
    let old = text(&asked.old, subject.and_then(|subject| subject.old.as_ref()));
    let new = text(&asked.new, subject.and_then(|subject| subject.new.as_ref()));
    let state = subject
        .and_then(|subject| subject.shadow.as_ref())
        .map(|(_, state)| state.as_str());
    let state = state.or(asked.state.as_deref());
    let is_long = old.len() + new.len() > URL_BYTES;
    let chosen = subject.filter(|_| !asked.is_typed());
    html! {
        div.bench-col {
            form.body.stack method="get" action={ (PATH) "#bench" } {
                div.line { h3 { "Change" } a.when href=(view.href("/live", &[])) { "pick from Live" } }
                (kept(view, &[("name", asked.name.as_deref()), ("sname", asked.shadow_name.as_deref())]))
                label.cap for="shadow" { "Shadow" }
                input.field.mono #shadow name="shadow" value=(asked.shadow.as_deref().unwrap_or_default())
                    placeholder="House A#Kitchen#Freezer" spellcheck="false" autocomplete="off" aria-keyshortcuts="/";
                @if !model.recorded.is_empty() {
                    label.cap for="pick" { "Recorded change" }
                    select.field.mono #pick name="change" {
                        @if asked.is_typed() { option value="" selected { "typed" } }
                        @for (state, change) in &model.recorded {
                            @let is_chosen = chosen.is_some_and(|subject| {
                                subject.time == change.time && subject.shadow.as_ref().is_some_and(|(_, of)| of == state)
                            });
                            option value={ (state) "@" (change.time) } selected[is_chosen] {
                                (view.exact_text(change.time)) " " (state) " " (change.operation) " v" (number(change.version.0))
                            }
                        }
                    }
                }
                span { button.btn { @if model.recorded.is_empty() { "Show its changes" } @else { "Take this change" } } }
            }
            form.body.stack method=(if is_long { "post" } else { "get" }) action={ @if is_long { (TRY) } @else { (PATH) } "#bench" } {
                @if is_long { (csrf(view)) }
                (kept(view, &[
                    ("name", asked.name.as_deref()),
                    ("shadow", asked.shadow.as_deref()),
                    ("sname", asked.shadow_name.as_deref()),
                    ("state", state),
                ]))
                label.cap for="old" { "Old" }
                textarea.field #old name="old" rows="6" spellcheck="false" { "\n" (old) }
                label.cap for="new" { "New" }
                textarea.field #new name="new" rows="6" spellcheck="false" { "\n" (new) }
                @if asked.shadow.is_none() {
                    label.cap for="key" { "Key of the item" }
                    input.field.mono #key name="key" value=(asked.key.as_deref().unwrap_or_default())
                        placeholder="SENSOR#door-213#STATE" spellcheck="false" autocomplete="off";
                }
                @if let Some(subject) = subject {
                    dl.kv {
                        dt { "Key" } dd.mono { bdi { (cut(&subject.key)) } }
                        dt { "Operation" }
                        dd {
                            (subject.operation)
                            @if let Some((_, state)) = &subject.shadow { ", " (state) }
                            @if let Some(version) = subject.version { ", v" (number(version)) }
                            @if !asked.is_typed() { ", " (view.at(subject.time)) }
                        }
                    }
                }
                span { button class="btn primary" { "Explain" } }
            }
        }
    }
}

/// The order of results: matches, then those that came furthest.
fn rank(unmet: Option<&str>) -> u8 {
    match unmet.map(code::condition) {
        None => 0,
        Some("on.pattern" | "on.leaf") => 1,
        Some("enabled") => 3,
        Some("on.key") => 4,
        Some(_) => 2,
    }
}

fn result_column(view: &View, model: &Model<'_>) -> Markup {
    let asked = model.asked;
    let Some(result) = &model.result else {
        return html! {
            div.bench-col {
                div.body.line { h3 { "Result" } }
                div.body role="status" {
                    @match &model.problem {
                        Some(problem) => (problem),
                        None if model.loaded.is_err() => p.soft { "The registrations have problems and match nothing." },
                        None => p.soft { "Give the id of a shadow to try one of its recorded changes, or type a change." }
                    }
                }
            }
        };
    };
    let mut verdicts: Vec<&Verdict> = result.verdicts.iter().collect();
    verdicts.sort_by_key(|one| rank(one.unmet.as_deref()));
    let matches = verdicts.iter().filter(|one| one.unmet.is_none()).count();
    let is_selected = |one: &Verdict| asked.name.as_deref() == Some(one.name.as_str());
    let is_folded = |one: &&Verdict| rank(one.unmet.as_deref()) == 4 && !is_selected(one);
    let (folded, shown): (Vec<&Verdict>, Vec<&Verdict>) = verdicts.into_iter().partition(is_folded);
    let entry = |one: &Verdict| {
        html! {
            span.line {
                @if one.unmet.is_none() || is_selected(one) { b { bdi { (cut(&one.name)) } } } @else { bdi { (cut(&one.name)) } }
                " "
                @match &one.unmet {
                    None => span.when.ok { "matches" },
                    Some(unmet) => span class={ "when" @if is_selected(one) { " bad" } } { "no: " (code::condition(unmet)) }
                }
            }
            span.sub {
                @match &one.unmet {
                    None => bdi { (cut(&one.target)) },
                    Some(unmet) => bdi { (cut(code::reason(unmet))) },
                }
            }
        }
    };
    html! {
        div.bench-col {
            div.body.line { h3 { "Result" } span.when role="status" { (matches) " of " (result.verdicts.len()) " match" } }
            nav aria-label="Result for each registration" {
                @for one in shown.iter().take(ROWS) {
                    @if asked.is_long() { div.pick { (entry(one)) } }
                    @else {
                        @let mut parameters = vec![("name", one.name.as_str())];
                        @let () = parameters.extend(asked.change_parameters());
                        a.pick href={ (view.href(PATH, &parameters)) "#bench" } aria-current=[is_selected(one).then_some("true")] { (entry(one)) }
                    }
                }
                @if !folded.is_empty() {
                    details.pick {
                        summary.mute { (folded.len()) " more: on.key does not match" }
                        @for one in folded.iter().take(ROWS) { bdi.sub { (cut(&one.name)) } }
                    }
                }
            }
        }
    }
}

fn selected_column(view: &View, model: &Model<'_>) -> Markup {
    let asked = model.asked;
    let raw = selected(model)
        .and_then(|file| Some((file, serde_json::from_str::<&RawValue>(&file.text).ok()?)));
    let Some((file, raw)) = raw else {
        return html! {
            div.bench-col {
                div.body.line { h3 { "Registration" } }
                div.body { p.soft { "Select a registration to see which of its lines decides." } }
            }
        };
    };
    let trace = model
        .result
        .as_ref()
        .and_then(|result| result.trace.as_ref());
    let one = &file.summary;
    let current = one
        .pattern
        .as_deref()
        .map(json::editable)
        .unwrap_or_default();
    let draft = asked.draft.clone().unwrap_or(current);
    let is_long = asked.is_long();
    html! {
        div.bench-col {
            div.body.line {
                h3 { bdi { (cut(&file.file)) } } " "
                @match trace.map(|trace| trace.unmet.is_none()) {
                    Some(true) => span.when.ok { "matches" },
                    Some(false) => span.when.bad { "does not match" },
                    None => span.when { "no change to explain" },
                }
            }
            (code::render(raw, trace))
            form.body.stack method=(if is_long { "post" } else { "get" }) action={ @if is_long { (TRY) } @else { (PATH) } "#bench" } {
                @if is_long { (csrf(view)) }
                @let change: Vec<(&str, Option<&str>)> = asked.change_parameters().into_iter().map(|(name, value)| (name, Some(value))).collect();
                (kept(view, &change))
                (kept(view, &[("name", asked.name.as_deref())]))
                label.cap for="draft" { "Draft of on.pattern, tried on this change" }
                textarea.field #draft name="draft" rows="6" spellcheck="false" { "\n" (draft) }
                div.line {
                    span role="status" {
                        @if let Some(draft) = &model.draft { (draft_result(draft, model.subject.is_some())) }
                    }
                    button.btn.push { "Try draft" }
                }
            }
        }
    }
}

fn draft_result(draft: &Draft, has_change: bool) -> Markup {
    html! {
        @match &draft.result {
            Err(problems) => {
                b.bad { "Not a pattern. " }
                @for problem in problems.iter().take(5) { bdi { (cut_at(problem, 400)) } " " }
            }
            Ok(_) if !has_change => {}
            Ok(None) => b.ok { "Matches. " },
            Ok(Some(unmet)) => {
                b.bad { "Does not match: " }
                bdi { (cut_at(code::reason(unmet), 400)) } ". "
            }
        }
        @if let Some(day) = &draft.day {
            "In the last 24 h: " (number(day.matches as i64)) " of "
            @if day.has_more { "at least " }
            (number(day.of as i64)) " changes of this shadow."
        }
    }
}
