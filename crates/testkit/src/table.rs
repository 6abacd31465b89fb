//! Tables of cases as text: a case per line, columns separated by ` | `.
//!
//! `«x*129»` is a repeated text, `«»` an empty one. Missing last columns are empty; empty lines and lines that start with `# ` are
//! skipped.

pub fn cases<const COLUMNS: usize>(table: &str) -> Vec<[String; COLUMNS]> {
    let lines = table.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(case).collect()
}

fn case<const COLUMNS: usize>(line: &str) -> [String; COLUMNS] {
    let mut columns = line.split(" | ").map(|column| expand(column.trim()));
    let case = std::array::from_fn(|_| columns.next().unwrap_or_default());
    assert!(
        columns.next().is_none(),
        "more than {COLUMNS} columns: {line}"
    );
    case
}

fn expand(text: &str) -> String {
    let Some((before, rest)) = text.split_once('«') else {
        return text.to_owned();
    };
    let (repeated, after) = rest.split_once('»').expect("« has its »");
    let (part, count) = repeated.rsplit_once('*').unwrap_or(("", "0"));
    let count = count.parse().expect("«text*count»");
    format!("{before}{}{}", part.repeat(count), expand(after))
}
