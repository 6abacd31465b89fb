//! The test bench: a change, the verdict of every registration, and the line that decides.

use antumbra_service::history::RecordedChange;
use antumbra_service::shadows::State;
use antumbra_shadow::Document;
use maud::{Markup, html};
use serde_json::value::RawValue;

use super::code;
use super::draft::draft_result;
use super::model::{Model, Verdict, parse_change, selected};
use super::{Asked, PATH, ROWS, TRY, URL_BYTES};
use crate::components::{csrf, cut, number};
use crate::json;
use crate::view::View;

pub(super) fn bench(view: &View, model: &Model<'_>) -> Markup {
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

/// The recorded changes to choose from.
pub(super) fn recorded(view: &View, asked: &Asked, recorded: &[(State, RecordedChange)]) -> Markup {
    let chosen = asked.change.as_deref().filter(|_| !asked.is_typed());
    let chosen = chosen.and_then(parse_change);
    html! {
        div.stack #recorded data-part {
            @if !recorded.is_empty() {
                label.cap for="pick" { "Recorded change" }
                select.field.mono #pick name="change" {
                    @if asked.is_typed() { option value="" selected { "typed" } }
                    @for (state, change) in recorded {
                        option value={ (state) "@" (change.time) } selected[chosen == Some((*state, change.time))] {
                            (view.exact_text(change.time)) " " (state) " " (change.operation) " v" (number(change.version.0))
                        }
                    }
                }
            }
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
    let chosen = model
        .chosen()
        .map(|(state, time)| format!("{state}@{time}"));
    let shown = Asked {
        change: chosen.or(asked.change.clone()),
        ..asked.clone()
    };
    html! {
        div.bench-col {
            form.body.stack method="get" action={ (PATH) "#bench" } {
                div.line { h3 { "Change" } a.when href=(view.href("/live", &[])) { "pick from Live" } }
                (kept(view, &[("name", asked.name.as_deref()), ("sname", asked.shadow_name.as_deref())]))
                label.cap for="shadow" { "Shadow" }
                input.field.mono #shadow name="shadow" value=(asked.shadow.as_deref().unwrap_or_default())
                    placeholder="House A#Kitchen#Freezer" spellcheck="false" autocomplete="off" aria-keyshortcuts="/";
                @if asked.shadow.is_some() { (recorded(view, &shown, &model.recorded)) }
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
