//! The same work in other languages, each in a process of its own.
//!
//! A peer is started with the directory of inputs. For every line with the name of a task it writes a line of numbers:
//! microseconds per unit, and counts that prove that it did the same work; or `-` if it does not support the task.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::documents;
use crate::patterns::{self, Engine};
use crate::report::{head, row};
use crate::rounds::{Best, MeasuredRun, best, timed};
use crate::variants::{RECORDS, variant};
use antumbra_testkit::stream::Shape;

/// Rounds of which the best counts.
const ROUNDS: usize = 15;
/// Warm-up time of a peer in each task, for its just-in-time compiler.
const WARM: Duration = Duration::from_secs(3);

/// A running peer. Dropping it ends the process.
#[derive(Clone)]
struct Peer(Arc<Mutex<Process>>);

struct Process {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(name: &str, command: &str, inputs: &Path) -> Peer {
        let mut words = command.split(' ');
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .arg(inputs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        Peer(Arc::new(Mutex::new(Process {
            name: name.to_owned(),
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        })))
    }

    /// Runs a task once; `None` if the peer does not support it.
    fn run(&self, comparison: &str) -> Option<(f64, Vec<usize>)> {
        let mut process = self.0.lock().unwrap();
        writeln!(process.input, "{comparison}").unwrap();
        let mut answer = String::new();
        process.output.read_line(&mut answer).unwrap();
        if answer.trim() == "-" {
            return None;
        }
        let mut numbers = answer.split_whitespace();
        let time = numbers.next().and_then(|number| number.parse().ok());
        let time = time.unwrap_or_else(|| panic!("{} on {comparison}: {answer:?}", process.name));
        Some((
            time,
            numbers.map(|number| number.parse().unwrap()).collect(),
        ))
    }

    /// A warm run, if the peer supports the task; its counts must be the expected ones at every run.
    fn measured(&self, comparison: &str, expected: &[usize]) -> Option<MeasuredRun> {
        let start = Instant::now();
        while start.elapsed() < WARM {
            self.run(comparison)?;
        }
        let (peer, comparison, expected) = (self.clone(), comparison.to_owned(), expected.to_vec());
        Some(Box::new(move || {
            let (time, counts) = peer.run(&comparison).unwrap();
            assert_eq!(
                counts,
                expected,
                "{} on {comparison}",
                peer.0.lock().unwrap().name
            );
            time
        }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures the peers given as names and commands, and prints the rows of those that run.
pub(crate) fn print(inputs: &Path, commands: &[&str]) {
    let (pairs, _) = commands.as_chunks::<2>();
    let peers: Vec<Peer> = pairs
        .iter()
        .map(|[name, command]| Peer::start(name, command, inputs))
        .collect();
    let both = Shape::ALL.map(|(name, shape)| on_documents(name, shape, &peers));
    let rules = patterns::COUNTS.map(|count| on_patterns(count, &peers));
    head();
    for (what, a, b, gate, aim) in [
        (
            "Node, `unmarshall` and `deep-diff` / listener",
            "node",
            "listener",
            ">= 15",
            "40",
        ),
        (
            "Node, tuned by hand and with `microdiff` / listener",
            "node-tuned",
            "listener",
            ">= 8",
            "20",
        ),
        (
            "Go, `aws-lambda-go` / listener",
            "go",
            "listener",
            ">= 30",
            "80",
        ),
        (
            "godeviceshadow / our merge",
            "merge",
            "our merge",
            ">= 2",
            "5",
        ),
        (
            "godeviceshadow / our merge, texts to text",
            "merge-texts",
            "our merge-texts",
            ">= 5",
            "20",
        ),
        (
            "godeviceshadow with its change log / our merge, which has one",
            "merge-logged",
            "our merge",
            "",
            "",
        ),
        (
            "godeviceshadow / our acknowledge",
            "acknowledge",
            "our acknowledge",
            "",
            "",
        ),
    ] {
        let figures = both.each_ref().map(|best| times_as_long(best, a, b));
        row(what, figures, gate, aim);
    }
    for (count, best) in patterns::COUNTS.iter().zip(&rules) {
        let what = format!("event-ruler / our patterns, {count} rules");
        row(
            &what,
            [
                times_as_long(best, "patterns", "our patterns"),
                String::new(),
            ],
            ">= 1",
            "5",
        );
    }
    println!(
        "\nMicroseconds, of a record, a pair of documents, or a document against all patterns:\n"
    );
    for (what, best) in [("1k", &both[0]), ("4k", &both[1])] {
        println!("- {what}: {}", in_words(best));
    }
    for (count, best) in patterns::COUNTS.iter().zip(&rules) {
        println!("- {count} patterns: {}", in_words(best));
    }
}

fn times_as_long(best: &Best, a: &str, b: &str) -> String {
    match best.get(a) {
        Some(time) => format!("{:.1}", time / best[b]),
        None => "-".to_owned(),
    }
}

fn in_words(best: &Best) -> String {
    let words: Vec<String> = best
        .iter()
        .map(|(name, time)| format!("{name} {time:.2}"))
        .collect();
    words.join(", ")
}

fn on_documents(name: &str, shape: Shape, peers: &[Peer]) -> Best {
    let leaves = documents::changed_leaves(&documents::pairs(shape));
    let ours = |name: &str, variant_name: &str| {
        (
            name.to_owned(),
            timed(RECORDS, variant(variant_name, shape)),
        )
    };
    let mut candidates = vec![
        ours("listener", "10 rules"),
        ours("our merge", "merge"),
        ours("our merge-texts", "merge of texts"),
        ours("our acknowledge", "acknowledge whole"),
    ];
    for peer in peers {
        for comparison in ["node", "node-tuned", "go"] {
            let run = peer.measured(&format!("{comparison} {name}"), &[RECORDS, leaves]);
            candidates.extend(run.map(|run| (comparison.to_owned(), run)));
        }
        // These count the results that equal ours. Both must reject stale values.
        if let Some((_, same)) = peer.run(&format!("merge-late {name}")) {
            assert_eq!(same, [RECORDS], "merge-late {name}");
        }
        for comparison in ["merge", "merge-texts", "merge-logged", "acknowledge"] {
            let run = peer.measured(&format!("{comparison} {name}"), &[RECORDS]);
            candidates.extend(run.map(|run| (comparison.to_owned(), run)));
        }
    }
    best(ROUNDS, &mut candidates)
}

fn on_patterns(count: usize, peers: &[Peer]) -> Best {
    let mut engine = Engine::new(&patterns::patterns(count));
    let documents = patterns::documents(count);
    let found = engine.matches(&documents);
    assert!(found > 0);
    let units = documents.len();
    let run = move || assert_eq!(engine.matches(&documents), found);
    let mut candidates = vec![("our patterns".to_owned(), timed(units, run))];
    for peer in peers {
        let run = peer.measured(&format!("patterns {count}"), &[found]);
        candidates.extend(run.map(|run| ("patterns".to_owned(), run)));
    }
    best(ROUNDS, &mut candidates)
}
