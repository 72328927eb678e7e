//! The settings as a user writes them: precedence, destinations, profiles, and the page that describes them.

use fi_hook_to_otlp::config::settings_page;

#[test]
fn the_page_is_that_of_the_registry() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, settings_page()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == settings_page(), "docs/settings.md is old: run UPDATE_DOCS=1 cargo test --test settings");
}
