//! `docent user`: manages the users of the built-in sign-in.

use std::io::{BufRead as _, Read as _};
use std::process::ExitCode;

use docent_oauth::{
    MAX_PASSWORD_BYTES, PasswordError, UserAccount, UserError, UserStore, hash_password,
    new_password,
};
use serde_json::json;

use super::CommandContext;
use crate::args::UserCommand;
use crate::cli_error::CliError;
use crate::index_location;
use crate::output;

pub(super) fn run(context: &CommandContext, command: &UserCommand) -> Result<ExitCode, CliError> {
    let dir = context.sign_in_dir();
    let users = UserStore::in_dir(&dir);
    match command {
        UserCommand::List { json } => list(&users, *json)?,
        UserCommand::Remove { name } => {
            users.remove(name).map_err(user_error)?;
            output::say(&format!(
                "removed `{name}`; their sessions end within 15 minutes"
            ));
        }
        UserCommand::Add(new) => {
            index_location::create_parent(&dir)?;
            let password = UserPassword::of(new.stdin)?;
            let user = UserAccount {
                name: new.name.clone(),
                email: new.email.clone(),
                groups: new.group.clone(),
                password: password.hash()?,
            };
            users.add(user).map_err(user_error)?;
            output::say(&format!("added `{}`", new.name));
            password.show()?;
        }
        UserCommand::Password(change) => {
            let password = UserPassword::of(change.stdin)?;
            let hash = password.hash()?;
            let changed = users.update(&change.name, |user| user.password = hash);
            changed.map_err(user_error)?;
            output::say(&format!(
                "`{}` has a new password; their sessions end within 15 minutes",
                change.name
            ));
            password.show()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(users: &UserStore, as_json: bool) -> Result<(), CliError> {
    let users = users.list().map_err(user_error)?;
    if as_json {
        let shown: Vec<_> = users
            .iter()
            .map(|user| json!({"name": user.name, "email": user.email, "groups": user.groups}))
            .collect();
        return output::json(&json!({ "users": shown }));
    }
    if users.is_empty() {
        output::say("nobody can sign in yet; add somebody with `docent user add NAME`");
        return Ok(());
    }
    let line = |user: &UserAccount| {
        let email = user.email.as_deref().unwrap_or_default();
        format!("{}\t{email}\t{}", user.name, user.groups.join(","))
    };
    output::data(&users.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// A new password, and whether it was generated and so must be shown once.
struct UserPassword {
    text: String,
    is_generated: bool,
}

impl UserPassword {
    fn of(stdin: bool) -> Result<Self, CliError> {
        if !stdin {
            let text = new_password().map_err(password_error)?;
            return Ok(Self {
                text,
                is_generated: true,
            });
        }
        let most = MAX_PASSWORD_BYTES as u64 + 2;
        let mut line = String::new();
        std::io::stdin()
            .lock()
            .take(most)
            .read_line(&mut line)
            .map_err(|error| CliError::failed("cannot read stdin").because(error))?;
        let text = line.trim_end_matches(['\r', '\n']).to_owned();
        Ok(Self {
            text,
            is_generated: false,
        })
    }

    fn hash(&self) -> Result<String, CliError> {
        hash_password(&self.text).map_err(password_error)
    }

    fn show(&self) -> Result<(), CliError> {
        if !self.is_generated {
            return Ok(());
        }
        output::say("their password, shown once:");
        output::data(&self.text)
    }
}

fn password_error(error: PasswordError) -> CliError {
    CliError::usage(error.to_string()).hint("omit `--stdin` to generate one")
}

fn user_error(error: UserError) -> CliError {
    match error {
        UserError::Exists(_) => CliError::usage(error.to_string())
            .hint("reset the password with `docent user password`"),
        UserError::Unknown(_) => {
            CliError::usage(error.to_string()).hint("list the users with `docent user list`")
        }
        UserError::Bad(_) => CliError::usage(error.to_string()),
        UserError::Damaged(..) => CliError::failed("the list of users cannot be read")
            .hint("repair it, or move it away and add the users again")
            .because(error),
        UserError::Io(..) => CliError::failed("the list of users cannot be used").because(error),
    }
}
