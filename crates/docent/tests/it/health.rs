//! `docent health`, the health check of containers, against a real server and against programs that are none.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::process::{ServerProcess, TestDir};

#[test]
fn a_running_server_is_healthy_and_a_ready_one_reports_its_state() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let address = format!("http://{}", server.address);
    let ran = dir.run(&["health", &address]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "{\"status\":\"ok\"}\n"),
        "{ran:?}"
    );
    let ran = dir.run(&["health", &format!("{address}/mcp"), "--ready"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("{\"ready\":true"), "{ran:?}");
    // Without an address it checks `server.listen` of the same settings, as in a container.
    let everywhere = server.address.replace("127.0.0.1", "0.0.0.0");
    let mut command = dir.docent(&["health"]);
    let ran = command.env("DOCENT_SERVER_LISTEN", everywhere).output();
    assert_eq!(ran.unwrap().status.code(), Some(0));
}

#[test]
fn unreachable_and_foreign_servers_are_unhealthy() {
    let dir = TestDir::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = free.local_addr().unwrap();
    drop(free);
    let ran = dir.run(&["health", &format!("http://{unused}")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("hint: check that `docent serve` is running"),
        "{ran:?}"
    );
    for (answer, expected) in [
        ("200 OK", "another program answers"),
        ("503 Service Unavailable", "is not ready"),
        ("404 Not Found", "answers with status 404"),
    ] {
        let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = foreign.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = foreign.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            write!(
                stream,
                "HTTP/1.1 {answer}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
            )
            .unwrap();
        });
        let ran = dir.run(&["health", &format!("http://{address}")]);
        serving.join().unwrap();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
    }
}

#[test]
fn timeouts_and_addresses_are_validated() {
    let dir = TestDir::new();
    for args in [
        ["health", "--timeout", "0"],
        ["health", "--timeout", "601"],
        ["health", "nonsense", "--ready"],
    ] {
        assert_eq!(dir.run(&args).code, Some(2), "{args:?}");
    }
}
