//! Omitted properties: a page of a Notion database does not show that its reader field is empty, but the table of the
//! database does. A page that was open before the table came is closed when the folder is read again.

use crate::malformed_permissions::RULES;
use crate::process::{ProcessOutput, TestDir};

const ID: &str = "1f0c9e2b7d5a4c3e8b6f0a1d2c3b4e5f";

fn explain(dir: &TestDir, title: &str) -> ProcessOutput {
    let id = format!("Tasks/{title}%20{ID}.md");
    dir.run(&["permissions", "explain", &id, "--path", "docs"])
}

#[test]
fn a_table_closes_the_pages_that_omit_its_property() {
    let dir = TestDir::new();
    dir.write("docs/docent.toml", RULES);
    let page = |title: &str, property: &str| {
        let text = format!("# {title}\n\n{property}Status: x\n\nwords\n");
        dir.write(&format!("docs/Tasks/{title} {ID}.md"), &text);
    };
    page("One", "Allowed: hr\n");
    page("Two", "");
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    let open = explain(&dir, "Two");
    assert!(open.stdout.contains("readers: everyone"), "{open:?}");
    let table = format!("docs/Tasks {ID}.csv");
    dir.write(&table, "Name,Allowed\nOne,hr\nTwo,\nThree,\n");
    let indexed = dir.run(&["index", "docs"]);
    assert_eq!(indexed.code, Some(0), "{indexed:?}");
    let closed = explain(&dir, "Two");
    assert!(closed.stdout.contains("readers: nobody"), "{closed:?}");
    let named = explain(&dir, "One");
    assert!(named.stdout.contains("readers: group:hr"), "{named:?}");
    // The row without a page is not lost.
    let list = dir.run(&["permissions", "list", "--path", "docs"]);
    assert!(list.stdout.contains(".csv#L4"), "{list:?}");
    dir.remove(&table);
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    let open = explain(&dir, "Two");
    assert!(open.stdout.contains("readers: everyone"), "{open:?}");
}
