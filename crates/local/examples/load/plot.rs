//! The run as an SVG plot: three panels over one time axis.

use crate::measure::Second;

const WIDTH: f64 = 720.0;
const PANEL: f64 = 120.0;
const GAP: f64 = 44.0;
const LEFT: f64 = 64.0;
const COLOURS: [&str; 3] = ["#0969da", "#bf3989", "#1a7f37"];

/// A panel: its title, and its named lines.
struct Panel {
    title: &'static str,
    lines: Vec<(&'static str, Vec<f64>)>,
}

pub(crate) fn svg(seconds: &[Second]) -> String {
    // The last second was cut short.
    let seconds = &seconds[..seconds.len().saturating_sub(1)];
    let line = |of: &dyn Fn(&Second) -> f64| seconds.iter().map(of).collect::<Vec<f64>>();
    let panels = [
        Panel {
            title: "a second",
            lines: vec![
                ("reports", line(&|second| second.reports.count() as f64)),
                (
                    "notifications",
                    line(&|second| second.notifications.count() as f64),
                ),
                (
                    "deliveries",
                    line(&|second| second.deliveries.count() as f64),
                ),
            ],
        },
        Panel {
            title: "ms, 99 %",
            lines: vec![
                ("report", line(&|second| second.reports.at(0.99))),
                (
                    "notification",
                    line(&|second| second.notifications.at(0.99)),
                ),
                ("delivery", line(&|second| second.deliveries.at(0.99))),
            ],
        },
        Panel {
            title: "MB resident",
            lines: vec![("memory", line(&|second| second.megabytes as f64))],
        },
    ];
    let height = panels.len() as f64 * (PANEL + GAP) + 24.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        draw(&mut out, panel, at as f64 * (PANEL + GAP) + 28.0);
    }
    let bottom = height - 8.0;
    out.push_str(&text(LEFT, bottom, "start", "#57606a", "0 s"));
    out.push_str(&text(
        WIDTH - 8.0,
        bottom,
        "end",
        "#57606a",
        &format!("{} s", seconds.len()),
    ));
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, panel: &Panel, top: f64) {
    let most = panel.lines.iter().flat_map(|(_, values)| values);
    let most = round_up(most.copied().fold(1.0, f64::max));
    let (right, bottom) = (WIDTH - 8.0, top + PANEL);
    out.push_str(&format!(
        "<path d=\"M{LEFT} {top}H{right}M{LEFT} {bottom}H{right}\" stroke=\"#d0d7de\"/>\n"
    ));
    out.push_str(&text(
        LEFT - 6.0,
        top + 4.0,
        "end",
        "#57606a",
        &most.to_string(),
    ));
    out.push_str(&text(LEFT - 6.0, bottom + 4.0, "end", "#57606a", "0"));
    out.push_str(&text(LEFT, top - 8.0, "start", "#1f2328", panel.title));
    for (at, (name, values)) in panel.lines.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let step = (right - LEFT) / values.len().saturating_sub(1).max(1) as f64;
        let points = values.iter().enumerate().map(|(at, value)| {
            let (x, y) = (LEFT + at as f64 * step, bottom - value / most * PANEL);
            format!("{x:.1},{y:.1}")
        });
        let points = points.collect::<Vec<_>>().join(" ");
        out.push_str(&format!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>\n"
        ));
        let x = right - 110.0 * (panel.lines.len() - 1 - at) as f64;
        out.push_str(&text(x, top - 8.0, "end", colour, name));
    }
}

fn text(x: f64, y: f64, anchor: &str, colour: &str, words: &str) -> String {
    format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>\n")
}

/// The next of 1, 2, 5, 10, 20, ….
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}
