//! Options of the authorization server, and the errors for invalid ones.

use super::*;
use crate::store::NAME;

fn open(
    change: impl FnOnce(&mut AuthorizationServerOptions),
) -> Result<AuthorizationServer, AuthorizationServerError> {
    let dir = tempfile::tempdir().unwrap();
    let mut options = AuthorizationServerOptions::new(ADDRESS, "Harbour archive", dir.path());
    change(&mut options);
    AuthorizationServer::open(options)
}

fn refused(change: impl FnOnce(&mut AuthorizationServerOptions)) -> AuthorizationServerError {
    match open(change) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[test]
fn addresses_and_the_scope_must_make_sense() {
    for bad in ["", "docs.example.org", "https://docs.example.org?x"] {
        let error = refused(|options| bad.clone_into(&mut options.address));
        assert!(
            matches!(error, AuthorizationServerError::Auth(AuthError::Address(_))),
            "{bad}"
        );
        let error = refused(|options| options.more_addresses = vec![bad.to_owned()]);
        assert!(
            matches!(error, AuthorizationServerError::Auth(AuthError::Address(_))),
            "{bad}"
        );
    }
    for bad in ["", "docs read", "docs\"read"] {
        let error = refused(|options| bad.clone_into(&mut options.scope));
        assert!(
            matches!(error, AuthorizationServerError::Auth(AuthError::Scope(_))),
            "{bad}"
        );
    }
    let error = refused(|options| options.own_hosts.authorities = Some("none".to_owned()));
    assert!(matches!(error, AuthorizationServerError::Authorities(_)));
}

#[test]
fn a_folder_that_cannot_be_used_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &Path| {
        let path = path.to_owned();
        refused(move |options| options.dir = path)
    };
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(at(&file), AuthorizationServerError::Folder(..)));
    let taken = dir.path().join("taken");
    let first =
        AuthorizationServer::open(AuthorizationServerOptions::new(ADDRESS, "x", &taken)).unwrap();
    assert!(matches!(at(&taken), AuthorizationServerError::Taken(_)));
    drop(first);
    assert!(
        AuthorizationServer::open(AuthorizationServerOptions::new(ADDRESS, "x", &taken)).is_ok()
    );
    let odd = dir.path().join("odd");
    std::fs::create_dir_all(odd.join(NAME)).unwrap();
    assert!(matches!(at(&odd), AuthorizationServerError::Folder(..)));
    let damaged = dir.path().join("damaged");
    std::fs::create_dir(&damaged).unwrap();
    std::fs::write(damaged.join(NAME), vec![b'x'; 8192]).unwrap();
    assert!(matches!(at(&damaged), AuthorizationServerError::State(..)));
}

#[test]
fn a_token_may_be_meant_for_every_address_of_the_server_and_for_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let server = AuthorizationServer::open(AuthorizationServerOptions {
        more_addresses: vec!["http://localhost:8787/".to_owned()],
        ..AuthorizationServerOptions::new(format!("{ADDRESS}/"), "x", dir.path())
    })
    .unwrap();
    for (requested, meant) in [
        (None, Some("https://docs.example.org/mcp")),
        (
            Some("https://docs.example.org"),
            Some("https://docs.example.org"),
        ),
        (
            Some("HTTPS://DOCS.example.org/mcp"),
            Some("https://docs.example.org/mcp"),
        ),
        (
            Some("http://localhost:8787/mcp"),
            Some("http://localhost:8787/mcp"),
        ),
        (Some("http://localhost:8788/mcp"), None),
        (Some("https://evil.example/mcp"), None),
        (Some("https://docs.example.org/MCP"), None),
        (Some(""), None),
    ] {
        assert_eq!(
            server.resource(requested).as_deref(),
            meant,
            "{requested:?}"
        );
    }
    for (requested, granted) in [
        (None, Some("docs.read")),
        (Some("docs.read"), Some("docs.read")),
        (
            Some("email openid docs.read other"),
            Some("docs.read openid email"),
        ),
        (Some("other"), None),
        (Some(""), None),
    ] {
        let scopes = server.scopes(requested).map(|all| all.join(" "));
        assert_eq!(scopes.as_deref(), granted, "{requested:?}");
    }
}

#[test]
fn the_clock_of_a_server_is_that_of_the_machine() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let clock = AuthorizationServerOptions::new(ADDRESS, "x", ".").clock;
    assert!(clock().abs_diff(since.as_secs()) < 3_600);
}

#[tokio::test]
async fn behind_a_path_metadata_is_found_before_and_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let address = "https://docs.example.org/archive";
    let server =
        AuthorizationServer::open(AuthorizationServerOptions::new(address, "x", dir.path()))
            .unwrap();
    let options = docent_mcp::http::HttpOptions {
        routes: server.routes(),
        ..docent_mcp::http::HttpOptions::default()
    };
    let app = App::builder("t", "1.0.0").tool(WhoTool).build().unwrap();
    let guard = RequestGuard::new(&["docs.example.org"], &[ADDRESS]).unwrap();
    let router = docent_mcp::http::router(app, options, guard);
    let status = async |path: &str| {
        let request = Request::get(path).header("host", "docs.example.org");
        let request = request.body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        response.status().as_u16()
    };
    for document in ["oauth-authorization-server", "openid-configuration"] {
        for place in [
            format!("/.well-known/{document}"),
            format!("/.well-known/{document}/archive"),
            format!("/archive/.well-known/{document}"),
        ] {
            assert_eq!(status(&place).await, 200, "{place}");
        }
        assert_eq!(status(&format!("/other/.well-known/{document}")).await, 404);
    }
    // Without an upstream provider there is no callback endpoint.
    assert_eq!(status("/callback").await, 404);
}
