//! What `docs/configuration.md` shows can be used.

use std::path::Path;

use crate::stage::{Stage, text, with_env};

#[test]
fn every_configuration_in_the_document_loads() {
    let document = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md"));
    let blocks: Vec<&str> = document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2, "{blocks:?}");
    for block in blocks {
        let stage = Stage::new();
        stage.write("secret", "0123456789abcdef");
        let block = block.replace("/run/secrets/redis", "secret").replace("/run/secrets/ops_token", "secret");
        let layers = with_env(stage.layers(&block), &[("APP_TOKEN", "fedcba9876543210")]);
        layers.load().unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
}
