//! The settings of `[auth]` into the lock on the server, and what a person is told about it.

use std::net::SocketAddr;

use docent_mcp::{
    ApiKeyStore, Auth, AuthRequirement, Issuer, IssuerNetwork, IssuerTransport, LinkKey,
};

use super::{CommandContext, certificate_authorities, sign_in};
use crate::cli_error::CliError;
use crate::index_location;
use crate::output;
use crate::pages::LinkSigner;
use crate::settings::{self, SignInMethod};

/// The file of API keys.
pub(in crate::commands) const KEYS: &str = "api-keys.json";
/// The file of the secret that signs links.
const LINKS: &str = "link.key";

/// The lock, where sign-in is on; `own` is the issuer in this process, if there is one.
pub(super) fn build_auth(
    desk: &CommandContext,
    bound: SocketAddr,
    own: Option<Issuer>,
) -> Result<Option<Auth>, CliError> {
    let settings = &desk.settings.auth;
    if own.is_none() && !settings.is_on() {
        return Ok(None);
    }
    let addresses = sign_in::addresses(bound, &desk.settings.server)?;
    let title = desk.settings.title.clone();
    let mut builder = Auth::builder(addresses)
        .scopes(settings.scopes.clone())
        .audiences(settings.audiences.clone())
        .name(title.unwrap_or_else(|| desk.name()))
        .requirement(if settings.required {
            AuthRequirement::Always
        } else {
            AuthRequirement::Optional
        });
    let alone =
        own.is_none() && settings.issuers.is_empty() && settings.introspection.url.is_none();
    for issuer in own.into_iter().chain(issuers(settings)?) {
        builder = builder.issuer(issuer);
    }
    let keys = ApiKeyStore::open(desk.sign_in_dir().join(KEYS)).map_err(auth_error)?;
    if alone && keys.list().is_empty() {
        let folder = desk.folder.display();
        return Err(
            CliError::usage("nobody could sign in: there is no API key yet")
                .hint(format!("make one: docent key add NAME --path '{folder}'")),
        );
    }
    builder.keys(keys).build().map(Some).map_err(auth_error)
}

/// What signs the addresses of pages.
pub(super) fn link_signer(desk: &CommandContext, auth: &Auth) -> Result<LinkSigner, CliError> {
    index_location::create_parent(&desk.sign_in_dir())?;
    let key = LinkKey::open(&desk.sign_in_dir().join(LINKS)).map_err(auth_error)?;
    let needed = auth.requirement() == AuthRequirement::Always;
    Ok(LinkSigner::new(key, desk.settings.auth.link_days, needed))
}

/// Tells the person who started the server who can sign in.
pub(super) fn announce_sign_in(desk: &CommandContext, auth: Option<&Auth>) {
    if auth.is_some() {
        output::say(&sign_in_line(desk));
    } else if !desk.settings.permissions.are_open() {
        let text = "nobody can sign in, so callers see only what everyone may read";
        output::warn(text, Some("docs/permissions.md says more"));
    }
}

fn sign_in_line(desk: &CommandContext) -> String {
    let settings = &desk.settings.auth;
    let mut ways = match desk.settings.sign_in.by {
        SignInMethod::Disabled => Vec::new(),
        SignInMethod::Password => vec!["passwords".to_owned()],
        SignInMethod::Upstream => desk
            .settings
            .sign_in
            .upstream_issuer
            .clone()
            .into_iter()
            .collect(),
    };
    ways.extend(settings.issuers.clone());
    ways.extend(settings.introspection.issuer.clone());
    ways.push("API keys".to_owned());
    let whether = if settings.required {
        "required"
    } else {
        "optional"
    };
    format!("  sign-in      {whether}: {}", ways.join(", "))
}

fn auth_error(error: docent_mcp::AuthError) -> CliError {
    CliError::usage("the sign-in cannot be set up").because(error)
}

fn issuers(settings: &settings::AuthSettings) -> Result<Vec<Issuer>, CliError> {
    let reach = IssuerTransport {
        network: if settings.private_network {
            IssuerNetwork::Private
        } else {
            IssuerNetwork::Public
        },
        authorities: certificate_authorities::of_issuers(settings)?,
    };
    let remote = settings.issuers.iter().map(|name| {
        Issuer::remote(name, None, reach.clone())
            .algorithms(settings.algorithms.clone())
            .access_tokens_only(settings.access_tokens_only)
    });
    let mut all: Vec<Issuer> = remote.collect();
    let asked = &settings.introspection;
    if let Some(url) = &asked.url {
        let Some(name) = &asked.issuer else {
            return Err(
                CliError::usage("`auth.introspection.issuer` is not set").hint(
                    "name the issuer of the opaque tokens, such as `https://login.example.org`",
                ),
            );
        };
        let client = (asked.client_id.as_str(), asked.client_secret.reveal());
        all.push(Issuer::introspected(name, url, client, reach));
    }
    Ok(all)
}
