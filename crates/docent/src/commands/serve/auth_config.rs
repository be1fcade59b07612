//! Builds request authentication from the `[auth]` settings: trusted issuers, token introspection and API keys.

use std::net::SocketAddr;

use docent_mcp::{
    ApiKeyStore, Auth, AuthRequirement, IntrospectionClient, Issuer, IssuerNetwork,
    IssuerTransport, LinkKey,
};

use super::{CommandContext, certificate_authorities, sign_in};
use crate::cli_error::CliError;
use crate::index_location;
use crate::output;
use crate::pages::LinkSigner;
use crate::settings::{self, SignInMethod};

/// Name of the file with the hashed API keys.
pub(in crate::commands) const KEYS: &str = "api-keys.json";
/// Name of the file with the key that signs page links.
const LINKS: &str = "link.key";

/// Builds authentication if it is on; `own` is the issuer of the built-in sign-in, if there is one. If API keys are the
/// only credentials and there are none, that is an error, because nobody could sign in.
pub(super) fn build_auth(
    context: &CommandContext,
    bound: SocketAddr,
    own: Option<Issuer>,
) -> Result<Option<Auth>, CliError> {
    let settings = &context.settings.auth;
    if own.is_none() && !settings.is_on() {
        return Ok(None);
    }
    let addresses = sign_in::addresses(bound, &context.settings.server)?;
    let title = context.settings.title.clone();
    let mut builder = Auth::builder(addresses)
        .scopes(settings.scopes.clone())
        .audiences(settings.audiences.clone())
        .name(title.unwrap_or_else(|| context.name()))
        .requirement(if settings.required {
            AuthRequirement::Always
        } else {
            AuthRequirement::Optional
        });
    let has_only_keys =
        own.is_none() && settings.issuers.is_empty() && settings.introspection.url.is_none();
    for issuer in own.into_iter().chain(issuers(settings)?) {
        builder = builder.issuer(issuer);
    }
    let keys = ApiKeyStore::open(context.sign_in_dir().join(KEYS)).map_err(auth_error)?;
    if has_only_keys && keys.list().is_empty() {
        let folder = context.folder.display();
        return Err(
            CliError::usage("nobody could sign in: there is no API key yet")
                .hint(format!("make one: docent key add NAME --path '{folder}'")),
        );
    }
    builder.keys(keys).build().map(Some).map_err(auth_error)
}

/// Creates the signer for page URLs. Pages always need a signed link if every caller must sign in.
pub(super) fn link_signer(context: &CommandContext, auth: &Auth) -> Result<LinkSigner, CliError> {
    index_location::create_parent(&context.sign_in_dir())?;
    let key = LinkKey::open(&context.sign_in_dir().join(LINKS)).map_err(auth_error)?;
    let needed = auth.requirement() == AuthRequirement::Always;
    Ok(LinkSigner::new(
        key,
        context.settings.auth.link_days,
        needed,
    ))
}

/// Prints on stderr who can sign in, or warns if documents are restricted but authentication is off.
pub(super) fn announce_sign_in(context: &CommandContext, auth: Option<&Auth>) {
    if auth.is_some() {
        output::say(&sign_in_line(context));
    } else if !context.settings.permissions.are_open() {
        let text = "nobody can sign in, so callers see only what everyone may read";
        output::warn(text, Some("see docs/permissions.md"));
    }
}

fn sign_in_line(context: &CommandContext) -> String {
    let settings = &context.settings.auth;
    let mut methods = match context.settings.sign_in.method {
        SignInMethod::Disabled => Vec::new(),
        SignInMethod::Password => vec!["passwords".to_owned()],
        SignInMethod::Upstream => context
            .settings
            .sign_in
            .upstream_issuer
            .clone()
            .into_iter()
            .collect(),
    };
    methods.extend(settings.issuers.clone());
    methods.extend(settings.introspection.issuer.clone());
    methods.push("API keys".to_owned());
    let whether = if settings.required {
        "required"
    } else {
        "optional"
    };
    format!("  sign-in      {whether}: {}", methods.join(", "))
}

fn auth_error(error: docent_mcp::AuthError) -> CliError {
    CliError::usage("invalid authentication settings").because(error)
}

fn issuers(settings: &settings::AuthSettings) -> Result<Vec<Issuer>, CliError> {
    let transport = IssuerTransport {
        network: if settings.private_network {
            IssuerNetwork::Private
        } else {
            IssuerNetwork::Public
        },
        authorities: certificate_authorities::of_issuers(settings)?,
    };
    let remote = settings.issuers.iter().map(|name| {
        Issuer::remote(name, None, transport.clone())
            .algorithms(settings.algorithms.clone())
            .access_tokens_only(settings.access_tokens_only)
    });
    let mut all: Vec<Issuer> = remote.collect();
    let introspection = &settings.introspection;
    if let Some(url) = &introspection.url {
        let Some(name) = &introspection.issuer else {
            return Err(
                CliError::usage("`auth.introspection.issuer` is not set").hint(
                    "name the issuer of the opaque tokens, such as `https://login.example.org`",
                ),
            );
        };
        let client = IntrospectionClient {
            id: &introspection.client_id,
            secret: introspection.client_secret.reveal(),
        };
        all.push(Issuer::introspected(name, url, client, transport));
    }
    Ok(all)
}
