//! Tests of JSON Web Keys: which are accepted, and which signatures each of them verifies.

use serde_json::json;

use super::super::mint::{Signer, b64, jwks};
use super::*;

fn one(jwk: &Value) -> Option<VerificationKey> {
    VerificationKey::parse(jwk)
}

fn with(signer: &Signer, changes: &Value) -> Value {
    let mut jwk = signer.jwk();
    for (name, value) in changes.as_object().unwrap() {
        jwk[name] = value.clone();
    }
    jwk.as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    jwk
}

#[test]
fn every_algorithm_has_its_own_name() {
    for algorithm in SignatureAlgorithm::ALL {
        assert_eq!(SignatureAlgorithm::parse(algorithm.name()), Some(algorithm));
    }
    let names: std::collections::BTreeSet<_> =
        SignatureAlgorithm::ALL.map(SignatureAlgorithm::name).into();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [
            "ES256", "ES384", "EdDSA", "PS256", "RS256", "RS384", "RS512"
        ]
    );
    for bad in ["none", "HS256", "rs256", "ES512", ""] {
        assert_eq!(SignatureAlgorithm::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_key_checks_its_own_kind_of_signature_and_no_other() {
    let signers = [
        (Signer::rsa("a"), vec!["RS256", "RS384", "RS512", "PS256"]),
        (Signer::p256("b"), vec!["ES256"]),
        (Signer::p384("c"), vec!["ES384"]),
        (Signer::ed25519("d"), vec!["EdDSA"]),
    ];
    for (signer, algs) in &signers {
        let key = one(&signer.jwk()).unwrap();
        for alg in algs {
            let signature = signer.sign(alg, b"message");
            for algorithm in SignatureAlgorithm::ALL {
                let expected = algorithm.name() == *alg;
                let found = key.verifies(algorithm, b"message", &signature);
                assert_eq!(found, expected, "{alg} as {}", algorithm.name());
            }
            let algorithm = SignatureAlgorithm::parse(alg).unwrap();
            assert!(!key.verifies(algorithm, b"massage", &signature), "{alg}");
            assert!(
                !key.verifies(algorithm, b"message", &signature[1..]),
                "{alg}"
            );
        }
    }
}

#[test]
fn a_key_that_names_its_algorithm_is_used_with_no_other() {
    let signer = Signer::rsa("a");
    let key = one(&with(&signer, &json!({"alg": "PS256"}))).unwrap();
    let (ps, rs) = (signer.sign("PS256", b"m"), signer.sign("RS256", b"m"));
    assert!(key.verifies(SignatureAlgorithm::Ps256, b"m", &ps));
    assert!(!key.verifies(SignatureAlgorithm::Rs256, b"m", &rs));
}

#[test]
fn keys_for_other_uses_are_passed_over() {
    let signer = Signer::p256("a");
    for good in [
        json!({}),
        json!({"use": null}),
        json!({"key_ops": ["verify"]}),
        json!({"key_ops": ["sign", "verify"]}),
        json!({"kid": null}),
        json!({"kid": "x".repeat(MAX_KID_BYTES)}),
        json!({"other": 1}),
    ] {
        assert!(one(&with(&signer, &good)).is_some(), "{good}");
    }
    for bad in [
        json!({"use": "enc"}),
        json!({"use": 5}),
        json!({"key_ops": ["encrypt"]}),
        json!({"key_ops": []}),
        json!({"alg": "RSA-OAEP"}),
        json!({"alg": 5}),
        json!({"kid": 5}),
        json!({"kid": ""}),
        json!({"kid": "x".repeat(MAX_KID_BYTES + 1)}),
        json!({"kid": "a\u{7}"}),
        json!({"kty": "oct", "k": "AAAA"}),
        json!({"kty": null}),
        json!({"kty": "RSA"}),
        json!({"crv": "P-521"}),
        json!({"crv": null}),
        json!({"crv": "P-384"}),
        json!({"x": "!"}),
        json!({"x": b64(&[1; 31])}),
        json!({"y": null}),
        json!({"y": b64(&[1; 33])}),
    ] {
        assert!(one(&with(&signer, &bad)).is_none(), "{bad}");
    }
    let ed = Signer::ed25519("e");
    assert!(one(&with(&ed, &json!({"x": b64(&[1; 31])}))).is_none());
    assert!(one(&with(&ed, &json!({"crv": "X25519"}))).is_none());
}

#[test]
fn rsa_keys_have_a_size() {
    let n = |bytes: usize| json!({"kty": "RSA", "n": b64(&vec![0x81; bytes]), "e": "AQAB"});
    assert!(one(&n(255)).is_none());
    assert!(one(&n(256)).is_some());
    assert!(one(&n(1_024)).is_some());
    assert!(one(&n(1_025)).is_none());
    let e = |bytes: usize| json!({"kty": "RSA", "n": b64(&[0x81; 256]), "e": b64(&vec![1; bytes])});
    assert!(one(&e(8)).is_some());
    assert!(one(&e(9)).is_none());
    // A leading zero byte, which some issuers write, is ignored.
    let signer = Signer::rsa("a");
    let mut n = vec![0];
    n.extend(
        URL_SAFE_NO_PAD
            .decode(signer.jwk()["n"].as_str().unwrap())
            .unwrap(),
    );
    let key = one(&with(&signer, &json!({"n": b64(&n)}))).unwrap();
    assert!(key.verifies(SignatureAlgorithm::Rs256, b"m", &signer.sign("RS256", b"m")));
}

#[test]
fn a_set_has_keys_each_with_a_name_of_its_own() {
    let (a, b) = (Signer::ed25519("a"), Signer::p256("b"));
    let set = JsonWebKeySet::parse(&jwks(&[&a, &b])).unwrap();
    assert_eq!(set.find(Some("a")).unwrap().kid.as_deref(), Some("a"));
    assert_eq!(set.find(Some("b")).unwrap().kid.as_deref(), Some("b"));
    assert_eq!(set.find(Some("c")), None);
    assert_eq!(set.find(None), None, "there are two");
    let only = JsonWebKeySet::parse(&jwks(&[&a])).unwrap();
    assert!(only.find(None).is_some());
    assert_eq!(only.find(Some("b")), None);
    assert!(!set.is_empty() && JsonWebKeySet::default().is_empty());
    let same = JsonWebKeySet::parse(&jwks(&[&a, &Signer::p256("a")]));
    assert_eq!(same, Err("two keys have one name"));
    let odd = json!({"keys": [{"kty": "oct"}, a.jwk()]});
    assert!(JsonWebKeySet::parse(&odd).unwrap().find(None).is_some());
    for (bad, why) in [
        (
            json!({"keys": [{"kty": "oct"}]}),
            "none of the keys can check a signature",
        ),
        (
            json!({"keys": []}),
            "none of the keys can check a signature",
        ),
        (json!({"keys": {}}), "there is no list `keys`"),
        (json!([]), "there is no list `keys`"),
    ] {
        assert_eq!(JsonWebKeySet::parse(&bad), Err(why), "{bad}");
    }
    let many = |count: usize| {
        let all: Vec<Value> = (0..count)
            .map(|n| with(&a, &json!({"kid": format!("k{n}")})))
            .collect();
        JsonWebKeySet::parse(&json!({"keys": all}))
    };
    assert!(many(MAX_KEYS).is_ok());
    assert_eq!(many(MAX_KEYS + 1), Err("there are too many keys"));
}

#[test]
fn local_keys_are_replaced_for_all() {
    let keys = LocalKeys::default();
    let same = keys.clone();
    assert!(same.is_empty());
    let signer = Signer::ed25519("a");
    keys.replace(&jwks(&[&signer])).unwrap();
    assert!(!same.is_empty());
    assert!(same.get().find(Some("a")).is_some());
    let error = keys.replace(&json!({})).unwrap_err();
    assert_eq!(error, AuthError::Keys("there is no list `keys`"));
    assert!(same.get().find(Some("a")).is_some(), "those before stay");
}
