//! Table of credentials: 60 that are refused with an exact 401 challenge, 3 with 403, and 13 that are accepted.

use docent_mcp::{AuthRequirement, Issuer, IssuerNetwork};
use serde_json::{Value, json};

use crate::fixture::{AuthFixture, AuthTestServer, BASE, RawRequest, STRICT, builder, claims, now};
use crate::mint::{Signer, b64, jwks};

const METADATA: &str = "https://docs.example.org/.well-known/oauth-protected-resource/mcp";

fn absent() -> String {
    format!(r#"Bearer resource_metadata="{METADATA}", scope="docs.read""#)
}

fn invalid(why: &str) -> String {
    format!(
        r#"Bearer error="invalid_token", error_description="{why}", resource_metadata="{METADATA}", scope="docs.read""#
    )
}

fn insufficient() -> String {
    format!(
        r#"Bearer error="insufficient_scope", error_description="this needs more than was granted", resource_metadata="{METADATA}", scope="docs.read""#
    )
}

/// The usual claims with changes; a change to `null` removes the claim.
fn changed(mut claims: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    claims
}

fn bearer(token: &str) -> RawRequest {
    RawRequest::call("whoami").bearer(token)
}

/// HS256 token with any secret: the algorithm confusion attack, where a public key is used as the HMAC secret.
fn hmac(secret: &[u8], claims: &Value) -> String {
    let header = json!({"alg": "HS256", "typ": "at+jwt", "kid": "rsa"});
    let message = format!(
        "{}.{}",
        b64(header.to_string().as_bytes()),
        b64(claims.to_string().as_bytes())
    );
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let tag = ring::hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", b64(tag.as_ref()))
}

/// The public RSA key in PEM, which an attacker knows.
fn pem(signer: &Signer) -> String {
    let jwk = signer.jwk();
    format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        jwk["n"].as_str().unwrap()
    )
}

struct CredentialCase(&'static str, RawRequest, &'static str);

fn malformed(fixture: &AuthFixture) -> Vec<CredentialCase> {
    let (claims, rsa) = (fixture.claims(), &fixture.rsa);
    let good = rsa.token(&claims);
    let parts: Vec<&str> = good.split('.').collect();
    let (header, payload, signature) = (parts[0], parts[1], parts[2]);
    let with_header = |change: Value| rsa.token_with(&change, &claims);
    let unsigned = |alg: &str| {
        let header = json!({"alg": alg, "typ": "at+jwt"}).to_string();
        format!("{}.{payload}.", b64(header.as_bytes()))
    };
    let call = || RawRequest::call("whoami");
    let in_body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "access_token": good,
        "params": {"name": "whoami", "arguments": {}, "_meta": {"access_token": good}}});
    let mut flipped = signature.to_owned().into_bytes();
    flipped[10] = if flipped[10] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let swapped = changed(claims.clone(), &json!({"sub": "somebody else"}));
    let swapped = b64(swapped.to_string().as_bytes());
    let mut not_utf8 = b"{\"a\":\"".to_vec();
    not_utf8.extend_from_slice(b"\xff\"}");
    let jwe = format!("{header}.a.b.c.d");
    let crit = with_header(json!({"crit": ["x"], "x": 1}));
    let wrong_kind = fixture.ec.token_with(&json!({"kid": "rsa"}), &claims);
    const JWT: &str = "the token is not a JWT";
    const ALGORITHM: &str = "the algorithm of the token is not allowed";
    const OWN_KEY: &str = "the token contains its own key";
    const UNKNOWN_KEY: &str = "the key of the token is not known";
    const SIGNATURE: &str = "the signature of the token is wrong";
    vec![
        CredentialCase("none", call(), ""),
        CredentialCase(
            "empty",
            call().with("authorization", ""),
            "the scheme of the credential must be Bearer",
        ),
        CredentialCase(
            "Basic",
            call().with("authorization", "Basic dXNlcjpwYXNz"),
            "the scheme of the credential must be Bearer",
        ),
        CredentialCase(
            "two Authorization headers",
            bearer(&good).bearer(&good),
            "more than one credential was sent",
        ),
        CredentialCase(
            "token in the query",
            call().at(&format!("/mcp?access_token={good}")),
            "",
        ),
        CredentialCase("token in the body", RawRequest::rpc(&in_body), ""),
        CredentialCase("opaque junk", bearer("junk-junk"), JWT),
        CredentialCase("2 parts", bearer(&format!("{header}.{payload}")), JWT),
        CredentialCase("4 parts", bearer(&format!("{good}.{signature}")), JWT),
        CredentialCase(
            "64 KiB token",
            bearer(&format!("ey{}.a.b", "A".repeat(64 * 1024))),
            "the token is too long",
        ),
        CredentialCase(
            "bad base64",
            bearer(&format!("{header}.{payload}=.{signature}")),
            "the token is not base64url without padding",
        ),
        CredentialCase(
            "bad UTF-8",
            bearer(&format!("{header}.{}.{signature}", b64(&not_utf8))),
            "the token is not JSON with each member once",
        ),
        CredentialCase("alg none", bearer(&unsigned("none")), ALGORITHM),
        CredentialCase("alg None", bearer(&unsigned("None")), ALGORITHM),
        CredentialCase("alg NONE", bearer(&unsigned("NONE")), ALGORITHM),
        CredentialCase(
            "HS256 keyed with the public PEM",
            bearer(&hmac(pem(rsa).as_bytes(), &claims)),
            ALGORITHM,
        ),
        CredentialCase(
            "HS256 keyed with the JWK",
            bearer(&hmac(rsa.jwk().to_string().as_bytes(), &claims)),
            ALGORITHM,
        ),
        CredentialCase(
            "alg not allowed",
            bearer(&with_header(json!({"alg": "RS512"}))),
            ALGORITHM,
        ),
        CredentialCase("ES256 with an RSA kid", bearer(&wrong_kind), SIGNATURE),
        CredentialCase(
            "embedded jwk",
            bearer(&with_header(json!({"jwk": rsa.jwk()}))),
            OWN_KEY,
        ),
        CredentialCase(
            "jku",
            bearer(&with_header(json!({"jku": "https://a.example"}))),
            OWN_KEY,
        ),
        CredentialCase(
            "x5u",
            bearer(&with_header(json!({"x5u": "https://a.example"}))),
            OWN_KEY,
        ),
        CredentialCase(
            "x5c",
            bearer(&with_header(json!({"x5c": ["MII"]}))),
            OWN_KEY,
        ),
        CredentialCase(
            "kid unknown",
            bearer(&with_header(json!({"kid": "other"}))),
            UNKNOWN_KEY,
        ),
        CredentialCase(
            "kid missing, several keys",
            bearer(&with_header(json!({"kid": null}))),
            UNKNOWN_KEY,
        ),
        CredentialCase(
            "kid ../../",
            bearer(&with_header(json!({"kid": "../../etc/passwd"}))),
            UNKNOWN_KEY,
        ),
        CredentialCase(
            "kid SQL",
            bearer(&with_header(json!({"kid": "x' OR '1'='1"}))),
            UNKNOWN_KEY,
        ),
        CredentialCase(
            "kid 64 KiB",
            bearer(&with_header(json!({"kid": "k".repeat(64 * 1024)}))),
            "the token is too long",
        ),
        CredentialCase(
            "kid with NUL",
            bearer(&with_header(json!({"kid": "rsa\u{0}"}))),
            "the key id of the token is malformed",
        ),
        CredentialCase(
            "unknown crit",
            bearer(&crit),
            "the token uses an extension that is not understood",
        ),
        CredentialCase(
            "signature stripped",
            bearer(&format!("{header}.{payload}.")),
            SIGNATURE,
        ),
        CredentialCase(
            "signature flipped",
            bearer(&format!("{header}.{payload}.{flipped}")),
            SIGNATURE,
        ),
        CredentialCase(
            "signature truncated",
            bearer(&format!("{header}.{payload}.{}", &signature[..200])),
            SIGNATURE,
        ),
        CredentialCase(
            "payload swapped",
            bearer(&format!("{header}.{swapped}.{signature}")),
            SIGNATURE,
        ),
        CredentialCase("JWE", bearer(&jwe), JWT),
    ]
}

fn wrong_claims(fixture: &AuthFixture) -> Vec<CredentialCase> {
    let claims = fixture.claims();
    let sign = |change: Value| bearer(&fixture.rsa.token(&changed(claims.clone(), &change)));
    let old = Signer::ed25519("old");
    let twice = format!(
        r#"{{"iss":"{}","sub":"u","aud":"{BASE}/mcp","aud":"https://evil.example","exp":{}}}"#,
        fixture.provider.name,
        now() + 600
    );
    let header = json!({"alg": "RS256", "typ": "at+jwt", "kid": "rsa"}).to_string();
    let id_token = fixture.rsa.token_with(
        &json!({"typ": "JWT"}),
        &changed(claims.clone(), &json!({"nonce": "n", "aud": "client-1"})),
    );
    let of_strict = crate::fixture::claims(STRICT);
    let untyped = fixture
        .strict
        .token_with(&json!({"typ": "JWT"}), &of_strict);
    const EXP: &str = "the token does not say when it expires";
    const TIME: &str = "a time in the token is not a number";
    const ISS: &str = "the token is from an untrusted issuer";
    const AUD: &str = "the token is not meant for this server";
    const SUB: &str = "the token does not say whose it is";
    const KIND: &str = "the token is not an access token";
    let name = &fixture.provider.name;
    vec![
        CredentialCase(
            "expired",
            sign(json!({"exp": now() - 3600})),
            "the token has expired",
        ),
        CredentialCase(
            "expired 31 s",
            sign(json!({"exp": now() - 31})),
            "the token has expired",
        ),
        CredentialCase("exp missing", sign(json!({"exp": null})), EXP),
        CredentialCase(
            "exp string",
            sign(json!({"exp": (now() + 600).to_string()})),
            EXP,
        ),
        CredentialCase("exp negative", sign(json!({"exp": -1})), EXP),
        CredentialCase("exp 1e300", sign(json!({"exp": 1e300})), EXP),
        CredentialCase(
            "nbf future",
            sign(json!({"nbf": now() + 60})),
            "the token is not valid yet",
        ),
        CredentialCase("nbf string", sign(json!({"nbf": "0"})), TIME),
        CredentialCase(
            "iat future",
            sign(json!({"iat": now() + 60})),
            "the token was issued in the future",
        ),
        CredentialCase(
            "iss wrong",
            sign(json!({"iss": "https://evil.example"})),
            ISS,
        ),
        CredentialCase("iss missing", sign(json!({"iss": null})), ISS),
        CredentialCase("iss array", sign(json!({"iss": [name]})), ISS),
        CredentialCase(
            "iss with slash",
            sign(json!({"iss": format!("{name}/")})),
            ISS,
        ),
        CredentialCase(
            "aud wrong",
            sign(json!({"aud": "https://evil.example/mcp"})),
            AUD,
        ),
        CredentialCase("aud missing", sign(json!({"aud": null})), AUD),
        CredentialCase("aud number", sign(json!({"aud": 5})), AUD),
        CredentialCase(
            "aud prefix of ours",
            sign(json!({"aud": format!("{BASE}/mc")})),
            AUD,
        ),
        CredentialCase(
            "aud path in other case",
            sign(json!({"aud": format!("{BASE}/MCP")})),
            AUD,
        ),
        CredentialCase("ID token", bearer(&id_token), KIND),
        CredentialCase("typ not at+jwt where it must be", bearer(&untyped), KIND),
        CredentialCase("sub missing", sign(json!({"sub": null})), SUB),
        CredentialCase("sub empty", sign(json!({"sub": ""})), SUB),
        CredentialCase(
            "sub 64 KiB",
            sign(json!({"sub": "s".repeat(64 * 1024)})),
            "the token is too long",
        ),
        CredentialCase(
            "revoked key",
            bearer(&old.token(&claims)),
            "the key of the token is not known",
        ),
        CredentialCase(
            "aud twice",
            bearer(&fixture.rsa.signed(&header, &twice, "RS256")),
            "the token is not JSON with each member once",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_tokens_are_answered_with_401() {
    let fixture = AuthFixture::start().await;
    let mut rows = malformed(&fixture);
    rows.extend(wrong_claims(&fixture));
    assert_eq!(rows.len(), 60);
    for CredentialCase(name, sent, why) in rows {
        let answered = fixture.server.send(&sent).await;
        assert_eq!(answered.status, 401, "{name}: {}", answered.body);
        let expected = if why.is_empty() {
            absent()
        } else {
            invalid(why)
        };
        assert_eq!(
            answered.header("www-authenticate"),
            Some(expected.as_str()),
            "{name}"
        );
        assert!(answered.json()["error"]["message"].is_string(), "{name}");
        assert!(answered.json().get("result").is_none(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_tokens_are_answered_with_403() {
    let fixture = AuthFixture::start().await;
    for scope in [
        json!("other"),
        json!("docs.read2 xdocs.read"),
        json!("Docs.Read"),
    ] {
        let token = changed(fixture.claims(), &json!({"scope": scope}));
        let answered = fixture
            .server
            .send(&bearer(&fixture.rsa.token(&token)))
            .await;
        assert_eq!(answered.status, 403, "{scope}");
        assert_eq!(
            answered.header("www-authenticate"),
            Some(insufficient().as_str()),
            "{scope}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_the_answer_is_503() {
    // The listener is closed, so connections to this address are refused.
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let auth = builder()
        .issuer(Issuer::remote(&gone, None, IssuerNetwork::Private))
        .build()
        .unwrap();
    let server = AuthTestServer::start(auth).await;
    let token = Signer::rsa("rsa").token(&claims(&gone));
    let answered = server.send(&bearer(&token)).await;
    assert_eq!(answered.status, 503);
    assert_eq!(answered.header("retry-after"), Some("5"));
    assert_eq!(answered.header("www-authenticate"), None);
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["sign_in"], "waiting for keys");
    let nobody = server.send(&RawRequest::call("whoami")).await;
    assert_eq!(
        nobody.status, 401,
        "a call without a token must get a challenge"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirteen_tokens_are_accepted() {
    let fixture = AuthFixture::start().await;
    let claims = fixture.claims();
    let (rsa, ec, ed) = (&fixture.rsa, &fixture.ec, &fixture.ed);
    let sign = |change: Value| rsa.token(&changed(claims.clone(), &change));
    let fresh = Signer::ed25519("fresh");
    let rows = [
        ("RS256", bearer(&rsa.token(&claims))),
        (
            "PS256",
            bearer(&rsa.token_with(&json!({"alg": "PS256"}), &claims)),
        ),
        ("ES256", bearer(&ec.token(&claims))),
        ("EdDSA", bearer(&ed.token(&claims))),
        (
            "aud array holding ours",
            bearer(&sign(
                json!({"aud": ["https://a.example", format!("{BASE}/mcp")]}),
            )),
        ),
        (
            "aud in upper case",
            bearer(&sign(json!({"aud": "HTTPS://Docs.Example.ORG/mcp"}))),
        ),
        (
            "two live keys",
            bearer(&ec.token_with(&json!({"typ": "JWT"}), &claims)),
        ),
        (
            "scope string",
            bearer(&sign(json!({"scope": "a docs.read b"}))),
        ),
        (
            "scp array",
            bearer(&sign(json!({"scope": null, "scp": ["a", "docs.read"]}))),
        ),
        (
            "bearer in lower case",
            RawRequest::call("whoami")
                .with("authorization", format!("bearer {}", rsa.token(&claims))),
        ),
        ("leeway 29 s", bearer(&sign(json!({"exp": now() - 29})))),
        (
            "extra claims",
            bearer(&sign(json!({"groups": ["a"], "x": {"y": [1, null]}}))),
        ),
        ("new key after rotation", bearer(&fresh.token(&claims))),
    ];
    assert_eq!(rows.len(), 13);
    for (name, sent) in rows {
        if name == "new key after rotation" {
            assert_eq!(fixture.server.send(&sent).await.status, 401, "before it");
            *fixture.provider.keys.lock().unwrap() = jwks(&[rsa, &fresh]);
        }
        let answered = fixture.server.send(&sent).await;
        assert_eq!(answered.status, 200, "{name}: {}", answered.body);
        let who = &answered.json()["result"]["structuredContent"];
        assert_eq!(who["subject"], "user-1", "{name}");
        assert_eq!(who["issuer"], fixture.provider.name.as_str(), "{name}");
    }
    assert_eq!(fixture.server.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_bound_on_headers_comes_before_the_token() {
    let fixture = AuthFixture::start().await;
    let auth = builder()
        .issuer(Issuer::remote(
            &fixture.provider.name,
            None,
            IssuerNetwork::Private,
        ))
        .requirement(AuthRequirement::Always)
        .build()
        .unwrap();
    let server = AuthTestServer::start_with(auth, Default::default()).await;
    let long = bearer(&format!("ey{}.a.b", "A".repeat(64 * 1024)));
    assert_eq!(server.send(&long).await.status, 431);
    let good = bearer(&fixture.rsa.token(&fixture.claims()));
    assert_eq!(server.send(&good).await.status, 200);
}
