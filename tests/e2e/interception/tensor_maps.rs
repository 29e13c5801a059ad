//! The calls that make tensor maps: what the trace has of them.
//!
//! Runs against the fake driver, which answers the calls and leaves maps as they are: their bytes
//! are the test's.

use cuda_sys::*;
use tests::build;
use tests::scripted::Script;
use trace::{MapCopies, Op};

/// What an op says: the first byte of the map, address, bits, what copies take, and the lists.
type Told = (u8, u64, u32, MapCopies, Vec<u64>, Vec<u64>, Vec<u32>, Vec<u32>);

fn told(script: &Script, name: &str) -> Vec<(String, Told)> {
    let mut all = Vec::new();
    script.record(&build::scratch(name), |call, op| {
        if let Op::TensorMap { map, address, bits, copies, sizes, strides, extent, step } = *op {
            assert_eq!(map.len(), 128, "{call}");
            let lists =
                (sizes.iter().collect(), strides.iter().collect(), extent.iter().collect(), step.iter().collect());
            all.push((call.to_owned(), (map[0], address, bits, copies, lists.0, lists.1, lists.2, lists.3)));
        }
    });
    all
}

/// A map, and the arguments that all encodings begin with.
struct World {
    script: Script,
    sizes: u64,
    strides: u64,
    extent: u64,
    step: u64,
    corners: u64,
}

impl World {
    fn new() -> Self {
        let mut script = Script::default();
        let (sizes, strides) = (script.put_all(&[64_u64, 32, 8, 7]), script.put_all(&[256_u64, 8192, 65536]));
        let (extent, step) = (script.put_all(&[32_u32, 4, 2, 1]), script.put_all(&[5_u32, 2, 1, 1]));
        let corners = script.put_all(&[0_i32; 4]);
        Self { script, sizes, strides, extent, step, corners }
    }

    /// Memory for a map whose bytes are all this.
    fn map(&mut self, byte: u8) -> u64 {
        let at = self.script.put_all(&[byte; 256]);
        // The driver wants 64 bytes of alignment.
        at.next_multiple_of(64)
    }

    fn tiled(&mut self, map: u64, kind: CUtensorMapDataType, answer: u32) {
        let Self { sizes, strides, extent, step, .. } = *self;
        let arguments = [map, kind.0.into(), 3, 0x4000, sizes, strides, extent, step, 0, 0, 0, 0];
        self.script.answered("cuTensorMapEncodeTiled", answer, &arguments);
    }
}

#[test]
fn calls_that_make_maps_are_told() {
    let mut world = World::new();
    let maps: [u64; 5] = std::array::from_fn(|n| world.map(n as u8 + 1));
    world.tiled(maps[0], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0);
    let World { sizes, strides, corners, step, .. } = world;
    let float = CU_TENSOR_MAP_DATA_TYPE_FLOAT32.0.into();
    let images = [maps[1], float, 4, 0x8000, sizes, strides, corners, corners, 16, 8, step, 0, 0, 0, 0];
    world.script.answered("cuTensorMapEncodeIm2col", 0, &images);
    let wide = [maps[2], float, 3, 0xc000, sizes, strides, 0, 0, 16, 8, step, 0, 0, 0, 0, 0];
    world.script.answered("cuTensorMapEncodeIm2colWide", 0, &wide);
    world.script.answered("cuTensorMapReplaceAddress", 0, &[maps[0], 0x1_0000]);
    // Channels that are interleaved; numbers of four bits.
    let extent = world.extent;
    let interleaved = [maps[3], float, 3, 0x4000, sizes, strides, extent, step, 1, 0, 0, 0];
    world.script.answered("cuTensorMapEncodeTiled", 0, &interleaved);
    world.tiled(maps[4], CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 0);
    let three = || (vec![64, 32, 8], vec![256, 8192]);
    let of = |byte, address, bits, copies, (sizes, strides), extent: &[u32], step: &[u32]| {
        (byte, address, bits, copies, sizes, strides, extent.to_vec(), step.to_vec())
    };
    use MapCopies::{Columns, Interleaved, Tiles, WideColumns};
    let wanted = [
        ("cuTensorMapEncodeTiled", of(1, 0x4000, 16, Tiles, three(), &[32, 4, 2], &[1, 2, 1])),
        (
            "cuTensorMapEncodeIm2col",
            of(2, 0x8000, 32, Columns, (vec![64, 32, 8, 7], vec![256, 8192, 65536]), &[], &[1, 2, 1, 1]),
        ),
        ("cuTensorMapEncodeIm2colWide", of(3, 0xc000, 32, WideColumns, three(), &[], &[1, 2, 1])),
        ("cuTensorMapReplaceAddress", of(1, 0x1_0000, 16, Tiles, three(), &[32, 4, 2], &[1, 2, 1])),
        ("cuTensorMapEncodeTiled", of(4, 0x4000, 32, Interleaved, three(), &[32, 4, 2], &[1, 2, 1])),
        ("cuTensorMapEncodeTiled", of(5, 0x4000, 4, Tiles, three(), &[32, 4, 2], &[1, 2, 1])),
    ];
    assert_eq!(told(&world.script, "tensor-maps-told"), wanted.map(|(call, op)| (call.to_owned(), op)));
}

#[test]
fn calls_that_make_nothing_new_are_not() {
    let mut world = World::new();
    let (map, other, unknown) = (world.map(1), world.map(1), world.map(2));
    world.tiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0);
    // The same map again, elsewhere; one that fails; another address of a map that no call made.
    world.tiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0);
    world.tiled(other, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0);
    world.tiled(unknown, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 1);
    world.script.answered("cuTensorMapReplaceAddress", 0, &[unknown, 0x1_0000]);
    world.script.answered("cuTensorMapReplaceAddress", 1, &[map, 0x1_0000]);
    assert_eq!(told(&world.script, "tensor-maps-once").len(), 1);
}
