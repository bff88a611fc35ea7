//! CPU tasks that share cores and memory channels: each runs at full speed as long as there is enough of both, and all
//! slow down in the same proportion when there is not.

use std::collections::BTreeMap;

use super::model::{Machine, Task};

/// A CPU and the tasks on it, by a name of the caller's.
#[derive(Clone, Debug)]
pub(super) struct Processor<K> {
    cores: f64,
    lanes: f64,
    /// Task and the seconds that it still takes at full speed.
    tasks: BTreeMap<K, (Task, f64)>,
}

/// Less is nothing: rounding must not keep a task alive.
const DONE: f64 = 1e-9;

impl<K: Ord + Copy> Processor<K> {
    pub(super) fn new(machine: &Machine) -> Self {
        Self { cores: machine.cores, lanes: machine.lanes, tasks: BTreeMap::new() }
    }

    pub(super) fn start(&mut self, name: K, task: Task) {
        self.tasks.insert(name, (task, task.seconds));
    }

    pub(super) fn stop(&mut self, name: K) {
        self.tasks.remove(&name);
    }

    /// Seconds a second that each task gets done.
    fn speed(&self) -> f64 {
        let (cores, lanes) = self.tasks.values().fold((0.0, 0.0), |(c, l), (task, _)| (c + task.cores, l + task.lanes));
        let share = |have: f64, want: f64| if want > have { have / want } else { 1.0 };
        share(self.cores, cores).min(share(self.lanes, lanes))
    }

    /// In how many seconds the first task ends.
    pub(super) fn next_end(&self) -> Option<f64> {
        let least = self.tasks.values().map(|(_, left)| *left).min_by(f64::total_cmp)?;
        Some(least / self.speed())
    }

    /// Lets time pass, no longer than to the next end, and takes out what has ended.
    pub(super) fn pass(&mut self, seconds: f64) -> Vec<K> {
        let done = seconds * self.speed();
        self.tasks.values_mut().for_each(|(_, left)| *left -= done);
        let ended: Vec<K> = self.tasks.iter().filter(|(_, (_, left))| *left <= DONE).map(|(name, _)| *name).collect();
        ended.iter().for_each(|name| {
            self.tasks.remove(name);
        });
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_slow_each_other_down_only_when_something_is_short() {
        let machine = Machine { cores: 4.0, lanes: 2.0, ..Machine::ours(1, 4, 1.0) };
        let mut cpu = Processor::new(&machine);
        cpu.start(1, Task { seconds: 10.0, cores: 1.0, lanes: 1.0 });
        cpu.start(2, Task { seconds: 5.0, cores: 2.0, lanes: 1.0 });
        assert_eq!(cpu.next_end(), Some(5.0));
        assert!(cpu.pass(1.0).is_empty());
        // Two more lanes than there are: half speed.
        cpu.start(3, Task { seconds: 1.0, cores: 1.0, lanes: 2.0 });
        assert_eq!(cpu.next_end(), Some(2.0));
        assert_eq!(cpu.pass(2.0), [3]);
        assert_eq!(cpu.next_end(), Some(3.0));
        assert_eq!(cpu.pass(3.0), [2]);
        assert_eq!(cpu.next_end(), Some(5.0));
    }
}
