//! Built-in sign-in: an authorization server beside the app, whose access tokens the app accepts.

use std::net::SocketAddr;

use docent_mcp::Issuer;
use docent_mcp::http::Route;
use docent_oauth::{
    AuthorizationServer, AuthorizationServerError, AuthorizationServerOptions, LoginMethod,
    OwnHosts, UpstreamProvider, UserStore,
};
use url::Host;

use super::{CommandContext, certificate_authorities};
use crate::cli_error::CliError;
use crate::index_location;
use crate::settings::{ServerSettings, SignInMethod, SignInSettings};

/// The scope that the authorization server grants and the app requires.
const SCOPE: &str = "docs.read";

/// The running authorization server: the issuer to trust, and the routes of its endpoints.
pub(super) struct SignInServer {
    pub(super) issuer: Issuer,
    pub(super) routes: Vec<Route>,
}

/// Opens the authorization server if the sign-in is on. Password sign-in without users is an error.
pub(super) fn open(
    context: &CommandContext,
    bound: SocketAddr,
) -> Result<Option<SignInServer>, CliError> {
    let settings = &context.settings.sign_in;
    let login = match settings.method {
        SignInMethod::Disabled => return Ok(None),
        SignInMethod::Password => LoginMethod::Password,
        SignInMethod::Upstream => LoginMethod::Upstream(upstream(settings)?),
    };
    let dir = context.sign_in_dir();
    index_location::create_parent(&dir)?;
    if settings.method == SignInMethod::Password {
        require_user(context, &UserStore::in_dir(&dir))?;
    }
    if context.settings.auth.scopes != [SCOPE] {
        return Err(
            CliError::usage("`auth.scopes` cannot be set where docent signs people in")
                .hint(format!("leave it out: `{SCOPE}` is what its tokens grant")),
        );
    }
    let server = &context.settings.server;
    let issuer = issuer_name(bound, server)?;
    let mut more_addresses = addresses(bound, server)?;
    more_addresses.retain(|address| *address != issuer);
    let title = context
        .settings
        .title
        .clone()
        .unwrap_or_else(|| context.name());
    let server = AuthorizationServer::open(AuthorizationServerOptions {
        login,
        more_addresses,
        scope: SCOPE.to_owned(),
        provider_authorities: certificate_authorities::of_issuers(&context.settings.auth)?,
        own_hosts: own_hosts(settings)?,
        ..AuthorizationServerOptions::new(&issuer, &title, &dir)
    })
    .map_err(open_error)?;
    Ok(Some(SignInServer {
        issuer: server.issuer(),
        routes: server.routes(),
    }))
}

/// Fails with the command to type if there is no user who could sign in.
fn require_user(context: &CommandContext, users: &UserStore) -> Result<(), CliError> {
    let known = users
        .list()
        .map_err(|error| CliError::failed("the list of users cannot be read").because(error))?;
    if known.is_empty() {
        let folder = context.folder.display();
        return Err(CliError::usage("nobody can sign in yet").hint(format!(
            "add somebody: docent user add NAME --path '{folder}'"
        )));
    }
    Ok(())
}

/// The issuer name of the built-in sign-in, which is also in the `sub:` principals of its users.
pub(in crate::commands) fn issuer_name(
    bound: SocketAddr,
    server: &ServerSettings,
) -> Result<String, CliError> {
    Ok(addresses(bound, server)?.remove(0))
}

/// URLs at which the server is reachable. The first one is the issuer name. A public URL must be https or loopback, so
/// that passwords and tokens are never sent in the clear.
pub(super) fn addresses(
    bound: SocketAddr,
    server: &ServerSettings,
) -> Result<Vec<String>, CliError> {
    let mut addresses = Vec::new();
    if let Some(public) = &server.public_url {
        let is_loopback = match public.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if public.scheme() != "https" && !is_loopback {
            let message = format!("sign-in needs https, and `{public}` is not");
            return Err(CliError::usage(message).hint("use an https URL for `--public-url`"));
        }
        let base = public.as_str().trim_end_matches('/');
        let base = base.strip_suffix("/mcp").unwrap_or(base);
        addresses.push(base.trim_end_matches('/').to_owned());
    }
    if bound.ip().is_loopback() {
        let scheme = server.tls.scheme();
        addresses.push(format!("{scheme}://{bound}"));
        addresses.push(format!("{scheme}://localhost:{}", bound.port()));
    }
    if addresses.is_empty() {
        return Err(
            CliError::usage("sign-in needs the public URL of this server")
                .hint("set it with `--public-url https://docs.example.org`"),
        );
    }
    Ok(addresses)
}

fn upstream(settings: &SignInSettings) -> Result<UpstreamProvider, CliError> {
    let missing = |key: &str| {
        CliError::usage(format!("`{key}` is not set")).hint(
            "sign-in at a provider needs `auth.upstream.issuer` and `auth.upstream.client_id`",
        )
    };
    let issuer = settings.upstream_issuer.clone();
    let client = settings.upstream_client_id.clone();
    Ok(UpstreamProvider {
        issuer: issuer.ok_or_else(|| missing("auth.upstream.issuer"))?,
        client_id: client.ok_or_else(|| missing("auth.upstream.client_id"))?,
        client_secret: settings.upstream_client_secret.clone(),
    })
}

fn own_hosts(settings: &SignInSettings) -> Result<OwnHosts, CliError> {
    let file = settings.client_ca.as_ref();
    Ok(OwnHosts {
        names: settings.client_hosts.clone(),
        authorities: file
            .map(|path| certificate_authorities::read(path))
            .transpose()?,
    })
}

fn open_error(error: AuthorizationServerError) -> CliError {
    let hint = match &error {
        AuthorizationServerError::Taken(_) => {
            "stop the other server, or choose another folder with `auth.dir`"
        }
        AuthorizationServerError::Folder(..) => {
            "choose another folder with `auth.dir` in docent.toml"
        }
        AuthorizationServerError::State(..) => {
            "move the folder away and add the users again; everybody will have to sign in again"
        }
        AuthorizationServerError::Authorities(_) => {
            "`auth.client_ca` must be a PEM file of certificates"
        }
        AuthorizationServerError::Upstream(_) => "example: `https://login.example.org`",
        _ => return CliError::usage(error.to_string()),
    };
    CliError::failed("cannot open the sign-in")
        .hint(hint)
        .because(error)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::settings::Settings;

    fn of(bound: &str, public: Option<&str>) -> Result<Vec<String>, CliError> {
        let mut server = Settings::default().server;
        server.public_url = public.map(|url| Url::parse(url).unwrap());
        addresses(bound.parse().unwrap(), &server)
    }

    #[test]
    fn the_public_address_names_the_issuer() {
        let local = ["http://127.0.0.1:8787", "http://localhost:8787"];
        assert_eq!(of("127.0.0.1:8787", None).unwrap(), local);
        for public in [
            "https://docs.example.org",
            "https://docs.example.org/mcp",
            "https://docs.example.org/",
            "https://docs.example.org//mcp/",
        ] {
            let found = of("127.0.0.1:8787", Some(public)).unwrap();
            assert_eq!(found, [&["https://docs.example.org"], &local[..]].concat());
        }
        assert_eq!(
            of("0.0.0.0:80", Some("https://docs.example.org")).unwrap(),
            ["https://docs.example.org"]
        );
        assert!(of("127.0.0.1:1", Some("http://localhost:1")).is_ok());
    }

    #[test]
    fn sign_in_requires_a_public_https_address() {
        assert!(of("0.0.0.0:80", None).is_err());
        for public in [
            "http://docs.example.org",
            "http://localhost.example.org",
            "http://10.0.0.1",
        ] {
            assert!(of("0.0.0.0:80", Some(public)).is_err(), "{public}");
        }
    }
}
