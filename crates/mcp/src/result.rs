//! Tool results: turns a tool's answer into the three payloads of a result, for the client's revision and the app's
//! settings.
//!
//! `structuredContent` is the data, `content` is what a model reads, `_meta` is for a widget. By default `content` is
//! one text item that holds exactly the JSON of the data, because some hosts read one and some the other, and both
//! must see the same.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::content::ContentBlock;
use crate::error::{CallerError, Failure, FailureKind};
use crate::json_writer::{JsonObject, escape_json};
use crate::revision::Revision;
use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};

/// The answer of a tool: its output, with optional text for the model and metadata for a widget.
///
/// ```rust
/// use docent_mcp::{Answer, Context};
/// use serde_json::json;
///
/// fn answer(context: &Context) -> Answer<Vec<&'static str>> {
///     Answer::new(vec!["04:12", "16:40"])
///         .text("High water is at 04:12 and 16:40.")
///         .meta("harbour", json!("Port Ellin"))
///         .touched(context.touched(["port-ellin"]))
/// }
/// # let _ = answer;
/// ```
#[derive(Debug, Clone)]
pub struct Answer<T> {
    pub(crate) output: T,
    pub(crate) content: Option<Vec<ContentBlock>>,
    pub(crate) meta: Map<String, Value>,
    pub(crate) raw_meta: Vec<(&'static str, Arc<str>)>,
    pub(crate) touched: Vec<String>,
}

impl<T> Answer<T> {
    /// Creates an answer whose text is the JSON of its data.
    #[must_use]
    pub fn new(output: T) -> Self {
        Self {
            output,
            content: None,
            meta: Map::new(),
            raw_meta: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Sets the subjects of the answer, such as document ids, for [observers](crate::AppBuilder::observer). Clients
    /// never see them. See [`Context::touched`](crate::Context::touched).
    #[must_use]
    pub fn touched(mut self, things: Vec<String>) -> Self {
        self.touched = things;
        self
    }

    /// Replaces the text that the model reads.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.content([ContentBlock::text(text)])
    }

    /// Replaces the text by content blocks, such as images.
    #[must_use]
    pub fn content(mut self, items: impl IntoIterator<Item = ContentBlock>) -> Self {
        self.content = Some(items.into_iter().collect());
        self
    }

    /// Adds a `_meta` member, which a widget sees and the model does not.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Adds a `_meta` member that is already serialized, such as one that many answers share.
    #[must_use]
    pub fn meta_json(mut self, key: &'static str, json: Arc<str>) -> Self {
        self.raw_meta.push((key, json));
        self
    }
}

impl<T> From<T> for Answer<T> {
    fn from(output: T) -> Self {
        Self::new(output)
    }
}

/// For which clients a result repeats its `results` beside `content`, as clients of early 2025 expect.
///
/// ```rust
/// use docent_mcp::{App, DualFormat};
///
/// let app = App::builder("tides", "1.0.0").dual_format(DualFormat::Never).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DualFormat {
    /// For clients before 2025-06-18, which do not know `structuredContent`.
    #[default]
    Auto,
    /// For every client, whatever its revision.
    Always,
    /// For no client, whatever its revision.
    Never,
}

/// The content of the text item in a result with data.
///
/// ```rust
/// use docent_mcp::{App, TextForm};
///
/// let app = App::builder("tides", "1.0.0").text_form(TextForm::Prose).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextForm {
    /// The same JSON as in `structuredContent`.
    #[default]
    Json,
    /// Prose, if the tool provides it (see [`Tool::prose`](crate::Tool::prose)).
    Prose,
}

/// A type-erased answer, serialized once.
///
/// `structured` is the JSON of the data, and `quoted` the same JSON escaped for a string, if the tool wrote both.
/// Without `content`, the text is the JSON of the data. The members of `raw_meta` are serialized already.
#[derive(Debug)]
pub(crate) struct ResultPayloads {
    pub(crate) structured: Option<String>,
    pub(crate) quoted: Option<String>,
    pub(crate) content: Option<Vec<ContentBlock>>,
    pub(crate) meta: Map<String, Value>,
    pub(crate) raw_meta: Vec<(&'static str, Arc<str>)>,
    pub(crate) dual: bool,
    /// The subjects of the answer, for observers.
    pub(crate) touched: Vec<String>,
}

/// The format of the results of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultFormat {
    pub(crate) revision: Revision,
    pub(crate) dual: DualFormat,
}

impl ResultFormat {
    /// Renders a successful result as JSON.
    pub(crate) fn done(self, mut payloads: ResultPayloads, server: &Value) -> String {
        let mirror = match self.dual {
            DualFormat::Always => true,
            DualFormat::Never => false,
            DualFormat::Auto => !self.revision.has_structured_content(),
        };
        self.add_server_info(&mut payloads.meta, server);
        let data = payloads.structured.as_deref();
        // The data occurs twice in a result, once escaped, so that its quotes take two bytes.
        let meta: usize = payloads.raw_meta.iter().map(|(_, json)| json.len()).sum();
        let room = data.map_or(256, |data| data.len() * 2 + data.len() / 4 + meta + 512);
        let mut result = JsonObject::with_capacity(room);
        if let Some(kind) = self.result_type() {
            result.json("resultType", kind);
        }
        match (&payloads.content, data) {
            (None, Some(data)) => result.value("content", |out| {
                out.push_str(r#"[{"type":"text","text":""#);
                match &payloads.quoted {
                    Some(quoted) => out.push_str(quoted),
                    None => escape_json(data, out),
                }
                out.push_str("\"}]");
            }),
            (content, _) => result.json("content", content.as_deref().unwrap_or_default()),
        }
        if let Some(data) = data {
            result.raw("structuredContent", data);
        }
        let mirrored = data
            .filter(|_| mirror && payloads.dual)
            .and_then(results_of);
        if let Some(results) = mirrored {
            result.raw("results", results.get());
        }
        add_meta(&mut result, &payloads.meta, &payloads.raw_meta);
        result.end()
    }

    /// Renders a failure: a tool error that the model can read, or `Err` with a protocol error.
    pub(crate) fn failed(self, failure: Failure, server: &Value) -> Result<String, RpcError> {
        let CallerError {
            message,
            hint,
            data,
            mut meta,
        } = match failure.0 {
            FailureKind::Caller(mistake) => *mistake,
            FailureKind::NeedsInput(request) => return input_required(self.revision, *request),
            other => return Err(rpc_error(Failure(other))),
        };
        let text = hint.map_or_else(
            || message.clone(),
            |hint| format!("{message}\nhint: {hint}"),
        );
        self.add_server_info(&mut meta, server);
        let mut result = JsonObject::with_capacity(text.len() + 256);
        if let Some(kind) = self.result_type() {
            result.json("resultType", kind);
        }
        result.json("content", &[ContentBlock::text(text)]);
        if let Some(data) = data {
            result.json("structuredContent", &data);
        }
        result.raw("isError", "true");
        add_meta(&mut result, &meta, &[]);
        Ok(result.end())
    }

    fn result_type(self) -> Option<&'static str> {
        self.revision.is_modern().then_some("complete")
    }

    fn add_server_info(self, meta: &mut Map<String, Value>, server: &Value) {
        if self.revision.is_modern() {
            meta.insert(SERVER_INFO.to_owned(), server.clone());
        }
    }
}

/// Renders the result that asks the client for input, which only 2026-07-28 has.
pub(crate) fn input_required(
    revision: Revision,
    request: crate::Elicitation,
) -> Result<String, RpcError> {
    if revision.is_modern() {
        return Ok(request.into_result().to_string());
    }
    Err(RpcError::invalid_request(
        "this call has to ask the user, which needs protocol revision 2026-07-28",
    ))
}

fn add_meta(result: &mut JsonObject, meta: &Map<String, Value>, raw: &[(&str, Arc<str>)]) {
    if meta.is_empty() && raw.is_empty() {
        return;
    }
    result.value("_meta", |out| {
        let mut members = JsonObject::append_to(std::mem::take(out));
        for (key, value) in meta {
            members.json(key, value);
        }
        for (key, json) in raw {
            members.raw(key, json);
        }
        *out = members.end();
    });
}

/// The `_meta` key under which modern results name the server.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Returns the member `results` of the data, or a list with the data itself as the only result.
fn results_of(structured: &str) -> Option<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    struct ResultsMember<'a> {
        #[serde(borrow)]
        results: Option<&'a RawValue>,
    }
    let found: ResultsMember<'_> = serde_json::from_str(structured).ok()?;
    found.results.map_or_else(
        || RawValue::from_string(format!("[{structured}]")).ok(),
        |results| Some(results.to_owned()),
    )
}

/// The error code for an unknown resource, before 2026-07-28.
pub(crate) const RESOURCE_NOT_FOUND: i32 = -32002;

/// Converts a failure outside of `tools/call`, or one that no tool result can express, to a protocol error.
pub(crate) fn rpc_error(failure: Failure) -> RpcError {
    const MISSING_CAPABILITY: i32 = -32021;
    match failure.0 {
        FailureKind::Caller(mistake) => {
            let CallerError { message, hint, .. } = *mistake;
            let text = hint.map_or_else(|| message.clone(), |hint| format!("{message}: {hint}"));
            RpcError::new(INVALID_PARAMS, text)
        }
        FailureKind::Refused(message) => RpcError::new(INVALID_PARAMS, message),
        FailureKind::NotFound(uri) => {
            RpcError::new(RESOURCE_NOT_FOUND, format!("nothing is at `{uri}`"))
                .with_data(serde_json::json!({"uri": uri}))
        }
        FailureKind::MissingCapability(name) => RpcError::new(
            MISSING_CAPABILITY,
            format!("this call needs a client with the `{name}` capability"),
        )
        .with_data(serde_json::json!({"requiredCapabilities": {name: {}}})),
        FailureKind::NeedsInput(_) => RpcError::invalid_request("this request cannot ask the user"),
        FailureKind::Internal(error) => internal(error.as_ref()),
    }
}

/// Logs an internal error under a random reference, and returns a protocol error with the reference alone.
pub(crate) fn internal(error: &(dyn std::error::Error + 'static)) -> RpcError {
    let reference = reference();
    tracing::error!(%reference, error = %error_chain(error), "a request failed");
    RpcError::new(
        INTERNAL_ERROR,
        format!("internal error, reference `{reference}`"),
    )
}

fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Returns a random identifier that links a response to a log line. The hasher's keys are random per instance, which
/// is unique enough for a log search.
fn reference() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!(
        "{:08x}",
        RandomState::new().hash_one(std::thread::current().id()) as u32
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(json: &str) -> ResultPayloads {
        ResultPayloads {
            structured: Some(json.to_owned()),
            quoted: None,
            content: None,
            meta: Map::new(),
            raw_meta: vec![("raw", "[1]".into())],
            dual: true,
            touched: Vec::new(),
        }
    }

    fn done(revision: Revision, dual: DualFormat, json: &str) -> Value {
        let shape = ResultFormat { revision, dual };
        serde_json::from_str(&shape.done(payloads(json), &Value::Null)).unwrap()
    }

    #[test]
    fn results_stand_beside_content_only_where_they_are_wanted() {
        let json = r#"{"results":[{"id":"a"}]}"#;
        let has = |revision, dual| done(revision, dual, json).get("results").is_some();
        assert!(has(Revision::V2025_03_26, DualFormat::Auto));
        assert!(has(Revision::V2024_11_05, DualFormat::Auto));
        assert!(!has(Revision::V2025_06_18, DualFormat::Auto));
        assert!(has(Revision::V2026_07_28, DualFormat::Always));
        assert!(!has(Revision::V2024_11_05, DualFormat::Never));
    }

    #[test]
    fn the_text_is_exactly_the_json_of_the_data() {
        let data =
            serde_json::json!({"a": "quotes \" and \\ and \n and \u{1} and é", "b": [1.5, null]});
        let result = done(Revision::V2025_11_25, DualFormat::Auto, &data.to_string());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, data.to_string());
        assert_eq!(result["structuredContent"], data);
    }

    #[test]
    fn a_single_document_is_its_own_only_result() {
        let result = done(
            Revision::V2024_11_05,
            DualFormat::Auto,
            r#"{"id":"a","text":"t"}"#,
        );
        assert_eq!(
            result["results"],
            serde_json::json!([{"id":"a","text":"t"}])
        );
    }

    #[test]
    fn only_modern_results_name_their_type_and_server() {
        let modern = done(Revision::V2026_07_28, DualFormat::Auto, "{}");
        assert_eq!(modern["resultType"], "complete");
        assert!(modern["_meta"].get(SERVER_INFO).is_some());
        let legacy = done(Revision::V2025_11_25, DualFormat::Auto, "{}");
        assert!(legacy.get("resultType").is_none() && legacy["_meta"].get(SERVER_INFO).is_none());
        assert_eq!(modern["_meta"]["raw"], serde_json::json!([1]));
        assert_eq!(legacy["_meta"]["raw"], serde_json::json!([1]));
    }

    #[test]
    fn our_own_failure_shows_a_reference_and_nothing_else() {
        let cause = std::io::Error::other("secret path /srv/x");
        let error = rpc_error(Failure::from(cause));
        assert_eq!(error.code, -32603);
        assert!(!error.message.contains("secret") && error.message.contains("reference"));
    }
}
