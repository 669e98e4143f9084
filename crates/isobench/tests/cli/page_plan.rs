//! The plan that `report.html` offers is accepted by `compare`. No server is needed.

use std::fs;
use std::path::Path;

use crate::support::scene::Scene;

/// The text of the page's element `<pre id="plan" …>`.
fn plan_of(page: &str) -> String {
    let (_, rest) = page.split_once("<pre id=\"plan\"").expect("the page has a plan");
    let (_, rest) = rest.split_once("<code>").expect("the plan is code");
    let (plan, _) = rest.split_once("</code>").expect("it ends");
    plan.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[test]
fn the_plan_of_a_page_is_understood() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isobench-report/tests/golden");
    for name in ["three-levels", "many-factors", "observed"] {
        let scene = Scene::new();
        let result = fs::read_to_string(results.join(name).with_extension("json")).expect("an example");
        scene.write("result.json", &result);
        scene.run(&["report", "result.json"]).expect(0);
        let plan = plan_of(&scene.read("result.html"));
        assert!(plan.contains("\nlevels = [") && plan.contains("\nworkload = ["), "{plan}");
        scene.write("plan.toml", &plan);
        // The server doesn't exist: the plan is parsed before connecting.
        let options = ["compare", "--plan", "plan.toml", "-d", "postgresql:///none?host=/nonexistent"];
        scene.run(&options).expect(1).says(&["/nonexistent"]);
    }
}
