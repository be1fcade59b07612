//! The method `subscriptions/listen`: a stream of change notifications, until the client or the server ends it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{MethodAction, MethodScope, add_modern_members};
use crate::answer_error;
use crate::change_notifier::ChangeEvent;
use crate::request_context::NotificationChannel;
use crate::rpc::RpcError;

/// The `_meta` key by which a client tells its subscriptions apart: the id of the request.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// How many resources one subscription may name. They stay in memory as long as the client listens.
const MAX_URIS: usize = 256;

/// The changes that a client wants to hear of. The server supports all of them.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct SubscriptionFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    tools_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_subscriptions: Option<HashSet<String>>,
}

impl SubscriptionFilter {
    /// Returns the filter as the client gets it confirmed: without what it does not want to hear of.
    fn accepted(self) -> Self {
        let wanted = |member: Option<bool>| member.filter(|wanted| *wanted);
        Self {
            tools_list_changed: wanted(self.tools_list_changed),
            prompts_list_changed: wanted(self.prompts_list_changed),
            resources_list_changed: wanted(self.resources_list_changed),
            resource_subscriptions: self.resource_subscriptions,
        }
    }

    fn has(&self, change: &ChangeEvent) -> bool {
        match change {
            ChangeEvent::Tools => self.tools_list_changed == Some(true),
            ChangeEvent::Prompts => self.prompts_list_changed == Some(true),
            ChangeEvent::Resources => self.resources_list_changed == Some(true),
            ChangeEvent::Resource(uri) => {
                let uris = self.resource_subscriptions.as_ref();
                uris.is_some_and(|uris| uris.contains(uri))
            }
        }
    }
}

/// Starts to listen, with a listener permit instead of one for a request in flight.
pub(super) fn listen(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    #[derive(Deserialize)]
    struct ListenParams {
        notifications: SubscriptionFilter,
    }
    let filter = scope.params::<ListenParams>()?.notifications.accepted();
    let uris = filter.resource_subscriptions.as_ref();
    if uris.is_some_and(|uris| uris.len() > MAX_URIS) {
        let message = format!("one subscription can name {MAX_URIS} resources at most");
        return Err(RpcError::invalid_params(message));
    }
    let caller_context = scope.caller_context.clone();
    let permit = scope.dispatcher.listener_permit(&caller_context.caller)?;
    let app = scope.dispatcher.app.clone();
    // Subscribed before the client gets its confirmation, so that no change is missed in between.
    let changes = app.inner().changes.subscribe();
    let id = json!({SUBSCRIPTION_ID: scope.request.id});
    let listener = async move |cancel: CancellationToken,
                               notifications: Option<NotificationChannel>| {
        if let Some(notifications) = notifications {
            let closing = &app.inner().closing;
            let accepted = json!({"_meta": id, "notifications": filter});
            let acknowledged = notifications
                .send("notifications/subscriptions/acknowledged", accepted)
                .await;
            if acknowledged.is_err() {
                return Err(answer_error::too_many_unread());
            }
            tokio::select! {
                () = cancel.cancelled() => {}
                () = closing.cancelled() => {}
                () = forward(&notifications, &id, &filter, changes) => {}
            }
        }
        let mut result = Map::new();
        add_modern_members(&app, &caller_context, &mut result, None);
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let (Value::Object(meta), Value::Object(id)) = (meta, id) {
            meta.extend(id);
        }
        Ok(Value::Object(result).to_string())
    };
    Ok(MethodAction::run(true, listener).holding(permit))
}

/// Forwards changes to a subscription, until one cannot be delivered or was missed.
async fn forward(
    notifications: &NotificationChannel,
    id: &Value,
    filter: &SubscriptionFilter,
    mut changes: broadcast::Receiver<ChangeEvent>,
) {
    // A listener that lagged behind the channel is ended; it will list again and subscribe anew.
    while let Ok(change) = changes.recv().await {
        if !filter.has(&change) {
            continue;
        }
        let mut params = Map::new();
        params.insert("_meta".to_owned(), id.clone());
        let method = match change {
            ChangeEvent::Tools => "notifications/tools/list_changed",
            ChangeEvent::Prompts => "notifications/prompts/list_changed",
            ChangeEvent::Resources => "notifications/resources/list_changed",
            ChangeEvent::Resource(uri) => {
                params.insert("uri".to_owned(), uri.into());
                "notifications/resources/updated"
            }
        };
        if notifications.send(method, params.into()).await.is_err() {
            return;
        }
    }
}
