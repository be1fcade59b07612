//! `docent key`: creates, lists and revokes API keys.

use std::process::ExitCode;

use docent_mcp::{ApiKeyGrant, ApiKeyInfo, ApiKeyStore};
use docent_search::Day;
use serde_json::json;

use super::CommandContext;
use super::serve::KEYS;
use crate::args::{AddKeyArgs, KeyCommand};
use crate::cli_error::CliError;
use crate::index_location;
use crate::output;
use crate::settings::SignInMethod;

const DAY: u64 = 86_400;

pub(super) fn run(context: &CommandContext, command: &KeyCommand) -> Result<ExitCode, CliError> {
    let keys = ApiKeyStore::open(context.sign_in_dir().join(KEYS)).map_err(key_error)?;
    match command {
        KeyCommand::Add(new) => add(context, &keys, new)?,
        KeyCommand::List { json } => list(&keys.list(), *json)?,
        KeyCommand::Remove { key } => {
            let removed = keys.remove(key).map_err(key_error)?;
            if removed == 0 {
                let message = format!("there is no key `{key}`");
                return Err(CliError::usage(message).hint("`docent key list` shows them"));
            }
            let keys = if removed == 1 { "key" } else { "keys" };
            output::say(&format!("{removed} {keys} removed"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn add(context: &CommandContext, keys: &ApiKeyStore, new: &AddKeyArgs) -> Result<(), CliError> {
    let mut grant = ApiKeyGrant {
        name: new.name.clone(),
        scopes: new.scope.clone(),
        ..ApiKeyGrant::default()
    };
    if grant.scopes.is_empty() {
        grant.scopes = context.settings.auth.scopes.clone();
    }
    for claim in &new.claim {
        let split = claim
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) =
            split.filter(|(name, value)| !name.is_empty() && !value.is_empty())
        else {
            let message = format!("`{claim}` is not a claim");
            return Err(CliError::usage(message).hint("example: `--claim groups=board`"));
        };
        let values = grant.claims.entry(name.to_owned()).or_default();
        values.push(value.to_owned());
    }
    let now = now();
    grant.expires = new.days.map(|days| now + days * DAY);
    index_location::create_parent(&context.sign_in_dir())?;
    let key = keys.add(grant, now).map_err(key_error)?;
    output::data(&key)?;
    output::say("store this key now: it cannot be shown again");
    let signs_in =
        context.settings.sign_in.method != SignInMethod::Disabled || context.settings.auth.is_on();
    if !signs_in {
        let hint = "set `api_keys = true` in `[auth]` of docent.toml";
        output::warn(
            "authentication is off, so the key is not needed yet",
            Some(hint),
        );
    }
    Ok(())
}

fn list(keys: &[ApiKeyInfo], as_json: bool) -> Result<(), CliError> {
    if as_json {
        let keys: Vec<_> = keys
            .iter()
            .map(|key| {
                json!({"id": key.id, "name": key.grant.name, "scopes": key.grant.scopes,
                    "created": key.created, "expires": key.grant.expires, "claims": key.grant.claims})
            })
            .collect();
        return output::json(&json!(keys));
    }
    if keys.is_empty() {
        output::say("there is no key");
        return Ok(());
    }
    let lines: Vec<String> = keys.iter().map(|key| line(key, now())).collect();
    output::data(&lines.join("\n"))
}

fn line(key: &ApiKeyInfo, now: u64) -> String {
    let ends = match key.grant.expires {
        None => "never expires".to_owned(),
        Some(at) if at <= now => format!("expired {}", day(at)),
        Some(at) => format!("expires {}", day(at)),
    };
    let claims = key.grant.claims.iter();
    let claims: Vec<String> = claims
        .map(|(name, values)| format!("{name}={}", values.join(",")))
        .collect();
    let parts = [
        key.id.clone(),
        key.grant.name.clone(),
        key.grant.scopes.join(" "),
        format!("created {}", day(key.created)),
        ends,
        claims.join(" "),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("  ")
}

fn day(seconds: u64) -> String {
    let number = i64::try_from(seconds / DAY).unwrap_or(i64::MAX);
    Day::from_number(number).map_or_else(String::new, |day| day.to_string())
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn key_error(error: docent_mcp::AuthError) -> CliError {
    use docent_mcp::AuthError;
    let message = error.to_string();
    match error {
        AuthError::KeyFile(..) | AuthError::Random => CliError::failed(message).because(error),
        _ => CliError::usage(message),
    }
}
