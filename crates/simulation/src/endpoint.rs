//! The clients' endpoints: they check and record requests, and fail as real endpoints do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clients::{UrlPolicy, UrlRejection};
use antumbra_service::deliveries::{HttpResponse, Post, PostError, Sender};
use standardwebhooks::Webhook;

use crate::world::{World, lock};

/// The sender's own time-out, as in production.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
/// `Retry-After` of a busy endpoint.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(7);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Healthy,
    Failing,
    /// Refuses connections.
    Refusing,
    /// Never responds.
    Hanging,
    Gone,
    /// Responds with 503 and `Retry-After`.
    Busy,
}

#[derive(Debug, Clone)]
pub(crate) struct ReceivedPost {
    pub(crate) client: String,
    pub(crate) id: String,
    pub(crate) body: String,
    /// Time of the response, in milliseconds.
    pub(crate) at: u64,
    /// Status of the response; `None` if there was none.
    pub(crate) status: Option<u16>,
    /// The response reached the sender.
    pub(crate) response_arrived: bool,
}

/// All endpoints. Clones are the same.
#[derive(Clone)]
pub(crate) struct Endpoints {
    world: Arc<World>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    behaviours: BTreeMap<String, Behaviour>,
    secrets: BTreeMap<String, String>,
    got: Vec<ReceivedPost>,
}

impl Endpoints {
    pub(crate) fn new(world: &Arc<World>) -> Endpoints {
        Endpoints {
            world: Arc::clone(world),
            state: Arc::default(),
        }
    }

    pub(crate) fn url(client: &str) -> String {
        format!("https://{client}.example/hook")
    }

    /// Sets the secret of a client's endpoint.
    pub(crate) fn set_secret(&self, client: &str, secret: &str) {
        let mut state = lock(&self.state);
        state.secrets.insert(client.to_owned(), secret.to_owned());
    }

    /// Sets the behaviour of an endpoint.
    pub(crate) fn set_behaviour(&self, client: &str, behaviour: Behaviour) {
        self.world
            .trace
            .step("behaviour", || format!("{client} {behaviour:?}"));
        lock(&self.state)
            .behaviours
            .insert(client.to_owned(), behaviour);
    }

    pub(crate) fn behaviour(&self, client: &str) -> Behaviour {
        let state = lock(&self.state);
        state
            .behaviours
            .get(client)
            .copied()
            .unwrap_or(Behaviour::Healthy)
    }

    /// Returns all received requests, in order.
    pub(crate) fn posts(&self) -> Vec<ReceivedPost> {
        lock(&self.state).got.clone()
    }

    fn check(&self, client: &str, post: &Post<'_>) {
        let secret = lock(&self.state).secrets.get(client).cloned();
        let signature = antumbra_publish::webhook::sign(
            post.secrets,
            &post.id.to_string(),
            seconds(post),
            post.body,
        );
        let verified = secret
            .and_then(|secret| Webhook::new(&secret).ok())
            .and_then(|webhook| {
                let id = post.id.to_string();
                webhook.sign(&id, seconds(post), post.body.as_bytes()).ok()
            })
            .is_some_and(|own| signature.is_ok_and(|all| all.split(' ').any(|one| one == own)));
        if !verified {
            let seen = format!("a post to {client} is not signed with its secret");
            self.world.broken("every-request-is-signed", seen);
        }
    }
}

fn seconds(post: &Post<'_>) -> i64 {
    post.now.nanoseconds().div_euclid(1_000_000_000) as i64
}

impl Sender for Endpoints {
    async fn post(&self, post: Post<'_>) -> Result<HttpResponse, PostError> {
        let world = &self.world;
        let host = post.url.trim_start_matches("https://");
        let client = host.split('.').next().unwrap_or_default().to_owned();
        tokio::time::sleep(Duration::from_millis(world.chance.between(1, 80))).await;
        self.check(&client, &post);
        let behaviour = self.behaviour(&client);
        let (status, retry_after) = match behaviour {
            Behaviour::Healthy if world.draws_fault(world.profile.posts_failed) => {
                (Some(500), None)
            }
            Behaviour::Healthy => (Some(*world.chance.pick(&[200, 201, 204])), None),
            Behaviour::Failing => (Some(500), None),
            Behaviour::Gone => (Some(410), None),
            Behaviour::Busy => (Some(503), Some(RETRY_AFTER)),
            Behaviour::Refusing | Behaviour::Hanging => (None, None),
        };
        let response_arrived = !world.draws_fault(world.profile.posts_lost);
        world.trace.step("post", || {
            format!(
                "{client} {} {status:?} response_arrived={response_arrived} {}",
                post.id, post.body
            )
        });
        if behaviour != Behaviour::Refusing {
            lock(&self.state).got.push(ReceivedPost {
                client,
                id: post.id.to_string(),
                body: post.body.to_owned(),
                at: world.clock.milliseconds(),
                status,
                response_arrived,
            });
        }
        match status {
            _ if behaviour == Behaviour::Hanging => {
                tokio::time::sleep(TIMEOUT).await;
                Err(PostError::Timeout(TIMEOUT))
            }
            Some(status) if response_arrived => Ok(HttpResponse {
                status,
                retry_after,
            }),
            Some(_) => Err(PostError::Failed("the connection broke".to_owned())),
            None => Err(PostError::Failed("connection invalid".to_owned())),
        }
    }
}

/// Accepts every URL; the guard has its own tests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnyUrl;

impl UrlPolicy for AnyUrl {
    async fn check(&self, url: &str) -> Result<String, UrlRejection> {
        Ok(url.to_owned())
    }
}
