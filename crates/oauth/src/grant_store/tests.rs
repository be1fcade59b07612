//! Grants at their limits: counts, lifetimes and ownership.

use super::*;
use crate::store::CLIENTS;

const NOW: u64 = 1_800_000_000;

fn person(subject: &str) -> UserIdentity {
    UserIdentity {
        subject: subject.to_owned(),
        email: None,
        email_verified: false,
        groups: Vec::new(),
        stamp: None,
    }
}

fn allowed(subject: &str) -> GrantedAccess {
    GrantedAccess {
        client: "https://app.example/client.json".to_owned(),
        resource: "https://docs.example.org/mcp".to_owned(),
        scopes: vec!["docs.read".to_owned()],
        person: person(subject),
        refreshes: true,
        at: NOW,
        until: NOW + GRANT_LIFETIME,
    }
}

fn code(subject: &str) -> AuthorizationCode {
    AuthorizationCode {
        allowed: allowed(subject),
        redirect: "https://app.example/cb".to_owned(),
        challenge: crypto::digest(&verifier()),
        nonce: None,
        ends: NOW + CODE_LIFETIME,
        spent: None,
    }
}

fn verifier() -> String {
    "v".repeat(43)
}

/// The client of every grant in these tests, unless another is named.
fn client() -> KnownClient {
    KnownClient {
        id: allowed("").client,
        registered: None,
    }
}

fn spending(code: String) -> CodeRedemption {
    CodeRedemption {
        code,
        client: client(),
        redirect: None,
        verifier: verifier(),
        resource: None,
    }
}

fn grant(subject: &str, used: u64) -> StoredGrant {
    StoredGrant {
        access: allowed(subject),
        current_secret: String::new(),
        previous_secret: None,
        rotated_at: used,
        refreshed_at: used,
    }
}

/// A grant that an earlier version stored has to be read, or its user has to log in again.
#[test]
fn stored_grants_keep_the_names_of_their_members() {
    let stored = json!({
        "allowed": allowed("anna"), "present": "a", "before": "b", "turned": 1, "used": 2
    });
    let grant: StoredGrant = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!((grant.rotated_at, grant.refreshed_at), (1, 2));
    assert_eq!(serde_json::to_value(&grant).unwrap(), stored);
}

fn store() -> (tempfile::TempDir, AuthStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = AuthStore::open(dir.path()).unwrap();
    (dir, store)
}

fn fill(store: &AuthStore, grants: impl Iterator<Item = (String, StoredGrant)>) {
    store
        .change(|rows| {
            for (id, grant) in grants {
                rows.put(GRANTS, &id, &grant)?;
            }
            Ok(())
        })
        .unwrap();
}

async fn granted(grants: &GrantStore, subject: &str, now: u64) -> IssuedGrant {
    let text = grants
        .allow(code(subject), client(), now)
        .await
        .unwrap()
        .unwrap();
    grants.spend(spending(text), now).await.unwrap().unwrap()
}

#[tokio::test]
async fn one_more_than_there_is_room_for_takes_the_place_of_the_longest_unused() {
    let (_dir, store) = store();
    let each = |n: usize| (format!("g{n}"), grant(&format!("u{n}"), NOW - n as u64));
    fill(&store, (0..MAX_GRANTS - 1).map(each));
    let grants = GrantStore::open(store.clone(), NOW).unwrap();
    assert_eq!(grants.count(GRANTS), MAX_GRANTS - 1);
    let last = format!("g{}", MAX_GRANTS - 2);
    granted(&grants, "new", NOW).await;
    assert_eq!(grants.count(GRANTS), MAX_GRANTS);
    assert!(grants.is_live(&last, NOW));
    let newest = granted(&grants, "newer", NOW).await;
    assert_eq!(grants.count(GRANTS), MAX_GRANTS);
    assert!(!grants.is_live(&last, NOW), "it was used longest ago");
    assert!(grants.is_live("g0", NOW) && grants.is_live(&newest.id, NOW));
}

#[tokio::test]
async fn the_bound_of_one_person_is_nobody_elses() {
    let (_dir, store) = store();
    let own = (0..MAX_GRANTS_PER_USER).map(|n| (format!("a{n:03}"), grant("anna", NOW - n as u64)));
    let others =
        (0..MAX_GRANTS_PER_USER).map(|n| (format!("n{n:03}"), grant("nils", NOW - n as u64)));
    fill(&store, own.chain(others));
    let grants = GrantStore::open(store, NOW).unwrap();
    assert_eq!(
        grants.count(GRANTS),
        2 * MAX_GRANTS_PER_USER,
        "opening drops none that live"
    );
    granted(&grants, "anna", NOW).await;
    assert_eq!(grants.count(GRANTS), 2 * MAX_GRANTS_PER_USER);
    assert!(!grants.is_live("a099", NOW) && grants.is_live("a098", NOW));
    assert!(grants.is_live("n099", NOW));
}

#[tokio::test]
async fn codes_that_wait_have_a_bound() {
    let (_dir, store) = store();
    let grants = GrantStore::open(store.clone(), NOW).unwrap();
    let waiting = AuthorizationCode {
        ends: NOW + 10,
        ..code("anna")
    };
    store
        .change(|rows| {
            for n in 0..MAX_CODES - 1 {
                rows.put(CODES, &format!("c{n}"), &waiting)?;
            }
            Ok(())
        })
        .unwrap();
    let one_more = grants.allow(code("anna"), client(), NOW).await.unwrap();
    assert!(one_more.is_ok());
    let too_many = grants.allow(code("anna"), client(), NOW).await.unwrap();
    assert_eq!(too_many, Err(GrantError::TooMany));
    // An expired code is deleted and makes room.
    assert!(
        grants
            .allow(code("anna"), client(), NOW + 10)
            .await
            .unwrap()
            .is_ok()
    );
    assert_eq!(grants.count(CODES), 2);
}

#[tokio::test]
async fn expired_grants_and_codes_are_dropped_on_opening() {
    let (_dir, store) = store();
    let idle = |n: u64| grant("anna", NOW - n);
    let ending = |until: u64| {
        let mut grant = grant("anna", NOW);
        grant.access.until = until;
        grant
    };
    let all = [
        ("idle", idle(GRANT_IDLE_TIMEOUT)),
        ("nearly", idle(GRANT_IDLE_TIMEOUT - 1)),
        ("over", ending(NOW)),
        ("last", ending(NOW + 1)),
    ];
    fill(
        &store,
        all.into_iter().map(|(id, grant)| (id.to_owned(), grant)),
    );
    let late = AuthorizationCode {
        ends: NOW,
        ..code("anna")
    };
    store.change(|rows| rows.put(CODES, "late", &late)).unwrap();
    store
        .change(|rows| rows.put(CODES, "waits", &code("anna")))
        .unwrap();
    let grants = GrantStore::open(store, NOW).unwrap();
    for (id, lives) in [
        ("idle", false),
        ("nearly", true),
        ("over", false),
        ("last", true),
    ] {
        assert_eq!(grants.is_live(id, NOW), lives, "{id}");
    }
    assert_eq!((grants.count(GRANTS), grants.count(CODES)), (2, 1));
    assert!(!grants.is_live("last", NOW + 1) && !grants.is_live("unknown", NOW));
}

#[tokio::test]
async fn a_grant_is_refreshed_by_its_client_alone_until_it_ends() {
    let (_dir, store) = store();
    let grants = GrantStore::open(store, NOW).unwrap();
    let granted = granted(&grants, "anna", NOW).await;
    let (token, client) = (granted.refresh.unwrap(), granted.allowed.client);
    let refresh = |token: String, client: String, now: u64| {
        let grants = &grants;
        async move {
            let client = KnownClient {
                id: client,
                registered: None,
            };
            let done = grants.refresh(&token, client, person("anna"), now);
            done.await.unwrap().map(|granted| granted.refresh.unwrap())
        }
    };
    let other = refresh(token.clone(), "other".to_owned(), NOW).await;
    assert_eq!(other, Err(GrantError::OtherClient));
    assert!(grants.is_live(&granted.id, NOW), "a stranger ends nothing");
    let at = NOW + GRANT_IDLE_TIMEOUT - 1;
    let next = refresh(token, client.clone(), at).await.unwrap();
    assert!(
        grants.is_live(&granted.id, at + GRANT_IDLE_TIMEOUT - 1),
        "it was used"
    );
    let late = refresh(next.clone(), client.clone(), at + GRANT_IDLE_TIMEOUT).await;
    assert_eq!(late, Err(GrantError::Expired));
    assert_eq!(grants.count(GRANTS), 0);
    let gone = refresh(next, client, at).await;
    assert_eq!(gone, Err(GrantError::Unknown));
}

#[tokio::test]
async fn a_grant_is_ended_by_its_own_client() {
    let (_dir, store) = store();
    let grants = GrantStore::open(store, NOW).unwrap();
    let granted = granted(&grants, "anna", NOW).await;
    grants.end(&granted.id, Some("other")).await.unwrap();
    grants.end("unknown", None).await.unwrap();
    assert!(grants.is_live(&granted.id, NOW) && grants.count(GRANTS) == 1);
    let own = granted.allowed.client;
    grants.end(&granted.id, Some(&own)).await.unwrap();
    assert!(!grants.is_live(&granted.id, NOW) && grants.count(GRANTS) == 0);
}

#[test]
fn verifiers_are_long_and_plain() {
    let long = "a".repeat(129);
    for (text, good) in [
        (&long[..42], false),
        (&long[..43], true),
        (&long[..128], true),
        (&long, false),
        ("azAZ09-._~azAZ09-._~azAZ09-._~azAZ09-._~azA", true),
        ("azAZ09-._~azAZ09-._~azAZ09-._~azAZ09-._~az+", false),
    ] {
        assert_eq!(is_verifier(text), good, "{text}");
    }
}

#[test]
fn refresh_tokens_have_two_parts_of_their_size() {
    let (id, secret) = (crypto::encode(&[1; ID_BYTES]), crypto::secret().unwrap());
    let expected = (crypto::digest(&id), crypto::digest(&secret));
    assert_eq!(
        parse_refresh_token(&format!("{id}.{secret}")),
        Some(expected)
    );
    for bad in [
        format!("{id}{secret}"),
        format!("{secret}.{secret}"),
        format!("{id}.{id}"),
        format!("{id}.{secret}."),
        format!("!.{secret}"),
    ] {
        assert_eq!(parse_refresh_token(&bad), None, "{bad}");
    }
}

#[tokio::test]
async fn the_client_of_a_grant_stays_registered_with_it() {
    let (dir, store) = store();
    let registry = client_registry::ClientRegistry::open(dir.path(), store.clone()).unwrap();
    let client = crate::oauth_client::OAuthClient {
        id: String::new(),
        name: String::new(),
        redirects: vec!["https://app.example/cb".to_owned()],
        refreshes: true,
    };
    let client = KnownClient::from(&registry.add(client, NOW).await.unwrap());
    let id = client.id.clone();
    let grants = GrantStore::open(store, NOW).unwrap();
    let mut code = code("anna");
    code.allowed.client.clone_from(&id);
    assert_eq!(grants.count(CLIENTS), 0);
    let text = grants.allow(code, client.clone(), NOW).await.unwrap();
    assert_eq!(grants.count(CLIENTS), 1, "somebody authorized it");
    let spending = CodeRedemption {
        client: client.clone(),
        ..spending(text.unwrap())
    };
    let granted = grants.spend(spending, NOW).await.unwrap().unwrap();
    assert!(grants.live.clients().contains(&id));
    // A client outlives its last grant by 30 days.
    let known = async |now: u64| registry.find(&id, now).await.unwrap().is_some();
    let month = 30 * 86_400;
    assert!(known(NOW + GRANT_IDLE_TIMEOUT + month - 1).await);
    assert!(!known(NOW + GRANT_IDLE_TIMEOUT + month).await);
    let later = NOW + 86_400;
    let token = granted.refresh.unwrap();
    let turned = grants.refresh(&token, client, person("anna"), later).await;
    assert!(turned.unwrap().is_ok());
    assert!(known(later + GRANT_IDLE_TIMEOUT + month - 1).await);
    assert!(!known(later + GRANT_IDLE_TIMEOUT + month).await);
}

#[test]
fn a_repetition_is_forgiven_from_the_last_turn_on() {
    let mut grant = grant("anna", NOW);
    grant.current_secret = "one".to_owned();
    let mut turn = |secret: &str, next: &str, now: u64| grant.rotate(secret, next.to_owned(), now);
    let turned = NOW + 1_000;
    assert!(turn("one", "two", turned));
    assert!(turn("one", "three", turned + REUSE_LEEWAY - 1));
    assert!(!turn("one", "four", turned + REUSE_LEEWAY));
    assert!(!turn("two", "four", turned + 1), "the lost one is void");
    assert!(turn("three", "four", turned + 5_000));
    assert!(turn("three", "five", turned + 5_001));
}
