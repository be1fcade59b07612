//! `docent permissions explain --as`: it answers for every kind of caller what the real server answers to the real
//! credential.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::fake_issuer::{FakeIssuer, PUBLIC, claims};
use crate::malformed_permissions::{RULES, WORD};
use crate::mint::{Signer, jwks};
use crate::process::{ServerProcess, TestDir, until};

/// The e-mail address of the user `anna` and of the API key `nightly`.
const ADDRESS: &str = "anna@port.example";

/// Sections of `docent.toml`, in which `OWN` and `FOREIGN` stand for the two issuers.
struct AuthCase {
    label: &'static str,
    auth: &'static str,
    permissions: &'static str,
}

const OWN: &str = "mode = \"password\"\n";
const BOTH: &str = "mode = \"password\"\nissuers = [\"FOREIGN\"]\nprivate_network = true\n";

const fn case(label: &'static str, auth: &'static str, permissions: &'static str) -> AuthCase {
    AuthCase {
        label,
        auth,
        permissions,
    }
}

/// A credential for requests, and the names that `--as` has for its holder.
struct Credential {
    who: &'static str,
    headers: String,
    names: Vec<String>,
}

/// A server with a document for each kind of reader, and everybody who calls it.
struct Comparison {
    dir: TestDir,
    browser: Browser,
    documents: Vec<(&'static str, String)>,
    credentials: Vec<Credential>,
    _server: ServerProcess,
    _foreign: FakeIssuer,
}

fn foreign_issuer(signer: &Signer) -> FakeIssuer {
    let keys = jwks(&[signer]);
    FakeIssuer::start(move |name, question| match question.path.as_str() {
        "/.well-known/openid-configuration" => {
            Some(json!({"issuer": name, "jwks_uri": format!("{name}/jwks")}))
        }
        "/jwks" => Some(keys.clone()),
        _ => None,
    })
}

/// A loopback address that is free now. The name of the issuer contains it, so it has to be known before the start.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// The documents by id, each with its one reader.
fn documents(own: &str, foreign: &str) -> Vec<(&'static str, String)> {
    vec![
        ("group.md", "hr".to_owned()),
        ("address.md", ADDRESS.to_owned()),
        ("group-anna.md", "group:anna".to_owned()),
        ("subject.md", "sub:anna".to_owned()),
        ("subject-own.md", format!("sub:{own} anna")),
        ("subject-foreign.md", format!("sub:{foreign} anna")),
        ("subject-key.md", "sub:nightly".to_owned()),
        ("key.md", "key:nightly".to_owned()),
        ("key-anna.md", "key:anna".to_owned()),
        ("signed-in.md", "signed-in".to_owned()),
        ("everyone.md", "everyone".to_owned()),
        ("nobody.md", "nobody".to_owned()),
    ]
}

/// Adds an API key, and returns its credential; `--as` names it in three ways.
fn key(dir: &TestDir, name: &'static str, more: &[&str]) -> Credential {
    let args = ["key", "add", name, "--path", "docs"];
    let added = dir.run(&[&args, more].concat());
    assert_eq!(added.code, Some(0), "{added:?}");
    let key = added.stdout.trim();
    let id = key.split('_').nth(1).unwrap().to_owned();
    Credential {
        who: name,
        headers: format!("X-Api-Key: {key}\r\n"),
        names: vec![name.to_owned(), format!("key:{name}"), id],
    }
}

/// Makes the keys that have an expiry expire now.
fn expire(dir: &TestDir) {
    let path = "docs/.docent/sign-in/api-keys.json";
    let mut file: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join(path)).unwrap()).unwrap();
    for key in file["keys"].as_array_mut().unwrap() {
        if key.get("expires").is_some() {
            key["expires"] = json!(1);
        }
    }
    dir.write(path, &file.to_string());
}

fn keys(dir: &TestDir) -> Vec<Credential> {
    let (hr, address) = ("groups=hr", format!("email={ADDRESS}"));
    let claims = ["--claim", hr, "--claim", &address];
    let keys = vec![
        key(dir, "nightly", &claims),
        key(dir, "plain", &[]),
        key(dir, "unscoped", &["--claim", hr, "--scope", "docs.write"]),
        key(dir, "expired", &["--claim", hr, "--days", "1"]),
    ];
    expire(dir);
    keys
}

/// Signs the user in with the password, and returns the access token.
fn token(browser: &Browser, password: &str) -> String {
    let client = browser.register();
    let page = browser.authorize(&client);
    let back = browser.submit_consent(&page, &[("name", "anna"), ("password", password)]);
    let tokens = browser.redeem(&client, &back.redirect_parameter("code"));
    let token = tokens.json()["access_token"].clone();
    token.as_str().unwrap().to_owned()
}

impl Comparison {
    /// Starts the server of a case; without a public address, its own issuer is named after the address it listens on.
    fn start(case: &AuthCase, public: Option<&str>) -> Self {
        let signer = Signer::ed25519("k1");
        let foreign = foreign_issuer(&signer);
        let dir = TestDir::new();
        let listen = free_address();
        let own = public.map_or_else(|| format!("http://{listen}"), str::to_owned);
        let public = public.map(|url| format!("public_url = \"{url}\"\n"));
        let settings = format!(
            "search.mode = \"lexical\"\n[server]\nlisten = \"{listen}\"\n{}[auth]\n{}{RULES}{}",
            public.unwrap_or_default(),
            case.auth,
            case.permissions
        );
        let settings = settings.replace("OWN", &own);
        dir.write(
            "docs/docent.toml",
            &settings.replace("FOREIGN", &foreign.name),
        );
        let documents = documents(&own, &foreign.name);
        for (id, reader) in &documents {
            let text = format!("---\nallowed: [\"{reader}\"]\n---\n{WORD}\n");
            dir.write(&format!("docs/{id}"), &text);
        }
        let args = ["user", "add", "anna", "--group", "hr", "--email", ADDRESS];
        let added = dir.run(&[&args[..], &["--path", "docs"]].concat());
        assert_eq!(added.code, Some(0), "{added:?}");
        let mut credentials = keys(&dir);
        let server = ServerProcess::of(dir.docent(&["serve", "docs", "--no-watch"]));
        server.wait_until_synced();
        let address = server.address.clone();
        let browser = Browser { address };
        credentials.push(Credential {
            who: "anonymous",
            headers: String::new(),
            names: vec!["everyone".to_owned()],
        });
        let has = |setting: &str| case.auth.contains(setting);
        let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
        if has("password") {
            let mut names = vec!["anna".to_owned(), format!("sub:{own} anna")];
            names.extend((!has("issuers")).then(|| "sub:anna".to_owned()));
            credentials.push(Credential {
                who: "anna",
                headers: bearer(&token(&browser, added.stdout.trim())),
                names,
            });
        }
        if has("issuers") {
            let mut names = vec![format!("sub:{} anna", foreign.name)];
            names.extend((!has("password")).then(|| "sub:anna".to_owned()));
            let mut claims = claims(&foreign.name);
            claims["aud"] = format!("{own}/mcp").into();
            credentials.push(Credential {
                who: "foreign anna",
                headers: bearer(&signer.token(&claims)),
                names,
            });
        }
        Self {
            dir,
            browser,
            documents,
            credentials,
            _server: server,
            _foreign: foreign,
        }
    }

    /// Whether the server gives the document to the holder of a credential.
    fn is_served(&self, credential: &Credential, id: &str) -> bool {
        let call = json!({"name": "fetch", "arguments": {"id": id}});
        // The keys of the foreign issuer may still be on their way.
        let got = until(|| {
            let got = self
                .browser
                .rpc("/mcp", &credential.headers, "tools/call", &call);
            (got.status != 503).then_some(got)
        });
        let got = got.unwrap();
        match got.status {
            200 => {
                let result = &got.json()["result"];
                let text = result["structuredContent"]["text"].as_str();
                assert_eq!(text.is_some(), result["isError"] != true, "{result}");
                text.is_some_and(|text| text.contains(WORD))
            }
            401 | 403 => false,
            other => panic!("{other}: {}", got.body),
        }
    }

    /// Whether `docent permissions explain` says that somebody may read the document.
    fn is_explained(&self, name: &str, id: &str) -> bool {
        let args = ["permissions", "explain", id, "--as", name];
        let ran = self
            .dir
            .run(&[&args[..], &["--json", "--path", "docs"]].concat());
        let may = ran.json()["as"]["may_read"].as_bool().unwrap();
        assert_eq!(ran.code, Some(i32::from(!may)), "{ran:?}");
        may
    }

    /// Compares both for everybody and everything. Returns what the server gives to whom.
    fn compare(&self, label: &str) -> BTreeSet<(&'static str, &'static str)> {
        let (mut served, mut wrong) = (BTreeSet::new(), Vec::new());
        for credential in &self.credentials {
            for (id, reader) in &self.documents {
                let is_served = self.is_served(credential, id);
                if is_served {
                    served.insert((credential.who, *id));
                }
                for name in &credential.names {
                    if self.is_explained(name, id) != is_served {
                        let who = credential.who;
                        wrong.push(format!(
                            "`{id}` for `{reader}` --as `{name}`: the server gives it to {who}: {is_served}"
                        ));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{label}:\n{}", wrong.join("\n"));
        served
    }
}

/// The ids that one caller is given.
fn given(served: &BTreeSet<(&'static str, &'static str)>, who: &str) -> Vec<&'static str> {
    let own = served.iter().filter(|(caller, _)| *caller == who);
    own.map(|(_, id)| *id).collect()
}

/// Compares the two for every case, and returns what the server gives to whom in each.
fn compare(
    cases: &[AuthCase],
    public: Option<&str>,
) -> Vec<BTreeSet<(&'static str, &'static str)>> {
    let compare = |case: &AuthCase| Comparison::start(case, public).compare(case.label);
    cases.iter().map(compare).collect()
}

#[test]
fn explain_says_what_the_server_does_with_its_own_sign_in() {
    let cases = [
        case("own sign-in", OWN, ""),
        case("claims from it", OWN, "claims_from = [\"OWN\"]\n"),
        case("claims from nobody", OWN, "claims_from = []\n"),
        case(
            "other claims",
            OWN,
            "groups_claim = \"sub\"\nemail_claim = \"mail\"\n",
        ),
    ];
    let served = compare(&cases, Some(PUBLIC));
    let (all, name) = (
        ["address.md", "everyone.md", "group.md", "signed-in.md"],
        ["subject-own.md", "subject.md"],
    );
    let with_claims = [&all[..], &name].concat();
    let without = [&["everyone.md", "signed-in.md"][..], &name].concat();
    assert_eq!(given(&served[0], "anna"), with_claims);
    assert_eq!(given(&served[1], "anna"), with_claims);
    assert_eq!(given(&served[2], "anna"), without);
    assert_eq!(
        given(&served[3], "anna"),
        [&["everyone.md", "group-anna.md", "signed-in.md"][..], &name].concat()
    );
    // Without a public address, the issuer is named after the address that the server listens on.
    let served = compare(&cases[..2], None);
    assert_eq!(given(&served[0], "anna"), with_claims);
    assert_eq!(given(&served[1], "anna"), with_claims);
}

#[test]
fn explain_says_what_the_server_does_with_two_issuers() {
    let cases = [
        case("claims from all", BOTH, ""),
        case("claims from own", BOTH, "claims_from = [\"OWN\"]\n"),
        case("claims from foreign", BOTH, "claims_from = [\"FOREIGN\"]\n"),
        case(
            "claims from both",
            BOTH,
            "claims_from = [\"OWN\", \"FOREIGN\"]\n",
        ),
    ];
    let served = compare(&cases, Some(PUBLIC));
    let with_claims = [
        "address.md",
        "everyone.md",
        "group.md",
        "signed-in.md",
        "subject-own.md",
    ];
    let without = ["everyone.md", "signed-in.md", "subject-own.md"];
    let foreign = ["everyone.md", "signed-in.md", "subject-foreign.md"];
    for (at, anna) in [&with_claims[..], &with_claims, &without, &with_claims]
        .into_iter()
        .enumerate()
    {
        assert_eq!(given(&served[at], "anna"), anna, "{}", cases[at].label);
        assert_eq!(given(&served[at], "foreign anna"), foreign);
    }
}

#[test]
fn explain_says_what_the_server_does_with_keys_and_a_foreign_issuer() {
    let cases = [
        case(
            "foreign issuer",
            "issuers = [\"FOREIGN\"]\nprivate_network = true\n",
            "",
        ),
        case("API keys", "api_keys = true\n", ""),
        case(
            "optional",
            "api_keys = true\nrequired = false\n",
            "claims_from = []\n",
        ),
    ];
    let served = compare(&cases, Some(PUBLIC));
    let foreign = [
        "everyone.md",
        "signed-in.md",
        "subject-foreign.md",
        "subject.md",
    ];
    assert_eq!(given(&served[0], "foreign anna"), foreign);
    let nightly = [
        "address.md",
        "everyone.md",
        "group.md",
        "key.md",
        "signed-in.md",
    ];
    for served in &served {
        assert_eq!(given(served, "nightly"), nightly);
        assert_eq!(given(served, "plain"), ["everyone.md", "signed-in.md"]);
        assert_eq!(given(served, "expired"), [""; 0]);
    }
    assert_eq!(given(&served[1], "unscoped"), [""; 0]);
    assert_eq!(given(&served[1], "anonymous"), [""; 0]);
    let optional = ["everyone.md", "group.md", "signed-in.md"];
    assert_eq!(given(&served[2], "unscoped"), optional);
    assert_eq!(given(&served[2], "anonymous"), ["everyone.md"]);
}
