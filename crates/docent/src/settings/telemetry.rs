//! Settings of trace export, and the standard OpenTelemetry variables that set them too.

use super::setting_value::{InvalidSetting, SettingValue};
use crate::telemetry::OtlpHeaders;

/// Standard variables and the settings that they set. A `DOCENT_` variable overrides them.
pub(super) const STANDARD: [(&str, &str); 3] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "telemetry.headers"),
    ("OTEL_SERVICE_NAME", "telemetry.service_name"),
];

const MAX_HEADERS: usize = 16;

/// Parses HTTP headers as `name=value`. An error does not show them, since a header may contain an API key.
pub(super) fn headers(given: &SettingValue) -> Result<OtlpHeaders, InvalidSetting> {
    let wrong = || {
        let hint = "write `name=value`, up to 16 of them";
        SettingValue::Text(String::new()).invalid("is not a list of headers", hint)
    };
    let list = given.list().map_err(|_| wrong())?;
    let is_name = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !name.is_empty() && name.chars().all(plain)
    };
    let is_value = |value: &str| value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let pair = |text: &String| {
        let (name, value) = text.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        (is_name(name) && is_value(value)).then(|| (name.to_owned(), value.to_owned()))
    };
    let pairs: Option<Vec<_>> = list.iter().map(pair).collect();
    let pairs = pairs.filter(|pairs| pairs.len() <= MAX_HEADERS);
    pairs.map(OtlpHeaders).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<usize> {
        let read = headers(&SettingValue::Text(text.to_owned()));
        read.ok().map(|headers| headers.0.len())
    }

    #[test]
    fn headers_are_pairs() {
        assert_eq!(read("api-key=hush=1, x_tenant=harbour"), Some(2));
        for text in ["api-key", "=hush", "a b=c", "a=\u{7}", "a=é"] {
            assert_eq!(read(text), None, "{text}");
            let wrong = headers(&SettingValue::Text(text.to_owned())).unwrap_err();
            assert!(!format!("{wrong:?}").contains("hush"), "{wrong:?}");
        }
        let many = |count: usize| vec!["a=b"; count].join(",");
        assert_eq!(
            (read(&many(MAX_HEADERS)), read(&many(MAX_HEADERS + 1))),
            (Some(MAX_HEADERS), None)
        );
    }
}
