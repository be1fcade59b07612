//! Issuers behind TLS: whose certificate counts, and whose does not.

use std::time::Duration;

use docent_mcp::{CertificateAuthorities, Issuer, IssuerNetwork, IssuerTransport};

use crate::authority::TestAuthority;
use crate::mint::Signer;
use crate::world::{AuthTestServer, LoopbackIssuer, RawRequest, builder, claims};

fn reach(authority: &TestAuthority) -> IssuerTransport {
    IssuerTransport {
        network: IssuerNetwork::Private,
        authorities: Some(CertificateAuthorities::parse(&authority.pem).unwrap()),
    }
}

/// The status of a call with a token of an issuer that is reached in this way.
async fn called(provider: &LoopbackIssuer, signer: &Signer, reach: IssuerTransport) -> u16 {
    let issuer = Issuer::remote(&provider.name, None, reach).cooldown(Duration::ZERO);
    let server = AuthTestServer::start(builder().issuer(issuer).build().unwrap()).await;
    let token = signer.token(&claims(&provider.name));
    server
        .send(&RawRequest::call("whoami").bearer(&token))
        .await
        .status
}

#[tokio::test]
async fn an_authority_of_the_owners_own_vouches_for_an_issuer() {
    let (ours, others) = (TestAuthority::new(), TestAuthority::new());
    let signer = Signer::ed25519("ed");
    let provider = LoopbackIssuer::start_with(&[&signer], Some(ours.vouch("localhost"))).await;
    assert_eq!(called(&provider, &signer, reach(&ours)).await, 200);
    let fetched = provider.fetched();
    assert!(fetched > 0);
    // Without keys nobody can say whether a token counts.
    assert_eq!(called(&provider, &signer, reach(&others)).await, 503);
    assert_eq!(
        called(&provider, &signer, IssuerNetwork::Private.into()).await,
        503
    );
    assert_eq!(provider.fetched(), fetched);
    // Nobody vouches for a server by another name.
    let provider = LoopbackIssuer::start_with(&[&signer], Some(ours.vouch("login.example"))).await;
    assert_eq!(called(&provider, &signer, reach(&ours)).await, 503);
    assert_eq!(provider.fetched(), 0);
}

#[tokio::test]
async fn the_same_for_whoever_is_asked_about_opaque_tokens() {
    let (ours, others) = (TestAuthority::new(), TestAuthority::new());
    let provider = LoopbackIssuer::start_with(&[], Some(ours.vouch("localhost"))).await;
    for (way, token, status) in [
        (reach(&ours), "good", 200),
        (reach(&ours), "bad", 401),
        (reach(&others), "good", 503),
    ] {
        let (name, endpoint) = (&provider.name, format!("{}/introspect", provider.name));
        let issuer = Issuer::introspected(name, &endpoint, ("docent", "hush"), way);
        let server = AuthTestServer::start(builder().issuer(issuer).build().unwrap()).await;
        let answered = server.send(&RawRequest::call("whoami").bearer(token)).await;
        assert_eq!(answered.status, status, "{token}: {}", answered.body);
    }
}
