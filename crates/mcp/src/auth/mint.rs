//! Signing keys and tokens for tests: both what an issuer would sign and what it never would.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::{self, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256,
};
use serde_json::{Value, json};

/// An RSA key generated for these tests and used nowhere else.
const RSA: &[u8] = include_bytes!("../../tests/keys/rsa-2048.pk8");

/// A test issuer's signing key, with its `kid`.
pub(crate) struct Signer {
    pub(crate) kid: String,
    pair: Pair,
}

enum Pair {
    Rsa(Box<rsa::KeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn rsa(kid: &str) -> Self {
        let pair = rsa::KeyPair::from_pkcs8(RSA).unwrap();
        Self::new(kid, Pair::Rsa(Box::new(pair)))
    }

    pub(crate) fn p256(kid: &str) -> Self {
        Self::new(kid, Pair::P256(ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING)))
    }

    pub(crate) fn p384(kid: &str) -> Self {
        Self::new(kid, Pair::P384(ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING)))
    }

    pub(crate) fn ed25519(kid: &str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::new(
            kid,
            Pair::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap()),
        )
    }

    fn new(kid: &str, pair: Pair) -> Self {
        Self {
            kid: kid.to_owned(),
            pair,
        }
    }

    /// The algorithm that the key signs with by default.
    pub(crate) fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::P384(_) => "ES384",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// The public key as a JSON Web Key.
    pub(crate) fn jwk(&self) -> Value {
        let ec = |pair: &EcdsaKeyPair, curve: &str| {
            let point = &pair.public_key().as_ref()[1..];
            let (x, y) = point.split_at(point.len() / 2);
            json!({"kty": "EC", "crv": curve, "x": b64(x), "y": b64(y)})
        };
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": b64(&public.n), "e": b64(&public.e)})
            }
            Pair::P256(pair) => ec(pair, "P-256"),
            Pair::P384(pair) => ec(pair, "P-384"),
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": b64(pair.public_key().as_ref())})
            }
        };
        jwk["kid"] = self.kid.as_str().into();
        jwk["use"] = "sig".into();
        jwk
    }

    pub(crate) fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let algorithm_impl: &dyn ring::signature::RsaEncoding = match algorithm {
                    "PS256" => &RSA_PSS_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(algorithm_impl, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Pair::P256(pair) | Pair::P384(pair) => {
                pair.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// An access token with the usual header members.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({}), claims)
    }

    /// An access token with header members added or replaced; a `null` removes one.
    pub(crate) fn token_with(&self, changes: &Value, claims: &Value) -> String {
        let mut header = json!({"alg": self.algorithm(), "typ": "at+jwt", "kid": self.kid});
        for (name, value) in changes.as_object().unwrap() {
            header[name] = value.clone();
        }
        header
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        let algorithm = header["alg"].as_str().unwrap_or_default().to_owned();
        self.signed(&header.to_string(), &claims.to_string(), &algorithm)
    }

    /// A token from two arbitrary texts as header and payload, so that they need not be JSON.
    pub(crate) fn signed(&self, header: &str, payload: &str, algorithm: &str) -> String {
        let message = format!("{}.{}", b64(header.as_bytes()), b64(payload.as_bytes()));
        let signature = self.sign(algorithm, message.as_bytes());
        format!("{message}.{}", b64(&signature))
    }
}

fn ecdsa(algorithm_impl: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(algorithm_impl, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm_impl, made.as_ref(), &random).unwrap()
}

/// The key set (JWKS) of several signers, as an issuer publishes it.
pub(crate) fn jwks(signers: &[&Signer]) -> Value {
    json!({"keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>()})
}

pub(crate) fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
