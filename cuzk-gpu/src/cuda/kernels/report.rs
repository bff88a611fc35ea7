//! What the compiler reports of each kernel, read from its log.

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of stack a thread.
    pub stack: u32,
    /// Bytes of registers stored to the stack and loaded from it, as instructions in the code.
    pub spills: u32,
    /// Bytes of static shared memory a block.
    pub shared: u32,
}

/// Reads the lines that `--ptxas-options=-v` makes: an entry function, its stack and spills, its registers.
pub fn parse(log: &str) -> Vec<KernelReport> {
    let mut kernels: Vec<KernelReport> = Vec::new();
    // Functions that are called, not inlined, are listed too: their spills count for the kernel before them.
    for line in log.lines() {
        if let Some(name) = between(line, "Compiling entry function '", "'") {
            kernels.push(KernelReport { name: name.to_owned(), registers: 0, stack: 0, spills: 0, shared: 0 });
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        if line.contains("bytes spill stores") {
            let numbers: Vec<u32> = line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
            if let [stack, stores, loads] = numbers[..] {
                kernel.stack += stack;
                kernel.spills += stores + loads;
            }
        }
        if let Some(registers) = between(line, "Used ", " registers").and_then(|n| n.parse().ok()) {
            kernel.registers = registers;
            kernel.shared = line
                .split(", ")
                .find_map(|part| part.strip_suffix(" bytes smem"))
                .and_then(|n| n.parse().ok())
                .unwrap_or(0);
        }
    }
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    kernels
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    line.split_once(before)?.1.split_once(after).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of NVRTC 13.0.
    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_90'
ptxas info    : Function properties for k2
ptxas         .     2400 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 2400 bytes cumulative stack size, 6144 bytes smem
ptxas info    : Compile time = 201.136 ms
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compile time = 1.286 ms
";

    #[test]
    fn a_log_of_the_compiler() {
        let report = |name: &str, registers, stack, spills, shared| KernelReport {
            name: name.to_owned(),
            registers,
            stack,
            spills,
            shared,
        };
        assert_eq!(parse(LOG), [report("k", 8, 0, 0, 0), report("k2", 32, 2400, 40, 6144)]);
        assert_eq!(parse("warning: something\n"), []);
    }
}
