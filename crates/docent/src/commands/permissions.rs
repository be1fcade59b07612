//! `docent permissions`: explains who may read a document and by which rule, and lists documents that nobody can read.

mod named_caller;

use std::collections::HashMap;
use std::process::ExitCode;

use docent_ingest::ReaderField;
use docent_search::{
    AllowedReaders, DocId, Document, Engine, InventoryEntry, Principal, ReaderIdentity,
};
use serde_json::{Value, json};

use self::named_caller::NamedCaller;
use super::CommandContext;
use crate::args::{ExplainArgs, PermissionsCommand};
use crate::cli_error::CliError;
use crate::corpus;
use crate::display_text::pluralize;
use crate::document_transform::reader_fault_of;
use crate::output;
use crate::permissions::PermissionRules;

/// Maximum number of documents in a list.
const MAX_LISTED: usize = 10_000;

pub(super) fn run(
    context: &CommandContext,
    command: &PermissionsCommand,
) -> Result<ExitCode, CliError> {
    let engine = super::search::engine(context)?;
    let runtime = super::runtime()?;
    match command {
        PermissionsCommand::Explain(explain) => {
            let document = runtime.block_on(fetch_document(engine.as_ref(), &explain.id))?;
            explain_access(context, &document, explain)
        }
        PermissionsCommand::List { unreadable, json } => {
            let list = runtime.block_on(list_documents(context, engine.as_ref(), *unreadable))?;
            if list.stale > 0 {
                let stale = pluralize(list.stale as u64, "document");
                let hint = format!(
                    "reindex them with `docent index {}`",
                    context.folder.display()
                );
                let says = format!("{stale} of the index were made under other settings");
                output::warn(&says, Some(&hint));
            }
            list.show(*unreadable, *json)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn fetch_document(engine: &dyn Engine, id: &str) -> Result<Document, CliError> {
    let unknown = || {
        let hint = "ids come from `docent search`; `docent index` brings the index up to date";
        CliError::usage(format!("no document with id `{id}`")).hint(hint)
    };
    let parsed = DocId::parse(id).map_err(|_| unknown())?;
    let document = engine.fetch(parsed, ReaderIdentity::owner()).await?;
    let document = document.ok_or_else(unknown)?;
    Ok(Document::clone(&document))
}

/// The permission rule that decides who may read a document.
#[derive(Debug, PartialEq, Eq)]
enum AccessRule {
    Field(String),
    /// The document's own field, which is malformed and so names nobody: the reason and the fix.
    Fault(String, &'static str),
    /// The folder rule with this pattern.
    Folder(String),
    Default,
}

impl AccessRule {
    /// Determines the rule behind the readers in the index. `file_field` is the reader field in the file, if it was
    /// read.
    fn of(rules: &PermissionRules, document: &Listed, file_field: Option<&ReaderField>) -> Self {
        let field = rules.field.clone().unwrap_or_default();
        if let Some(fault) = reader_fault_of(&document.hash) {
            return Self::Fault(format!("its field `{field}` {fault}"), fault.hint());
        }
        let has_field = match file_field {
            Some(file_field) => *file_field != ReaderField::Absent,
            None => false,
        };
        // A field that `[fields]` adds is in no file, but it shows in readers that differ from those of the folder.
        let differs = document.readers != rules.readers_of_file(&document.source);
        if rules.field.is_some() && (has_field || differs) {
            return Self::Field(field);
        }
        match rules.folder(&document.source) {
            Some(folder) => Self::Folder(folder.path.to_string()),
            None => Self::Default,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Field(_) | Self::Fault(..) => "field",
            Self::Folder(_) => "folder",
            Self::Default => "default",
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Field(name) => format!("its field `{name}` says so"),
            Self::Fault(why, _) => why.clone(),
            Self::Folder(path) => format!("the folder rule `{path}` of docent.toml says so"),
            Self::Default => "no rule matches it, so `permissions.default` applies".to_owned(),
        }
    }

    /// Fix for a document that nobody may read.
    fn cure(&self) -> &'static str {
        match self {
            Self::Fault(_, cure) => cure,
            Self::Field(_) => "name its readers in the field, if somebody should read it",
            Self::Folder(_) => "name readers in the folder rule, if somebody should read it",
            Self::Default => "add a folder rule, or change `permissions.default`",
        }
    }
}

fn explain_access(
    context: &CommandContext,
    document: &Document,
    explain: &ExplainArgs,
) -> Result<ExitCode, CliError> {
    let rules = &context.settings.permissions;
    if !context
        .settings
        .document_transform()
        .is_current(&document.source, &document.hash)
    {
        let hint = format!(
            "reindex it with `docent index {}`",
            context.folder.display()
        );
        output::warn("it was indexed under other settings", Some(&hint));
    }
    let file_field = corpus::reader_field_of(&context.folder, &context.settings, document);
    let rule = AccessRule::of(rules, &Listed::of(document), file_field.as_ref());
    let verdict = match &explain.who {
        Some(name) => Some(AccessVerdict::of(context, name, document)?),
        None => None,
    };
    if explain.json {
        output::json(&json!({
            "id": document.id.as_str(), "source": document.source,
            "readers": readers_json(&document.readers), "rule": rule.code(), "why": rule.words(),
            "hint": is_unreadable(&document.readers).then(|| rule.cure()),
            "as": verdict.as_ref().map(AccessVerdict::wire),
        }))?;
    } else {
        let mut lines = vec![
            format!("{} ({})", document.id, document.source),
            format!("  readers: {}", readers_text(&document.readers)),
            format!("  why: {}", rule.words()),
        ];
        if is_unreadable(&document.readers) {
            lines.push(format!("  hint: {}", rule.cure()));
        }
        lines.extend(verdict.as_ref().map(AccessVerdict::words));
        output::data(&lines.join("\n"))?;
    }
    let may = verdict.is_none_or(|verdict| verdict.may);
    Ok(if may {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether a caller may read a document: the caller, and which of its principals grant access.
struct AccessVerdict {
    caller: NamedCaller,
    may: bool,
    by: Vec<String>,
}

impl AccessVerdict {
    fn of(context: &CommandContext, name: &str, document: &Document) -> Result<Self, CliError> {
        let caller = NamedCaller::find(context, name)?;
        let reader = ReaderIdentity::holder(caller.principals.iter().cloned());
        let may = caller.refusal.is_none() && reader.can_see(document);
        let by = match &document.readers {
            _ if !may => Vec::new(),
            AllowedReaders::Everyone => vec!["everyone".to_owned()],
            AllowedReaders::Only(named) => named
                .intersection(&caller.principals)
                .map(Principal::to_string)
                .collect(),
        };
        Ok(Self { caller, may, by })
    }

    fn words(&self) -> String {
        let name = &self.caller.name;
        if self.may {
            return format!("  as `{name}`: yes, by `{}`", self.by.join("`, `"));
        }
        if let Some(refusal) = &self.caller.refusal {
            return format!("  as `{name}`: no, because the server refuses it: {refusal}");
        }
        let holds: Vec<_> = self.holds().collect();
        let holds = match holds.as_slice() {
            [] => "nothing".to_owned(),
            some => format!("`{}`", some.join("`, `")),
        };
        format!("  as `{name}`: no, because {holds} is not among its readers")
    }

    fn holds(&self) -> impl Iterator<Item = &str> {
        self.caller.principals.iter().map(Principal::as_str)
    }

    fn wire(&self) -> Value {
        json!({
            "name": self.caller.name, "may_read": self.may, "refused": self.caller.refusal,
            "holds": self.holds().collect::<Vec<_>>(), "by": self.by,
        })
    }
}

/// Documents with their readers, up to a limit.
struct DocumentAccessList {
    rows: Vec<DocumentAccess>,
    /// Total number of matching documents.
    count: usize,
    /// Number of documents that were indexed under other settings, listed or not.
    stale: usize,
}

struct DocumentAccess {
    id: String,
    source: String,
    readers: AllowedReaders,
    rule: AccessRule,
}

async fn list_documents(
    context: &CommandContext,
    engine: &dyn Engine,
    unreadable: bool,
) -> Result<DocumentAccessList, CliError> {
    let transform = context.settings.document_transform();
    let (mut found, mut count, mut stale) = (Vec::new(), 0, 0);
    for InventoryEntry { id, source, hash } in engine.inventory().await? {
        stale += usize::from(!transform.is_current(&source, &hash));
        // The document was removed while the list was built.
        let Some(document) = engine.fetch(id, ReaderIdentity::owner()).await? else {
            continue;
        };
        if unreadable && !is_unreadable(&document.readers) {
            continue;
        }
        count += 1;
        if found.len() < MAX_LISTED {
            found.push(Listed::of(&document));
        }
    }
    Ok(DocumentAccessList {
        rows: rows(context, found),
        count,
        stale,
    })
}

/// The parts of a document that determine its readers, without its text, so that a long list fits in memory.
struct Listed {
    id: DocId,
    source: String,
    hash: String,
    readers: AllowedReaders,
}

impl Listed {
    fn of(document: &Document) -> Self {
        Self {
            id: document.id.clone(),
            source: document.source.clone(),
            hash: document.hash.clone(),
            readers: document.readers.clone(),
        }
    }
}

/// Determines the rule of each document. If the readers equal those of the folder rule or the default, only the file
/// shows whether its field repeats them, so those files are read.
fn rows(context: &CommandContext, found: Vec<Listed>) -> Vec<DocumentAccess> {
    let rules = &context.settings.permissions;
    let is_unclear = |one: &&Listed| {
        rules.field.is_some()
            && reader_fault_of(&one.hash).is_none()
            && one.readers == rules.readers_of_file(&one.source)
    };
    let unclear = found.iter().filter(is_unclear);
    let unclear: Vec<_> = unclear.map(|one| (one.source.as_str(), &one.id)).collect();
    let file_fields = match unclear.is_empty() {
        true => HashMap::new(),
        false => corpus::said_by_files(&context.folder, &context.settings, &unclear),
    };
    let row = |one: Listed| DocumentAccess {
        rule: AccessRule::of(rules, &one, file_fields.get(&one.id)),
        id: one.id.to_string(),
        source: one.source,
        readers: one.readers,
    };
    found.into_iter().map(row).collect()
}

impl DocumentAccessList {
    fn show(&self, unreadable: bool, as_json: bool) -> Result<(), CliError> {
        let more = self.count - self.rows.len();
        if as_json {
            let rows: Vec<_> = self.rows.iter().map(DocumentAccess::wire).collect();
            return output::json(
                &json!({"documents": rows, "count": self.count, "unlisted": more, "stale": self.stale}),
            );
        }
        for row in &self.rows {
            output::data(&row.words())?;
        }
        if more > 0 {
            output::say(&format!("{more} more"));
        }
        let what = pluralize(self.count as u64, "document");
        output::say(&match unreadable {
            true => format!("{what} that nobody can read"),
            false => what,
        });
        Ok(())
    }
}

impl DocumentAccess {
    fn words(&self) -> String {
        let head = format!(
            "{} ({}): {}",
            self.id,
            self.source,
            readers_text(&self.readers)
        );
        if is_unreadable(&self.readers) {
            return format!(
                "{head}, because {} ({})",
                self.rule.words(),
                self.rule.cure()
            );
        }
        head
    }

    fn wire(&self) -> Value {
        json!({
            "id": self.id, "source": self.source, "readers": readers_json(&self.readers),
            "rule": self.rule.code(), "why": self.rule.words(),
            "hint": is_unreadable(&self.readers).then(|| self.rule.cure()),
        })
    }
}

fn is_unreadable(readers: &AllowedReaders) -> bool {
    matches!(readers, AllowedReaders::Only(named) if named.is_empty())
}

fn readers_text(readers: &AllowedReaders) -> String {
    match readers {
        AllowedReaders::Everyone => "everyone".to_owned(),
        AllowedReaders::Only(named) if named.is_empty() => "nobody".to_owned(),
        AllowedReaders::Only(named) => {
            let named: Vec<_> = named.iter().map(Principal::as_str).collect();
            named.join(", ")
        }
    }
}

fn readers_json(readers: &AllowedReaders) -> Value {
    match readers {
        AllowedReaders::Everyone => json!(["everyone"]),
        AllowedReaders::Only(named) => named.iter().map(Principal::as_str).collect(),
    }
}
