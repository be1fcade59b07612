//! Fuzzes token verification. The target has the private key, so any claims can have a valid signature. A second parser
//! has to read the claims of every accepted token as the verifier does, and a token with one changed byte has to be
//! rejected.
//!
//! An input is `T` and a token. Or it is `S`, two bytes with the position to change, one byte with the change, and a
//! header and claims on two lines.

#![no_main]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use docent_mcp::{
    Auth, AuthRejection, AuthRequirement, Caller, Issuer, LocalKeys, SignatureAlgorithm,
};
use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};

const SERVER: &str = "https://docs.example.com";
const ISSUER: &str = "https://id.example.com";
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// A key pair that is only used here.
static PAIR: LazyLock<Ed25519KeyPair> =
    LazyLock::new(|| Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap());

static AUTH: LazyLock<Auth> = LazyLock::new(|| {
    let keys = LocalKeys::default();
    let x = URL_SAFE_NO_PAD.encode(PAIR.public_key());
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "k1", "alg": "EdDSA", "x": x});
    keys.replace(&json!({"keys": [jwk]})).unwrap();
    let issuer = Issuer::local(ISSUER, keys).algorithms([SignatureAlgorithm::EdDsa]);
    let auth = Auth::builder([SERVER])
        .issuer(issuer)
        .requirement(AuthRequirement::Always);
    auth.build().unwrap()
});

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().unwrap());

fuzz_target!(|bytes: &[u8]| {
    match bytes {
        [b'T', token @ ..] => assert!(identify(token).is_err(), "an unsigned token was accepted"),
        [b'S', low, high, change, text @ ..] => {
            let position = usize::from(u16::from_le_bytes([*low, *high]));
            check_signed_token(text, position, *change);
        }
        _ => {}
    }
});

fn identify(token: &[u8]) -> Result<Caller, AuthRejection> {
    let value = [b"Bearer ", token].concat();
    // Bytes that a header cannot contain never reach the verifier.
    let value = HeaderValue::from_bytes(&value).or(Err(AuthRejection::Absent))?;
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
    RUNTIME.block_on(AUTH.identify(&headers))
}

fn check_signed_token(text: &[u8], position: usize, change: u8) {
    let split = text.iter().position(|&byte| byte == b'\n');
    let (head, claims) = text.split_at(split.unwrap_or(text.len()));
    let claims = claims.strip_prefix(b"\n").unwrap_or(claims);
    let message = [head, claims]
        .map(|part| URL_SAFE_NO_PAD.encode(part))
        .join(".");
    let signature = URL_SAFE_NO_PAD.encode(PAIR.sign(message.as_bytes()));
    let token = format!("{message}.{signature}");
    if let Ok(caller) = identify(token.as_bytes()) {
        check_caller(&caller, &token, head, claims);
    }
    // A token with one changed byte, or with one byte less, has to be rejected.
    let mut changed = token.into_bytes();
    let position = position % changed.len();
    if change == 0 {
        changed.remove(position);
    } else {
        changed[position] ^= change;
    }
    assert!(identify(&changed).is_err(), "a changed token was accepted");
}

/// Checks that the accepted caller is the one whom the claims name.
fn check_caller(caller: &Caller, token: &str, head: &[u8], claims: &[u8]) {
    assert!(token.len() <= MAX_TOKEN_BYTES);
    let object = |bytes: &[u8]| serde_json::from_slice::<Map<String, Value>>(bytes).unwrap();
    let (head, claims) = (object(head), object(claims));
    assert_eq!(head["alg"], "EdDSA");
    let kind = head["typ"].as_str().unwrap().to_ascii_lowercase();
    assert!(matches!(kind.as_str(), "at+jwt" | "application/at+jwt"));
    assert!(head.get("kid").is_none_or(|kid| kid == "k1"));
    for name in ["jwk", "jku", "x5u", "x5c", "crit", "zip", "enc", "b64"] {
        assert!(!head.contains_key(name), "{name}");
    }
    assert_eq!(claims["iss"], ISSUER);
    assert_eq!(caller.issuer(), Some(ISSUER));
    assert_eq!(caller.subject(), claims["sub"].as_str());
    assert!(!caller.subject().unwrap().is_empty());
    // Now is later than 2023, so an accepted token expires later too.
    assert!(claims["exp"].as_f64().unwrap() > 1_700_000_000.0);
    let named = match &claims["aud"] {
        Value::Array(names) => names.iter().any(is_this_server),
        name => is_this_server(name),
    };
    assert!(named, "{}", claims["aud"]);
}

fn is_this_server(name: &Value) -> bool {
    let name = name
        .as_str()
        .map(|name| name.trim_end_matches('/').to_ascii_lowercase());
    name.is_some_and(|name| name.starts_with(SERVER))
}
