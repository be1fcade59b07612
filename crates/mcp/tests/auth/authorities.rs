//! Issuers behind TLS: a certificate counts when it chains to a configured certificate authority and names the host.
//! An untrusted certificate makes an issuer unreachable, which is a 503 and not a 401.

use std::time::Duration;

use docent_mcp::{
    CertificateAuthorities, IntrospectionClient, Issuer, IssuerNetwork, IssuerTransport,
};

use crate::authority::TestAuthority;
use crate::fixture::{AuthTestServer, LoopbackIssuer, RawRequest, builder, claims};
use crate::mint::Signer;

fn trusting(authority: &TestAuthority) -> IssuerTransport {
    IssuerTransport {
        network: IssuerNetwork::Private,
        authorities: Some(CertificateAuthorities::parse(&authority.pem).unwrap()),
    }
}

/// Starts a server that reaches the issuer over this transport, and returns the status of a call with a token of it.
async fn call_status(
    provider: &LoopbackIssuer,
    signer: &Signer,
    transport: IssuerTransport,
) -> u16 {
    let issuer = Issuer::remote(&provider.name, None, transport).cooldown(Duration::ZERO);
    let server = AuthTestServer::start(builder().issuer(issuer).build().unwrap()).await;
    let token = signer.token(&claims(&provider.name));
    server
        .send(&RawRequest::call("whoami").bearer(&token))
        .await
        .status
}

#[tokio::test]
async fn a_private_certificate_authority_is_trusted_for_an_issuer() {
    let (ours, foreign) = (TestAuthority::new(), TestAuthority::new());
    let signer = Signer::ed25519("ed");
    let provider = LoopbackIssuer::start_with(&[&signer], Some(ours.vouch("localhost"))).await;
    assert_eq!(call_status(&provider, &signer, trusting(&ours)).await, 200);
    let fetched = provider.fetched();
    assert!(fetched > 0);
    // Without the issuer's keys a token can be neither accepted nor refused.
    assert_eq!(
        call_status(&provider, &signer, trusting(&foreign)).await,
        503
    );
    assert_eq!(
        call_status(&provider, &signer, IssuerNetwork::Private.into()).await,
        503
    );
    assert_eq!(provider.fetched(), fetched);
    // A trusted certificate for another host name is refused too.
    let provider = LoopbackIssuer::start_with(&[&signer], Some(ours.vouch("login.example"))).await;
    assert_eq!(call_status(&provider, &signer, trusting(&ours)).await, 503);
    assert_eq!(provider.fetched(), 0);
}

#[tokio::test]
async fn an_introspection_endpoint_needs_a_trusted_certificate_too() {
    let (ours, foreign) = (TestAuthority::new(), TestAuthority::new());
    let provider = LoopbackIssuer::start_with(&[], Some(ours.vouch("localhost"))).await;
    for (transport, token, status) in [
        (trusting(&ours), "good", 200),
        (trusting(&ours), "bad", 401),
        (trusting(&foreign), "good", 503),
    ] {
        let (name, endpoint) = (&provider.name, format!("{}/introspect", provider.name));
        let client = IntrospectionClient {
            id: "docent",
            secret: "hush",
        };
        let issuer = Issuer::introspected(name, &endpoint, client, transport);
        let server = AuthTestServer::start(builder().issuer(issuer).build().unwrap()).await;
        let answered = server.send(&RawRequest::call("whoami").bearer(token)).await;
        assert_eq!(answered.status, status, "{token}: {}", answered.body);
    }
}
