//! The functions of the stack: the same `build` as on AWS, configured by the same variables.

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbInbox;
use antumbra_lambda_kit::Handler;
use antumbra_lambda_kit::config::{Common, FunctionConfig};
use antumbra_lambda_kit::environment::EnvironmentError;
use antumbra_message_requests::InboxFunction;
use antumbra_message_requests::operations::{
    DeleteFunction, GetFunction, NextFunction, QueryFunction, SendFunction,
};
use antumbra_registration::Registrations;
use antumbra_service::clock::Clock;
use antumbra_service::history::DEFAULT_DAYS;
use antumbra_service::inbox::Outbound;
use antumbra_stream_listener::StreamListener;
use aws_types::SdkConfig;

use super::replaceable::Replaceable;
use super::{LocalServices, StackError, Webhooks};
use crate::function::Function;

impl LocalServices {
    /// All functions with an event source except the stream listener and the sweep.
    pub(super) fn functions(&self, webhooks: &Webhooks) -> Result<Vec<Function>, EnvironmentError> {
        let mut functions = vec![
            self.function(
                antumbra_message_ingest::NAME,
                antumbra_message_ingest::build,
            )?,
            self.function(antumbra_sensor_ingest::NAME, antumbra_sensor_ingest::build)?,
            self.function(
                antumbra_webhook_deliver::NAME,
                |config, sdk: &SdkConfig, clock| {
                    antumbra_webhook_deliver::build(webhooks.apply(config), sdk, clock)
                },
            )?,
            self.function(
                antumbra_shadow_requests::NAME,
                antumbra_shadow_requests::build,
            )?,
            self.inbox(GetFunction)?,
            self.inbox(QueryFunction)?,
            self.inbox(NextFunction)?,
            self.inbox(DeleteFunction)?,
            self.function(
                SendFunction::<Outbound>::NAME,
                antumbra_message_requests::build_send,
            )?,
        ];
        if self.keeps_history() {
            functions.push(self.function(
                antumbra_history_writer::NAME,
                antumbra_history_writer::build,
            )?);
        }
        Ok(functions)
    }

    /// Returns whether the history is kept, as the template decides it.
    pub(super) fn keeps_history(&self) -> bool {
        let mut environment = self.settings.environment("", "");
        environment.or("HISTORY_DAYS", DEFAULT_DAYS) > 0
    }

    pub(super) fn liveness_sweep(&self) -> Result<Function, EnvironmentError> {
        self.function(
            antumbra_liveness_sweep::NAME,
            antumbra_liveness_sweep::build,
        )
    }

    fn inbox<F: InboxFunction + 'static>(
        &self,
        function: impl FnOnce(DynamoDbInbox) -> F,
    ) -> Result<Function, EnvironmentError> {
        self.function(F::NAME, |config, sdk: &SdkConfig, clock| {
            antumbra_message_requests::build(function, config, sdk, clock)
        })
    }

    fn function<C: FunctionConfig, H: Handler + 'static>(
        &self,
        name: &'static str,
        build: impl FnOnce(C, &SdkConfig, Arc<dyn Clock>) -> H,
    ) -> Result<Function, EnvironmentError> {
        let handler = build(
            self.config(name)?,
            &self.sdk_of(name),
            Arc::new(self.clock.clone()),
        );
        self.of_handler(name, handler)
    }

    fn of_handler(
        &self,
        name: &'static str,
        handler: impl Handler + 'static,
    ) -> Result<Function, EnvironmentError> {
        let common: Common = self.config(name)?;
        let function = Function::from_handler(name, self.clock.clone(), common.metrics, handler);
        Ok((self.wrap)(function))
    }

    /// The function that reads the table's streams, and the handler in which its registrations can be replaced.
    pub(super) fn stream_listener(
        &self,
        registrations: Registrations,
    ) -> Result<(Function, Replaceable<StreamListener>), StackError> {
        let handler = Replaceable::new(self.listener(registrations)?);
        let function = self.of_handler(antumbra_stream_listener::NAME, handler.clone())?;
        Ok((function, handler))
    }

    pub(super) fn listener(
        &self,
        registrations: Registrations,
    ) -> Result<StreamListener, StackError> {
        let config = self.config(antumbra_stream_listener::NAME)?;
        let sdk = self.sdk_of(antumbra_stream_listener::NAME);
        let clock = Arc::new(self.clock.clone());
        let listener = antumbra_stream_listener::build(config, registrations, &sdk, clock)?;
        Ok(listener)
    }

    /// Configuration of a function.
    pub(super) fn config<C: FunctionConfig>(&self, function: &str) -> Result<C, EnvironmentError> {
        let endpoint = format!("http://{}", self.queues.address());
        let mut environment = self.settings.environment(function, &endpoint);
        let config = C::from_env(&mut environment);
        environment.finish()?;
        Ok(config)
    }
}
