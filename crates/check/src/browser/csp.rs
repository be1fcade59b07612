//! The Content Security Policy (CSP) that a host derives from what a widget declares, after the MCP Apps specification
//! of 2026-01-26 ("Host Behavior" and "CSP Construction from Metadata").
//!
//! The check mounts each widget under this policy, so that it sees the violations that users of the host would. The
//! hosts differ: ChatGPT falls back to its own key, and Claude blocks frames. A declared value that could inject a
//! directive is dropped.

use serde_json::Value;

use crate::survey::SurveyedWidget;

/// The most origins of one list that enter the policy.
const MAX_ORIGINS: usize = 50;

/// The host that a mount imitates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WidgetHost {
    ChatGpt,
    Claude,
}

impl WidgetHost {
    pub(crate) const BOTH: [Self; 2] = [Self::ChatGpt, Self::Claude];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ChatGpt => "ChatGPT",
            Self::Claude => "Claude",
        }
    }
}

/// Builds the policy of a widget from the standard key; ChatGPT falls back to its own key.
pub(super) fn content_security_policy(widget: &SurveyedWidget, host: WidgetHost) -> String {
    let standard = widget.meta(&["ui", "csp"]);
    let openai = widget.meta(&["openai/widgetCSP"]);
    let declared = match host {
        WidgetHost::ChatGpt => standard.or(openai),
        WidgetHost::Claude => standard,
    };
    let Some(csp) = declared else {
        return "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
                img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
            .to_owned();
    };
    let resource = origins(csp, "resourceDomains", "resource_domains");
    let connect = origins(csp, "connectDomains", "connect_domains");
    // Claude blocks frames, whatever a widget declares.
    let frame = match host {
        WidgetHost::ChatGpt => origins(csp, "frameDomains", "frame_domains"),
        WidgetHost::Claude => String::new(),
    };
    let base = origins(csp, "baseUriDomains", "base_uri_domains");
    let or = |list: String, otherwise: &str| {
        if list.is_empty() {
            format!(" {otherwise}")
        } else {
            list
        }
    };
    format!(
        "default-src 'none'; script-src 'self' 'unsafe-inline'{resource}; \
         style-src 'self' 'unsafe-inline'{resource}; connect-src 'self'{connect}; \
         img-src 'self' data:{resource}; font-src 'self'{resource}; media-src 'self' data:{resource}; \
         frame-src{}; object-src 'none'; base-uri{}",
        or(frame, "'none'"),
        or(base, "'self'")
    )
}

/// The origins under either name, each after a space. Values that could inject a directive are dropped.
fn origins(csp: &Value, standard: &str, openai: &str) -> String {
    let list = csp.get(standard).or_else(|| csp.get(openai));
    let all = list.and_then(Value::as_array).into_iter().flatten();
    let safe = |text: &&str| {
        let known = ["https://", "wss://", "http://localhost", "http://127.0.0.1"];
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/.*-".contains(&byte);
        known.iter().any(|start| text.starts_with(start)) && text.bytes().all(plain)
    };
    let safe = all.filter_map(Value::as_str).filter(safe).take(MAX_ORIGINS);
    safe.map(|origin| format!(" {origin}")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::exchange::{ExchangeError, RecordedExchange, SentRequest};

    fn widget(meta: &Value) -> SurveyedWidget {
        SurveyedWidget {
            uri: String::new(),
            entry: Some(json!({"_meta": meta})),
            tools: Vec::new(),
            read: Arc::new(RecordedExchange {
                sent: SentRequest::default(),
                outcome: Err(ExchangeError::BudgetSpent),
                took: std::time::Duration::ZERO,
            }),
        }
    }

    #[test]
    fn a_policy_names_what_was_declared_and_nothing_else() {
        let none = content_security_policy(&widget(&json!({})), WidgetHost::ChatGpt);
        assert!(none.ends_with("connect-src 'none'"), "{none}");
        let csp = json!({"ui": {"csp": {
            "connectDomains": ["https://api.example", "https://a.example; script-src *", "'unsafe-eval'", 5],
            "frameDomains": ["https://frame.example"],
        }}});
        let chatgpt = content_security_policy(&widget(&csp), WidgetHost::ChatGpt);
        assert!(
            chatgpt.contains("connect-src 'self' https://api.example;"),
            "{chatgpt}"
        );
        assert!(
            chatgpt.contains("frame-src https://frame.example;"),
            "{chatgpt}"
        );
        assert!(chatgpt.ends_with("base-uri 'self'"), "{chatgpt}");
        let claude = content_security_policy(&widget(&csp), WidgetHost::Claude);
        assert!(claude.contains("frame-src 'none';"), "{claude}");
    }

    #[test]
    fn only_chatgpt_reads_its_own_key() {
        let csp = json!({"openai/widgetCSP": {"resource_domains": ["https://cdn.example"]}});
        assert!(
            content_security_policy(&widget(&csp), WidgetHost::ChatGpt)
                .contains("https://cdn.example")
        );
        assert!(
            !content_security_policy(&widget(&csp), WidgetHost::Claude)
                .contains("https://cdn.example")
        );
    }

    #[test]
    fn a_list_counts_to_its_bound() {
        let all: Vec<String> = (0..=MAX_ORIGINS)
            .map(|n| format!("https://h{n}.example"))
            .collect();
        let csp = json!({"ui": {"csp": {"connectDomains": all}}});
        let policy = content_security_policy(&widget(&csp), WidgetHost::Claude);
        assert!(policy.contains(&format!("h{}.example", MAX_ORIGINS - 1)));
        assert!(!policy.contains(&format!("h{MAX_ORIGINS}.example")));
    }
}
