//! The caller that `docent permissions explain --as` names, with the principals that the server would give it.
//!
//! The mapping from claims to principals is [`ClaimMapping::principals`](crate::permissions::ClaimMapping), the one that
//! the server applies to a token or an API key. A test compares both for every kind of credential.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use docent_mcp::{ApiKeyInfo, ApiKeyStore};
use docent_oauth::UserStore;
use docent_search::Principal;

use super::super::CommandContext;
use super::super::serve::{KEYS, issuer_name};
use crate::cli_error::CliError;
use crate::permissions::{self, IssuerCount, ReaderAudience};
use crate::settings::{Settings, SignInMethod};

/// A caller by the name that the owner gave it.
pub(super) struct NamedCaller {
    pub(super) name: String,
    pub(super) principals: BTreeSet<Principal>,
    /// Why the server refuses the credential of this caller, whatever it asks for.
    pub(super) refusal: Option<String>,
}

impl NamedCaller {
    /// Finds who is meant: everyone, a user of the built-in sign-in, an API key, a subject, or anybody with one
    /// principal, such as a group.
    pub(super) fn find(context: &CommandContext, name: &str) -> Result<Self, CliError> {
        let finder = CallerFinder::new(context)?;
        let FoundCaller {
            principals,
            refusal,
        } = finder.find(name.trim())?;
        Ok(Self {
            name: name.to_owned(),
            principals,
            refusal,
        })
    }
}

/// The principals of a caller, and why the server refuses it.
struct FoundCaller {
    principals: BTreeSet<Principal>,
    refusal: Option<String>,
}

impl FoundCaller {
    fn new(principals: BTreeSet<Principal>, refusal: Option<String>) -> Self {
        Self {
            principals,
            refusal,
        }
    }
}

struct CallerFinder<'a> {
    settings: &'a Settings,
    users: UserStore,
    keys: ApiKeyStore,
    /// The issuer name of the built-in sign-in.
    own_issuer: String,
}

impl<'a> CallerFinder<'a> {
    fn new(context: &'a CommandContext) -> Result<Self, CliError> {
        let settings = &context.settings;
        let server = &settings.server;
        let own_issuer = match issuer_name(server.listen, server) {
            // Without the built-in sign-in, nothing depends on its name.
            Err(_) if settings.sign_in.method == SignInMethod::Disabled => {
                format!("http://{}", server.listen)
            }
            found => found?,
        };
        let dir = context.sign_in_dir();
        let keys = ApiKeyStore::open(dir.join(KEYS));
        Ok(Self {
            settings,
            users: UserStore::in_dir(&dir),
            keys: keys.map_err(|error| CliError::failed(error.to_string()))?,
            own_issuer,
        })
    }

    fn find(&self, name: &str) -> Result<FoundCaller, CliError> {
        if name == "everyone" {
            let refusal = self
                .requires_sign_in()
                .then_some("every caller has to sign in");
            let refusal = refusal.map(str::to_owned);
            return Ok(FoundCaller::new(BTreeSet::new(), refusal));
        }
        if let Some(found) = self.user(name)? {
            return Ok(FoundCaller::new(found, self.refuse_users()));
        }
        if let Some(key) = self.key(name) {
            return Ok(self.of_key(&key));
        }
        if let Some(subject) = name.strip_prefix("sub:") {
            return self.subject(subject.trim());
        }
        let Some(one) = permissions::parse_principal(name) else {
            return Err(invalid(name));
        };
        Ok(FoundCaller::new(signed_in_with(Some(one)), None))
    }

    /// The principals of a user of the built-in sign-in.
    fn user(&self, name: &str) -> Result<Option<BTreeSet<Principal>>, CliError> {
        let user = self.users.find(name);
        let user = user.map_err(|error| CliError::failed(error.to_string()))?;
        Ok(user.map(|user| {
            let issuer = Some((self.own_issuer.as_str(), self.settings.issuers()));
            let claim = |name: &str| user.claim(&self.own_issuer, name);
            let claims = &self.settings.permissions.claims;
            claims.principals(issuer, &user.name, claim)
        }))
    }

    /// The API key with this name or id.
    fn key(&self, name: &str) -> Option<ApiKeyInfo> {
        let name = name.strip_prefix("key:").map_or(name, str::trim);
        let mut keys = self.keys.list().into_iter();
        keys.find(|key| key.grant.name == name || key.id == name)
    }

    fn of_key(&self, key: &ApiKeyInfo) -> FoundCaller {
        let grant = &key.grant;
        let claims = &self.settings.permissions.claims;
        let principals = claims.principals(None, &grant.name, |name| grant.claim(name));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let required = self.settings.auth.scopes.iter();
        let mut missing = required.filter(|scope| !grant.scopes.contains(*scope));
        let refusal = if grant.has_expired(now) {
            Some("the API key has expired".to_owned())
        } else if self.requires_sign_in() {
            let missing = missing.next();
            missing.map(|scope| format!("the API key lacks the scope `{scope}`"))
        } else {
            None
        };
        FoundCaller::new(principals, refusal)
    }

    /// The holder of a token with this subject. Only the claims of our own users are known.
    fn subject(&self, subject: &str) -> Result<FoundCaller, CliError> {
        let issuers = self.settings.issuers();
        let (issuer, name) = match permissions::split_issuer(subject) {
            Some((issuer, name)) => (issuer, name.trim()),
            None if issuers == IssuerCount::Several => {
                let message = "a subject without its issuer names nobody, because several issuers are trusted";
                let hint = format!("write `sub:{} {subject}`", self.own_issuer);
                return Err(CliError::usage(message).hint(hint));
            }
            None => (self.only_issuer(), subject),
        };
        if name.is_empty() {
            return Err(invalid(&format!("sub:{subject}")));
        }
        if issuer == self.own_issuer
            && let Some(found) = self.user(name)?
        {
            return Ok(FoundCaller::new(found, self.refuse_users()));
        }
        let claims = &self.settings.permissions.claims;
        let found = claims.principals(Some((issuer, issuers)), name, |_| Vec::new());
        let is_trusted = self.settings.external_issuers().contains(&issuer)
            || (self.settings.sign_in.method != SignInMethod::Disabled
                && issuer == self.own_issuer);
        let refusal = (self.has_auth() && !is_trusted)
            .then(|| format!("it does not trust the issuer `{issuer}`"));
        Ok(FoundCaller::new(found, refusal))
    }

    /// The issuer of a bare subject: the only external one, or the built-in sign-in.
    fn only_issuer(&self) -> &str {
        let external = self.settings.external_issuers();
        external.first().copied().unwrap_or(&self.own_issuer)
    }

    fn refuse_users(&self) -> Option<String> {
        let is_refused = self.has_auth() && self.settings.sign_in.method != SignInMethod::Password;
        is_refused.then(|| {
            "users of `docent user` sign in only with `auth.mode = \"password\"`".to_owned()
        })
    }

    fn has_auth(&self) -> bool {
        self.settings.sign_in.method != SignInMethod::Disabled || self.settings.auth.is_on()
    }

    fn requires_sign_in(&self) -> bool {
        self.has_auth() && self.settings.auth.required
    }
}

fn signed_in_with(one: Option<Principal>) -> BTreeSet<Principal> {
    let signed_in = match ReaderAudience::SignedIn.readers() {
        docent_search::AllowedReaders::Only(signed_in) => signed_in,
        docent_search::AllowedReaders::Everyone => BTreeSet::new(),
    };
    signed_in.into_iter().chain(one).collect()
}

fn invalid(name: &str) -> CliError {
    let hint = "name a user, an API key, a group, an email address, `sub:…` or `everyone`";
    CliError::usage(format!("`{name}` is not a valid caller")).hint(hint)
}
