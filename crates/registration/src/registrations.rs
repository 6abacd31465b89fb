//! All registrations, compiled at start and matched against every change.

use std::collections::HashMap;
use std::ops::Index;
use std::sync::Arc;

use antumbra_shadow::Document;

use crate::key::index::KeyIndex;
use crate::key::{Key, Literals};
use crate::leaf::paths::PathSet;
use crate::limits::FILE_BYTES;
use crate::pattern::Pattern;
use crate::pattern::shared::Shared;
use crate::problem::{LoadErrors, Problem, Problems};
use crate::read::Reader;
use crate::registration::Registration;

/// Minimum number of patterns with one key that are compiled into one [`Shared`] structure.
const SHARED_PATTERNS: usize = 8;

/// The index of a registration among all that are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistrationId(pub(crate) u32);

/// All registrations, compiled.
#[derive(Debug, Default)]
pub struct Registrations {
    list: Box<[Registration]>,
    /// Each distinct key once; `groups` are in the same order.
    pub(crate) keys: Box<[Key]>,
    pub(crate) index: KeyIndex,
    pub(crate) groups: Box<[Group]>,
    /// Registrations without a key, which match every shadow.
    pub(crate) keyless: Group,
    /// Number of groups with shared patterns.
    pub(crate) shared: usize,
}

/// The enabled registrations with one key.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) plain: Box<[u32]>,
    pub(crate) patterned: Box<[u32]>,
    pub(crate) leaves: Option<Box<Leaves>>,
    /// The patterns of `patterned` as one structure, and the index of its scratch.
    pub(crate) shared: Option<Box<(Shared, usize)>>,
}

/// The registrations of a group with a leaf condition and without a pattern.
#[derive(Debug)]
pub(crate) struct Leaves {
    pub(crate) members: Box<[u32]>,
    /// Their paths, in the same order.
    pub(crate) paths: PathSet,
    /// One member for each combination of the conditions that [`Registration::passes`] checks.
    pub(crate) representatives: Box<[u32]>,
}

impl Registrations {
    /// Loads registrations from the names and texts of their files; `env` returns environment variables.
    ///
    /// Fails with all problems of all files if there is any.
    ///
    /// ```
    /// use antumbra_registration::Registrations;
    ///
    /// let text = r#"{ "name": "alerts", "to": { "sqs": { "queue": "${env:QUEUE}" } } }"#;
    /// let env = |name: &str| (name == "QUEUE").then(|| "alerts.fifo".to_owned());
    /// assert_eq!(Registrations::load([("alerts.json", text)], &env).unwrap().len(), 1);
    ///
    /// let errors = Registrations::load([("alerts.json", text)], &|_| None).unwrap_err();
    /// assert_eq!(errors.to_string(), "alerts.json: /to/sqs/queue: the environment variable QUEUE is not set");
    /// ```
    pub fn load<N: AsRef<str>, T: AsRef<str>>(
        files: impl IntoIterator<Item = (N, T)>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Registrations, LoadErrors> {
        let mut loader = Loader::default();
        for (file, text) in files {
            loader.file(file.as_ref(), text.as_ref(), env);
        }
        loader.finish()
    }

    /// The number of registrations, including disabled ones.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns `true` if there is no registration.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Iterates over all registrations in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = (RegistrationId, &Registration)> {
        (0..).map(RegistrationId).zip(&self.list)
    }
}

impl Index<RegistrationId> for Registrations {
    type Output = Registration;

    /// Ids come from [`Registrations`], so the index is valid.
    fn index(&self, id: RegistrationId) -> &Registration {
        &self.list[id.0 as usize]
    }
}

/// Reads all files, then compiles.
#[derive(Default)]
struct Loader {
    list: Vec<Registration>,
    keys: Vec<(Key, Literals)>,
    /// The enabled registrations by key, in the order of `keys`.
    members: Vec<Vec<u32>>,
    by_text: HashMap<Arc<str>, usize>,
    keyless: Vec<u32>,
    problems: Vec<Problem>,
}

impl Loader {
    fn file(&mut self, file: &str, text: &str, env: &dyn Fn(&str) -> Option<String>) {
        let mut file_problem = |reason: String| {
            self.problems.push(Problem {
                file: file.to_owned(),
                field: String::new(),
                reason,
            })
        };
        if text.len() > FILE_BYTES {
            return file_problem(format!(
                "has {} bytes, the limit is {FILE_BYTES}",
                text.len()
            ));
        }
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(fault) => return file_problem(fault.to_string()),
        };
        let before = self.problems.len();
        let mut problems = Problems {
            file,
            found: &mut self.problems,
        };
        let read = Registration::read(
            document.view(),
            &mut Reader {
                problems: &mut problems,
                env,
            },
        );
        if self.problems.len() > before {
            return;
        }
        if let Some((registration, key)) = read {
            self.add(registration, key);
        }
    }

    fn add(&mut self, registration: Registration, key: Option<(Key, Literals)>) {
        let number = self.list.len() as u32;
        if registration.enabled {
            match key {
                None => self.keyless.push(number),
                Some(key) => {
                    let at = *self
                        .by_text
                        .entry(key.0.shared_text())
                        .or_insert(self.keys.len());
                    if at == self.keys.len() {
                        self.keys.push(key);
                        self.members.push(Vec::new());
                    }
                    self.members[at].push(number);
                }
            }
        }
        self.list.push(registration);
    }

    fn finish(mut self) -> Result<Registrations, LoadErrors> {
        self.check_names();
        if !self.problems.is_empty() {
            return Err(LoadErrors {
                problems: self.problems,
            });
        }
        let index = KeyIndex::new(&self.keys);
        let mut shared = 0;
        let list = self.list;
        let groups = self
            .members
            .into_iter()
            .map(|members| Group::new(members, &list, &mut shared))
            .collect();
        let keyless = Group::new(self.keyless, &list, &mut shared);
        let keys = self.keys.into_iter().map(|(key, _)| key).collect();
        Ok(Registrations {
            list: list.into(),
            keys,
            index,
            groups,
            keyless,
            shared,
        })
    }

    fn check_names(&mut self) {
        let mut first: HashMap<&str, &str> = HashMap::with_capacity(self.list.len());
        for registration in &self.list {
            if let Some(other) = first.insert(&registration.name, &registration.file) {
                self.problems.push(Problem {
                    file: registration.file.to_string(),
                    field: "/name".to_owned(),
                    reason: format!(
                        "{:?} is already the name of the registration in {other}",
                        registration.name
                    ),
                });
            }
        }
    }
}

impl Group {
    fn new(members: Vec<u32>, list: &[Registration], shared: &mut usize) -> Group {
        let pattern = |number: &u32| list[*number as usize].on.pattern.as_ref();
        let (patterned, plain): (Vec<u32>, Vec<u32>) = members
            .into_iter()
            .partition(|number| pattern(number).is_some());
        let leaf = |number: &u32| list[*number as usize].on.leaf.as_ref();
        let (leaves, plain): (Vec<u32>, Vec<u32>) =
            plain.into_iter().partition(|number| leaf(number).is_some());
        let leaves = (!leaves.is_empty()).then(|| Box::new(Leaves::new(leaves, list)));
        let patterns: Vec<&Pattern> = patterned.iter().filter_map(pattern).collect();
        let shared_patterns = (patterns.len() >= SHARED_PATTERNS).then(|| {
            *shared += 1;
            Box::new((Shared::new(&patterns), *shared - 1))
        });
        Group {
            plain: plain.into(),
            patterned: patterned.into(),
            leaves,
            shared: shared_patterns,
        }
    }
}

impl Leaves {
    fn new(members: Vec<u32>, list: &[Registration]) -> Leaves {
        let registration = |number: &u32| &list[*number as usize];
        let leaves = members
            .iter()
            .filter_map(|one| registration(one).on.leaf.as_ref());
        let paths = PathSet::new(leaves.map(|leaf| &leaf.path));
        let mut representatives: Vec<u32> = Vec::new();
        for number in &members {
            let is_same = |other: &u32| registration(other).passes_alike(registration(number));
            if !representatives.iter().any(is_same) {
                representatives.push(*number);
            }
        }
        Leaves {
            members: members.into(),
            paths,
            representatives: representatives.into(),
        }
    }
}
