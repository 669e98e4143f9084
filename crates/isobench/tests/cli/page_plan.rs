//! The plan that `report.html` offers is accepted by `compare`. No server is needed.

use crate::report::example;
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
    for name in ["three-levels", "many-factors", "observed"] {
        let scene = Scene::new();
        scene.write("result.json", &example(name));
        scene.run(&["report", "result.json"]).expect(0);
        let plan = plan_of(&scene.read("result.html"));
        assert!(plan.contains("\nlevels = [") && plan.contains("\nworkload = ["), "{plan}");
        scene.write("plan.toml", &plan);
        // The server doesn't exist: the plan is parsed before connecting.
        let options = ["compare", "--plan", "plan.toml", "-d", "postgresql:///none?host=/nonexistent"];
        scene.run(&options).expect(1).says(&["/nonexistent"]);
    }
}
