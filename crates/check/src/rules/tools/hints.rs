//! What tools say of what they do.

use serde_json::Value;

use super::super::{Fault, Seen, Verdict, name, of_tools, text};

const HINTS: [&str; 3] = ["readOnlyHint", "destructiveHint", "openWorldHint"];

fn hint(tool: &Value, hint: &str) -> Option<bool> {
    tool.get("annotations")?.get(hint)?.as_bool()
}

pub(super) fn hints_explicit(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let missing: Vec<_> = HINTS
            .into_iter()
            .filter(|found| hint(tool, found).is_none())
            .map(|hint| format!("`{hint}`"))
            .collect();
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        (!missing.is_empty()).then(|| {
            let what = format!(
                "the tool `{}` has no true or false for {}",
                name(tool),
                missing.join(", ")
            );
            Fault::new(what).seen(annotations)
        })
    })
}

pub(super) fn hints_either(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let says =
            hint(tool, "readOnlyHint") == Some(true) || hint(tool, "destructiveHint").is_some();
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        (!says).then(|| {
            let what = format!(
                "the tool `{}` does not say whether it reads or destroys",
                name(tool)
            );
            Fault::new(what).seen(annotations)
        })
    })
}

pub(super) fn hints_agree(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let both =
            hint(tool, "readOnlyHint") == Some(true) && hint(tool, "destructiveHint") == Some(true);
        both.then(|| {
            Fault::new(format!(
                "the tool `{}` only reads and is destructive",
                name(tool)
            ))
            .seen(tool.get("annotations").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn hints_honest(seen: &Seen) -> Verdict {
    const CHANGES: [&str; 12] = [
        "delete", "remove", "update", "create", "write", "send", "insert", "drop", "purge",
        "rename", "upload", "publish",
    ];
    of_tools(seen, |tool| {
        let first = text(tool, "name")
            .split(['_', '-', '.'])
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let wrong = hint(tool, "readOnlyHint") == Some(true) && CHANGES.contains(&first.as_str());
        wrong.then(|| {
            Fault::new(format!("the tool `{}` claims to only read", name(tool)))
                .seen(tool.get("annotations").unwrap_or(&Value::Null))
        })
    })
}
