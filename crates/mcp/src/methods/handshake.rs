//! The handshake of a connection: `initialize`, `server/discover`, `ping` and the log level.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{MethodAction, MethodScope, add_modern_members};
use crate::locale::{self, LOCALE};
use crate::protocol_version::{DeclaredProtocol, negotiate_revision};
use crate::request_meta::RequestMeta;
use crate::rpc::RpcError;
use crate::server_info;

/// Answers `initialize`. The revision is negotiated again from the parameters, because nothing is kept between the
/// requests of a stateless transport.
pub(super) fn initialize(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "the members are checked, not read")]
    struct InitializeParams {
        protocol_version: String,
        capabilities: Map<String, Value>,
        client_info: ClientInfo,
    }
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "the members are checked, not read")]
    struct ClientInfo {
        name: String,
        version: String,
    }
    let modern = scope.caller_context.revision.is_modern();
    // 2026-07-28 has no handshake. A client that sends a complete one all the same can still negotiate an older revision.
    scope
        .params::<InitializeParams>()
        .map_err(|error| match modern {
            true => RpcError::method_not_found("revision 2026-07-28 has no method `initialize`"),
            false => error,
        })?;
    let revision = negotiate_revision(&scope.request.params);
    let mut result = server_info::describe(&scope.dispatcher.app, modern);
    result.insert("protocolVersion".to_owned(), revision.as_str().into());
    if let Some(locale) = negotiated_locale(scope) {
        result.insert("_meta".to_owned(), json!({LOCALE: locale}));
    }
    Ok(MethodAction::Result(Value::Object(result).to_string()))
}

/// Answers `server/discover`, the first request of a client of 2026-07-28.
pub(super) fn discover(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    if !scope.caller_context.revision.is_modern() {
        let declared = DeclaredProtocol::of(&scope.request.params);
        let missing = declared.missing_member();
        return Err(missing.unwrap_or_else(|| {
            RpcError::invalid_params("`server/discover` needs revision 2026-07-28")
        }));
    }
    let app = &scope.dispatcher.app;
    let ttl = app.inner().cache.discover_ms;
    let mut result = server_info::discovered(server_info::describe(app, true));
    add_modern_members(app, scope.caller_context, &mut result, Some(ttl));
    if let Some(locale) = negotiated_locale(scope) {
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(LOCALE.to_owned(), locale.into());
        }
        // The response in one user's language must not be cached for another.
        result.insert("cacheScope".to_owned(), "private".into());
    }
    Ok(MethodAction::Result(Value::Object(result).to_string()))
}

/// Answers `ping`, which asks whether the connection is alive.
pub(super) fn ping(_: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    Ok(MethodAction::Result("{}".to_owned()))
}

/// Accepts the log level of a client without storing it: the next request may reach another replica.
pub(super) fn set_level(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "the member is checked, not read")]
    struct LevelParams {
        level: ProtocolLevel,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum ProtocolLevel {
        Debug,
        Info,
        Notice,
        Warning,
        Error,
        Critical,
        Alert,
        Emergency,
    }
    if !scope.dispatcher.app.inner().logging {
        return Err(RpcError::method_not_found(
            "this server sends no log messages",
        ));
    }
    scope.params::<LevelParams>()?;
    ping(scope)
}

/// Returns the app's language for this client, if the client names its language and the app lists its own.
fn negotiated_locale(scope: &MethodScope<'_>) -> Option<String> {
    let meta = RequestMeta::new(scope.request.params.meta.map(ToOwned::to_owned));
    let get = |key: &str| meta.get(key);
    locale::requested_locale(get)?;
    let locales = &scope.dispatcher.app.inner().locales;
    locales.pick(get).map(str::to_owned)
}
