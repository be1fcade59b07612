//! Grants and their tokens: single-use authorization codes, and refresh tokens with rotation and reuse
//! detection.
//!
//! A refresh token is its grant's id and a secret, and each use rotates the secret. A reused old secret
//! means that a token was stolen (RFC 9700, section 4.14.2), so it revokes the whole grant. One retry is
//! allowed, since a response can get lost: the previous secret works again within 30 seconds. That voids
//! the current one, whose later use then counts as reuse.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::client_registry::{self, KnownClient};
use super::crypto;
use super::store::{AuthStore, CODES, GRANTS, StoreError, StoreTransaction};

/// The lifetime of an authorization code in seconds. Hosts redeem a code at once, and it travels through the address
/// bar of a browser, where it can be seen and logged. RFC 6749 recommends ten minutes at most.
pub(crate) const CODE_LIFETIME: u64 = 60;
/// The idle timeout of a grant: 30 days without a refresh. A connector that nobody uses for a month has to be approved
/// again, so that a forgotten host, or a stolen backup of its tokens, loses its access by itself.
pub(crate) const GRANT_IDLE_TIMEOUT: u64 = 30 * 86_400;
/// The maximum lifetime of a grant: 180 days, after which the user has to log in again. Each refresh checks
/// that the account still exists.
pub(crate) const GRANT_LIFETIME: u64 = 180 * 86_400;
/// The maximum lifetime of a grant of an upstream provider. It is shorter, because no refresh can ask the
/// provider whether the account still exists.
pub(crate) const UPSTREAM_GRANT_LIFETIME: u64 = 30 * 86_400;
/// How long, in seconds, the previous refresh token may be used again after a rotation. A client whose connection broke
/// never received the new token, and without a second try its user would have to log in again. The window is short,
/// because a thief could use it too.
pub(crate) const REUSE_LEEWAY: u64 = 30;
/// The maximum number of authorization codes that are stored at once. A code exists only after a successful login and
/// for a minute, so this many mean that an account is being abused; rows are not to grow without end even then.
pub(crate) const MAX_CODES: usize = 1_000;
/// The maximum number of grants, in total and per user. One user has a grant for each host and device; the limit per
/// user keeps an account that logs in over and over from using up the room of all others.
pub(crate) const MAX_GRANTS: usize = 20_000;
pub(crate) const MAX_GRANTS_PER_USER: usize = 100;

/// The size in bytes of a grant's id inside a refresh token.
const ID_BYTES: usize = 16;

/// The user's identity, as tokens state it in their claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserIdentity {
    pub(crate) subject: String,
    pub(crate) email: Option<String>,
    pub(crate) email_verified: bool,
    pub(crate) groups: Vec<String>,
    /// A digest of the password's hash. It changes with the password, so that a new password revokes the
    /// grants of the old one.
    pub(crate) stamp: Option<String>,
}

impl UserIdentity {
    /// The claims about the user in a token of this issuer.
    pub(crate) fn claims(&self, issuer: &str) -> Map<String, Value> {
        let mut claims = Map::new();
        let mut say = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        say("iss", json!(issuer));
        say("sub", json!(self.subject));
        if let Some(email) = &self.email {
            say("email", json!(email));
            say("email_verified", json!(self.email_verified));
        }
        if !self.groups.is_empty() {
            say("groups", json!(self.groups));
        }
        claims
    }
}

/// The access that a user granted to a client: resource, scopes, whether refresh tokens are issued, and
/// when it began and ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantedAccess {
    pub(crate) client: String,
    pub(crate) resource: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) person: UserIdentity,
    pub(crate) refreshes: bool,
    pub(crate) at: u64,
    pub(crate) until: u64,
}

/// An authorization code with everything that its redemption must match. `challenge` is the PKCE code
/// challenge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AuthorizationCode {
    pub(crate) allowed: GrantedAccess,
    pub(crate) redirect: String,
    pub(crate) challenge: String,
    pub(crate) nonce: Option<String>,
    pub(crate) ends: u64,
    /// The id of the grant that was issued for the code, once it is spent.
    pub(crate) spent: Option<String>,
}

/// A grant with the state of its refresh token. The names in the database are older than those of the fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredGrant {
    #[serde(rename = "allowed")]
    access: GrantedAccess,
    /// Digest of the secret of the current refresh token.
    #[serde(rename = "present")]
    current_secret: String,
    /// Digest of the secret of the refresh token before it.
    #[serde(rename = "before")]
    previous_secret: Option<String>,
    #[serde(rename = "turned")]
    rotated_at: u64,
    #[serde(rename = "used")]
    refreshed_at: u64,
}

impl StoredGrant {
    fn ends(&self) -> u64 {
        let idle = self.refreshed_at.saturating_add(GRANT_IDLE_TIMEOUT);
        idle.min(self.access.until)
    }

    /// Rotates the refresh token's secret to `next`. Returns false when the presented secret is neither the
    /// current one nor the previous one within the leeway, which is reuse.
    fn rotate(&mut self, secret: &str, next: String, now: u64) -> bool {
        let lost = now < self.rotated_at.saturating_add(REUSE_LEEWAY);
        if self.current_secret == secret {
            self.previous_secret = Some(std::mem::replace(&mut self.current_secret, next));
            self.rotated_at = now;
            true
        } else if lost && self.previous_secret.as_deref() == Some(secret) {
            self.current_secret = next;
            true
        } else {
            false
        }
    }
}

/// A token request with an authorization code, ready to be compared with the stored code.
#[derive(Debug, Clone)]
pub(crate) struct CodeRedemption {
    pub(crate) code: String,
    pub(crate) client: KnownClient,
    pub(crate) redirect: Option<String>,
    pub(crate) verifier: String,
    /// The resource of the token request, in canonical form.
    pub(crate) resource: Option<String>,
}

/// An issued grant, and what the token response for it contains.
#[derive(Debug, Clone)]
pub(crate) struct IssuedGrant {
    pub(crate) id: String,
    pub(crate) allowed: GrantedAccess,
    pub(crate) refresh: Option<String>,
    pub(crate) nonce: Option<String>,
}

/// Why a token request is refused. Clients learn only the OAuth error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantError {
    Unknown,
    Expired,
    Spent,
    OtherClient,
    OtherRedirect,
    WrongVerifier,
    OtherResource,
    Reused,
    TooMany,
}

type GrantResult<T> = Result<Result<T, GrantError>, StoreError>;

/// The grant store: on disk, and in memory by id, so that every request can check whether its grant is
/// still live.
pub(crate) struct GrantStore {
    store: AuthStore,
    live: LiveGrants,
}

/// The live grants by id. It changes inside the transaction that changes the grant, so that memory and disk
/// always change in the same order.
#[derive(Clone, Default)]
struct LiveGrants(Arc<RwLock<HashMap<String, LiveGrant>>>);

/// The expiry time and the client of a live grant.
struct LiveGrant {
    ends: u64,
    client: String,
}

impl From<&StoredGrant> for LiveGrant {
    fn from(grant: &StoredGrant) -> Self {
        Self {
            ends: grant.ends(),
            client: grant.access.client.clone(),
        }
    }
}

impl LiveGrants {
    fn ends(&self, id: &str) -> Option<u64> {
        let live = self.0.read().unwrap_or_else(PoisonError::into_inner);
        live.get(id).map(|grant| grant.ends)
    }

    /// The ids of all clients with a live grant.
    fn clients(&self) -> HashSet<String> {
        let live = self.0.read().unwrap_or_else(PoisonError::into_inner);
        live.values().map(|grant| grant.client.clone()).collect()
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, LiveGrant>)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl GrantStore {
    /// Loads the live grants and deletes expired ones.
    pub(crate) fn open(store: AuthStore, now: u64) -> Result<Self, StoreError> {
        let live = LiveGrants::default();
        store.change(|rows| {
            sweep_codes(rows, now)?;
            let kept = sweep_grants(rows, now, None)?;
            live.change(|live| *live = kept);
            client_registry::sweep(rows, now)
        })?;
        Ok(Self { store, live })
    }

    /// True while the grant `id` exists and has not expired.
    pub(crate) fn is_live(&self, id: &str, now: u64) -> bool {
        self.live.ends(id).is_some_and(|ends| now < ends)
    }

    /// Stores an authorization code and returns its text, of which only the digest is kept. It also retains
    /// the client, which the user has now authorized.
    pub(crate) async fn allow(
        &self,
        code: AuthorizationCode,
        client: KnownClient,
        now: u64,
    ) -> GrantResult<String> {
        let text = crypto::secret()?;
        let key = crypto::digest(&text);
        let live = self.live.clone();
        self.store
            .write(move |rows| {
                if sweep_codes(rows, now)? >= MAX_CODES {
                    return Ok(Err(GrantError::TooMany));
                }
                rows.put(CODES, &key, &code)?;
                client_registry::retain_client(rows, &client, code.ends, || live.clients())?;
                Ok(Ok(text))
            })
            .await
    }

    /// Redeems an authorization code. The code is consumed even when a check fails. A second use revokes
    /// the grant of the first one (RFC 6749, section 4.1.2).
    pub(crate) async fn spend(
        &self,
        redemption: CodeRedemption,
        now: u64,
    ) -> GrantResult<IssuedGrant> {
        let key = crypto::digest(&redemption.code);
        let live = self.live.clone();
        self.store
            .write(move |rows| {
                let Some(code) = rows.get::<AuthorizationCode>(CODES, &key)? else {
                    return Ok(Err(GrantError::Unknown));
                };
                if let Some(grant) = code.spent {
                    end(rows, &live, &grant)?;
                    return Ok(Err(GrantError::Spent));
                }
                if let Err(why) = check_redemption(&code, &redemption, now) {
                    rows.remove(CODES, &key)?;
                    return Ok(Err(why));
                }
                let granted = issue_grant(rows, &live, &code, now)?;
                let ends = live.ends(&granted.id).unwrap_or(now);
                client_registry::retain_client(rows, &redemption.client, ends, || live.clients())?;
                let spent = Some(granted.id.clone());
                rows.put(CODES, &key, &AuthorizationCode { spent, ..code })?;
                Ok(Ok(granted))
            })
            .await
    }

    /// The access behind a refresh token, without using the token.
    pub(crate) async fn peek(&self, token: &str) -> Result<Option<GrantedAccess>, StoreError> {
        let Some((id, _)) = parse_refresh_token(token) else {
            return Ok(None);
        };
        let grant: Option<StoredGrant> = self.store.get(GRANTS, &id).await?;
        Ok(grant.map(|grant| grant.access))
    }

    /// Rotates a refresh token. `person` is the user's current identity and replaces the stored one.
    pub(crate) async fn refresh(
        &self,
        token: &str,
        client: KnownClient,
        person: UserIdentity,
        now: u64,
    ) -> GrantResult<IssuedGrant> {
        let Some((id, secret)) = parse_refresh_token(token) else {
            return Ok(Err(GrantError::Unknown));
        };
        let next = crypto::secret()?;
        let prefix = prefix(token);
        let live = self.live.clone();
        self.store
            .write(move |rows| {
                let Some(mut grant) = rows.get::<StoredGrant>(GRANTS, &id)? else {
                    return Ok(Err(GrantError::Unknown));
                };
                if grant.access.client != client.id {
                    return Ok(Err(GrantError::OtherClient));
                }
                if now >= grant.ends() {
                    end(rows, &live, &id)?;
                    return Ok(Err(GrantError::Expired));
                }
                if !grant.rotate(&secret, crypto::digest(&next), now) {
                    end(rows, &live, &id)?;
                    return Ok(Err(GrantError::Reused));
                }
                grant.refreshed_at = now;
                grant.access.person = person;
                rows.put(GRANTS, &id, &grant)?;
                live.change(|live| {
                    live.insert(id.clone(), LiveGrant::from(&grant));
                });
                client_registry::retain_client(rows, &client, grant.ends(), || live.clients())?;
                Ok(Ok(IssuedGrant {
                    id,
                    allowed: grant.access,
                    refresh: Some(format!("{prefix}.{next}")),
                    nonce: None,
                }))
            })
            .await
    }

    /// Revokes the grant `id`, if it belongs to `client`; with `None`, in any case.
    pub(crate) async fn end(&self, id: &str, client: Option<&str>) -> Result<(), StoreError> {
        let (id, client) = (id.to_owned(), client.map(str::to_owned));
        let live = self.live.clone();
        self.store
            .write(move |rows| {
                let grant = rows.get::<StoredGrant>(GRANTS, &id)?;
                let own =
                    |grant: &StoredGrant| client.is_none_or(|client| client == grant.access.client);
                if grant.as_ref().is_some_and(own) {
                    end(rows, &live, &id)?;
                }
                Ok(())
            })
            .await
    }
}

fn end(rows: &StoreTransaction, live: &LiveGrants, id: &str) -> Result<(), StoreError> {
    live.change(|live| {
        live.remove(id);
    });
    rows.remove(GRANTS, id)
}

/// Parses a refresh token into the digest of its grant's id and the digest of its secret.
pub(crate) fn parse_refresh_token(token: &str) -> Option<(String, String)> {
    let (id, secret) = token.split_once('.')?;
    let bytes = |text: &str| crypto::decode(text).map(|bytes| bytes.len());
    (bytes(id) == Some(ID_BYTES) && bytes(secret) == Some(crypto::SECRET_BYTES))
        .then(|| (crypto::digest(id), crypto::digest(secret)))
}

fn prefix(token: &str) -> String {
    token.split('.').next().unwrap_or_default().to_owned()
}

fn check_redemption(
    code: &AuthorizationCode,
    redemption: &CodeRedemption,
    now: u64,
) -> Result<(), GrantError> {
    if now >= code.ends {
        return Err(GrantError::Expired);
    }
    if code.allowed.client != redemption.client.id {
        return Err(GrantError::OtherClient);
    }
    // OAuth 2.1 no longer requires `redirect_uri` here; if it is sent, it must be the same.
    if redemption
        .redirect
        .as_ref()
        .is_some_and(|uri| *uri != code.redirect)
    {
        return Err(GrantError::OtherRedirect);
    }
    if !is_verifier(&redemption.verifier) || crypto::digest(&redemption.verifier) != code.challenge
    {
        return Err(GrantError::WrongVerifier);
    }
    if redemption
        .resource
        .as_ref()
        .is_some_and(|uri| *uri != code.allowed.resource)
    {
        return Err(GrantError::OtherResource);
    }
    Ok(())
}

/// True for a code verifier by the grammar of RFC 7636: 43 to 128 unreserved characters.
fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Creates the grant for an authorization code, with its first refresh token.
fn issue_grant(
    rows: &StoreTransaction,
    live: &LiveGrants,
    code: &AuthorizationCode,
    now: u64,
) -> Result<IssuedGrant, StoreError> {
    let prefix = crypto::encode(&crypto::random::<ID_BYTES>()?);
    let secret = crypto::secret()?;
    let id = crypto::digest(&prefix);
    let grant = StoredGrant {
        access: code.allowed.clone(),
        current_secret: crypto::digest(&secret),
        previous_secret: None,
        rotated_at: now,
        refreshed_at: now,
    };
    let mut kept = sweep_grants(rows, now, Some(&code.allowed.person.subject))?;
    rows.put(GRANTS, &id, &grant)?;
    kept.insert(id.clone(), LiveGrant::from(&grant));
    live.change(|live| *live = kept);
    let refresh = code.allowed.refreshes.then(|| format!("{prefix}.{secret}"));
    Ok(IssuedGrant {
        id,
        allowed: code.allowed.clone(),
        refresh,
        nonce: code.nonce.clone(),
    })
}

fn sweep_codes(rows: &StoreTransaction, now: u64) -> Result<usize, StoreError> {
    let mut left = 0;
    for (key, code) in rows.all::<AuthorizationCode>(CODES)? {
        // A spent code is kept until it would have expired, so that a second use is detected.
        if now < code.ends {
            left += 1;
        } else {
            rows.remove(CODES, &key)?;
        }
    }
    Ok(left)
}

/// Deletes expired grants and makes room for one more, of the user `newcomer` if given: the least recently
/// used grants are evicted first (LRU). Returns the live ones.
fn sweep_grants(
    rows: &StoreTransaction,
    now: u64,
    newcomer: Option<&str>,
) -> Result<HashMap<String, LiveGrant>, StoreError> {
    let mut grants = rows.all::<StoredGrant>(GRANTS)?;
    grants.sort_by_key(|(_, grant)| std::cmp::Reverse(grant.refreshed_at));
    let mut live = HashMap::new();
    let mut own = 0;
    for (id, grant) in grants {
        let is_own = newcomer == Some(grant.access.person.subject.as_str());
        own += usize::from(is_own);
        let room = live.len() + 1 < MAX_GRANTS && !(is_own && own >= MAX_GRANTS_PER_USER);
        if room && now < grant.ends() {
            live.insert(id, LiveGrant::from(&grant));
        } else {
            rows.remove(GRANTS, &id)?;
        }
    }
    Ok(live)
}

#[cfg(test)]
impl GrantStore {
    /// The number of rows in a table on disk.
    pub(crate) fn count(&self, table: super::store::StoreTable) -> usize {
        self.store.change(|rows| rows.count(table)).unwrap()
    }
}

#[cfg(test)]
mod tests;
