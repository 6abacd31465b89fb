//! The table of registrations, with their states.

use antumbra_service::notifications::suspension::{Suspension, SuspensionState};
use maud::{Markup, html};

use super::model::File;
use super::{Asked, PATH, ROWS};
use crate::components::{cut, element_id, empty};
use crate::view::View;

pub(super) fn table(
    view: &View,
    asked: &Asked,
    files: &[File],
    suspensions: &[Suspension],
) -> Markup {
    html! {
        section.panel #registrations data-part="registrations" {
            @if files.is_empty() {
                (empty("No registrations", &html! {
                    p { "A registration is a file that says which changes are sent where. Put one into the directory "
                        code { "registrations" } "; " code { "antumbra registrations schema" } " prints its schema." }
                }))
            } @else {
                (rows(view, asked, files, suspensions))
                @if files.len() > ROWS {
                    footer { span { "The first " (ROWS) " by name." } }
                }
            }
        }
    }
}

fn rows(view: &View, asked: &Asked, files: &[File], suspensions: &[Suspension]) -> Markup {
    let is_selected = |file: &File| asked.name.as_deref() == Some(file.summary.name.as_str());
    let shown = files.iter().enumerate();
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
            colgroup { col; col class="wk p1"; col class="p2"; col class="w6"; col class="p1"; col class="w6"; }
            thead { tr {
                th { "Name" } th class="p1" { "Key" } th class="p2" { "Conditions" } th { "Target" }
                th class="p1" { "Sends to" } th { "State" }
            } }
            tbody {
                @for file in shown {
                    @let one = &file.summary;
                    @let suspension = suspensions.iter().find(|suspension| suspension.registration == one.name);
                    tr id=(element_id("n", &one.name)) data-row aria-current=[is_selected(file).then_some("true")] {
                        td { a href=(link(&one.name)) title=[one.description.as_deref()] { bdi { (cut(&one.name)) } } }
                        td class="p1 mono soft" title=[one.key.as_deref()] {
                            @match &one.key { Some(key) => bdi { (cut(key)) } None => { "every shadow" } }
                        }
                        td class="p2 soft" title=(one.conditions) { bdi { (cut(&one.conditions)) } }
                        td { bdi { (cut(&one.target)) } }
                        td class="p1 mono soft" title=(one.sends_to) { bdi { (cut(&one.sends_to)) } }
                        td { (state(view, one.enabled, suspension)) }
                    }
                }
            }
        }
    }
}

/// On or off; or the state of a target that fails.
fn state(view: &View, is_enabled: bool, suspension: Option<&Suspension>) -> Markup {
    let (tone, word, meaning) = match (suspension, is_enabled) {
        (_, false) => return html! { span class="dot hollow mute" { "off" } },
        (None, true) => return html! { span.dot.ok { "on" } },
        (Some(suspension), true) => match suspension.state {
            SuspensionState::Failing => ("warn", "failing", "some invocations failed"),
            SuspensionState::Suspended => {
                ("bad", "suspended", "its messages wait in the spill queue")
            }
            SuspensionState::Draining => (
                "warn",
                "draining",
                "the target works again; waiting messages are sent",
            ),
        },
    };
    let failed = suspension.map(|suspension| view.exact_text(suspension.failed_at));
    let title = format!("{meaning}; last failure {}", failed.unwrap_or_default());
    html! { span class={ "dot " (tone) } title=(title) { (word) } }
}
