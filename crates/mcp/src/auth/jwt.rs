//! JWT access token validation (RFC 9068): the one function that decides whether a JWT is valid.
//!
//! Nothing in a token chooses how it is verified. The issuer it names must be a configured one, and that
//! issuer's settings and keys alone decide. A token that carries a key, or the URL of one, is refused.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::challenge::canonical;
use super::jwk::{SignatureAlgorithm, VerificationKey, is_kid};
use super::strict_json::{self, numeric_date};
use super::{AuthRejection, Caller, Issuer};

/// The maximum size of a token. The largest tokens of real providers, with 200 groups, have 12 KiB.
pub(crate) const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The maximum length of the claim `sub`.
pub(crate) const MAX_SUBJECT_BYTES: usize = 512;
/// The maximum length of a client id. Client ID metadata documents make a URL of it, hence as long as one.
pub(crate) const MAX_CLIENT_BYTES: usize = 2_048;
/// The maximum number of values of the claim `aud`.
pub(crate) const MAX_AUDIENCES: usize = 100;
/// The maximum number of scopes of one token.
pub(crate) const MAX_SCOPES: usize = 256;
/// The clock skew in seconds that `exp`, `nbf` and `iat` allow for.
pub(crate) const LEEWAY: u64 = 30;

/// A parsed JWT whose signature and claims have not been verified.
struct UnverifiedJwt<'a> {
    algorithm: &'static str,
    kind: Option<String>,
    kid: Option<String>,
    claims: Map<String, Value>,
    signed: &'a str,
    signature: Vec<u8>,
}

type AuthResult<T> = Result<T, AuthRejection>;

const fn reject<T>(why: &'static str) -> AuthResult<T> {
    Err(AuthRejection::Bad(why))
}

/// True for what is meant to be a JWT rather than an opaque token: three parts, the first of which begins
/// like a base64url-encoded JSON object.
pub(crate) fn is_jwt(token: &str) -> bool {
    token.starts_with("ey") && token.bytes().filter(|&byte| byte == b'.').count() == 2
}

/// Validates an access token and returns its caller. One of `issuers` must have signed it, `aud` must match
/// one of `audiences`, and its times must fit `now`, in seconds since 1970. The claims are checked before a
/// key is fetched, because that is cheap.
///
/// ```rust
/// use std::collections::BTreeSet;
///
/// use docent_mcp::oauth::verify_access_token;
/// use docent_mcp::{AuthRejection, Issuer, LocalKeys};
///
/// # async fn run(keys: LocalKeys, token: &str, now: u64) -> Result<(), AuthRejection> {
/// let issuers = [Issuer::local("https://docs.example.org", keys)];
/// let audiences = BTreeSet::from(["https://docs.example.org/mcp".to_owned()]);
/// let caller = verify_access_token(token, &issuers, &audiences, now).await?;
/// assert_eq!(caller.issuer(), Some("https://docs.example.org"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the token is not valid, or not yet verifiable because the issuer's keys have not been fetched.
pub async fn verify_access_token(
    token: &str,
    issuers: &[Issuer],
    audiences: &BTreeSet<String>,
    now: u64,
) -> AuthResult<Caller> {
    let unverified = UnverifiedJwt::read(token)?;
    let issuer = unverified.issuer(issuers)?;
    let kid = unverified.kid()?;
    let caller = unverified.verify_claims(issuer, audiences, now)?;
    let key = issuer.key(kid).await?;
    unverified.verify_signature(&key)?;
    check_not_revoked(issuer, caller)
}

/// Validates an OpenID Connect ID token that `issuer` gave to us, its `client`, for an authorization
/// request with this nonce. The result identifies the user who signed in; an ID token itself never
/// authorizes a request here.
///
/// # Errors
/// When the token is not valid, or not yet verifiable because the issuer's keys have not been fetched.
pub async fn verify_id_token(
    token: &str,
    issuer: &Issuer,
    client: &str,
    nonce: &str,
    now: u64,
) -> AuthResult<Caller> {
    let unverified = UnverifiedJwt::read(token)?;
    unverified.issuer(std::slice::from_ref(issuer))?;
    let claim_text = |name: &str| unverified.claims.get(name).and_then(Value::as_str);
    if claim_text("nonce") != Some(nonce) {
        return reject("the ID token belongs to another request");
    }
    if unverified.claims.contains_key("azp") && claim_text("azp") != Some(client) {
        return reject("the ID token is for another client");
    }
    if unverified
        .kind
        .as_deref()
        .is_some_and(|kind| !kind.eq_ignore_ascii_case("jwt"))
    {
        return reject("the token is not an ID token");
    }
    unverified.check_algorithm(issuer)?;
    check_claims(
        &unverified.claims,
        &BTreeSet::from([canonical(client)]),
        now,
    )?;
    let key = issuer.key(unverified.kid()?).await?;
    unverified.verify_signature(&key)?;
    unverified.caller(issuer)
}

/// Applies the issuer's revocation check to the caller of a valid token.
pub(crate) fn check_not_revoked(issuer: &Issuer, caller: Caller) -> AuthResult<Caller> {
    if issuer.is_revoked(&caller) {
        return reject("the token has been revoked");
    }
    Ok(caller)
}

impl<'a> UnverifiedJwt<'a> {
    /// Decodes the three parts, without any verification beyond the header's forbidden members.
    fn read(token: &'a str) -> AuthResult<Self> {
        if token.len() > MAX_TOKEN_BYTES {
            return reject("the token is too long");
        }
        let Some((signed, signature)) = token.rsplit_once('.') else {
            return reject("the token does not have three parts");
        };
        let Some((header, payload)) = signed.split_once('.').filter(|(_, p)| !p.contains('.'))
        else {
            return reject("the token does not have three parts");
        };
        let decode = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part);
            bytes.or(reject("the token is not base64url without padding"))
        };
        let object = |part: &str| {
            let members = strict_json::parse(&decode(part)?);
            members.map_or_else(|| reject("the token is not JSON with each member once"), Ok)
        };
        let header = object(header)?;
        for name in ["jwk", "jku", "x5u", "x5c"] {
            if header.contains_key(name) {
                return reject("the token contains its own key");
            }
        }
        for name in ["crit", "zip", "enc", "b64"] {
            if header.contains_key(name) {
                return reject("the token uses an extension that is not understood");
            }
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        Ok(Self {
            algorithm: algorithm
                .and_then(SignatureAlgorithm::parse)
                .map_or("", SignatureAlgorithm::name),
            kind: text(&header, "typ", "the type of the token is not text")?,
            kid: text(&header, "kid", "the key id of the token is not text")?,
            claims: object(payload)?,
            signed,
            signature: decode(signature)?,
        })
    }

    /// The configured issuer that the claim `iss` names exactly.
    fn issuer<'i>(&self, issuers: &'i [Issuer]) -> AuthResult<&'i Issuer> {
        let named = self.claims.get("iss").and_then(Value::as_str);
        let known = issuers.iter().find(|issuer| Some(issuer.name()) == named);
        known.map_or_else(|| reject("the token is from an untrusted issuer"), Ok)
    }

    /// The key id of the header, if it has one and it is well-formed.
    fn kid(&self) -> AuthResult<Option<&str>> {
        match self.kid.as_deref() {
            Some(kid) if !is_kid(kid) => reject("the key id of the token is malformed"),
            kid => Ok(kid),
        }
    }

    /// Validates everything but the signature. It runs first, because it is cheap and needs no key.
    fn verify_claims(
        &self,
        issuer: &Issuer,
        audiences: &BTreeSet<String>,
        now: u64,
    ) -> AuthResult<Caller> {
        self.check_algorithm(issuer)?;
        self.check_kind(issuer)?;
        check_claims(&self.claims, audiences, now)?;
        self.caller(issuer)
    }

    fn check_algorithm(&self, issuer: &Issuer) -> AuthResult<()> {
        let mut allowed = issuer.algorithms.iter().map(|allowed| allowed.name());
        if self.algorithm.is_empty() || !allowed.any(|name| name == self.algorithm) {
            return reject("the algorithm of the token is not allowed");
        }
        Ok(())
    }

    /// Verifies the signature over header and payload with the issuer's key.
    fn verify_signature(&self, key: &VerificationKey) -> AuthResult<()> {
        let signed = SignatureAlgorithm::parse(self.algorithm).is_some_and(|algorithm| {
            key.verifies(algorithm, self.signed.as_bytes(), &self.signature)
        });
        if signed {
            Ok(())
        } else {
            reject("the signature of the token is wrong")
        }
    }

    /// Refuses ID tokens where an access token is needed. An ID token tells a client who signed in and
    /// authorizes nothing.
    fn check_kind(&self, issuer: &Issuer) -> AuthResult<()> {
        let kind = self.kind.as_deref().map(str::to_ascii_lowercase);
        let kind = kind
            .as_deref()
            .map(|kind| kind.strip_prefix("application/").unwrap_or(kind));
        let id_token = ["nonce", "at_hash", "c_hash"]
            .iter()
            .any(|name| self.claims.contains_key(*name));
        match kind {
            Some("at+jwt") => Ok(()),
            _ if issuer.access_tokens_only => reject("the token is not an access token"),
            None | Some("jwt") if !id_token => Ok(()),
            _ => reject("the token is not an access token"),
        }
    }

    fn caller(&self, issuer: &Issuer) -> AuthResult<Caller> {
        caller_from_claims(issuer.name(), self.claims.clone())
    }
}

/// Validates times and audience: `exp` must be there and in the future, `nbf` and `iat` in the past, `aud`
/// ours.
pub(crate) fn check_claims(
    claims: &Map<String, Value>,
    audiences: &BTreeSet<String>,
    now: u64,
) -> AuthResult<()> {
    let Some(expires) = claims.get("exp").and_then(numeric_date) else {
        return reject("the token does not say when it expires");
    };
    if now > expires.saturating_add(LEEWAY) {
        return reject("the token has expired");
    }
    for (name, why) in [
        ("nbf", "the token is not valid yet"),
        ("iat", "the token was issued in the future"),
    ] {
        let begins = match claims.get(name) {
            None => 0,
            Some(value) => match numeric_date(value) {
                Some(begins) => begins,
                None => return reject("a time in the token is not a number"),
            },
        };
        if begins > now.saturating_add(LEEWAY) {
            return reject(why);
        }
    }
    if audience_matches(claims.get("aud"), audiences) {
        Ok(())
    } else {
        reject("the token is not meant for this server")
    }
}

fn audience_matches(aud: Option<&Value>, audiences: &BTreeSet<String>) -> bool {
    let ours = |value: &Value| {
        let name = value.as_str().map(canonical);
        name.is_some_and(|name| audiences.contains(&name))
    };
    match aud {
        Some(Value::Array(names)) if names.len() <= MAX_AUDIENCES => {
            names.iter().all(Value::is_string) && names.iter().any(ours)
        }
        Some(name @ Value::String(_)) => ours(name),
        _ => false,
    }
}

/// Builds the caller from claims that have been validated.
pub(crate) fn caller_from_claims(issuer: &str, claims: Map<String, Value>) -> AuthResult<Caller> {
    let subject = claims.get("sub").and_then(Value::as_str);
    let fits = |text: &&str| {
        (1..=MAX_SUBJECT_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
    };
    let Some(subject) = subject.filter(fits).map(str::to_owned) else {
        return reject("the token does not say whose it is");
    };
    let client = ["client_id", "azp", "cid"]
        .iter()
        .find_map(|name| claims.get(*name)?.as_str())
        .filter(|client| (1..=MAX_CLIENT_BYTES).contains(&client.len()))
        .map(str::to_owned);
    let scopes = scopes(&claims)?;
    Ok(Caller::verified(issuer, &subject, client, scopes, claims))
}

/// The granted scopes: `scope` as a space-separated string (RFC 9068), or `scp` as a string or a list, as
/// Microsoft and Okta write it.
fn scopes(claims: &Map<String, Value>) -> AuthResult<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for value in ["scope", "scp"].iter().filter_map(|name| claims.get(*name)) {
        match value {
            Value::String(text) => {
                all.extend(text.split(' ').filter(|s| !s.is_empty()).map(str::to_owned));
            }
            Value::Array(items) => {
                for item in items {
                    match item.as_str() {
                        Some(scope) => all.insert(scope.to_owned()),
                        None => return reject("a scope of the token is not text"),
                    };
                }
            }
            _ => return reject("a scope of the token is not text"),
        }
    }
    if all.len() > MAX_SCOPES {
        return reject("the token has too many scopes");
    }
    Ok(all)
}

fn text(members: &Map<String, Value>, name: &str, why: &'static str) -> AuthResult<Option<String>> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => reject(why),
    }
}

#[cfg(test)]
mod tests;
