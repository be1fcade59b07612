//! Tests of every branch of JWT validation.

use serde_json::json;

use super::super::jwk::LocalKeys;
use super::super::mint::{Signer, b64, jwks};
use super::*;

const ISSUER: &str = "https://a.example";
const NOW: u64 = 1_800_000_000;

struct JwtBench {
    signer: Signer,
    issuers: Vec<Issuer>,
    audiences: BTreeSet<String>,
}

impl JwtBench {
    fn new() -> Self {
        Self::with(|issuer| issuer.access_tokens_only(false))
    }

    fn with(set: impl FnOnce(Issuer) -> Issuer) -> Self {
        let signer = Signer::ed25519("k");
        let keys = LocalKeys::default();
        keys.replace(&jwks(&[&signer])).unwrap();
        let other = Issuer::local("https://b.example", LocalKeys::default());
        Self {
            signer,
            issuers: vec![other, set(Issuer::local(ISSUER, keys))],
            audiences: ["https://docs.example.org/mcp", "api://docs"]
                .map(str::to_owned)
                .into(),
        }
    }

    async fn verify(&self, token: &str) -> Result<Caller, AuthRejection> {
        verify_access_token(token, &self.issuers, &self.audiences, NOW).await
    }

    /// Validates a token with the usual claims, some of them changed or removed by `null`.
    async fn validate(&self, changes: Value) -> Result<Caller, AuthRejection> {
        let mut claims = json!({"iss": ISSUER, "sub": "u", "aud": "https://docs.example.org/mcp",
            "exp": NOW + 60});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        self.verify(&self.signer.token(&claims)).await
    }

    async fn headed(&self, changes: Value) -> Result<Caller, AuthRejection> {
        let claims = json!({"iss": ISSUER, "sub": "u", "aud": "api://docs", "exp": NOW + 60});
        self.verify(&self.signer.token_with(&changes, &claims))
            .await
    }
}

fn why<T: std::fmt::Debug>(result: Result<T, AuthRejection>) -> &'static str {
    match result {
        Err(AuthRejection::Bad(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_good_token_says_who_somebody_is() {
    let bench = JwtBench::new();
    let caller = bench
        .validate(json!({"client_id": "c", "azp": "other", "scope": "b a  b", "groups": ["g"]}))
        .await
        .unwrap();
    assert_eq!(caller.issuer(), Some(ISSUER));
    assert_eq!(caller.subject(), Some("u"));
    assert_eq!(caller.client(), Some("c"));
    assert_eq!(caller.scopes().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(caller.claim("groups"), ["g"]);
    let plain = bench.validate(json!({})).await.unwrap();
    assert_eq!(plain.client(), None);
    assert_eq!(plain.scopes().count(), 0);
}

#[tokio::test]
async fn the_client_has_three_names_and_a_bound() {
    let bench = JwtBench::new();
    for name in ["client_id", "azp", "cid"] {
        let caller = bench.validate(json!({name: "c"})).await.unwrap();
        assert_eq!(caller.client(), Some("c"), "{name}");
    }
    let long = |bytes: usize| json!({"azp": "c".repeat(bytes)});
    let most = bench.validate(long(MAX_CLIENT_BYTES)).await.unwrap();
    assert!(most.client().is_some());
    let over = bench.validate(long(MAX_CLIENT_BYTES + 1)).await.unwrap();
    assert_eq!(over.client(), None);
    assert_eq!(
        bench.validate(json!({"azp": ""})).await.unwrap().client(),
        None
    );
    assert_eq!(
        bench.validate(json!({"azp": 5})).await.unwrap().client(),
        None
    );
}

#[tokio::test]
async fn times_are_numbers_within_half_a_minute() {
    let bench = JwtBench::new();
    for good in [
        json!({"exp": NOW - LEEWAY}),
        json!({"exp": NOW as f64 + 0.5}),
        json!({"nbf": NOW + LEEWAY}),
        json!({"iat": NOW + LEEWAY}),
        json!({"nbf": 0, "iat": 0}),
    ] {
        assert!(bench.validate(good.clone()).await.is_ok(), "{good}");
    }
    for (bad, expected) in [
        (json!({"exp": NOW - LEEWAY - 1}), "expired"),
        (json!({"exp": null}), "when it expires"),
        (json!({"exp": "1900000000"}), "when it expires"),
        (json!({"exp": -1}), "when it expires"),
        (json!({"exp": 1e300}), "when it expires"),
        (json!({"nbf": NOW + LEEWAY + 1}), "not valid yet"),
        (json!({"nbf": "0"}), "not a number"),
        (json!({"iat": NOW + LEEWAY + 1}), "in the future"),
        (json!({"iat": [0]}), "not a number"),
    ] {
        let found = why(bench.validate(bad.clone()).await);
        assert!(found.contains(expected), "{bad}: {found}");
    }
}

#[tokio::test]
async fn the_audience_of_a_token_has_to_match_exactly() {
    let bench = JwtBench::new();
    for good in [
        json!("https://docs.example.org/mcp"),
        json!("HTTPS://DOCS.example.org/mcp"),
        json!("api://docs"),
        json!(["x", "api://docs"]),
        json!(vec!["api://docs"; MAX_AUDIENCES]),
    ] {
        assert!(bench.validate(json!({"aud": good})).await.is_ok(), "{good}");
    }
    for bad in [
        json!("https://docs.example.org"),
        json!("https://docs.example.org/mcp/"),
        json!("https://docs.example.org/MCP"),
        json!("http://docs.example.org/mcp"),
        json!("https://docs.example.org/mcpx"),
        json!("API://docs"),
        json!(""),
        json!([]),
        json!(["api://docs", 5]),
        json!({"a": "api://docs"}),
        json!(5),
        json!(vec!["api://docs"; MAX_AUDIENCES + 1]),
    ] {
        let found = why(bench.validate(json!({"aud": bad})).await);
        assert!(found.contains("not meant for this server"), "{bad}");
    }
    assert!(why(bench.validate(json!({"aud": null})).await).contains("not meant"));
}

#[tokio::test]
async fn subjects_are_texts_of_some_length() {
    let bench = JwtBench::new();
    let sub = |bytes: usize| json!({"sub": "s".repeat(bytes)});
    assert!(bench.validate(sub(MAX_SUBJECT_BYTES)).await.is_ok());
    for bad in [
        sub(MAX_SUBJECT_BYTES + 1),
        sub(0),
        json!({"sub": null}),
        json!({"sub": 5}),
        json!({"sub": "a\u{0}"}),
    ] {
        assert!(why(bench.validate(bad).await).contains("whose it is"));
    }
}

#[tokio::test]
async fn scopes_are_texts_with_a_bound() {
    let bench = JwtBench::new();
    let cases = [
        (json!({"scope": "a b"}), vec!["a", "b"]),
        (json!({"scp": "a b"}), vec!["a", "b"]),
        (json!({"scp": ["b", "a"]}), vec!["a", "b"]),
        (json!({"scope": "a", "scp": ["b"]}), vec!["a", "b"]),
        (json!({"scope": ["a b"]}), vec!["a b"]),
        (json!({"scope": ""}), vec![]),
    ];
    for (given, expected) in cases {
        let caller = bench.validate(given).await.unwrap();
        assert_eq!(caller.scopes().collect::<Vec<_>>(), expected);
    }
    for bad in [
        json!({"scope": 5}),
        json!({"scp": [5]}),
        json!({"scp": {}}),
        json!({"scope": true}),
    ] {
        assert!(why(bench.validate(bad).await).contains("not text"));
    }
    let many = |count: usize| {
        let all: Vec<String> = (0..count).map(|n| format!("s{n}")).collect();
        json!({"scope": all.join(" ")})
    };
    assert!(bench.validate(many(MAX_SCOPES)).await.is_ok());
    assert!(why(bench.validate(many(MAX_SCOPES + 1)).await).contains("too many"));
}

#[tokio::test]
async fn issuers_are_told_apart_to_the_letter() {
    let bench = JwtBench::new();
    for bad in [
        json!("https://a.example/"),
        json!("https://A.example"),
        json!("https://c.example"),
        json!([ISSUER]),
        json!(null),
    ] {
        let found = why(bench.validate(json!({"iss": bad})).await);
        assert!(found.contains("untrusted issuer"), "{bad}");
    }
}

#[tokio::test]
async fn an_issuer_without_keys_is_waited_for() {
    let bench = JwtBench::new();
    let claims = json!({"iss": "https://b.example", "sub": "u", "aud": "api://docs", "exp": NOW});
    let token = bench.signer.token(&claims);
    assert_eq!(bench.verify(&token).await, Err(AuthRejection::Unready));
}

#[tokio::test]
async fn headers_that_choose_are_refused() {
    let bench = JwtBench::new();
    assert!(bench.headed(json!({})).await.is_ok());
    assert!(bench.headed(json!({"x": 1, "x5t": "abc"})).await.is_ok());
    for name in ["jwk", "jku", "x5u", "x5c"] {
        let found = why(bench.headed(json!({name: "x"})).await);
        assert!(found.contains("its own key"), "{name}");
    }
    for name in ["crit", "zip", "enc", "b64"] {
        let found = why(bench.headed(json!({name: "x"})).await);
        assert!(found.contains("extension"), "{name}");
    }
    for (header, expected) in [
        (json!({"typ": 5}), "the type of the token"),
        (json!({"kid": 5}), "the key id of the token is not text"),
        (json!({"kid": ""}), "the key id of the token is malformed"),
        (
            json!({"kid": "a\n"}),
            "the key id of the token is malformed",
        ),
        (json!({"kid": "other"}), "not known"),
    ] {
        let found = why(bench.headed(header.clone()).await);
        assert!(found.contains(expected), "{header}: {found}");
    }
    assert!(
        bench.headed(json!({"kid": null})).await.is_ok(),
        "there is but one key"
    );
}

#[tokio::test]
async fn only_the_issuers_algorithms_count() {
    let bench = JwtBench::new();
    for alg in [
        json!("none"),
        json!("HS256"),
        json!("ES512"),
        json!("eddsa"),
        json!(5),
        json!(null),
    ] {
        let found = why(bench.headed(json!({"alg": alg})).await);
        assert!(found.contains("algorithm"), "{alg}");
    }
    let other = JwtBench::with(|issuer| issuer.algorithms([SignatureAlgorithm::Es256]));
    assert!(why(other.headed(json!({})).await).contains("algorithm"));
    let none = JwtBench::with(|issuer| issuer.algorithms([]));
    assert!(why(none.headed(json!({})).await).contains("algorithm"));
}

#[tokio::test]
async fn access_tokens_are_told_from_others() {
    let lenient = JwtBench::new();
    let strict = JwtBench::with(|issuer| issuer);
    for (kind, free, bound) in [
        (json!("at+jwt"), true, true),
        (json!("AT+JWT"), true, true),
        (json!("application/at+jwt"), true, true),
        (json!("JWT"), true, false),
        (json!("jwt"), true, false),
        (json!("application/jwt"), true, false),
        (json!(null), true, false),
        (json!("id+jwt"), false, false),
        (json!("logout+jwt"), false, false),
        (json!("dpop+jwt"), false, false),
        (json!(""), false, false),
    ] {
        let header = json!({"typ": kind});
        assert_eq!(lenient.headed(header.clone()).await.is_ok(), free, "{kind}");
        assert_eq!(strict.headed(header).await.is_ok(), bound, "{kind}");
    }
    for claim in ["nonce", "at_hash", "c_hash"] {
        let claims =
            json!({"iss": ISSUER, "sub": "u", "aud": "api://docs", "exp": NOW, claim: "x"});
        for (kind, good) in [
            (json!("at+jwt"), true),
            (json!("JWT"), false),
            (json!(null), false),
        ] {
            let token = lenient.signer.token_with(&json!({"typ": kind}), &claims);
            assert_eq!(lenient.verify(&token).await.is_ok(), good, "{claim} {kind}");
        }
    }
}

#[tokio::test]
async fn a_token_has_three_parts_and_a_bound() {
    let bench = JwtBench::new();
    let claims = json!({"iss": ISSUER, "sub": "u", "aud": "api://docs", "exp": NOW});
    let token = bench.signer.token(&claims);
    assert!(bench.verify(&token).await.is_ok());
    let (rest, signature) = token.rsplit_once('.').unwrap();
    let (header, payload) = rest.split_once('.').unwrap();
    for (bad, expected) in [
        (String::new(), "three parts"),
        (header.to_owned(), "three parts"),
        (rest.to_owned(), "three parts"),
        (format!("{token}.x"), "three parts"),
        (format!("{header}.{payload}={}", "."), "base64url"),
        (format!("{header}.{payload}.!"), "base64url"),
        (format!("{header}.{payload}.{signature}="), "base64url"),
        (
            format!("{}.{payload}.{signature}", b64(b"[]")),
            "each member once",
        ),
        (
            format!("{header}.{}.{signature}", b64(b"{\"a\":1,\"a\":1}")),
            "each member once",
        ),
        (
            format!("{header}.{}.{signature}", b64(b"\xff")),
            "each member once",
        ),
        (format!("{header}.{payload}."), "signature"),
        (format!("{header}.{payload}.{}", b64(&[0; 64])), "signature"),
    ] {
        let found = why(bench.verify(&bad).await);
        assert!(found.contains(expected), "{bad}: {found}");
    }
    let padded = |size: usize| format!("{}.a.b", "A".repeat(size - 4));
    assert!(!why(bench.verify(&padded(MAX_TOKEN_BYTES)).await).contains("too long"));
    assert!(why(bench.verify(&padded(MAX_TOKEN_BYTES + 1)).await).contains("too long"));
}

#[tokio::test]
async fn another_key_of_the_same_name_signs_nothing() {
    let bench = JwtBench::new();
    let claims = json!({"iss": ISSUER, "sub": "u", "aud": "api://docs", "exp": NOW});
    let forged = Signer::ed25519("k").token(&claims);
    assert!(why(bench.verify(&forged).await).contains("signature"));
}

#[tokio::test]
async fn somebody_who_was_signed_out_is_out() {
    let bench =
        JwtBench::with(|issuer| issuer.reject_if(|caller| caller.subject() == Some("gone")));
    assert!(bench.validate(json!({"sub": "here"})).await.is_ok());
    assert!(why(bench.validate(json!({"sub": "gone"})).await).contains("revoked"));
}

#[test]
fn jwts_are_told_from_opaque_tokens() {
    for (token, expected) in [
        ("eyJ.a.b", true),
        ("ey..", true),
        ("eyJ.a", false),
        ("eyJ.a.b.c", false),
        ("abc.a.b", false),
        ("opaque", false),
        ("", false),
    ] {
        assert_eq!(is_jwt(token), expected, "{token}");
    }
}

#[tokio::test]
async fn an_id_token_says_who_signed_in_and_is_checked_as_every_token() {
    let bench = JwtBench::new();
    let issuer = &bench.issuers[1];
    let good = json!({"iss": ISSUER, "sub": "u", "aud": "me", "exp": NOW + 60, "nonce": "n"});
    let check = async |signer: &Signer, header: Value, changes: Value| {
        let mut claims = good.clone();
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let token = signer.token_with(&header, &claims);
        verify_id_token(&token, issuer, "me", "n", NOW).await
    };
    let jwt = || json!({"typ": "JWT"});
    for header in [jwt(), json!({"typ": "jwt"}), json!({"typ": null})] {
        let caller = check(&bench.signer, header, json!({})).await.unwrap();
        assert_eq!(
            (caller.issuer(), caller.subject()),
            (Some(ISSUER), Some("u"))
        );
    }
    assert!(
        check(&bench.signer, jwt(), json!({"azp": "me"}))
            .await
            .is_ok()
    );
    assert!(
        check(&bench.signer, jwt(), json!({"aud": ["me", "b"]}))
            .await
            .is_ok()
    );
    for (changes, expected) in [
        (json!({"nonce": "other"}), "another request"),
        (json!({"nonce": 1}), "another request"),
        (json!({"azp": "other"}), "another client"),
        (json!({"azp": 1}), "another client"),
        (json!({"aud": "other"}), "not meant for"),
        (json!({"exp": NOW - 31}), "expired"),
        (json!({"iss": "https://b.example"}), "untrusted issuer"),
        (json!({"sub": ""}), "whose it is"),
    ] {
        let found = why(check(&bench.signer, jwt(), changes).await);
        assert!(found.contains(expected), "{found}");
    }
    let access = check(&bench.signer, json!({"typ": "at+jwt"}), json!({})).await;
    assert!(why(access).contains("not an ID token"));
    let forged = check(&Signer::ed25519("k"), jwt(), json!({})).await;
    assert!(why(forged).contains("signature"));
    let unnamed = check(&bench.signer, json!({"typ": "JWT", "kid": ""}), json!({})).await;
    assert!(why(unnamed).contains("key id"));
    // A key that fits does not help when the issuer's allowlist has another algorithm.
    let other = JwtBench::with(|issuer| issuer.algorithms([SignatureAlgorithm::Es256]));
    let token = other.signer.token_with(&jwt(), &good);
    let refused = verify_id_token(&token, &other.issuers[1], "me", "n", NOW).await;
    assert!(why(refused).contains("algorithm"));
}
