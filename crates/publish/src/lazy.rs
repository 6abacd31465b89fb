//! Clients of AWS services that are created by their first call.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

/// A client that is created when it is first used. Creating the first client of a service reads the SDK's table of
/// regions, which a function should not do before its first event for a queue that it may never send to.
pub struct LazyClient<C>(Arc<LazyLock<C, Create<C>>>);

type Create<C> = Box<dyn FnOnce() -> C + Send>;

impl<C> LazyClient<C> {
    pub fn new(create: impl FnOnce() -> C + Send + 'static) -> LazyClient<C> {
        LazyClient(Arc::new(LazyLock::new(Box::new(create))))
    }
}

impl LazyClient<aws_sdk_sqs::Client> {
    /// A client of SQS with the credentials, region and limits of an SDK configuration.
    pub fn sqs(sdk: &aws_types::SdkConfig) -> LazyClient<aws_sdk_sqs::Client> {
        let sdk = sdk.clone();
        LazyClient::new(move || aws_sdk_sqs::Client::new(&sdk))
    }
}

impl<C> Clone for LazyClient<C> {
    fn clone(&self) -> LazyClient<C> {
        LazyClient(Arc::clone(&self.0))
    }
}

impl<C> Deref for LazyClient<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

/// A client that exists.
impl<C: Clone + Send + 'static> From<&C> for LazyClient<C> {
    fn from(client: &C) -> LazyClient<C> {
        let client = client.clone();
        LazyClient::new(|| client)
    }
}

impl<C> From<&LazyClient<C>> for LazyClient<C> {
    fn from(client: &LazyClient<C>) -> LazyClient<C> {
        client.clone()
    }
}

impl<C: fmt::Debug> fmt::Debug for LazyClient<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
