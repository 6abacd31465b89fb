//! Arguments of a run.

use std::path::PathBuf;

use antumbra_local::unkind::Unkind;

/// Sensors of a saturated stack.
const SATURATED_SENSORS: usize = 1000;

/// Rates, duration and number of devices.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) reports_per_second: usize,
    pub(crate) signals_per_second: usize,
    pub(crate) seconds: usize,
    pub(crate) devices: usize,
    pub(crate) memory: bool,
    /// Keeps no history.
    pub(crate) no_history: bool,
    /// Measures the highest rates instead of running at the given ones; 0 leaves one out.
    pub(crate) saturate: bool,
    /// Faults that AWS allows, by a seed.
    pub(crate) unkind: Unkind,
    /// Numbers of devices to measure afterwards, ascending.
    pub(crate) growth: Vec<usize>,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) markdown: Option<PathBuf>,
}

impl Plan {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Plan, String> {
        let mut numbers = Vec::new();
        let mut plan = Plan {
            reports_per_second: 1000,
            signals_per_second: usize::MAX,
            seconds: 60,
            devices: 1000,
            memory: false,
            no_history: false,
            saturate: false,
            unkind: Unkind::default(),
            growth: Vec::new(),
            svg: None,
            markdown: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("signals", text)) => plan.signals_per_second = number(text)?,
                Some(("devices", text)) => plan.devices = number(text)?.max(1),
                Some(("svg", file)) => plan.svg = Some(file.into()),
                Some(("markdown", file)) => plan.markdown = Some(file.into()),
                Some(("unkind", seed)) => plan.unkind = Unkind::with_seed(number(seed)? as u64),
                None if word == "memory" => plan.memory = true,
                None if word == "no-history" => plan.no_history = true,
                None if word == "saturate" => plan.saturate = true,
                None if word == "growth" => plan.growth = vec![1_000, 10_000, 100_000],
                Some(("growth", list)) => {
                    plan.growth = list.split(',').map(number).collect::<Result<_, _>>()?;
                    plan.growth.sort_unstable();
                }
                None => numbers.push(number(&word)?),
                Some(_) => return Err(format!("{word:?} is not understood")),
            }
        }
        if let [reports, ..] = numbers[..] {
            plan.reports_per_second = reports.max(usize::from(!plan.saturate));
        }
        if let [_, seconds, ..] = numbers[..] {
            plan.seconds = seconds.max(1);
        }
        if plan.signals_per_second == usize::MAX {
            plan.signals_per_second = match plan.saturate {
                true => 1,
                false => plan.reports_per_second / 10,
            };
        }
        Ok(plan)
    }

    /// Number of sensors, so that each sends about every other second.
    pub(crate) fn sensors(&self) -> usize {
        match self.saturate {
            true => SATURATED_SENSORS,
            false => self.signals_per_second * 2,
        }
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is neither a number nor a known word"))
}
