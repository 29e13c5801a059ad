//! Blocks whose threads wait for each other for ever: who waits where is told, and blocks of which
//! some threads have ended go on.

use streamsan_sim::interp::Launch;

use crate::interp_support::{Arg, Gpu};

const SOURCE: &str = r#"
// Half of the threads wait for all.
extern "C" __global__ void half(int* d) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;" ::: "memory"); // here
    d[threadIdx.x] = 1;
}
extern "C" __global__ void apart(int* d) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;" ::: "memory"); // low
    else asm volatile("bar.sync 2, 128;" ::: "memory"); // high
    d[threadIdx.x] = 1;
}
// Those that have ended hold nobody up at a barrier of all threads.
extern "C" __global__ void ended(int* d) {
    if (threadIdx.x >= 64) return;
    __syncthreads();
    d[threadIdx.x] = 1;
}
extern "C" __global__ void in_turn(int* d) {
    if (threadIdx.x < 64) asm volatile("bar.arrive 1, 128;" ::: "memory");
    else asm volatile("bar.sync 1, 128;" ::: "memory");
    d[threadIdx.x] = 1;
}
"#;

fn line(marker: &str) -> usize {
    SOURCE.lines().position(|line| line.ends_with(marker)).expect("a marked line") + 1
}

/// What a kernel of 128 threads ends with.
fn ends(gpu: &Gpu, name: &str) -> Result<(), String> {
    let data = gpu.zeros::<i32>(128);
    let args: [Arg; 1] = [(&data).into()];
    let launch = Launch { grid: [1, 1, 1], block: [128, 1, 1], ..Launch::default() };
    gpu.try_launch(name, launch, &args).map_err(|fault| fault.to_string())
}

#[test]
fn who_waits_where_is_told() {
    for gpu in Gpu::both(SOURCE) {
        let said = ends(&gpu, "half").unwrap_err();
        assert!(said.starts_with("deadlock: "), "{said}");
        assert!(said.contains("threads 0 to 63 wait at barrier 1 ("), "{said}");
        assert!(said.contains(&format!(":{})", line("// here"))), "{said}");
        assert!(said.contains("threads 64 to 127 have ended"), "{said}");
        let said = ends(&gpu, "apart").unwrap_err();
        for (threads, barrier, marker) in [("0 to 63", 1, "// low"), ("64 to 127", 2, "// high")] {
            assert!(said.contains(&format!("threads {threads} wait at barrier {barrier} (")), "{said}");
            assert!(said.contains(&format!(":{})", line(marker))), "{said}");
        }
        assert!(!said.contains("ended"), "{said}");
        assert_eq!(ends(&gpu, "ended"), Ok(()));
        assert_eq!(ends(&gpu, "in_turn"), Ok(()));
    }
}
