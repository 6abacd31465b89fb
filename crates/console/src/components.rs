//! Parts that pages share. The names of classes are those of the stylesheet.
//!
//! Text from outside is cut on the server and stands in `<bdi>`, so that its direction ends where it ends.

use std::borrow::Cow;
use std::fmt::Display;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use antumbra_service::shadows::ShadowId;
use antumbra_service::shadows::id::DEFAULT_NAME;
use antumbra_shadow::PatchedLeaf;
use maud::{Markup, html};

use crate::view::View;

/// Characters of a text from outside that a page shows.
const TEXT_CHARS: usize = 200;

/// Cuts a text from outside.
pub(crate) fn cut(text: &str) -> Cow<'_, str> {
    cut_at(text, TEXT_CHARS)
}

pub(crate) fn cut_at(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// An id, with its last part in bold.
pub(crate) fn id(text: &str) -> Markup {
    let text = cut(text);
    let parts: Vec<&str> = text.split('#').collect();
    let last = parts.len() - 1;
    html! {
        bdi.id {
            @for (at, part) in parts.iter().enumerate() {
                @if at > 0 { i { "#" } wbr; }
                @if at == last { b { (part) } } @else { (part) }
            }
        }
    }
}

/// A link to a shadow; with its name, unless that is `main`.
pub(crate) fn shadow_link(view: &View, shadow: &ShadowId) -> Markup {
    html! {
        a href=(view.device(shadow)) { (id(shadow.id())) }
        @if shadow.name() != DEFAULT_NAME { " " span.badge { bdi { (cut(shadow.name())) } } }
    }
}

/// A JSON Pointer that may break before each part.
pub(crate) fn pointer(text: &str) -> Markup {
    let text = cut(text);
    html! {
        bdi.ptr {
            @for (at, part) in text.split('/').enumerate() {
                @if at > 0 { wbr; "/" }
                (part)
            }
        }
    }
}

/// Meaning of a colour; a word always says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Ok,
    Warn,
    Bad,
    Info,
}

impl Tone {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Ok => "ok",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
            Tone::Info => "info",
        }
    }
}

/// A state in one to three words.
pub(crate) fn badge(tone: Tone, text: impl Display) -> Markup {
    html! { span class={ "badge " (tone.class()) } { (text.to_string()) } }
}

/// A problem or a fact, where it is: what happened, what to do. Buttons may follow.
pub(crate) fn note(tone: Tone, title: &str, detail: &Markup, actions: &Markup) -> Markup {
    let role = match tone {
        Tone::Bad => "alert",
        _ => "status",
    };
    html! {
        div class={ "note " (tone.class()) } role=(role) {
            div { b { (title) } p { (detail) } }
            (actions)
        }
    }
}

/// An error of a use case, where its result would be.
pub(crate) fn error_note(what: &str, error: &dyn Display, view: &View) -> Markup {
    let detail = html! { bdi { (cut_at(&error.to_string(), 1000)) } };
    let again = html! { a.btn.small href=(view.with(&[])) { "Try again" } };
    note(Tone::Bad, what, &detail, &again)
}

/// Names what is missing, and what to do about it.
pub(crate) fn empty(title: &str, body: &Markup) -> Markup {
    html! { div.empty { h2 { (title) } (body) } }
}

/// The command line for what a page shows. Only commands that exist.
pub(crate) fn cmd(command: &str) -> Markup {
    html! {
        div.cmd {
            code { bdi { (command) } }
            button.btn.quiet.small.push type="button" data-copy=(command) aria-label="Copy command" hidden { "Copy" }
        }
    }
}

/// Quotes a text for a shell. A terminal acts on control characters even inside quotes, and marks of direction reorder the
/// command for its reader, so both are written as escapes of bash and zsh.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(is_unseen) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_unseen(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "'"
}

/// A control character, or a mark of the direction of text.
fn is_unseen(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_mark
}

/// The command `antumbra` with the options of this deployment.
pub(crate) fn command(view: &View, arguments: &str) -> String {
    match view.console.place.options.as_str() {
        "" => format!("antumbra {arguments}"),
        options => format!("antumbra {options} {arguments}"),
    }
}

/// The hidden field that every form with `method="post"` needs.
pub(crate) fn csrf(view: &View) -> Markup {
    html! { input type="hidden" name="csrf" value=(view.csrf()); }
}

/// A button that writes; in a read-only console it is disabled and says why.
pub(crate) fn write_button(view: &View, class: &str, text: &str) -> Markup {
    html! {
        @if view.writes() { button class={ "btn " (class) } { (text) } }
        @else { button class="btn" disabled title="start with --write" { (text) } }
    }
}

/// The result of a write, for some seconds.
pub(crate) fn toast(message: &Markup) -> Markup {
    html! { div.toast #toast role="status" { (message) } }
}

/// Live, or not; the script keeps it up to date.
pub(crate) fn live_state(text: &str) -> Markup {
    html! { span #live.dot.hollow data-live=(text) { "Not live" } }
}

/// Id of an element for a text from outside, the same each time.
pub(crate) fn element_id(kind: &str, text: &str) -> String {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
    format!("{kind}{hash:016x}")
}

/// A number with separators of thousands.
pub(crate) fn number(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    match number < 0 {
        true => format!("-{text}"),
        false => text,
    }
}

/// A number with its noun: "1 change", "1,284 changes".
pub(crate) fn counted(count: usize, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{} {noun}", number(count as i64))
}

/// A size in bytes or KB.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..100 => format!("{bytes} B"),
        100..102_400 => format!("{:.1} KB", bytes as f64 / 1024.0),
        _ => format!("{} KB", bytes / 1024),
    }
}

/// Changed values: sign, pointer, old and new. At most `limit` of them.
pub(crate) fn diff(values: &[PatchedLeaf], limit: usize) -> Markup {
    html! {
        ul.diff {
            @for leaf in values.iter().take(limit) { (diff_line(leaf)) }
        }
        @if values.len() > limit {
            p.mute { "and " (number(values.len() as i64 - limit as i64)) " more" }
        }
    }
}

fn diff_line(leaf: &PatchedLeaf) -> Markup {
    let (class, sign, word) = match (&leaf.old, &leaf.new) {
        (None, _) => ("add", "+", "added "),
        (_, None) => ("del", "−", "removed "),
        _ => ("upd", "~", "updated "),
    };
    let text = |value: &str| html! { bdi { (cut(&plain_value(value))) } };
    html! {
        li class=(class) {
            span.sign aria-hidden="true" { (sign) }
            span.ptr { span.sr { (word) } (pointer(&leaf.pointer)) }
            span {
                @if let Some(old) = &leaf.old { del { (text(old)) } }
                @if leaf.old.is_some() && leaf.new.is_some() {
                    span.to aria-hidden="true" { "→" } span.sr { " to " }
                }
                @if let Some(new) = &leaf.new { ins { (text(new)) } }
            }
        }
    }
}

/// A timestamped value by its value and unit, without its time; anything else as it is.
pub(crate) fn plain_value(json: &str) -> Cow<'_, str> {
    if !json.starts_with('{') || !json.contains("\"value\"") {
        return Cow::Borrowed(json);
    }
    let parse = || {
        let document = antumbra_shadow::Document::parse(json).ok()?;
        let view = document.view();
        let value = view.get("value").filter(|value| !value.is_container())?;
        let known = ["value", "timestamp", "unit"];
        let is_plain = view
            .children()
            .all(|child| known.contains(&child.key().as_ref()));
        let unit = view
            .get("unit")
            .and_then(|unit| unit.as_str().map(Cow::into_owned));
        let text = value.to_json();
        is_plain.then(|| match unit {
            Some(unit) => format!("{text} {unit}"),
            None => text,
        })
    };
    parse().map_or(Cow::Borrowed(json), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_at("abc", 3), "abc");
        assert_eq!(cut_at("äöü", 2), "äö…");
        assert_eq!(cut(&"x".repeat(400_000)).chars().count(), 201);
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(number(7), "7");
        assert_eq!(number(1284), "1,284");
        assert_eq!(number(-1_234_567), "-1,234,567");
    }

    #[test]
    fn one_thing_has_a_singular() {
        assert_eq!(counted(0, "change", "changes"), "0 changes");
        assert_eq!(counted(1, "change", "changes"), "1 change");
        assert_eq!(counted(1284, "change", "changes"), "1,284 changes");
    }

    #[test]
    fn timestamped_values_are_shown_by_their_value() {
        let json = r#"{"timestamp":"2026-01-31T12:00:00Z","unit":"°C","value":-18.2}"#;
        assert_eq!(plain_value(json), "-18.2 °C");
        assert_eq!(plain_value(r#"{"value":{"a":1}}"#), r#"{"value":{"a":1}}"#);
        assert_eq!(plain_value("\"{\""), "\"{\"");
    }

    #[test]
    fn hostile_texts_are_escaped_and_isolated() {
        let html = id("<script>alert(1)</script>#\u{202e}x").into_string();
        assert_eq!(
            html,
            "<bdi class=\"id\">&lt;script&gt;alert(1)&lt;/script&gt;<i>#</i><wbr><b>\u{202e}x</b></bdi>"
        );
        assert_eq!(quoted("a'b; rm"), r"'a'\''b; rm'");
        assert_eq!(
            quoted("a'\\\u{15}\n\u{202e}b"),
            r"$'a\'\\\u0015\u000a\u202eb'"
        );
    }
}
