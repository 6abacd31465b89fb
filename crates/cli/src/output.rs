//! Output: text with few colours and aligned columns, or JSON.

use std::io::{ErrorKind, Write as _};

use anstyle::{AnsiColor, Style};
use antumbra_service::paging::Cursor;
use antumbra_shadow::{Document, Kind, View};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::error::CliError;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const CHANGED: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();

pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Formats an error: one line for people, or a line of JSON.
pub(crate) fn error(error: &CliError, as_json: bool) -> String {
    match as_json {
        true => serde_json::json!({
            "error": error.reason,
            "kind": error.status.name(),
            "exitCode": error.status as u8,
        })
        .to_string(),
        false => format!("{} {}", styled(BAD, "error:"), error.reason),
    }
}

/// Prints text and a line break. A closed pipe, as of `head`, is not an error.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    print_while_read(text).map(drop)
}

/// Prints text and a line break, and returns false once the reader has closed the pipe.
pub(crate) fn print_while_read(text: &str) -> Result<bool, CliError> {
    let mut out = anstream::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(fault) if fault.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(fault) => Err(CliError::unavailable(format!(
            "cannot write to standard output: {fault}"
        ))),
    }
}

/// Formats rows with columns as wide as their widest cell. The last column is not padded.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| width_of(cell))
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let padding = if column + 1 < row.len() {
                widths[column] - width_of(cell)
            } else {
                0
            };
            format!("{cell}{}", " ".repeat(padding))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats a page: its table and, unless it is the last page, the cursor of the next.
pub(crate) fn page(rows: &[Vec<String>], next: Option<&Cursor>, none: &str) -> String {
    let text = match rows {
        [] => styled(FAINT, none),
        rows => table(rows),
    };
    match next {
        Some(Cursor(next)) => format!("{text}\n{} --cursor {next}", styled(FAINT, "next page:")),
        None => text,
    }
}

/// Formats a value as indented JSON with exact numbers.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    match Document::from_value(value) {
        Ok(document) => pretty(document.view()),
        Err(fault) => format!("{{\"error\": {:?}}}", fault.to_string()),
    }
}

/// Formats a document, indented.
pub(crate) fn pretty(view: View<'_>) -> String {
    let mut out = String::new();
    write_pretty(view, 0, &mut out);
    out
}

fn write_pretty(view: View<'_>, depth: usize, out: &mut String) {
    if !view.is_container() || view.is_empty_container() {
        return view.write_json(out);
    }
    let object = view.kind() == Kind::Object;
    out.push(if object { '{' } else { '[' });
    for (position, child) in view.children().enumerate() {
        out.push_str(if position > 0 { ",\n" } else { "\n" });
        out.push_str(&"  ".repeat(depth + 1));
        if object {
            out.push_str(&format!("\"{}\": ", child.raw_key()));
        }
        write_pretty(child, depth + 1, out);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(if object { '}' } else { ']' });
}

/// Returns the number of terminal columns that a cell takes.
fn width_of(cell: &str) -> usize {
    anstream::adapter::strip_str(cell).to_string().width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_numbers_are_exact() {
        let document = Document::parse(r#"{"b":[1,{}],"a":12345678901234567890.5}"#).unwrap();
        let text = "{\n  \"a\": 12345678901234567890.5,\n  \"b\": [\n    1,\n    {}\n  ]\n}";
        assert_eq!(json(&document), text);
    }

    #[test]
    fn columns_align_with_colours_and_wide_characters() {
        let rows = [
            vec![styled(GOOD, "a"), "1".to_owned()],
            vec!["long".to_owned(), "2".to_owned()],
            vec!["東京".to_owned(), "3".to_owned()],
            vec!["e\u{301}".to_owned(), "4".to_owned()],
        ];
        let text = anstream::adapter::strip_str(&table(&rows)).to_string();
        assert_eq!(text, "a     1\nlong  2\n東京  3\ne\u{301}     4");
    }
}
