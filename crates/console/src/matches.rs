//! Registrations that match a change: those of today, whenever the change was written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antumbra_http_api::{RegistrationFiles, Services};
use antumbra_registration::{Change, RegistrationId, Registrations, Scratch, explain, plan};
use antumbra_service::history::DocumentChange;
use antumbra_service::shadows::{ShadowId, State};
use antumbra_shadow::{Model, Timestamp};
use antumbra_wire::notification::write_change;
use maud::{Markup, html};
use serde_json::value::RawValue;

use crate::components::{counted, cut, number};
use crate::json::{self, Json};
use crate::state::lock;
use crate::subject::Subject;
use crate::view::View;

/// Time for which the registrations are not read again.
const KEPT: Duration = Duration::from_secs(1);
/// Bytes of documents that are compared for one page.
const BYTES: usize = 8 * 1024 * 1024;
/// Documents that one change changes at most.
const DOCUMENTS: usize = 2;
/// Names that are listed.
const NAMES: usize = 6;

/// A registration that matches the change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) state: State,
    pub(crate) name: String,
    /// Kind of its target.
    pub(crate) target: String,
}

/// A registration and the reason why it does not match, if it does not.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) one: Match,
    pub(crate) unmet: Option<String>,
}

/// A recorded change with its documents, and the verdicts of all registrations on it.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) verdicts: Vec<Verdict>,
    /// The notification of the first registration that matches, without its id; empty if none does.
    pub(crate) notification: String,
}

/// Matches of recorded changes, by time.
pub(crate) type MatchesByTime = HashMap<Timestamp, Vec<Match>>;

/// The registrations of today. They are read again when somebody asks for them, at most once a second.
#[derive(Default)]
pub(crate) struct Matcher {
    loaded: Mutex<Option<Loaded>>,
}

struct Loaded {
    at: Instant,
    files: Arc<[(String, String)]>,
    /// `None` if the files have problems, which the page of registrations shows.
    rules: Option<Arc<Rules>>,
}

struct Rules {
    registrations: Registrations,
    /// Kinds of targets by the names of files.
    targets: HashMap<String, String>,
}

impl Rules {
    fn load(files: &[(String, String)]) -> Option<Rules> {
        let (mut texts, mut targets) = (Vec::new(), HashMap::new());
        for (file, text) in files {
            let raw: Option<&RawValue> = serde_json::from_str(text).ok();
            let json = raw.map_or(Json::Scalar, Json::of);
            let to = json.member("to").map_or(Json::Scalar, Json::of);
            if let Json::Object(kinds) = to
                && let Some((kind, _)) = kinds.first()
            {
                targets.insert(file.clone(), kind.clone());
            }
            texts.push((file, without_target(&json).unwrap_or_else(|| text.clone())));
        }
        let registrations = Registrations::load(texts, &|_| None).ok()?;
        Some(Rules {
            registrations,
            targets,
        })
    }

    fn named(&self, id: RegistrationId, state: State) -> Match {
        let registration = &self.registrations[id];
        let target = self.targets.get(&*registration.file);
        Match {
            state,
            name: registration.name.to_string(),
            target: target.cloned().unwrap_or_default(),
        }
    }

    fn matching(&self, subject: &Subject, model: &Model, scratch: &mut Scratch) -> Vec<Match> {
        subject.with(model, |change| {
            let found = plan(&self.registrations, change, scratch).iter();
            found.map(|id| self.named(*id, subject.state())).collect()
        })
    }
}

/// A registration with another target: its own may depend on variables that only the stream listener knows. Matching
/// does not depend on it.
fn without_target(registration: &Json<'_>) -> Option<String> {
    let Json::Object(members) = registration else {
        return None;
    };
    let kept = members.iter().filter(|(key, _)| key != "to");
    let kept = kept.map(|(key, raw)| (key.as_str(), raw.get()));
    let target = ("to", r#"{"sqs":{"queue":"any"}}"#);
    Some(json::object(kept.chain([target])))
}

impl Matcher {
    fn rules(&self, files: &RegistrationFiles) -> Option<Arc<Rules>> {
        let mut loaded = lock(&self.loaded);
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.at.elapsed() < KEPT) {
            return loaded.rules.clone();
        }
        let files = files.read().ok()?;
        let same = loaded.take().filter(|loaded| loaded.files == files);
        let rules = match same {
            Some(loaded) => loaded.rules,
            None => Rules::load(&files).map(Arc::new),
        };
        *loaded = Some(Loaded {
            at: Instant::now(),
            files,
            rules: rules.clone(),
        });
        rules
    }

    /// The registrations that match the changes of documents.
    pub(crate) fn matches(
        &self,
        services: &Services,
        changes: Vec<DocumentChange>,
        of: &ShadowId,
    ) -> Vec<Match> {
        let Some(rules) = self.rules(&services.registrations) else {
            return Vec::new();
        };
        let model = services.shadows.model();
        let mut scratch = Scratch::default();
        let subjects = changes
            .into_iter()
            .map(|change| Subject::recorded(of, change));
        let found = subjects.map(|subject| rules.matching(&subject, model, &mut scratch));
        found.flatten().collect()
    }

    /// The registrations that match the recorded changes of a shadow from a time to another.
    pub(crate) async fn recorded(
        &self,
        view: &View,
        shadow: &ShadowId,
        times: [Timestamp; 2],
        limit: usize,
    ) -> MatchesByTime {
        let services = &view.console.services;
        let mut found = MatchesByTime::new();
        let (Some(rules), Some(history)) = (
            self.rules(&services.registrations),
            services.history.as_ref(),
        ) else {
            return found;
        };
        let model = services.shadows.model();
        let mut scratch = Scratch::default();
        let mut bytes = 0;
        let replay = history.replay(shadow, times, limit, view.now, |change| {
            let subject = Subject::recorded(shadow, change);
            bytes += subject.bytes();
            let matching = rules.matching(&subject, model, &mut scratch);
            found.entry(subject.time).or_default().extend(matching);
            bytes < BYTES
        });
        if let Err(error) = replay.await {
            tracing::warn!(%error, "recorded changes cannot be replayed");
        }
        found
    }

    /// The documents before and after a recorded change, as far as they are recorded, and all registrations: why they
    /// match or do not.
    pub(crate) async fn explain(&self, view: &View, shadow: &ShadowId, at: Timestamp) -> Explained {
        let services = &view.console.services;
        let mut explained = Explained::default();
        if let Some(history) = &services.history {
            let replay = history.replay(shadow, [at, at], DOCUMENTS, view.now, |change| {
                explained.subjects.push(Subject::recorded(shadow, change));
                true
            });
            if let Err(error) = replay.await {
                tracing::warn!(%error, "a recorded change cannot be replayed");
            }
        }
        let Some(rules) = self.rules(&services.registrations) else {
            return explained;
        };
        let model = services.shadows.model();
        for subject in &explained.subjects {
            let verdicts = subject.with(model, |change| explain(&rules.registrations, change));
            let is_first = explained.notification.is_empty();
            let matching = verdicts.iter().find(|one| one.unmet.is_none());
            if is_first && let Some(matching) = matching {
                let parts = rules.registrations[matching.id].send;
                let write = |change: &Change<'_>| {
                    write_change(&mut explained.notification, change, parts);
                };
                subject.with(model, write);
            }
            let verdicts = verdicts.into_iter().map(|one| Verdict {
                unmet: one.unmet,
                one: rules.named(one.id, subject.state()),
            });
            explained.verdicts.extend(verdicts);
        }
        explained
    }
}

/// The test bench with a recorded change, and with a registration if it is named.
pub(crate) fn bench(
    view: &View,
    shadow: &ShadowId,
    at: Timestamp,
    state: State,
    registration: Option<&str>,
) -> String {
    let change = format!("{state}@{at}");
    let parameters = [
        ("name", registration.unwrap_or_default()),
        ("shadow", shadow.id()),
        ("sname", shadow.name()),
        ("change", &change),
    ];
    format!("{}#bench", view.href("/registrations", &parameters))
}

/// The names of matching registrations, each a link to the test bench with the change. Empty without a match.
pub(crate) fn links(view: &View, shadow: &ShadowId, at: Timestamp, matches: &[Match]) -> Markup {
    html! {
        @for (place, one) in matches.iter().take(NAMES).enumerate() {
            @if place > 0 { " " }
            a.badge.edge href=(bench(view, shadow, at, one.state, Some(&one.name))) { bdi { (cut(&one.name)) } }
            " " bdi { (cut(&one.target)) }
        }
        @if matches.len() > NAMES { " and " (number((matches.len() - NAMES) as i64)) " more" }
    }
}

/// The number of matching registrations, as a link to the test bench with the change. Empty without a match.
pub(crate) fn count(view: &View, shadow: &ShadowId, at: Timestamp, matches: &[Match]) -> Markup {
    let Some(first) = matches.first() else {
        return html! {};
    };
    let names: Vec<&str> = matches.iter().map(|one| one.name.as_str()).collect();
    let only = (names.len() == 1).then_some(names[0]);
    html! {
        ", " a href=(bench(view, shadow, at, first.state, only)) title=(cut(&names.join(", "))) {
            (counted(names.len(), "match", "matches"))
        }
    }
}
