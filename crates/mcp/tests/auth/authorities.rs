//! Issuers behind TLS: whose certificate counts, and whose does not.

use std::time::Duration;

use docent_mcp::{Authorities, Issuer, Network, Reach};

use crate::authority::Authority;
use crate::mint::Signer;
use crate::world::{Provider, Sent, Server, builder, claims};

fn reach(authority: &Authority) -> Reach {
    Reach {
        network: Network::Private,
        authorities: Some(Authorities::parse(&authority.pem).unwrap()),
    }
}

/// The status of a call with a token of an issuer that is reached in this way.
async fn called(provider: &Provider, signer: &Signer, reach: Reach) -> u16 {
    let issuer = Issuer::remote(&provider.name, None, reach).cooldown(Duration::ZERO);
    let server = Server::start(builder().issuer(issuer).build().unwrap()).await;
    let token = signer.token(&claims(&provider.name));
    server
        .send(&Sent::call("whoami").bearer(&token))
        .await
        .status
}

#[tokio::test]
async fn an_authority_of_the_owners_own_vouches_for_an_issuer() {
    let (ours, others) = (Authority::new(), Authority::new());
    let signer = Signer::ed25519("ed");
    let provider = Provider::start_with(&[&signer], Some(ours.vouch("localhost"))).await;
    assert_eq!(called(&provider, &signer, reach(&ours)).await, 200);
    let fetched = provider.fetched();
    assert!(fetched > 0);
    // Without keys nobody can say whether a token counts.
    assert_eq!(called(&provider, &signer, reach(&others)).await, 503);
    assert_eq!(
        called(&provider, &signer, Network::Private.into()).await,
        503
    );
    assert_eq!(provider.fetched(), fetched);
    // Nobody vouches for a server by another name.
    let provider = Provider::start_with(&[&signer], Some(ours.vouch("login.example"))).await;
    assert_eq!(called(&provider, &signer, reach(&ours)).await, 503);
    assert_eq!(provider.fetched(), 0);
}

#[tokio::test]
async fn the_same_for_whoever_is_asked_about_opaque_tokens() {
    let (ours, others) = (Authority::new(), Authority::new());
    let provider = Provider::start_with(&[], Some(ours.vouch("localhost"))).await;
    for (way, token, status) in [
        (reach(&ours), "good", 200),
        (reach(&ours), "bad", 401),
        (reach(&others), "good", 503),
    ] {
        let (name, endpoint) = (&provider.name, format!("{}/introspect", provider.name));
        let issuer = Issuer::introspected(name, &endpoint, ("docent", "hush"), way);
        let server = Server::start(builder().issuer(issuer).build().unwrap()).await;
        let answered = server.send(&Sent::call("whoami").bearer(token)).await;
        assert_eq!(answered.status, status, "{token}: {}", answered.body);
    }
}
