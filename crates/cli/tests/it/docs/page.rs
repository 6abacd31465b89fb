//! Markdown pages: fenced blocks, links and headings.

use std::path::{Path, PathBuf};

/// A page, and the outputs that differ from it.
pub(crate) struct Page {
    path: PathBuf,
    lines: Vec<String>,
    pub(crate) blocks: Vec<Block>,
    differences: Vec<(Command, String)>,
}

/// A fenced block. Only console blocks have commands.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) info: String,
    pub(crate) text: String,
    pub(crate) commands: Vec<Command>,
}

#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) line: String,
    pub(crate) output: String,
    /// The lines of the page that hold the output.
    range: std::ops::Range<usize>,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Page {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            if let Some(info) = lines[at].strip_prefix("```") {
                let length = lines[at + 1..]
                    .iter()
                    .position(|line| line == "```")
                    .unwrap();
                blocks.push(Block::new(info, &lines, at + 1..at + 1 + length));
                at += length + 1;
            }
            at += 1;
        }
        Page {
            path: path.to_owned(),
            lines,
            blocks,
            differences: Vec::new(),
        }
    }

    pub(crate) fn differs(&mut self, command: &Command, output: &str) {
        self.differences.push((command.clone(), output.to_owned()));
    }

    /// Fails if an output differs, or writes it into the page.
    pub(crate) fn finish(mut self) {
        if self.differences.is_empty() {
            return;
        }
        if std::env::var_os("UPDATE_DOCS").is_none() {
            let mut report = format!(
                "{}; UPDATE_DOCS=1 writes the actual output\n",
                self.path.display()
            );
            for (Command { line, output, .. }, actual) in &self.differences {
                report += &format!("\n$ {line}\n-- expected\n{output}\n-- actual\n{actual}\n");
            }
            panic!("{report}");
        }
        self.differences
            .sort_by_key(|(command, _)| std::cmp::Reverse(command.range.start));
        for (command, actual) in &self.differences {
            self.lines
                .splice(command.range.clone(), actual.lines().map(str::to_owned));
        }
        std::fs::write(&self.path, self.lines.join("\n") + "\n").unwrap();
    }
}

impl Block {
    fn new(info: &str, lines: &[String], range: std::ops::Range<usize>) -> Block {
        let mut commands: Vec<Command> = Vec::new();
        if info.starts_with("console") {
            let mut at = range.start;
            while at < range.end {
                let mut line = lines[at]
                    .strip_prefix("$ ")
                    .unwrap_or_else(|| panic!("no command: {}", lines[at]))
                    .to_owned();
                while line.ends_with('\\') {
                    at += 1;
                    line = format!("{line}\n{}", lines[at]);
                }
                let start = at + 1;
                let end = (start..range.end).find(|at| lines[*at].starts_with("$ "));
                let end = end.unwrap_or(range.end);
                commands.push(Command {
                    line,
                    output: lines[start..end].join("\n"),
                    range: start..end,
                });
                at = end;
            }
        }
        Block {
            info: info.to_owned(),
            text: lines[range].join("\n"),
            commands,
        }
    }
}

/// Targets of links that are not URLs.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

/// Anchors of headings, as GitHub makes them.
pub(crate) fn anchors(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}
