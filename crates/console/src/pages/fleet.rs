//! `/`: the shadows by id, with what changed last and what does not follow.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use crate::components::{cmd, command, empty, error_note, shadow_link};
use crate::state::Console;
use crate::view::{Nav, View};
use antumbra_service::shadows::ShadowId;

/// Shadows of a page.
const PAGE: usize = 50;

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/", get(show))
}

async fn show(view: View) -> Response {
    let prefix = view.get("prefix").unwrap_or_default();
    let shadows = &view.console.services.shadows;
    let found = shadows.list_by_prefix(prefix, PAGE, None).await;
    let content = match found {
        Ok(page) => render(&view, &page.rows),
        Err(error) => error_note("The shadows cannot be listed.", &error, &view),
    };
    view.page(Nav::Fleet, "Fleet", &content)
}

fn render(view: &View, shadows: &[ShadowId]) -> Markup {
    html! {
        div.head { h1 { "Fleet" } span.mute { "Shadows by id" } }
        div.stack {
            section.panel {
                @if shadows.is_empty() {
                    (empty("No shadows yet", &html! {
                        p { "A shadow appears with its first report." }
                    }))
                } @else {
                    table.fixed {
                        thead { tr { th { "Shadow" } } }
                        tbody { @for shadow in shadows { tr { td { (shadow_link(view, shadow)) } } } }
                    }
                }
            }
            (cmd(&command(view, "shadow list")))
        }
    }
}
