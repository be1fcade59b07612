//! What people allowed: codes that are spent once, and grants that live on through refresh tokens.
//!
//! A refresh token is the id of its grant and a secret. Each use gives a new secret. Whoever comes with an old one
//! either stole it or was stolen from, and the whole grant ends. One repetition is forgiven, since an answer can get
//! lost: the token before the present one, within half a minute; the present one is void then, and its use ends
//! the grant.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use super::client_registry::{self, KnownClient};
use super::crypto;
use super::store::{AuthStore, CODES, GRANTS, StoreError, StoreTransaction};

/// How long a code is good for, in seconds: hosts come with it at once.
pub(crate) const CODE_FOR: u64 = 60;
/// How long a grant lives without being used: 30 days.
pub(crate) const IDLE_FOR: u64 = 30 * 86_400;
/// How long a grant lives at most: half a year, then somebody signs in again. Whether they still may is asked at each
/// refresh.
pub(crate) const LIVES_FOR: u64 = 180 * 86_400;
/// The same where a provider knows that and cannot be asked.
pub(crate) const UPSTREAM_LIVES_FOR: u64 = 30 * 86_400;
/// How long the last refresh token but one is forgiven.
pub(crate) const FORGIVEN_FOR: u64 = 30;
/// Codes that wait to be spent.
pub(crate) const MAX_CODES: usize = 1_000;
/// Grants in all, and those of one person.
pub(crate) const MAX_GRANTS: usize = 20_000;
pub(crate) const MAX_OWN: usize = 100;

/// Bytes of a grant's id inside a refresh token.
const ID_BYTES: usize = 16;

/// Who signed in, as tokens tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserIdentity {
    pub(crate) subject: String,
    pub(crate) email: Option<String>,
    pub(crate) email_verified: bool,
    pub(crate) groups: Vec<String>,
    /// Changes with the password, so that a new one ends what the old one allowed.
    pub(crate) stamp: Option<String>,
}

/// What somebody allowed a client.
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

/// A code that waits to be spent, or was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AuthorizationCode {
    pub(crate) allowed: GrantedAccess,
    pub(crate) redirect: String,
    pub(crate) challenge: String,
    pub(crate) nonce: Option<String>,
    pub(crate) ends: u64,
    /// The grant that came of it.
    pub(crate) spent: Option<String>,
}

/// A grant on the disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredGrant {
    allowed: GrantedAccess,
    /// Digests of the secrets of the present refresh token and the one before.
    present: String,
    before: Option<String>,
    turned: u64,
    used: u64,
}

impl StoredGrant {
    fn ends(&self) -> u64 {
        let idle = self.used.saturating_add(IDLE_FOR);
        idle.min(self.allowed.until)
    }

    /// Takes the secret of a refresh token for the next one; false when it has had its turn.
    fn rotate(&mut self, secret: &str, next: String, now: u64) -> bool {
        let lost = now < self.turned.saturating_add(FORGIVEN_FOR);
        if self.present == secret {
            self.before = Some(std::mem::replace(&mut self.present, next));
            self.turned = now;
            true
        } else if lost && self.before.as_deref() == Some(secret) {
            self.present = next;
            true
        } else {
            false
        }
    }
}

/// What a client comes with to spend a code.
#[derive(Debug, Clone)]
pub(crate) struct CodeRedemption {
    pub(crate) code: String,
    pub(crate) client: KnownClient,
    pub(crate) redirect: Option<String>,
    pub(crate) verifier: String,
    /// The resource it names once more, in our spelling.
    pub(crate) resource: Option<String>,
}

/// A grant, and what its client gets.
#[derive(Debug, Clone)]
pub(crate) struct IssuedGrant {
    pub(crate) id: String,
    pub(crate) allowed: GrantedAccess,
    pub(crate) refresh: Option<String>,
    pub(crate) nonce: Option<String>,
}

/// Why nothing was granted. Clients only learn which kind of error it is.
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

/// All grants: on the disk, and in memory by id, so that every request can ask whether its grant still lives.
pub(crate) struct GrantStore {
    store: AuthStore,
    live: LiveGrants,
}

/// Every grant that lives, by id. It changes within the transaction that changes the grant, so that both always
/// change in the same order.
#[derive(Clone, Default)]
struct LiveGrants(Arc<RwLock<HashMap<String, LiveGrant>>>);

/// When a grant ends, and whose it is.
struct LiveGrant {
    ends: u64,
    client: String,
}

impl From<&StoredGrant> for LiveGrant {
    fn from(grant: &StoredGrant) -> Self {
        Self {
            ends: grant.ends(),
            client: grant.allowed.client.clone(),
        }
    }
}

impl LiveGrants {
    fn ends(&self, id: &str) -> Option<u64> {
        let live = self.0.read().unwrap_or_else(PoisonError::into_inner);
        live.get(id).map(|grant| grant.ends)
    }

    /// Every client that has a grant.
    fn clients(&self) -> HashSet<String> {
        let live = self.0.read().unwrap_or_else(PoisonError::into_inner);
        live.values().map(|grant| grant.client.clone()).collect()
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, LiveGrant>)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl GrantStore {
    /// Reads what is there and drops what has ended.
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

    /// True while the grant `id` has not ended.
    pub(crate) fn is_live(&self, id: &str, now: u64) -> bool {
        self.live.ends(id).is_some_and(|ends| now < ends)
    }

    /// Keeps a code, which is returned once and never again, and its client, which somebody authorized by it.
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

    /// Spends a code. Whatever is wrong with it, it is spent from now on; a second try ends what the first one got.
    pub(crate) async fn spend(
        &self,
        spending: CodeRedemption,
        now: u64,
    ) -> GrantResult<IssuedGrant> {
        let key = crypto::digest(&spending.code);
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
                if let Err(why) = check_redemption(&code, &spending, now) {
                    rows.remove(CODES, &key)?;
                    return Ok(Err(why));
                }
                let granted = issue_grant(rows, &live, &code, now)?;
                let ends = live.ends(&granted.id).unwrap_or(now);
                client_registry::retain_client(rows, &spending.client, ends, || live.clients())?;
                let spent = Some(granted.id.clone());
                rows.put(CODES, &key, &AuthorizationCode { spent, ..code })?;
                Ok(Ok(granted))
            })
            .await
    }

    /// What the grant of a refresh token allows, without using the token.
    pub(crate) async fn peek(&self, token: &str) -> Result<Option<GrantedAccess>, StoreError> {
        let Some((id, _)) = parse_refresh_token(token) else {
            return Ok(None);
        };
        let grant: Option<StoredGrant> = self.store.get(GRANTS, &id).await?;
        Ok(grant.map(|grant| grant.allowed))
    }

    /// Turns a refresh token into the next one; `person` is who its owner is by now.
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
                if grant.allowed.client != client.id {
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
                grant.used = now;
                grant.allowed.person = person;
                rows.put(GRANTS, &id, &grant)?;
                live.change(|live| {
                    live.insert(id.clone(), LiveGrant::from(&grant));
                });
                client_registry::retain_client(rows, &client, grant.ends(), || live.clients())?;
                Ok(Ok(IssuedGrant {
                    id,
                    allowed: grant.allowed,
                    refresh: Some(format!("{prefix}.{next}")),
                    nonce: None,
                }))
            })
            .await
    }

    /// Ends the grant `id`, if it is this client's.
    pub(crate) async fn end(&self, id: &str, client: Option<&str>) -> Result<(), StoreError> {
        let (id, client) = (id.to_owned(), client.map(str::to_owned));
        let live = self.live.clone();
        self.store
            .write(move |rows| {
                let grant = rows.get::<StoredGrant>(GRANTS, &id)?;
                let own = |grant: &StoredGrant| {
                    client.is_none_or(|client| client == grant.allowed.client)
                };
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

/// The id of the grant of a refresh token, and the digest of its secret.
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
    spending: &CodeRedemption,
    now: u64,
) -> Result<(), GrantError> {
    if now >= code.ends {
        return Err(GrantError::Expired);
    }
    if code.allowed.client != spending.client.id {
        return Err(GrantError::OtherClient);
    }
    // OAuth 2.1 no longer sends it again; who does must send the same.
    if spending
        .redirect
        .as_ref()
        .is_some_and(|uri| *uri != code.redirect)
    {
        return Err(GrantError::OtherRedirect);
    }
    if !is_verifier(&spending.verifier) || crypto::digest(&spending.verifier) != code.challenge {
        return Err(GrantError::WrongVerifier);
    }
    if spending
        .resource
        .as_ref()
        .is_some_and(|uri| *uri != code.allowed.resource)
    {
        return Err(GrantError::OtherResource);
    }
    Ok(())
}

/// What RFC 7636 lets be a verifier.
fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Makes the grant of a code.
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
        allowed: code.allowed.clone(),
        present: crypto::digest(&secret),
        before: None,
        turned: now,
        used: now,
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
        // A spent one is kept for as long as it could have been used, to notice a second try.
        if now < code.ends {
            left += 1;
        } else {
            rows.remove(CODES, &key)?;
        }
    }
    Ok(left)
}

/// Drops what has ended and makes room for one more, of `newcomer` if somebody is named: what was used longest ago
/// goes first. Returns what lives.
fn sweep_grants(
    rows: &StoreTransaction,
    now: u64,
    newcomer: Option<&str>,
) -> Result<HashMap<String, LiveGrant>, StoreError> {
    let mut grants = rows.all::<StoredGrant>(GRANTS)?;
    grants.sort_by_key(|(_, grant)| std::cmp::Reverse(grant.used));
    let mut live = HashMap::new();
    let mut own = 0;
    for (id, grant) in grants {
        let is_own = newcomer == Some(grant.allowed.person.subject.as_str());
        own += usize::from(is_own);
        let room = live.len() + 1 < MAX_GRANTS && !(is_own && own >= MAX_OWN);
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
    /// How many rows of a kind are on the disk.
    pub(crate) fn count(&self, table: super::store::StoreTable) -> usize {
        self.store.change(|rows| rows.count(table)).unwrap()
    }
}

#[cfg(test)]
mod tests;
