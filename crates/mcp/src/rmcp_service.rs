//! The rmcp service: adapts the app to the handler traits of rmcp.
//!
//! One [`RmcpService`] answers one request and is dropped with it, so no state can survive between requests.

#![expect(
    deprecated,
    reason = "logging and resources/subscribe are deprecated, not gone: older clients use them"
)]

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    CacheScope, CallToolRequestMethod, ClientNotification, ClientRequest, CompleteRequestParams,
    CompleteResult, ConstString, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, Reference,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerConfig,
    ServerNotification, ServerResult, SetLevelRequestMethod, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, Service, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tracing::{Instrument as _, Span};

use crate::app::App;
use crate::call::{CallerContext, ToolCall, run_guarded};
use crate::call_observer::{CallKind, CallStatus, ObservedCall};
use crate::change_notifier::ChangeEvent;
use crate::completion::Completer;
use crate::error::{Failure, FailureKind};
use crate::locale::LOCALE;
use crate::request_context::{Context, InputRound, NotificationChannel};
use crate::request_meta::RequestMeta;
use crate::resource_registry::ResourceMatch;
use crate::result::{SERVER_INFO, TextForm, rpc_error};
use crate::rpc::RpcError;
use crate::server_info;

type RpcResult<T> = Result<T, ErrorData>;

/// The service that rmcp runs. Tool calls are answered here, because a result with extra members does not fit rmcp's
/// type; everything else goes through its `ServerHandler`.
///
/// `span` is the trace span of the request, which the tasks of rmcp would lose.
pub(crate) struct RmcpService {
    handler: RmcpHandler,
    call: Mutex<Option<ToolCall>>,
    span: Span,
}

struct RmcpHandler {
    app: App,
    caller_context: CallerContext,
    /// Subscribed before the client gets its confirmation, so that no change is missed in between.
    listening: Mutex<Option<broadcast::Receiver<ChangeEvent>>>,
}

impl RmcpService {
    pub(crate) fn new(app: App, caller_context: CallerContext, call: Option<ToolCall>) -> Self {
        let listening = Mutex::new(Some(app.inner().changes.subscribe()));
        Self {
            handler: RmcpHandler {
                app,
                caller_context,
                listening,
            },
            call: Mutex::new(call),
            span: Span::current(),
        }
    }

    async fn call_tool(&self, context: RequestContext<RoleServer>) -> RpcResult<ServerResult> {
        let Some(call) = take(&self.call) else {
            return Err(invalid_params("the parameters of `tools/call` do not fit"));
        };
        let progress = context.meta.get_progress_token();
        let notifications = NotificationChannel {
            peer: context.peer.clone(),
            progress,
        };
        let (app, caller_context) = (&self.handler.app, &self.handler.caller_context);
        let work = call.run(app, caller_context, context.ct.clone(), Some(notifications));
        let result = work.instrument(self.span.clone()).await?;
        let value = serde_json::from_str(&result).map_err(|error| rpc_error(error.into()))?;
        Ok(ServerResult::CustomResult(CustomResult(value)))
    }
}

impl Service<RoleServer> for RmcpService {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<ServerResult> {
        if matches!(request, ClientRequest::CallToolRequest(_)) {
            return self.call_tool(context).await;
        }
        self.handler.handle_request(request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> RpcResult<()> {
        self.handler
            .handle_notification(notification, context)
            .await
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.handler)
    }
}

impl RmcpHandler {
    fn modern(&self) -> bool {
        self.caller_context.revision.is_modern()
    }

    /// Converts our JSON to an rmcp type, with the members that 2026-07-28 adds to every cacheable result.
    fn result<T: DeserializeOwned>(&self, mut value: Value, ttl_ms: Option<u64>) -> RpcResult<T> {
        if let Some(object) = value.as_object_mut().filter(|_| self.modern()) {
            object.insert("resultType".to_owned(), "complete".into());
            let server = &self.app.inner().identity.wire;
            object.insert("_meta".to_owned(), json!({SERVER_INFO: server}));
            if let Some(ttl_ms) = ttl_ms {
                object.insert("ttlMs".to_owned(), ttl_ms.into());
                object.insert(
                    "cacheScope".to_owned(),
                    self.caller_context.cache_scope().into(),
                );
            }
        }
        serde_json::from_value(value).map_err(|error| rpc_error(error.into()).into())
    }

    fn list<T: DeserializeOwned>(
        &self,
        key: &str,
        items: impl Iterator<Item = Value>,
        page: Option<PaginatedRequestParams>,
    ) -> RpcResult<T> {
        if page.and_then(|page| page.cursor).is_some() {
            let message = "this list has one page; call it without a `cursor`";
            return Err(invalid_params(message));
        }
        let items: Vec<Value> = items.collect();
        self.result(json!({key: items}), Some(self.app.inner().cache.list_ms))
    }

    fn context(&self, context: &RequestContext<RoleServer>, round: InputRound) -> Context {
        Context {
            caller: self.caller_context.caller.clone(),
            revision: self.caller_context.revision,
            meta: RequestMeta::new(raw(&context.meta)),
            cancel: context.ct.clone(),
            notifications: Some(NotificationChannel {
                peer: context.peer.clone(),
                progress: context.meta.get_progress_token(),
            }),
            round,
            prose: self.app.inner().text == TextForm::Prose,
            locales: self.app.inner().locales.clone(),
            is_observed: false,
        }
    }

    async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> RpcResult<ReadResourceResponse> {
        let round = input_round(request.input_responses, request.request_state);
        let context = self.context(context, round);
        let (inner, uri) = (self.app.inner(), request.uri);
        let ttl = Some(inner.cache.list_ms);
        let found = match inner.registry.find(&uri) {
            Some(ResourceMatch::One(resource)) => {
                self.run_handler(resource.read(&uri, context), ttl).await?
            }
            Some(ResourceMatch::OfPattern(template, vars)) => {
                self.run_handler(template.read(&uri, vars, context), ttl)
                    .await?
            }
            None => return Err(rpc_error(Failure::not_found(uri)).into()),
        };
        Ok(match found {
            HandlerReply::Done(result) => ReadResourceResponse::Complete(result),
            HandlerReply::NeedsInput(input) => ReadResourceResponse::InputRequired(input),
        })
    }

    /// Runs a handler of the app for a prompt, a resource or a completion.
    async fn run_handler<T: DeserializeOwned>(
        &self,
        work: impl Future<Output = Result<Value, Failure>>,
        ttl_ms: Option<u64>,
    ) -> RpcResult<HandlerReply<T>> {
        match run_guarded(self.caller_context.handler_timeout, work).await? {
            Ok(value) => Ok(HandlerReply::Done(self.result(value, ttl_ms)?)),
            Err(Failure(FailureKind::NeedsInput(request))) => {
                serde_json::from_value(request.into_result())
                    .map(HandlerReply::NeedsInput)
                    .map_err(|error| rpc_error(error.into()).into())
            }
            Err(failure) => Err(rpc_error(failure).into()),
        }
    }
}

/// The result of a handler: an answer, or a request for input.
enum HandlerReply<T> {
    Done(T),
    NeedsInput(rmcp::model::InputRequiredResult),
}

impl ServerHandler for RmcpHandler {
    fn get_info(&self) -> ServerConfig {
        server_info::server_config(&self.app, self.modern())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<InitializeResult> {
        let mut result = self.negotiate_initialize(&request)?;
        if let Some(locale) = server_info::negotiated_locale(&self.app, &context.meta) {
            let meta = result.meta.get_or_insert_default();
            meta.insert(LOCALE.to_owned(), locale.into());
        }
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> RpcResult<DiscoverResult> {
        let result = server_info::discover_result(ServerHandler::get_info(self));
        let ttl = Some(self.app.inner().cache.discover_ms);
        let mut result: DiscoverResult = self.result(result, ttl)?;
        if let Some(locale) = server_info::negotiated_locale(&self.app, &context.meta) {
            let meta = result.meta.get_or_insert_default();
            meta.insert(LOCALE.to_owned(), locale.into());
            // The response in one user's language must not be cached for another.
            result.cache_scope = CacheScope::Private;
        }
        Ok(result)
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<ListResourcesResult> {
        let resources = self.app.inner().registry.listed_resources();
        self.list("resources", resources.map(|r| r.wire()), page)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<ListResourceTemplatesResult> {
        let templates = self.app.inner().registry.templates.iter();
        self.list("resourceTemplates", templates.map(|t| t.wire()), page)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<ReadResourceResponse> {
        let call = ObservedCall {
            kind: CallKind::Resource,
            name: "resources/read",
            arguments: raw(&json!({"uri": request.uri})),
            meta: raw(&context.meta),
        };
        let mut recorder = self.caller_context.record(&self.app, call);
        let uri = request.uri.clone();
        let answer = self.read(request, &context).await;
        if let Some(recorder) = &mut recorder {
            recorder.outcome = match &answer {
                Ok(_) => CallStatus::Done,
                Err(error) if error.code == ErrorCode::INTERNAL_ERROR => CallStatus::Failed,
                Err(_) => CallStatus::Mistaken,
            };
            recorder.touched = answer.iter().map(|_| uri.clone()).collect();
        }
        answer
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<ListPromptsResult> {
        let prompts = self.app.inner().prompts.iter();
        self.list("prompts", prompts.map(|p| p.wire()), page)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<GetPromptResponse> {
        let prompts = &self.app.inner().prompts;
        let Some(prompt) = prompts.iter().find(|prompt| prompt.name == request.name) else {
            let message = format!("there is no prompt `{}`", request.name);
            return Err(invalid_params(message));
        };
        let round = input_round(request.input_responses, request.request_state);
        let arguments = request.arguments.unwrap_or_default();
        let context = self.context(&context, round);
        let work = prompt.get(arguments, context);
        Ok(match self.run_handler(work, None).await? {
            HandlerReply::Done(result) => GetPromptResponse::Complete(result),
            HandlerReply::NeedsInput(input) => GetPromptResponse::InputRequired(input),
        })
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<CompleteResult> {
        let inner = self.app.inner();
        let completers = match &request.r#ref {
            Reference::Prompt(to) => inner
                .prompts
                .iter()
                .find(|p| p.name == to.name)
                .map(|p| &p.completers),
            Reference::Resource(to) => inner
                .registry
                .templates
                .iter()
                .find(|t| t.pattern == to.uri)
                .map(|t| &t.completers),
            // The enum is non-exhaustive; an unknown kind of reference has no suggestions.
            _ => None,
        };
        let completer = completers
            .and_then(|all| all.get(&request.argument.name))
            .cloned();
        let (typed, caller) = (request.argument.value, self.caller_context.caller.clone());
        let work = async move {
            match completer {
                Some(completer) => completer.suggest(typed, caller).await,
                None => Ok(Completer::nothing()),
            }
        };
        match self.run_handler(work, None).await? {
            HandlerReply::Done(result) => Ok(result),
            HandlerReply::NeedsInput(_) => Err(invalid_params("a completion cannot ask the user")),
        }
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<()> {
        // Accepted but not stored: the next request may reach another replica.
        if self.modern() || !self.app.inner().logging {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<()> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<()> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> RpcResult<()> {
        let Some(mut changes) = take(&self.listening) else {
            return Ok(());
        };
        let closing = &self.app.inner().closing;
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                () = closing.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            // A listener that lagged behind the channel is ended; it will list again and subscribe anew.
            let Ok(change) = change else { return Ok(()) };
            let is_wanted = is_subscribed(subscription.accepted(), &change);
            let sink = subscription.sink();
            if is_wanted && sink.send(notification(change)).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<CustomResult> {
        // rmcp reports a known method with invalid parameters as an unknown method.
        const KNOWN: [&str; 9] = [
            CallToolRequestMethod::VALUE,
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "subscriptions/listen",
        ];
        let method = request.method;
        if KNOWN.contains(&method.as_str()) {
            let message = format!("the parameters of `{method}` do not fit");
            return Err(invalid_params(message));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("there is no method `{method}`"),
            None,
        ))
    }
}

fn invalid_params(message: impl Into<Cow<'static, str>>) -> ErrorData {
    RpcError::invalid_params(message).into()
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn is_subscribed(accepted: &SubscriptionFilter, change: &ChangeEvent) -> bool {
    match change {
        ChangeEvent::Tools => accepted.tools_list_changed == Some(true),
        ChangeEvent::Prompts => accepted.prompts_list_changed == Some(true),
        ChangeEvent::Resources => accepted.resources_list_changed == Some(true),
        ChangeEvent::Resource(uri) => accepted
            .resource_subscriptions
            .as_ref()
            .is_some_and(|uris| uris.contains(uri)),
    }
}

fn notification(change: ChangeEvent) -> ServerNotification {
    match change {
        ChangeEvent::Tools => ServerNotification::ToolListChangedNotification(Default::default()),
        ChangeEvent::Prompts => {
            ServerNotification::PromptListChangedNotification(Default::default())
        }
        ChangeEvent::Resources => {
            ServerNotification::ResourceListChangedNotification(Default::default())
        }
        ChangeEvent::Resource(uri) => ServerNotification::ResourceUpdatedNotification(
            ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri)),
        ),
    }
}

fn input_round(
    responses: Option<std::collections::BTreeMap<String, Value>>,
    state: Option<String>,
) -> InputRound {
    let responses = responses.map(|all| all.into_iter().collect::<Map<_, _>>());
    InputRound { responses, state }
}

fn raw(meta: &impl serde::Serialize) -> Option<Box<RawValue>> {
    to_raw_value(meta).ok()
}
